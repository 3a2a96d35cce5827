// Producers and consumers of queues in the crowd: what is pushed is acknowledged once, by whichever
// way, those of a key in their order; and what a queue says of itself is what is in it.
#include <algorithm>
#include <thread>
#include <utility>

#include "strata/v1/queue_service.grpc.pb.h"
#include "tests/fault/queue_client.h"
#include "tests/long/crowd.h"
#include "tests/long/crowd_ledger.h"

namespace strata::fault {
namespace {

using Queues = v1::QueueService::Stub;
using QueuesPtr = std::unique_ptr<Queues>;

constexpr int kKeys = 7;
constexpr int kBatchMax = 20;
constexpr int kReserveMax = 16;
constexpr int kReceiversOfEach = 2;
constexpr int64_t kAlwaysFails = 10;  // one message in so many

google::protobuf::Duration Of(milliseconds time) {
  google::protobuf::Duration duration;
  duration.set_seconds(time.count() / 1000);
  duration.set_nanos(static_cast<int32_t>(time.count() % 1000) * 1'000'000);
  return duration;
}

class QueueCrowd final : public Part {
 public:
  explicit QueueCrowd(Crowd& crowd) : crowd_(crowd) {}

  std::vector<std::string> callers() const override {
    return {"push-plain",        "push-keyed",      "push-failing",
            "push-moving",       "push-popped",     "scratch",
            "reserve-plain-0",   "reserve-plain-1", "reserve-keyed-0",
            "reserve-failing-0", "receive-plain-0", "receive-plain-1",
            "receive-keyed-0",   "receive-keyed-1", "receive-buried-0",
            "receive-moved-0",   "mover",           "popper"};
  }

  void SetUp(Caller& caller) override {
    const QueuesPtr queues = v1::QueueService::NewStub(caller.channel());
    for (const char* const name : kNames) {
      v1::CreateQueueRequest request;
      request.set_name(name);
      v1::QueueSettings& settings = *request.mutable_settings();
      *settings.mutable_reservation_timeout() = Of(seconds(3));
      *settings.mutable_retry_delay() = Of(milliseconds(50));
      *settings.mutable_retry_delay_max() = Of(milliseconds(500));
      settings.set_max_tries(1'000'000);
      if (request.name() == "failing") {
        settings.set_max_tries(3);
        settings.set_dead_letter_queue("buried");
      }
      if (request.name() == "scratch") *settings.mutable_history_retention() = Of(seconds(60));
      v1::CreateQueueResponse response;
      caller.Do("CreateQueue", *queues, &Queues::CreateQueue, request, response);
    }
  }

  std::vector<std::function<void()>> Members() override {
    return {[this] { Push("push-plain", "plain", plain_); },
            [this] { Push("push-keyed", "keyed", keyed_); },
            [this] { Push("push-failing", "failing", failing_); },
            [this] { Push("push-moving", "moving", moving_); },
            [this] { Push("push-popped", "popped", popped_); },
            [this] { Scratch("scratch"); },
            [this] { Reserve("reserve-plain-0", "plain", plain_); },
            [this] { Reserve("reserve-plain-1", "plain", plain_); },
            [this] { Reserve("reserve-keyed-0", "keyed", keyed_); },
            [this] { Reserve("reserve-failing-0", "failing", failing_); },
            [this] { Receive("receive-plain-0", "plain", plain_); },
            [this] { Receive("receive-plain-1", "plain", plain_); },
            [this] { Receive("receive-keyed-0", "keyed", keyed_); },
            [this] { Receive("receive-keyed-1", "keyed", keyed_); },
            [this] { Receive("receive-buried-0", "buried", failing_); },
            [this] { Receive("receive-moved-0", "moved", moving_); },
            [this] { Move("mover"); },
            [this] { Pop("popper"); }};
  }

  std::string Open(Caller& caller) override {
    std::string open;
    for (MessageLedger* const ledger : {&plain_, &keyed_, &failing_, &moving_}) {
      if (const std::string text = ledger->Open(); !text.empty()) open += "; " + text;
    }
    const QueuesPtr queues = v1::QueueService::NewStub(caller.channel());
    for (const char* const name : kNames) {
      v1::GetQueueRequest request;
      request.set_name(name);
      v1::GetQueueResponse response;
      if (!caller.Do("GetQueue", *queues, &Queues::GetQueue, request, response)) continue;
      const v1::QueueStatistics& has = response.queue().statistics();
      if (request.name() != "scratch" &&
          has.ready() + has.scheduled() + has.reserved() + has.waiting() > 0) {
        open += "; " + request.name() + ": " + has.ShortDebugString();
      } else if (!has.exact()) {
        open += "; " + request.name() + " is not exact";
      }
    }
    return open.empty() ? open : open.substr(2);
  }

  void Check(Caller& caller) override {
    const QueuesPtr queues = v1::QueueService::NewStub(caller.channel());
    for (const char* const name : kNames) CheckStatistics(caller, *queues, name);
    for (MessageLedger* const ledger : {&plain_, &keyed_, &failing_, &moving_}) {
      crowd_.Count("messages ended", ledger->Forget());
    }
    const std::lock_guard lock(mutex_);
    const auto lost = popped_open_ - popped_unanswered_;
    if (lost > 0) crowd_.Break(std::to_string(lost) + " popped messages came to nobody");
    popped_open_ = popped_unanswered_ = 0;
    popped_.Forget();
  }

 private:
  static constexpr const char* kNames[] = {"plain",  "keyed", "failing", "buried",
                                           "moving", "moved", "popped",  "scratch"};

  void Push(const std::string& name, const std::string& queue, MessageLedger& ledger) {
    const Caller caller(crowd_, name);
    const QueuesPtr queues = v1::QueueService::NewStub(caller.channel());
    std::mt19937_64 random = crowd_.Random(name);
    while (crowd_.MayWork(Phase::kWork)) {
      v1::PushRequest request;
      request.set_queue(queue);
      const auto count = static_cast<int>(1 + random() % kBatchMax);
      for (int i = 0; i < count; ++i) {
        const std::string key = queue == "keyed" ? "key-" + std::to_string(random() % kKeys) : "";
        const int64_t number = ledger.Next(key);
        v1::PushedMessage& message = *request.add_messages();
        message = NumberedMessage(number, random() % 10 == 0 ? random() % 20'000 : 10);
        message.set_request_id(queue + "-" + std::to_string(number));
        message.set_ordering_key(key);
        if (key.empty() && random() % 4 == 0) message.set_priority(static_cast<int>(random() % 4));
        if (key.empty() && random() % 8 == 0) {
          *message.mutable_delay() = Of(milliseconds(1 + random() % 2'000));
        }
      }
      if (queue == "popped") {
        const std::lock_guard lock(mutex_);
        popped_open_ += count;
      }
      v1::PushResponse response;
      if (caller.Do("Push", *queues, &Queues::Push, request, response)) {
        for (const v1::PushResult& result : response.results()) {
          if (result.has_error()) {
            crowd_.Break(name + ": Push: " + result.error().ShortDebugString());
          }
        }
        crowd_.Count("pushed", count);
      }
      crowd_.Pause(Phase::kWork, milliseconds(20 + random() % 100));
    }
  }

  // What becomes of an acknowledgement.
  void Note(MessageLedger& ledger, int64_t number, const v1::TokenResult& result) {
    if (result.replayed()) return ledger.Unanswered(number);
    if (!result.has_error()) {
      crowd_.Count("acknowledged");
      return ledger.Acknowledged(number);
    }
    crowd_.Count("acknowledgements refused");
    ledger.Refused(number);
  }

  void Reserve(const std::string& name, const std::string& queue, MessageLedger& ledger) {
    const Caller caller(crowd_, name);
    const QueuesPtr queues = v1::QueueService::NewStub(caller.channel());
    std::mt19937_64 random = crowd_.Random(name);
    while (crowd_.MayWork(Phase::kDrain)) {
      v1::ReserveRequest request;
      request.set_queue(queue);
      request.set_count(static_cast<int>(1 + random() % kReserveMax));
      *request.mutable_wait() = Of(milliseconds(500));
      v1::ReserveResponse response;
      if (!caller.Try("Reserve", *queues, &Queues::Reserve, request, response).ok()) continue;
      std::vector<std::pair<int64_t, std::string>> done;
      v1::RollbackRequest rollback;
      for (const v1::QueueMessage& message : response.messages()) {
        const int64_t number = NumberOf(message.payload());
        ledger.Delivered(number, message.delivery());
        if (queue == "failing" ? number % kAlwaysFails == 0 : random() % 10 == 0) {
          rollback.add_tokens(message.token());
          continue;
        }
        // One in many is forgotten by whoever has it.
        if (random() % 200 != 0) done.emplace_back(number, message.token());
      }
      if (random() % 10 == 0) Extend(caller, *queues, done);
      if (rollback.tokens_size() > 0) {
        if (random() % 2 == 0) *rollback.mutable_delay() = Of(milliseconds(random() % 500));
        v1::RollbackResponse ignored;
        caller.Try("Rollback", *queues, &Queues::Rollback, rollback, ignored);
      }
      Acknowledge(caller, *queues, ledger, done);
    }
  }

  using Done = std::vector<std::pair<int64_t, std::string>>;  // numbers and tokens

  static void Extend(const Caller& caller, Queues& queues, const Done& done) {
    v1::ExtendRequest request;
    for (const auto& [number, token] : done) request.add_tokens(token);
    if (done.empty()) return;
    v1::ExtendResponse response;
    caller.Try("Extend", queues, &Queues::Extend, request, response);
  }

  void Acknowledge(const Caller& caller, Queues& queues, MessageLedger& ledger, const Done& done) {
    if (done.empty()) return;
    v1::AcknowledgeRequest request;
    for (const auto& [number, token] : done) {
      request.add_tokens(token);
      ledger.Sent(number);
    }
    v1::AcknowledgeResponse response;
    const grpc::Status status =
        caller.Try("Acknowledge", queues, &Queues::Acknowledge, request, response);
    if (status.ok() && response.results_size() != request.tokens_size()) {
      crowd_.Break(caller.name() + ": Acknowledge: " + std::to_string(response.results_size()) +
                   " results of " + std::to_string(request.tokens_size()));
    }
    for (size_t i = 0; i < done.size(); ++i) {
      if (status.ok() && static_cast<int>(i) < response.results_size()) {
        Note(ledger, done[i].first, response.results(static_cast<int>(i)));
      } else {
        ledger.Unanswered(done[i].first);
      }
    }
  }

  void Receive(const std::string& name, const std::string& queue, MessageLedger& ledger) {
    const Caller caller(crowd_, name);
    const QueuesPtr queues = v1::QueueService::NewStub(caller.channel());
    std::mt19937_64 random = crowd_.Random(name);
    while (crowd_.MayWork(Phase::kDrain)) {
      std::map<std::string, int64_t> sent;  // by token
      {
        StreamContext context(caller);
        const auto stream = queues->Receive(*context);
        v1::ReceiveRequest open;
        open.mutable_open()->set_queue(queue);
        open.mutable_open()->set_credits(static_cast<int>(1 + random() % 64));
        stream->Write(open);
        // Whoever breaks off in the midst of it has dead hands.
        const auto breaks_after = static_cast<int>(random() % 400);
        int read = 0;
        for (v1::ReceiveResponse response; stream->Read(&response);) {
          if (++read > breaks_after) context.BreakOff();
          TakeIn(*stream, response, ledger, sent);
        }
        caller.Judge("Receive", stream->Finish());
      }
      for (const auto& [token, number] : sent) ledger.Unanswered(number);
      crowd_.Count("streams");
      crowd_.Pause(Phase::kDrain, milliseconds(10));
    }
  }

  template <typename Stream>
  void TakeIn(Stream& stream, const v1::ReceiveResponse& response, MessageLedger& ledger,
              std::map<std::string, int64_t>& sent) {
    v1::ReceiveRequest request;
    for (const v1::QueueMessage& message : response.messages().messages()) {
      const int64_t number = NumberOf(message.payload());
      ledger.Delivered(number, message.delivery());
      if (!sent.emplace(message.token(), number).second) {
        crowd_.Break("a token came twice on a stream, with " + std::to_string(number));
        continue;
      }
      ledger.Sent(number);
      request.mutable_acknowledge()->add_tokens(message.token());
    }
    const auto& results = response.results();
    for (int i = 0; i < results.tokens_size() && i < results.results_size(); ++i) {
      const auto found = sent.find(results.tokens(i));
      if (found == sent.end()) {
        crowd_.Break("a stream tells of a token that it was not sent");
        continue;
      }
      Note(ledger, found->second, results.results(i));
      sent.erase(found);
    }
    if (request.acknowledge().tokens_size() > 0) stream.Write(request);
  }

  void Move(const std::string& name) {
    const Caller caller(crowd_, name);
    const QueuesPtr queues = v1::QueueService::NewStub(caller.channel());
    while (crowd_.MayWork(Phase::kDrain)) {
      v1::ReserveRequest request;
      request.set_queue("moving");
      request.set_count(kReserveMax);
      *request.mutable_wait() = Of(milliseconds(500));
      v1::ReserveResponse response;
      if (!caller.Try("Reserve", *queues, &Queues::Reserve, request, response).ok()) continue;
      for (const v1::QueueMessage& message : response.messages()) {
        v1::MoveRequest move;
        move.set_token(message.token());
        move.set_queue("moved");
        v1::MoveResponse moved;
        if (caller.Try("Move", *queues, &Queues::Move, move, moved).ok()) crowd_.Count("moved");
      }
    }
  }

  void Pop(const std::string& name) {
    const Caller caller(crowd_, name);
    const QueuesPtr queues = v1::QueueService::NewStub(caller.channel());
    while (crowd_.MayWork(Phase::kDrain)) {
      v1::PopRequest request;
      request.set_queue("popped");
      request.set_count(kReserveMax);
      *request.mutable_wait() = Of(milliseconds(500));
      v1::PopResponse response;
      const bool answered = caller.Try("Pop", *queues, &Queues::Pop, request, response).ok();
      for (const v1::QueueMessage& message : response.messages()) {
        const int64_t number = NumberOf(message.payload());
        popped_.Delivered(number, message.delivery());
        popped_.Sent(number);
        popped_.Acknowledged(number);
      }
      const std::lock_guard lock(mutex_);
      popped_open_ -= response.messages_size();
      if (!answered) popped_unanswered_ += kReserveMax;
    }
  }

  // Pushes, purges and replays what is its own alone.
  void Scratch(const std::string& name) {
    const Caller caller(crowd_, name);
    const QueuesPtr queues = v1::QueueService::NewStub(caller.channel());
    std::mt19937_64 random = crowd_.Random(name);
    while (crowd_.MayWork(Phase::kWork)) {
      v1::PushRequest push;
      push.set_queue("scratch");
      for (int i = 0; i < 30; ++i) *push.add_messages() = NumberedMessage(i);
      v1::PushResponse pushed;
      caller.Try("Push", *queues, &Queues::Push, push, pushed);
      v1::PopRequest pop;
      pop.set_queue("scratch");
      pop.set_count(5);
      v1::PopResponse popped;
      caller.Try("Pop", *queues, &Queues::Pop, pop, popped);
      if (random() % 2 == 0) {
        v1::ReplayRequest replay;
        replay.set_queue("scratch");
        replay.add_states(v1::MESSAGE_STATE_FINISHED);
        v1::ReplayResponse replayed;
        caller.Try("Replay", *queues, &Queues::Replay, replay, replayed);
      }
      if (random() % 3 == 0) {
        v1::PurgeMessagesRequest purge;
        purge.set_queue("scratch");
        purge.add_states(v1::MESSAGE_STATE_READY);
        v1::PurgeMessagesResponse purged;
        caller.Try("PurgeMessages", *queues, &Queues::PurgeMessages, purge, purged);
        crowd_.Count("purges");
      }
      crowd_.Pause(Phase::kWork, milliseconds(50 + random() % 200));
    }
  }

  void CheckStatistics(const Caller& caller, Queues& queues, const std::string& queue) {
    std::map<v1::MessageState, int64_t> listed;
    v1::ListMessagesRequest list;
    list.set_queue(queue);
    list.set_page_size(1000);
    do {
      v1::ListMessagesResponse page;
      if (!caller.Do("ListMessages", queues, &Queues::ListMessages, list, page)) return;
      for (const v1::QueueMessage& message : page.messages()) ++listed[message.state()];
      list.set_page_token(page.next_page_token());
    } while (!list.page_token().empty());
    v1::GetQueueRequest get;
    get.set_name(queue);
    v1::GetQueueResponse response;
    if (!caller.Do("GetQueue", queues, &Queues::GetQueue, get, response)) return;
    const v1::QueueStatistics& told = response.queue().statistics();
    const std::pair<v1::MessageState, int64_t> states[] = {
        {v1::MESSAGE_STATE_READY, told.ready()},
        {v1::MESSAGE_STATE_SCHEDULED, told.scheduled()},
        {v1::MESSAGE_STATE_RESERVED, told.reserved()},
        {v1::MESSAGE_STATE_WAITING, told.waiting()},
        {v1::MESSAGE_STATE_DEAD, told.dead()}};
    if (!told.exact()) crowd_.Break("the statistics of " + queue + " are not exact");
    for (const auto& [state, count] : states) {
      if (listed[state] != count) {
        crowd_.Break(queue + " has " + std::to_string(listed[state]) + " " +
                     v1::MessageState_Name(state) + ", and says " + std::to_string(count));
      }
    }
  }

  Crowd& crowd_;
  MessageLedger plain_{crowd_, "plain"};
  MessageLedger keyed_{crowd_, "keyed"};
  MessageLedger failing_{crowd_, "failing"};
  MessageLedger moving_{crowd_, "moving"};
  MessageLedger popped_{crowd_, "popped"};
  std::mutex mutex_;  // guards what follows
  int64_t popped_open_ = 0;
  int64_t popped_unanswered_ = 0;
};

// Makes queues with schedules, and deletes them, beside those that stay.
class QueueMakers final : public Part {
 public:
  explicit QueueMakers(Crowd& crowd) : crowd_(crowd) {}

  std::vector<std::string> callers() const override { return {"maker-0", "maker-1", "maker-2"}; }
  void SetUp(Caller& caller) override {
    const QueuesPtr queues = v1::QueueService::NewStub(caller.channel());
    for (int i = 0; i < kStaying; ++i) Create(caller, *queues, "staying-" + std::to_string(i));
  }
  std::vector<std::function<void()>> Members() override {
    std::vector<std::function<void()>> members;
    for (const std::string& name : callers()) {
      members.push_back([this, name] { Make(name); });
    }
    return members;
  }
  std::string Open(Caller& /*caller*/) override { return ""; }
  void Check(Caller& /*caller*/) override {}

 private:
  static constexpr int kStaying = 40;

  static void Create(const Caller& caller, Queues& queues, const std::string& name) {
    v1::CreateQueueRequest request;
    request.set_name(name);
    *request.mutable_settings()->mutable_history_retention() = Of(seconds(60));
    v1::CreateQueueResponse response;
    caller.Do("CreateQueue", queues, &Queues::CreateQueue, request, response, {"QUEUE_EXISTS"});
  }

  void Make(const std::string& name) {
    const Caller caller(crowd_, name);
    const QueuesPtr queues = v1::QueueService::NewStub(caller.channel());
    std::mt19937_64 random = crowd_.Random(name);
    for (int64_t turn = 0; crowd_.MayWork(Phase::kWork); ++turn) {
      const std::string queue = name + "." + std::to_string(turn);
      Create(caller, *queues, queue);
      const auto schedules = static_cast<int>(random() % 3);
      for (int i = 0; i < schedules; ++i) {
        v1::CreateScheduleRequest request;
        request.set_queue(queue);
        request.set_name("schedule-" + std::to_string(i));
        *request.mutable_every() = Of(seconds(1));
        *request.mutable_message() = NumberedMessage(i);
        v1::CreateScheduleResponse response;
        caller.Do("CreateSchedule", *queues, &Queues::CreateSchedule, request, response);
      }
      crowd_.Pause(Phase::kWork, milliseconds(random() % 1'000 == 0 ? 3'000 : random() % 200));
      v1::DeleteQueueRequest remove;
      remove.set_name(queue);
      remove.set_force(true);
      v1::DeleteQueueResponse removed;
      // An attempt whose answer was lost may have done it.
      caller.Do("DeleteQueue", *queues, &Queues::DeleteQueue, remove, removed, {"QUEUE_NOT_FOUND"});
      crowd_.Count("queues made and deleted");
    }
  }

  Crowd& crowd_;
};

}  // namespace

std::unique_ptr<Part> MakeQueueCrowd(Crowd& crowd) { return std::make_unique<QueueCrowd>(crowd); }
std::unique_ptr<Part> MakeQueueMakers(Crowd& crowd) { return std::make_unique<QueueMakers>(crowd); }

}  // namespace strata::fault
