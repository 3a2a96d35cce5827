// strata work: a command for each message of a queue.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clients/cli/apply_error.h"
#include "clients/cli/commands.h"
#include "clients/cli/event_command.h"
#include "clients/cli/interruption.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cpp/printable.h"
#include "clients/cpp/repetition.h"
#include "clients/cpp/time_text.h"

namespace strata::cli {
namespace {

using Clock = client::Repetition::Clock;
using ReceiveStream = grpc::ClientReaderWriter<v1::ReceiveRequest, v1::ReceiveResponse>;
using v1::QueueService;

constexpr size_t kTokensMax = 100;  // of one call

struct WorkOptions {
  std::string queue;
  std::vector<std::string> command;
  int32_t credits = 1;
  std::string timeout = "30s";
  int64_t count = 0;  // 0: for ever
  std::string retry_for = "60s";
  bool waits_for_server = false;
};

// Whether what was refused is no news: the message is gone, or the command that ended well has
// itself ended this delivery, as one does that moves the message.
bool IsNoNews(const client::Refusal& refusal, bool ended_well) {
  if (refusal.reason == "MESSAGE_NOT_FOUND") return true;
  const auto delivery = refusal.metadata.find("delivery");
  const auto actual = refusal.metadata.find("actual");
  return ended_well && refusal.reason == "RESERVATION_LOST" && delivery != refusal.metadata.end() &&
         actual != refusal.metadata.end() && actual->second == delivery->second;
}

// A queue's messages over as many streams as it takes, each with a command of its own. This thread
// opens and closes streams and keeps what is out reserved; one reads the stream; as many as there
// are credits run commands.
class Working {
 public:
  Working(Session& session, const WorkOptions& options, google::protobuf::Duration timeout,
          int64_t retry_ms)
      : session_(session),
        timeout_(std::move(timeout)),
        period_(std::chrono::milliseconds(std::max<int64_t>(
            100, (timeout_.seconds() * 1000 + timeout_.nanos() / 1'000'000) / 3))),
        repetition_(retry_ms),
        again_repetition_(retry_ms),
        command_(options.command, session.err()),
        left_(options.count),
        endless_(options.count == 0),
        tries_again_(options.waits_for_server) {
    v1::ReceiveRequest::Open& open = *open_.mutable_open();
    open.set_queue(options.queue);
    open.set_credits(static_cast<int32_t>(
        endless_ ? options.credits : std::min<int64_t>(options.credits, options.count)));
    *open.mutable_timeout() = timeout_;
    open.set_encoding(v1::ENCODING_BSON);
  }

  int Run() {
    const Interruption interruption([this](int) { Interrupt(); });
    session_.connection();  // before there are threads
    next_extension_ = Clock::now() + period_;
    grpc::Status status = OneStream();
    while (IsBroken(status) && AwaitNextTry(status)) status = OneStream();
    Stop();
    Keep([this] { return running_ == 0 && again_.empty(); });
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
      changed_.notify_all();
    }
    for (std::thread& worker : workers_) worker.join();
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return session_.Fail(failure_);
    if (status.ok() || (interruptions_ > 0 && IsBroken(status))) return kExitOk;
    return session_.Refuse(status);
  }

 private:
  // A message that was handed out, under its token, from when its command begins until it is known
  // what became of it.
  struct Held {
    std::string id;
    int stream = 0;          // that it came over
    bool extending = false;  // an answer is to come
    bool lost = false;       // or finished already; not to be extended any more
    bool ended = false;      // the command has
    bool well = false;
  };
  using HeldOnes = std::map<std::string, Held>;

  // For the server to take back what is out, and to say so.
  static constexpr std::chrono::seconds kLeavePatience{15};

  // A server that ends may end its calls so too, and one that has no room for more has some later.
  static bool IsBroken(const grpc::Status& status) {
    return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
           status.error_code() == grpc::StatusCode::CANCELLED ||
           status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
  }

  // The commands under way are waited for; from the second time on they are asked to end, and then
  // ended.
  void Interrupt() {
    int before = 0;
    {
      const std::lock_guard lock(mutex_);
      before = interruptions_++;
    }
    Stop();
    if (before == 1) command_.Terminate();
    if (before < 2) return;
    command_.Kill();
    const std::lock_guard lock(mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }

  // No more is begun. What has come and is not begun goes back with the stream.
  void Stop() {
    const std::lock_guard lock(mutex_);
    StopLocked();
  }
  void StopLocked() {
    stopped_ = true;
    waiting_.clear();
    changed_.notify_all();
  }

  // Until the stream ends, however it does.
  grpc::Status OneStream() {
    grpc::ClientContext context;
    session_.SetLongDeadline(context);
    const auto stream = session_.connection().queues->Receive(&context);
    stream->Write(open_);
    {
      const std::lock_guard lock(write_mutex_);
      stream_ = stream.get();
    }
    {
      const std::lock_guard lock(mutex_);
      context_ = &context;
      ++stream_number_;
      closed_ = ended_ = false;
    }
    std::thread reader([&] { Listen(*stream); });
    Keep([this] { return ended_; });
    reader.join();
    {
      const std::lock_guard lock(write_mutex_);
      stream_ = nullptr;
    }
    const grpc::Status status = stream->Finish();
    ForgetStream();
    return status;
  }

  void Listen(ReceiveStream& stream) {
    v1::ReceiveResponse response;
    while (stream.Read(&response)) {
      const std::lock_guard lock(mutex_);
      tries_again_ = true;
      attempts_ = 0;
      if (response.has_messages()) TakeLocked(*response.mutable_messages());
      if (response.has_results()) LearnLocked(response.results());
      changed_.notify_all();
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  // What has not begun comes again. So does what was not acknowledged for sure, unless that can
  // still be done.
  void ForgetStream() {
    const std::lock_guard lock(mutex_);
    context_ = nullptr;
    waiting_.clear();
    for (auto at = held_.begin(); at != held_.end();) {
      at->second.extending = false;
      if (at->second.ended && at->second.well) again_.insert(*at);
      at = at->second.ended ? held_.erase(at) : std::next(at);
    }
    changed_.notify_all();
  }

  // False: it has been tried for long enough without hearing anything, or nobody wants more.
  bool AwaitNextTry(const grpc::Status& status) {
    std::unique_lock lock(mutex_);
    if (stopped_ || !tries_again_) return false;
    if (attempts_++ == 0) trouble_since_ = Clock::now();
    const auto next = repetition_.Next(client::RefusalOf(status), attempts_, trouble_since_);
    if (!next) return false;
    changed_.wait_until(lock, *next, [&] { return stopped_; });
    return !stopped_;
  }

  // Does what is due beside the commands, until `done`, with the lock held, says so.
  void Keep(const std::function<bool()>& done) {
    std::unique_lock lock(mutex_);
    while (!done()) {
      const Clock::time_point now = Clock::now();
      if (!again_.empty() && now >= again_at_) {
        AcknowledgeApart(lock);
      } else if (stopped_ && running_ == 0 && context_ != nullptr && !closed_) {
        closed_ = true;
        leave_by_ = now + kLeavePatience;
        lock.unlock();
        CloseStream();
        lock.lock();
      } else if (now >= next_extension_) {
        next_extension_ = now + period_;
        lock.unlock();
        ExtendAll();
        lock.lock();
      } else {
        const bool leaving = context_ != nullptr && closed_;
        if (leaving && now >= leave_by_) context_->TryCancel();
        Clock::time_point wake = next_extension_;
        if (leaving && now < leave_by_) wake = std::min(wake, leave_by_);
        if (!again_.empty()) wake = std::min(wake, again_at_);
        changed_.wait_until(lock, wake);
      }
    }
  }

  void CloseStream() {
    const std::lock_guard lock(write_mutex_);
    if (stream_ != nullptr) stream_->WritesDone();
  }

  // False: it cannot be said over the stream of this number.
  bool Say(int stream, const v1::ReceiveRequest& request) {
    const std::lock_guard lock(write_mutex_);
    {
      const std::lock_guard state(mutex_);
      if (stream != stream_number_ || closed_ || ended_) return false;
    }
    return stream_ != nullptr && stream_->Write(request);
  }

  // Messages.

  void TakeLocked(v1::ReceiveResponse::Messages& messages) {
    if (stopped_) return;
    for (v1::QueueMessage& message : *messages.mutable_messages()) {
      waiting_.push_back(std::move(message));
    }
    // One for each that is out at once, as soon as it is needed.
    while (workers_.size() < static_cast<size_t>(open_.open().credits()) &&
           workers_.size() < static_cast<size_t>(running_) + waiting_.size()) {
      workers_.emplace_back([this] { Work(); });
    }
  }

  void LearnLocked(const v1::ReceiveResponse::Results& results) {
    for (int i = 0; i < results.tokens_size() && i < results.results_size(); ++i) {
      const auto held = held_.find(results.tokens(i));
      if (held == held_.end()) continue;
      std::optional<client::Refusal> refusal;
      if (results.results(i).has_error()) refusal = RefusalOfError(results.results(i).error());
      if (!held->second.ended) {
        held->second.extending = false;
        held->second.lost = refusal.has_value() && !MayBeRepeated(*refusal);
        continue;
      }
      if (refusal && held->second.well && MayBeRepeated(*refusal)) {
        again_.insert(*held);
      } else if (refusal && !IsNoNews(*refusal, held->second.well)) {
        Report(held->second, *refusal);
      }
      held_.erase(held);
    }
  }

  void Work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return over_ || (!stopped_ && !waiting_.empty()); });
      if (over_) return;
      const v1::QueueMessage message = std::move(waiting_.front());
      waiting_.pop_front();
      ++running_;
      held_[message.token()] = {.id = message.message_id(), .stream = stream_number_};
      if (!endless_ && --left_ == 0) StopLocked();
      lock.unlock();
      const auto ended = command_.Run(ContentText(message.payload()) + "\n",
                                      {{"STRATA_MESSAGE_ID", message.message_id()},
                                       {"STRATA_DELIVERY", std::to_string(message.delivery())},
                                       {"STRATA_TRIES", std::to_string(message.tries())},
                                       {"STRATA_TOKEN", message.token()}});
      lock.lock();
      End(message.token(), ended, lock);
      --running_;
      changed_.notify_all();
    }
  }

  // Says what has become of a message.
  void End(const std::string& token, const absl::StatusOr<EventCommand::Ended>& ended,
           std::unique_lock<std::mutex>& lock) {
    Held& held = held_[token];
    // An answer does not tell what it is about.
    changed_.wait(lock, [&] { return !held.extending; });
    if (!ended.ok()) failure_ = std::string(ended.status().message());
    // One that wrote to somebody who went away ended so by no fault of the message's.
    if (!ended.ok() || (!ended->well && !session_.OutputIsRead())) {
      held_.erase(token);
      return StopLocked();
    }
    held.ended = true;
    held.well = ended->well;
    v1::ReceiveRequest request;
    if (held.well) {
      request.mutable_acknowledge()->add_tokens(token);
    } else {
      v1::ReceiveRequest::Rollback& rollback = *request.mutable_rollback();
      rollback.add_tokens(token);
      rollback.set_reason(
          AsReason(ended->last_line.empty() ? ended->how : ended->how + ": " + ended->last_line));
      rollback.set_not_counted(interruptions_ > 1);  // It was made to end.
    }
    const Held said = held;
    lock.unlock();
    const bool is_said = Say(said.stream, request);
    lock.lock();
    if (is_said || held_.erase(token) == 0) return;  // Or the stream ended meanwhile.
    if (said.well) {
      again_[token] = said;
      return;
    }
    lock.unlock();
    RollbackApart(said, request.rollback());
    lock.lock();
  }

  // What is said by calls of its own, because the stream that it belongs to is gone.

  // Tries once; what is left waits for its next turn, or is given up.
  void AcknowledgeApart(std::unique_lock<std::mutex>& lock) {
    HeldOnes tokens = std::exchange(again_, {});
    if (again_attempts_++ == 0) again_since_ = Clock::now();
    lock.unlock();
    client::Refusal trouble;
    HeldOnes left;
    while (!tokens.empty()) {
      HeldOnes some;
      while (!tokens.empty() && some.size() < kTokensMax) {
        some.insert(tokens.extract(tokens.begin()));
      }
      AcknowledgeOnce(some, trouble);
      left.merge(some);
    }
    lock.lock();
    std::optional<Clock::time_point> next;
    if (!left.empty() && interruptions_ < 2) {
      next = again_repetition_.Next(trouble, again_attempts_, again_since_);
    }
    if (next) {
      again_at_ = *next;
      again_.merge(left);
      return;
    }
    again_attempts_ = 0;
    for (const auto& [token, held] : left) Report(held, trouble);
  }

  // Leaves those that are to be tried again.
  void AcknowledgeOnce(HeldOnes& tokens, client::Refusal& trouble) {
    v1::AcknowledgeRequest request;
    for (const auto& [token, held] : tokens) request.add_tokens(token);
    v1::AcknowledgeResponse response;
    const grpc::Status status = session_.Call(&QueueService::Stub::Acknowledge, request, &response);
    for (int i = 0; i < request.tokens_size(); ++i) {
      client::Refusal refusal;
      if (!status.ok()) {
        refusal = client::RefusalOf(status);
      } else if (i < response.results_size() && response.results(i).has_error()) {
        refusal = RefusalOfError(response.results(i).error());
      } else {
        tokens.erase(request.tokens(i));
        continue;
      }
      if (MayBeRepeated(refusal)) {
        trouble = std::move(refusal);
        continue;
      }
      if (!IsNoNews(refusal, /*ended_well=*/true)) Report(tokens[request.tokens(i)], refusal);
      tokens.erase(request.tokens(i));
    }
  }

  void RollbackApart(const Held& held, const v1::ReceiveRequest::Rollback& rollback) {
    v1::RollbackRequest request;
    *request.mutable_tokens() = rollback.tokens();
    request.set_reason(rollback.reason());
    request.set_not_counted(rollback.not_counted());
    v1::RollbackResponse response;
    const grpc::Status status = session_.Call(&QueueService::Stub::Rollback, request, &response);
    if (!status.ok()) return Report(held, client::RefusalOf(status));
    if (response.results_size() == 1 && response.results(0).has_error()) {
      Report(held, RefusalOfError(response.results(0).error()));
    }
  }

  // All whose commands run.
  void ExtendAll() {
    std::vector<std::string> tokens;
    std::vector<std::string> apart;
    int stream = 0;
    {
      const std::lock_guard lock(mutex_);
      stream = stream_number_;
      for (auto& [token, held] : held_) {
        if (held.ended || held.lost || held.extending) continue;
        const bool is_open = held.stream == stream && context_ != nullptr && !closed_ && !ended_;
        held.extending = is_open;
        (is_open ? tokens : apart).push_back(token);
      }
    }
    InParts(tokens, [&](const std::vector<std::string>& part) {
      v1::ReceiveRequest request;
      for (const std::string& token : part) request.mutable_extend()->add_tokens(token);
      *request.mutable_extend()->mutable_timeout() = timeout_;
      if (Say(stream, request)) return;
      const std::lock_guard lock(mutex_);
      for (const std::string& token : part) {
        if (const auto held = held_.find(token); held != held_.end()) {
          held->second.extending = false;
        }
      }
      changed_.notify_all();
    });
    InParts(apart, [&](const std::vector<std::string>& part) { ExtendApart(part); });
  }

  void ExtendApart(const std::vector<std::string>& tokens) {
    v1::ExtendRequest request;
    for (const std::string& token : tokens) request.add_tokens(token);
    *request.mutable_timeout() = timeout_;
    v1::ExtendResponse response;
    if (!session_.Call(&QueueService::Stub::Extend, request, &response).ok()) return;
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i >= static_cast<size_t>(response.results_size())) break;
      const v1::TokenResult& result = response.results(static_cast<int>(i));
      const auto held = held_.find(tokens[i]);
      if (held == held_.end() || !result.has_error()) continue;
      held->second.lost = !MayBeRepeated(RefusalOfError(result.error()));
    }
  }

  static void InParts(const std::vector<std::string>& tokens,
                      const std::function<void(const std::vector<std::string>&)>& each) {
    for (size_t begin = 0; begin < tokens.size(); begin += kTokensMax) {
      const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(begin);
      const size_t size = std::min(kTokensMax, tokens.size() - begin);
      each({first, first + static_cast<std::ptrdiff_t>(size)});
    }
  }

  void Report(const Held& held, const client::Refusal& refusal) {
    const std::lock_guard lock(command_.err_mutex());
    session_.Report(refusal, "message " + client::Printable(held.id));
    session_.err().flush();
  }

  Session& session_;
  const google::protobuf::Duration timeout_;
  const std::chrono::milliseconds period_;  // of extensions
  client::Repetition repetition_;           // of streams
  client::Repetition again_repetition_;
  v1::ReceiveRequest open_;
  EventCommand command_;
  Clock::time_point next_extension_;

  std::mutex write_mutex_;  // guards what follows; taken before the other one
  ReceiveStream* stream_ = nullptr;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<v1::QueueMessage> waiting_;  // of the stream that is open; for a command
  HeldOnes held_;
  HeldOnes again_;  // to be acknowledged apart
  int again_attempts_ = 0;
  Clock::time_point again_since_;
  Clock::time_point again_at_;  // not before
  int running_ = 0;             // commands
  int64_t left_;                // to begin, unless endless
  const bool endless_;
  std::vector<std::thread> workers_;
  bool stopped_ = false;  // nothing more begins
  bool over_ = false;     // workers end
  std::string failure_;   // of a command, before it began
  int interruptions_ = 0;
  bool tries_again_;  // the server is there, as it answered something, or will be
  int attempts_ = 0;  // since the last message
  Clock::time_point trouble_since_;
  int stream_number_ = 0;
  grpc::ClientContext* context_ = nullptr;  // of the stream that is open
  bool closed_ = false;                     // our side of it
  bool ended_ = false;                      // the other one
  Clock::time_point leave_by_;
};

int RunWork(Session& session, const WorkOptions& options) {
  const absl::StatusOr<int64_t> retry_ms = client::ParseDurationMs(options.retry_for);
  if (!retry_ms.ok()) return session.Usage(retry_ms.status());
  google::protobuf::Duration timeout;
  const absl::Status filled = FillLongDuration("--timeout", options.timeout, &timeout);
  if (!filled.ok()) return session.Usage(filled);
  return Working(session, options, timeout, *retry_ms).Run();
}

}  // namespace

void AddWorkCommand(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("work", "Run a command for each message of a queue");
  auto options = std::make_shared<WorkOptions>();
  command.add_option("QUEUE", options->queue, "The queue")->required();
  AddRepeated(
      command, "COMMAND", options->command,
      "After --: the command to run for each message, whose payload it reads on standard input")
      ->required()
      ->expected(-1);
  command
      .add_option("--credits", options->credits,
                  "Maximum number of messages out at once, each with its command; 1 unless given")
      ->check(WholeNumber(1, 1000))
      ->type_name("N");
  command
      .add_option("--timeout", options->timeout,
                  "How long messages are reserved, extended while the command runs; 30s "
                  "unless given")
      ->type_name("TIME");
  command.add_option("--count", options->count, "End after this number of messages")
      ->check(WholeNumber(1))
      ->type_name("N");
  command
      .add_option("--retry-for", options->retry_for,
                  "How long to try to resume a broken stream, 60s unless given; if given, also\n"
                  "to reach a server that is not up yet")
      ->each([options](const std::string&) { options->waits_for_server = true; })
      ->type_name("TIME");
  command.footer(
      "COMMAND gets the payload as one line of JSON, and in its environment STRATA_MESSAGE_ID,\n"
      "STRATA_TRIES (from 1), STRATA_DELIVERY and STRATA_TOKEN. STRATA_DELIVERY only grows:\n"
      "send it with an effect elsewhere, so that the receiver can refuse an old one. With\n"
      "STRATA_TOKEN the command can itself acknowledge the message in the commit that changes\n"
      "documents. Exit status 0: the message is done; else it comes again, as the queue's\n"
      "settings say, with the exit status and the last line of standard error as reason.\n"
      "Ctrl-C lets the commands under way end, then gives the other messages back; a second one\n"
      "asks them to end, a third one ends them. A message comes again when its outcome is\n"
      "unknown, so commands have to bear that.\n"
      "Examples:\n"
      "  strata work mails -- ./send-mail\n"
      "  strata work jobs --credits 8 -- sh -c 'jq -r .url | xargs curl -fsS -o /dev/null'\n"
      "  strata work sums -- sh -c 'strata commit sum.json --acknowledge \"$STRATA_TOKEN\"'");
  command.callback([&session, options] {
    session.run = [&session, options] { return RunWork(session, *options); };
  });
}

}  // namespace strata::cli
