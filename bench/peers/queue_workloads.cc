#include "bench/peers/queue_workloads.h"

#include <algorithm>
#include <iostream>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "bench/peers/queue_ledger.h"
#include "bench/peers/queue_loop.h"
#include "bench/peers/server_program.h"
#include "bench/support/ten_fields.h"

namespace strata::bench {
namespace {

using QueueOutcome = QueueWorkload::Outcome;

constexpr int64_t kBatch = 100;
constexpr int64_t kFewWaiting = 1000;
// More messages a second than any peer is received or committed on two cores; where one gets
// further, the workload ends with the last.
constexpr int64_t kReceivedMax = 50'000;
constexpr int64_t kCommittedMax = 20'000;
constexpr std::chrono::seconds kSettlePatience{20};

constexpr QueueOutcome kWrong = {.is_wrong = true};

// So many messages a call: until the time is over, or up to a number of them.
class Push final : public QueueWorkload {
 public:
  Push(QueueLedger& ledger, int64_t per_call, int64_t most = 0)
      : ledger_(ledger),
        per_call_(per_call),
        is_limited_(most > 0),
        left_(most),
        slots_(kConsumers) {}
  std::string name() const override { return per_call_ == 1 ? "q1_push" : "q1_push_batch"; }
  int slots() const override { return kConsumers; }
  bool Next(int slot, QueueCall& call) override {
    int64_t count = per_call_;
    if (is_limited_) count = std::min(count, left_);
    if (count == 0) return false;
    left_ -= count;
    std::vector<std::string>& payloads = slots_[static_cast<size_t>(slot)];
    payloads.clear();
    for (int64_t i = 0; i < count; ++i) payloads.push_back(ledger_.NextPayload());
    call.payloads.assign(payloads.begin(), payloads.end());
    return true;
  }
  QueueOutcome Answered(int slot, const QueueAnswer& answer) override {
    if (!answer.is_done) return kWrong;
    ledger_.Pushed(static_cast<int64_t>(slots_[static_cast<size_t>(slot)].size()));
    return {.results = 1};
  }

 private:
  QueueLedger& ledger_;
  const int64_t per_call_;
  const bool is_limited_;
  int64_t left_;
  std::vector<std::vector<std::string>> slots_;  // the payloads of each
};

// Consumers that reserve and acknowledge one message at a time, and as many producers, of whom one
// pushes for each message that was acknowledged, so that as many wait as before.
class Cycle final : public QueueWorkload {
 public:
  Cycle(QueueLedger& ledger, bool many_wait)
      : ledger_(ledger), many_wait_(many_wait), consumers_(kConsumers), payloads_(kConsumers) {}
  std::string name() const override { return many_wait_ ? "q2_cycle_waiting" : "q2_cycle"; }
  int slots() const override { return kQueueSlots; }
  bool Next(int slot, QueueCall& call) override {
    return slot < kConsumers ? Consume(slot, call) : Produce(slot, call);
  }
  QueueOutcome Answered(int slot, const QueueAnswer& answer) override {
    if (!answer.is_done) return kWrong;
    if (slot >= kConsumers) {
      ledger_.Pushed(1);
      return {};
    }
    std::vector<MessageId>& held = consumers_[static_cast<size_t>(slot)];
    if (!held.empty()) {
      held.clear();
      ledger_.Acknowledged(1);
      ++owed_;
      return {.results = 1};
    }
    if (answer.messages.empty()) return {.is_on_the_way = true};
    if (answer.messages.size() != 1 || !ledger_.Take(answer.messages[0].payload)) return kWrong;
    held.push_back(answer.messages[0].id);
    return {.is_on_the_way = true};
  }
  std::optional<int> Woken() override {
    if (owed_ == 0 || idle_.empty()) return std::nullopt;
    const int slot = idle_.back();
    idle_.pop_back();
    return slot;
  }

 private:
  bool Consume(int slot, QueueCall& call) {
    call.operation = QueueOperation::kReserve;
    call.messages = consumers_[static_cast<size_t>(slot)];
    if (!call.messages.empty()) call.operation = QueueOperation::kAcknowledge;
    return true;
  }
  bool Produce(int slot, QueueCall& call) {
    if (owed_ == 0) {
      idle_.push_back(slot);
      return false;
    }
    --owed_;
    std::string& payload = payloads_[static_cast<size_t>(slot - kConsumers)];
    payload = ledger_.NextPayload();
    call.payloads = {payload};
    return true;
  }

  QueueLedger& ledger_;
  const bool many_wait_;
  int64_t owed_ = 0;                               // pushes
  std::vector<int> idle_;                          // producers
  std::vector<std::vector<MessageId>> consumers_;  // what each holds: one message or none
  std::vector<std::string> payloads_;              // of each producer
};

// Consumers that take as many as they get of what waits, and acknowledge them together, until there
// is nothing left.
class Receive final : public QueueWorkload {
 public:
  explicit Receive(QueueLedger& ledger) : ledger_(ledger), held_(kStreams) {}
  std::string name() const override { return "q3_receive"; }
  int slots() const override { return kStreams; }
  bool Next(int slot, QueueCall& call) override {
    call.messages = held_[static_cast<size_t>(slot)];
    if (!call.messages.empty()) {
      call.operation = QueueOperation::kAcknowledge;
      return true;
    }
    call.operation = QueueOperation::kReceive;
    call.count = kStreamCredit;
    return ledger_.taken() < ledger_.pushed();
  }
  QueueOutcome Answered(int slot, const QueueAnswer& answer) override {
    if (!answer.is_done) return kWrong;
    std::vector<MessageId>& held = held_[static_cast<size_t>(slot)];
    if (!held.empty()) {
      const auto count = static_cast<int64_t>(std::exchange(held, {}).size());
      ledger_.Acknowledged(count);
      return {.results = count};
    }
    for (const QueueAnswer::Message& one : answer.messages) {
      if (!ledger_.Take(one.payload)) return kWrong;
      held.push_back(one.id);
    }
    return {.is_on_the_way = true};
  }

 private:
  QueueLedger& ledger_;
  std::vector<std::vector<MessageId>> held_;
};

// Reserves all that waits, in batches.
class ReserveAll final : public QueueWorkload {
 public:
  explicit ReserveAll(QueueLedger& ledger) : ledger_(ledger) {}
  std::string name() const override { return "reserve all"; }
  int slots() const override { return kStreams; }
  bool Next(int /*slot*/, QueueCall& call) override {
    call.operation = QueueOperation::kReserveAhead;
    call.count = kStreamCredit;
    return ledger_.taken() < ledger_.pushed();
  }
  QueueOutcome Answered(int /*slot*/, const QueueAnswer& answer) override {
    if (!answer.is_done) return kWrong;
    for (const QueueAnswer::Message& one : answer.messages) {
      if (!ledger_.Take(one.payload)) return kWrong;
      reserved_.push_back(one.id);
    }
    return {};
  }
  std::vector<MessageId> reserved() const { return reserved_; }

 private:
  QueueLedger& ledger_;
  std::vector<MessageId> reserved_;
};

// Acknowledges a message that was reserved before, updates a document at random as W1 does, and
// pushes a message, all or nothing.
class Commit final : public QueueWorkload {
 public:
  Commit(QueueLedger& ledger, std::vector<MessageId> reserved, int64_t documents, uint64_t seed)
      : ledger_(ledger),
        reserved_(std::move(reserved)),
        random_(seed),
        versions_(static_cast<size_t>(documents), 1),
        busy_(static_cast<size_t>(documents)),
        slots_(kConsumers) {}
  std::string name() const override { return "q5_commit"; }
  int slots() const override { return kConsumers; }
  bool Next(int slot, QueueCall& call) override {
    if (reserved_.empty()) return false;
    Slot& mine = slots_[static_cast<size_t>(slot)];
    mine.document = Choose();
    mine.payload = ledger_.NextPayload();
    const int64_t version = versions_[mine.document];
    mine.body = TenFieldsJson(static_cast<int64_t>(mine.document), version);
    call.operation = QueueOperation::kCommit;
    call.messages = {reserved_.back()};
    reserved_.pop_back();
    call.payloads = {mine.payload};
    call.document = static_cast<int64_t>(mine.document);
    call.version = version;
    call.body = mine.body;
    return true;
  }
  QueueOutcome Answered(int slot, const QueueAnswer& answer) override {
    const size_t document = slots_[static_cast<size_t>(slot)].document;
    busy_[document] = false;
    if (!answer.is_done) return kWrong;
    ++versions_[document];
    ledger_.Pushed(1);
    ledger_.Acknowledged(1);
    return {.results = 1};
  }

 private:
  struct Slot {
    size_t document = 0;
    std::string payload{};
    std::string body{};
  };

  // Nobody else's at the moment, so that compare-and-swap succeeds.
  size_t Choose() {
    std::uniform_int_distribution<size_t> documents(0, busy_.size() - 1);
    size_t document = documents(random_);
    while (busy_[document]) document = documents(random_);
    busy_[document] = true;
    return document;
  }

  QueueLedger& ledger_;
  std::vector<MessageId> reserved_;
  std::mt19937_64 random_;
  std::vector<int64_t> versions_;
  std::vector<bool> busy_;
  std::vector<Slot> slots_;
};

void Prepare(QueuePeer& peer, QueueWorkload& workload) {
  using std::chrono::milliseconds;
  const Measurement done = RunLoop(peer, workload, milliseconds(0), milliseconds(0));
  if (done.failures > 0) throw std::runtime_error("cannot prepare: " + workload.name());
}

void FillQueue(QueuePeer& peer, QueueLedger& ledger, int64_t messages) {
  Push push(ledger, kBatch, messages);
  Prepare(peer, push);
  peer.Loaded();
}

// What was pushed and not acknowledged is there, and nothing else. A store that does not answer
// acknowledgements may take a moment.
bool IsKept(QueuePeer& peer, const QueueLedger& ledger) {
  const auto deadline = std::chrono::steady_clock::now() + kSettlePatience;
  while (peer.CountMessages() != ledger.left()) {
    if (Interrupted()) throw InterruptedError();
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

}  // namespace

void RunQueueWorkloads(const std::string& system, QueuePeer& peer, const QueueSettings& settings,
                       const std::function<void(const Measurement&)>& take) {
  const auto measure = [&](QueueWorkload& workload, const QueueLedger& ledger,
                           int64_t messages_per_call, std::chrono::milliseconds warm_up) {
    Measurement one = RunLoop(peer, workload, warm_up, settings.duration);
    one.system = system;
    one.calls *= messages_per_call;
    if (!IsKept(peer, ledger)) {
      std::cerr << workload.name() << ": " << peer.CountMessages() << " messages are left, not "
                << ledger.left() << std::endl;
      ++one.failures;
    }
    take(one);
  };
  const int64_t seconds =
      std::chrono::ceil<std::chrono::seconds>(settings.warm_up + settings.duration).count();

  for (const int64_t per_call : {int64_t{1}, kBatch}) {
    QueueLedger ledger;
    Push push(ledger, per_call);
    peer.OpenQueue(push.name());
    measure(push, ledger, per_call, settings.warm_up);
  }
  for (const bool many_wait : {false, true}) {
    const int64_t waiting = many_wait ? settings.waiting : kFewWaiting;
    if (waiting == 0) continue;
    QueueLedger ledger;
    Cycle cycle(ledger, many_wait);
    peer.OpenQueue(cycle.name());
    FillQueue(peer, ledger, waiting);
    measure(cycle, ledger, 1, settings.warm_up);
  }
  {
    QueueLedger ledger;
    Receive receive(ledger);
    peer.OpenQueue(receive.name());
    FillQueue(peer, ledger, seconds * kReceivedMax);
    // From the first message on, as Strata's: who is quick is through before it has warmed up.
    measure(receive, ledger, 1, std::chrono::milliseconds(0));
  }
  if (!peer.commits()) return;
  QueueLedger ledger;
  peer.OpenQueue("q5_commit");
  std::vector<std::string> bodies;
  for (int64_t i = 0; i < settings.documents; ++i) bodies.push_back(TenFieldsJson(i, 0));
  peer.MakeDocuments({bodies.begin(), bodies.end()});
  FillQueue(peer, ledger, seconds * kCommittedMax);
  ReserveAll reserve(ledger);
  Prepare(peer, reserve);
  peer.Loaded();
  Commit commit(ledger, reserve.reserved(), settings.documents, settings.seed);
  measure(commit, ledger, 1, settings.warm_up);
}

}  // namespace strata::bench
