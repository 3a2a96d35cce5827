// A thread reads, others take what is there and push it, each one call at a time.
#include "clients/cli/pusher.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "clients/cli/apply_error.h"
#include "clients/cli/line_members.h"
#include "clients/cpp/extended_json.h"
#include "clients/cpp/repetition.h"

namespace strata::cli {
namespace {

using Clock = client::Repetition::Clock;

constexpr size_t kCallMessagesMax = 100;
// Of payloads, in one call; one that is larger goes alone.
constexpr size_t kCallBytesMax = size_t{2} << 20;
constexpr size_t kHeldMessages = 4096;
constexpr size_t kHeldBytes = size_t{32} << 20;

client::Refusal LocalRefusal(grpc::StatusCode code, const std::string& message) {
  client::Refusal refusal;
  refusal.code = code;
  refusal.message = message;
  return refusal;
}

// Whether it is a line's fault. A call with others is refused as a whole for one such.
bool ConcernsOne(const client::Refusal& refusal) {
  if (refusal.code == grpc::StatusCode::INVALID_ARGUMENT) {
    const auto field = refusal.metadata.find("field");
    return field == refusal.metadata.end() || field->second != "queue";
  }
  return refusal.reason == "MESSAGE_TOO_LARGE" ||
         (refusal.reason.empty() && refusal.code == grpc::StatusCode::RESOURCE_EXHAUSTED);
}

class Pusher {
 public:
  Pusher(Session& session, const PushSettings& settings, LineReader& lines, PushCounts& counts,
         const PushListener& listener)
      : session_(session),
        settings_(settings),
        lines_(lines),
        counts_(counts),
        listener_(listener) {}

  std::optional<PushFailure> Run() {
    session_.connection();  // Before there are threads.
    std::vector<std::thread> callers;
    for (int i = 0; i < settings_.in_flight; ++i) callers.emplace_back([this] { PushAll(); });
    std::thread reader([this] { Read(); });
    {
      std::unique_lock lock(mutex_);
      while (
          !changed_.wait_for(lock, std::chrono::milliseconds(100), [&] { return running_ == 0; })) {
        listener_.progress(counts_);
        if (!failure_.has_value() && listener_.stop()) {
          Fail(counts_.messages + 1, LocalRefusal(grpc::StatusCode::CANCELLED, "interrupted"));
          changed_.notify_all();
        }
      }
    }
    for (std::thread& caller : callers) caller.join();
    reader.join();  // A silent pipe cannot be interrupted.
    for (const PushLine& line : waiting_) RejectLocked(line, failure_->refusal, true);
    if (!failure_.has_value()) return unreadable_;
    return failure_;
  }

 private:
  using Batch = std::vector<PushLine>;

  void Read() {
    std::string text;
    for (int64_t number = 1;; ++number) {
      const absl::StatusOr<bool> more = lines_.Next(text);
      if (!more.ok() || !*more) return End(more.status(), number);
      if (text.empty()) continue;
      PushLine line;
      line.line = number;
      line.message = settings_.defaults;
      line.message.set_request_id(settings_.defaults.request_id() + "/" + std::to_string(number));
      line.parsed = ParsePushLine(text, line.message);
      line.text = std::move(text);
      if (!Put(std::move(line))) return;
    }
  }

  // Waits for room. False: nobody takes any more.
  bool Put(PushLine line) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return failure_.has_value() ||
             (waiting_.size() < kHeldMessages && waiting_bytes_ < kHeldBytes);
    });
    ++counts_.messages;
    counts_.bytes_read = lines_.bytes_read();
    if (!line.parsed.ok()) {
      ++counts_.malformed;
      listener_.rejected(line, client::RefusalOf(line.parsed), false);
      return !failure_.has_value();
    }
    waiting_bytes_ += line.text.size();
    waiting_.push_back(std::move(line));
    changed_.notify_all();
    return !failure_.has_value();
  }

  void End(const absl::Status& failure, int64_t line) {
    const std::lock_guard lock(mutex_);
    at_end_ = true;
    counts_.bytes_read = lines_.bytes_read();
    if (!failure.ok()) {
      unreadable_ = PushFailure{.line = line, .refusal = client::RefusalOf(failure)};
    }
    changed_.notify_all();
  }

  void PushAll() {
    client::Repetition repetition(settings_.retry_ms);
    for (Batch batch = Take(); !batch.empty(); batch = Take()) {
      PushRange(batch.data(), batch.data() + batch.size(), repetition);
    }
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  // None: there will be no more.
  Batch Take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failure_.has_value() || at_end_ || !waiting_.empty(); });
    Batch batch;
    size_t bytes = 0;
    while (!failure_.has_value() && !waiting_.empty() && batch.size() < kCallMessagesMax) {
      const size_t more = waiting_.front().text.size();
      if (!batch.empty() && bytes + more > kCallBytesMax) break;
      bytes += more;
      batch.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    waiting_bytes_ -= bytes;
    changed_.notify_all();
    return batch;
  }

  // All of them are accounted for afterwards.
  void PushRange(PushLine* begin, PushLine* end, client::Repetition& repetition) {
    const Clock::time_point first = Clock::now();
    Batch again;
    for (int attempts = 1;; ++attempts) {
      client::Refusal trouble;
      again = PushOnce(begin, end, trouble);
      if (again.empty()) return;
      const auto size = static_cast<size_t>(end - begin);
      if (again.size() == size && size > 1 && ConcernsOne(trouble)) break;
      const bool definite = !MayBeRepeated(trouble);
      const auto next = definite ? std::nullopt : repetition.Next(trouble, attempts, first);
      if (!next.has_value() || !AwaitNextTry(*next)) {
        return GiveUp(again, trouble, /*alone=*/definite && ConcernsOne(trouble));
      }
      std::move(again.begin(), again.end(), begin);
      end = begin + again.size();
    }
    std::move(again.begin(), again.end(), begin);
    PushLine* const middle = begin + (end - begin) / 2;
    PushRange(begin, middle, repetition);
    PushRange(middle, end, repetition);
  }

  // Those that have no definite answer, or all if the call was refused; `trouble` says why.
  Batch PushOnce(PushLine* begin, PushLine* end, client::Refusal& trouble) {
    v1::PushRequest request;
    request.set_queue(settings_.queue);
    for (PushLine* line = begin; line != end; ++line) *request.add_messages() = line->message;
    v1::PushResponse response;
    const grpc::Status status =
        Stopped() ? grpc::Status(grpc::StatusCode::CANCELLED, "stopped")
                  : session_.Call(&v1::QueueService::Stub::Push, request, &response);
    Batch again;
    if (!status.ok()) {
      trouble = client::RefusalOf(status);
      std::move(begin, end, std::back_inserter(again));
      return again;
    }
    const std::lock_guard lock(mutex_);
    for (int i = 0; begin + i != end; ++i) {
      if (i >= response.results_size()) {
        trouble = LocalRefusal(grpc::StatusCode::INTERNAL, "the server answers less than was sent");
        again.push_back(std::move(begin[i]));
        continue;
      }
      const v1::PushResult& result = response.results(i);
      if (!result.has_error()) {
        ++(result.replayed() ? counts_.replayed : counts_.pushed);
        continue;
      }
      client::Refusal refusal = RefusalOfError(result.error());
      if (MayBeRepeated(refusal)) {
        trouble = std::move(refusal);
        again.push_back(std::move(begin[i]));
      } else {
        RejectLocked(begin[i], refusal, false);
      }
    }
    return again;
  }

  bool Stopped() {
    const std::lock_guard lock(mutex_);
    return failure_.has_value();
  }

  // False: everything stops.
  bool AwaitNextTry(Clock::time_point next) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_until(lock, next, [&] { return failure_.has_value(); });
  }

  // `alone`: the others go on.
  void GiveUp(const Batch& lines, const client::Refusal& refusal, bool alone) {
    const std::lock_guard lock(mutex_);
    for (const PushLine& line : lines) {
      if (!alone) Fail(line.line, refusal);
      RejectLocked(line, alone ? refusal : failure_->refusal, !alone);
    }
    changed_.notify_all();
  }

  void Fail(int64_t line, const client::Refusal& refusal) {
    if (!failure_.has_value()) failure_ = PushFailure{.line = line, .refusal = refusal};
    failure_->line = std::min(failure_->line, line);
  }

  void RejectLocked(const PushLine& line, const client::Refusal& refusal, bool stopped) {
    ++counts_.refused;
    listener_.rejected(line, refusal, stopped);
  }

  Session& session_;
  const PushSettings& settings_;
  LineReader& lines_;  // of the reader

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  PushCounts& counts_;
  const PushListener& listener_;
  std::deque<PushLine> waiting_;
  size_t waiting_bytes_ = 0;
  bool at_end_ = false;
  int running_ = settings_.in_flight;
  std::optional<PushFailure> unreadable_;  // The file, after what was taken.
  std::optional<PushFailure> failure_;     // Stops everything.
};

}  // namespace

absl::Status ParsePushLine(std::string_view text, v1::PushedMessage& message) {
  absl::StatusOr<std::string> bson = client::BsonFromJson(text);
  if (!bson.ok()) return bson.status();
  bson_t view;
  bson_iter_t iter;
  const bool readable =
      bson_init_static(&view, reinterpret_cast<const uint8_t*>(bson->data()), bson->size());
  if (readable && !message.has_sequence_number() &&
      bson_iter_init_find(&iter, &view, "sequence_number")) {
    int64_t number = 0;
    if (ReadWhole(iter, number).ok() && number >= 1) message.set_sequence_number(number);
  }
  message.mutable_payload()->set_bson(*std::move(bson));
  return absl::OkStatus();
}

std::optional<PushFailure> Push(Session& session, const PushSettings& settings, LineReader& lines,
                                PushCounts& counts, const PushListener& listener) {
  return Pusher(session, settings, lines, counts, listener).Run();
}

}  // namespace strata::cli
