#include "bench/queue/queue_workloads.h"

#include <strata/v1/transaction_service.pb.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "bench/support/ten_fields.h"

namespace strata::bench {
namespace {

using Outcome = Workload::Outcome;

constexpr char kCommitCall[] = "/strata.v1.TransactionService/Commit";
constexpr int64_t kVariants = 1009;  // prime, so that no stride meets the same again soon
constexpr int64_t kBatchVariants = 13;
constexpr int64_t kPayloadBytes = 300;
constexpr int64_t kWaitSeconds = 10;

bool Parse(std::string_view bytes, google::protobuf::MessageLite& message) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

template <typename T>
T& At(std::vector<T>& slots, int slot) {
  const auto index = static_cast<size_t>(slot);
  if (slots.size() <= index) slots.resize(index + 1);
  return slots[index];
}

// Requests of Push, serialised ahead.
class Pushes {
 public:
  Pushes(const std::string& queue, int batch) : batch_(batch) {
    for (int64_t i = 0; i < (batch == 1 ? kVariants : kBatchVariants); ++i) {
      v1::PushRequest request;
      request.set_queue(queue);
      for (int64_t j = 0; j < batch; ++j) {
        const int64_t number = i * batch + j;
        request.add_messages()->mutable_payload()->set_bson(TenFields(number, number));
      }
      serialized_.push_back(request.SerializeAsString());
    }
  }
  void Next(std::string& request) { request = serialized_[next_++ % serialized_.size()]; }
  bool IsPushed(std::string_view response) {
    if (!Parse(response, response_) || response_.results_size() != batch_) return false;
    return std::all_of(response_.results().begin(), response_.results().end(),
                       [](const v1::PushResult& result) {
                         return !result.message_id().empty() && !result.replayed();
                       });
  }

 private:
  const int batch_;
  std::vector<std::string> serialized_;
  size_t next_ = 0;
  v1::PushResponse response_;
};

class PushWorkload final : public Workload {
 public:
  PushWorkload(const std::string& queue, int batch) : batch_(batch), pushes_(queue, batch) {}
  std::string name() const override { return batch_ == 1 ? "q1_push" : "q1_push_batch"; }
  std::string method() const override { return kPushCall; }
  bool Next(int /*slot*/, std::string& request) override {
    pushes_.Next(request);
    return true;
  }
  Outcome Answered(int /*slot*/, std::string_view response) override {
    return RightIf(pushes_.IsPushed(response));
  }
  void Tell(Measurement& measurement) const override { measurement.documents_per_call = batch_; }

 private:
  const int batch_;
  Pushes pushes_;
};

v1::ReserveRequest ReserveOf(const std::string& queue, int count) {
  v1::ReserveRequest request;
  request.set_queue(queue);
  request.set_count(count);
  request.mutable_wait()->set_seconds(kWaitSeconds);
  request.set_encoding(v1::ENCODING_BSON);
  return request;
}

class ReserveAndAcknowledge final : public CycleWorkload {
 public:
  ReserveAndAcknowledge(const std::string& queue, const CycleSettings& settings)
      : batch_(settings.batch),
        messages_max_(settings.messages_max),
        pushes_(queue, settings.batch),
        reserve_request_(ReserveOf(queue, settings.batch).SerializeAsString()),
        held_(static_cast<size_t>(settings.consumers)),
        owed_(settings.missing / settings.batch) {}
  std::string name() const override { return "q2_cycle"; }
  std::string method() const override { return kReserveCall; }
  const std::string* next_method() const override { return next_method_; }
  bool Next(int slot, std::string& request) override {
    return IsProducer(slot) ? Produce(slot, request) : Consume(slot, request);
  }
  Outcome Answered(int slot, std::string_view response) override {
    if (IsProducer(slot)) {
      pushed_ += batch_;
      return pushes_.IsPushed(response) ? Outcome::kOnTheWay : Outcome::kWrong;
    }
    v1::AcknowledgeRequest& held = held_[static_cast<size_t>(slot)];
    if (held.tokens().empty()) return Reserved(response, held);
    const bool right = IsAcknowledged(response, held);
    held.clear_tokens();
    ++owed_;
    return RightIf(right);
  }
  std::optional<int> Woken() override {
    if (owed_ == 0 || idle_.empty()) return std::nullopt;
    const int slot = idle_.back();
    idle_.pop_back();
    return slot;
  }
  void Tell(Measurement& measurement) const override { measurement.documents_per_call = batch_; }
  int64_t pushed() const override { return pushed_; }
  int64_t acknowledged() const override { return acknowledged_; }

 private:
  bool IsProducer(int slot) const { return static_cast<size_t>(slot) >= held_.size(); }
  bool Produce(int slot, std::string& request) {
    if (owed_ == 0) {
      idle_.push_back(slot);
      return false;
    }
    --owed_;
    next_method_ = &push_;
    pushes_.Next(request);
    return true;
  }
  bool Consume(int slot, std::string& request) {
    const v1::AcknowledgeRequest& held = held_[static_cast<size_t>(slot)];
    if (held.tokens().empty()) {
      if (acknowledged_ >= messages_max_) return false;
      next_method_ = &reserve_;
      request = reserve_request_;
    } else {
      next_method_ = &acknowledge_;
      held.SerializeToString(&request);
    }
    return true;
  }
  // There may be fewer than were asked for.
  Outcome Reserved(std::string_view response, v1::AcknowledgeRequest& held) {
    if (!Parse(response, reserved_) || reserved_.messages_size() > batch_) return Outcome::kWrong;
    bool right = !reserved_.messages().empty();
    for (v1::QueueMessage& message : *reserved_.mutable_messages()) {
      right = right && IsFresh(message);
      held.add_tokens(std::move(*message.mutable_token()));
    }
    return right ? Outcome::kOnTheWay : Outcome::kWrong;
  }
  bool IsAcknowledged(std::string_view response, const v1::AcknowledgeRequest& held) {
    if (!Parse(response, acknowledged_now_)) return false;
    acknowledged_ += acknowledged_now_.results_size();
    return acknowledged_now_.results_size() == held.tokens_size() &&
           std::none_of(
               acknowledged_now_.results().begin(), acknowledged_now_.results().end(),
               [](const v1::TokenResult& one) { return one.replayed() || one.has_error(); });
  }

  const int batch_;
  const int64_t messages_max_;
  const std::string push_ = kPushCall;
  const std::string reserve_ = kReserveCall;
  const std::string acknowledge_ = kAcknowledgeCall;
  const std::string* next_method_ = nullptr;
  Pushes pushes_;
  const std::string reserve_request_;
  std::vector<v1::AcknowledgeRequest> held_;  // by each consumer
  int64_t owed_;                              // pushes, of `batch_`
  std::vector<int> idle_;                     // producers
  v1::ReserveResponse reserved_;
  v1::AcknowledgeResponse acknowledged_now_;
  int64_t pushed_ = 0;
  int64_t acknowledged_ = 0;
};

class ReserveWorkload final : public Workload {
 public:
  ReserveWorkload(const std::string& queue, int64_t messages, std::deque<std::string>& tokens)
      : queue_(queue), tokens_(tokens), missing_(messages) {}
  std::string name() const override { return "reserve"; }
  std::string method() const override { return kReserveCall; }
  bool Next(int slot, std::string& request) override {
    const int64_t count = std::min<int64_t>(missing_, kBatch);
    if (count == 0) return false;
    missing_ -= count;
    At(asked_, slot) = count;
    request = ReserveOf(queue_, static_cast<int>(count)).SerializeAsString();
    return true;
  }
  // There may be fewer than were asked for: this slot asks for the rest.
  Outcome Answered(int slot, std::string_view response) override {
    if (!Parse(response, response_) || response_.messages().empty()) return Outcome::kWrong;
    missing_ += At(asked_, slot) - response_.messages_size();
    bool right = true;
    for (v1::QueueMessage& message : *response_.mutable_messages()) {
      right = right && IsFresh(message);
      tokens_.push_back(std::move(*message.mutable_token()));
    }
    return RightIf(right);
  }

 private:
  const std::string queue_;
  std::deque<std::string>& tokens_;
  int64_t missing_;
  std::vector<int64_t> asked_;  // by slot
  v1::ReserveResponse response_;
};

class CommitWorkload final : public Workload {
 public:
  CommitWorkload(std::deque<std::string>& tokens, Population& population, const std::string& queue,
                 uint64_t seed)
      : tokens_(tokens), population_(population), random_(seed), busy_(population.versions.size()) {
    for (int64_t i = 0; i < kVariants; ++i) contents_.push_back(TenFields(i, i));
    request_.set_omit_content(true);
    request_.add_acknowledge();
    update_ = request_.add_writes()->mutable_update();
    update_->set_collection(population.collection);
    push_ = request_.add_pushes();
    push_->set_queue(queue);
  }
  std::string name() const override { return "q5_commit"; }
  std::string method() const override { return kCommitCall; }
  bool Next(int slot, std::string& request) override {
    if (tokens_.empty()) return false;
    const size_t document = Choose();
    At(slots_, slot) = document;
    const int64_t version = population_.versions[document];
    request_.set_acknowledge(0, std::move(tokens_.front()));
    tokens_.pop_front();
    update_->set_id(std::to_string(document));
    update_->mutable_precondition()->set_version(version);
    update_->mutable_replace()->set_bson(Content(static_cast<int64_t>(document) + version));
    push_->mutable_message()->mutable_payload()->set_bson(Content(pushed_++));
    request_.SerializeToString(&request);
    return true;
  }
  Outcome Answered(int slot, std::string_view response) override {
    const size_t document = At(slots_, slot);
    busy_[document] = false;
    const bool parsed = Parse(response, response_);
    const int64_t version = ++population_.versions[document];
    return RightIf(parsed && response_.results_size() == 1 && response_.results(0).changed() &&
                   response_.results(0).document().version() == version &&
                   response_.message_ids_size() == 1 && !response_.replayed());
  }
  Outcome Refused(int slot, std::string_view /*message*/) override {
    busy_[At(slots_, slot)] = false;
    return Outcome::kWrong;
  }

 private:
  // Nobody else's at the moment, so that compare-and-swap succeeds.
  size_t Choose() {
    std::uniform_int_distribution<size_t> documents(0, busy_.size() - 1);
    size_t document = documents(random_);
    while (busy_[document]) document = documents(random_);
    busy_[document] = true;
    return document;
  }
  const std::string& Content(int64_t number) const {
    return contents_[static_cast<size_t>(number % kVariants)];
  }

  std::deque<std::string>& tokens_;
  Population& population_;
  std::mt19937_64 random_;
  std::vector<std::string> contents_;
  v1::CommitRequest request_;
  v1::UpdateRequest* update_ = nullptr;  // in request_
  v1::QueuePush* push_ = nullptr;        // in request_
  v1::CommitResponse response_;
  std::vector<bool> busy_;
  std::vector<size_t> slots_;  // the document of each
  int64_t pushed_ = 0;
};

}  // namespace

bool IsFresh(const v1::QueueMessage& message) {
  return message.payload().bson().size() == kPayloadBytes && message.delivery() == 1 &&
         message.tries() == 1 && message.state() == v1::MESSAGE_STATE_RESERVED &&
         !message.token().empty();
}

std::unique_ptr<Workload> PushTo(const std::string& queue, int batch) {
  return std::make_unique<PushWorkload>(queue, batch);
}

std::unique_ptr<CycleWorkload> Cycle(const std::string& queue, const CycleSettings& settings) {
  return std::make_unique<ReserveAndAcknowledge>(queue, settings);
}

std::unique_ptr<Workload> ReserveAll(const std::string& queue, int64_t messages,
                                     std::deque<std::string>& tokens) {
  return std::make_unique<ReserveWorkload>(queue, messages, tokens);
}

std::unique_ptr<Workload> CommitAll(std::deque<std::string>& tokens, Population& population,
                                    const std::string& queue, uint64_t seed) {
  return std::make_unique<CommitWorkload>(tokens, population, queue, seed);
}

}  // namespace strata::bench
