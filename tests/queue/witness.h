// Sees every write that reaches an engine, and judges what it makes of messages: not by what plans
// say, but by what queues promise.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schemas/queue/draft.h"
#include "schemas/queue/message.h"
#include "schemas/queue/queue_keys.h"
#include "schemas/queue/queue_record.h"
#include "schemas/store/store.h"

namespace strata::queue::testing {

// What one commit made of one message.
struct Change {
  int process = 0;
  MessageId id;
  std::optional<Message> before;
  std::optional<Message> after;
  UnixMicros at = 0;
  std::set<std::string> answered = {};  // what somebody was told of it

  bool pushed() const { return !before || before->stage == Stage::kTombstone; }
  bool ended() const {
    return !after || after->stage == Stage::kFinished || after->stage == Stage::kStub;
  }
  bool handed_out() const {
    return after && after->stage == Stage::kReserved && after->delivery == deliveries() + 1;
  }
  // By whoever held the delivery.
  bool of_delivery(int64_t delivery) const {
    return before && before->stage == Stage::kReserved && before->delivery == delivery;
  }
  int64_t deliveries() const { return before ? before->delivery : 0; }
};

// Not thread-safe. The engine answers commits within the call.
class Witness {
 public:
  // Times are given out a little ahead of the clock, so that they differ.
  static constexpr UnixMicros kAhead = 10'000;

  // `batches`: a commit is of whole batches, in which a message may go through several steps: it is
  // pushed, or rolled back, or let go by the one in front of it, and handed out at once.
  Witness(store::Store& engine, const Clock& clock, std::chrono::microseconds reservation,
          bool batches)
      : engine_(engine), clock_(clock), reservation_(reservation.count()), batches_(batches) {}

  void AddQueue(const std::string& name) {
    const auto queue = ReadQueue(engine_, name);
    if (queue.ok() && !*queue) {
      // The tombstone of one that was deleted goes after a while.
      const auto last = incarnations_.find(name);
      if (last == incarnations_.end() || !queues_.at(last->second).delete_time) {
        Say("the queue " + name + " is not there");
      }
      return;
    }
    if (!queue.ok()) return Say("the queue " + name + " cannot be read");
    const int64_t incarnation = (*queue)->incarnation;
    if (queues_.contains(incarnation) && (*queue)->delete_time) {
      for (const auto& [id, message] : living_) {
        if (message.queue == incarnation) Say("a queue is deleted that holds " + NameOf(id));
      }
    }
    queues_.insert_or_assign(incarnation, **queue);
    incarnations_[name] = incarnation;
  }
  // Of those that had the name the last one.
  int64_t IncarnationOf(const std::string& name) const { return incarnations_.at(name); }
  const QueueSettings& SettingsOf(const std::string& name) const {
    return queues_.at(IncarnationOf(name)).settings;
  }
  const QueueSettings& SettingsOfIncarnation(int64_t incarnation) const {
    return queues_.at(incarnation).settings;
  }
  bool IsThere(int64_t incarnation) const {
    const auto queue = queues_.find(incarnation);
    return queue != queues_.end() && !queue->second.delete_time &&
           incarnations_.at(queue->second.name) == incarnation;
  }
  bool IsNamed(int64_t incarnation, const std::string& name) const {
    const auto queue = queues_.find(incarnation);
    return queue != queues_.end() && queue->second.name == name;
  }

  store::CommitResult Commit(int process, store::WriteBatch batch) {
    const std::set<MessageId> ids = ConcernedBy(batch);
    std::set<std::string> queues;
    for (const store::Write& write : batch.writes()) {
      if (write.keyspace == store::Keyspace::kQueues &&
          KindOfQueueKey(write.key) == QueueKeyKind::kQueue) {
        queues.insert(write.key);
      }
    }
    std::map<MessageId, Stored> before;
    for (const MessageId& id : ids) before[id] = Read(id);
    std::optional<store::CommitResult> result;
    engine_.Commit(std::move(batch),
                   [&result](store::CommitResult of_batch) { result = std::move(of_batch); });
    for (const std::string& queue : queues) AddQueue(queue);
    if (batches_) living_before_ = living_;
    const size_t first = changes_.size();
    for (const MessageId& id : ids) {
      Stored after = Read(id);
      if (after.stamp != before[id].stamp) {
        Remember(id, after.message);
        changes_.push_back({process, id, before[id].message, after.message, clock_.Now()});
      }
      if (after.message) CheckHints(id, *after.message);
    }
    for (size_t i = first; i < changes_.size(); ++i) Judge(changes_[i]);
    if (batches_) CheckOrders();
    return *result;
  }

  // Who may make messages end: deliveries that somebody acknowledges or gives back, and calls under
  // way, by process.
  using Delivery = std::pair<MessageId, int64_t>;
  std::set<Delivery> acknowledging;
  std::set<Delivery> releasing;
  std::map<int, int> popping;
  std::map<int, int> purging;

  const std::vector<Change>& changes() const { return changes_; }
  const std::map<MessageId, Message>& living() const { return living_; }
  // The first change from `from` on that fits and of which nobody was told `what` yet; now somebody
  // was.
  template <typename Fits>
  const Change* Answer(const std::string& what, const MessageId& id, const Fits& fits,
                       size_t from = 0) {
    for (size_t i = from; i < changes_.size(); ++i) {
      Change& change = changes_[i];
      if (change.id != id || change.answered.contains(what) || !fits(change)) continue;
      change.answered.insert(what);
      return &change;
    }
    return nullptr;
  }

  // The whole course of things, for whoever looks into a problem.
  std::string Story() const {
    std::string story;
    for (const Change& change : changes_) {
      story += "p" + std::to_string(change.process) + " " + std::to_string(change.at) + " " +
               change.id.ToText() + ": " + Show(change.before) + " -> " + Show(change.after) + "\n";
    }
    return story;
  }

  void Say(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }
  const std::string& problem() const { return problem_; }

 private:
  struct Stored {
    std::optional<Message> message;
    store::Stamp stamp = 0;
  };

  std::string Show(const std::optional<Message>& message) const {
    if (!message) return "nothing";
    const auto queue = queues_.find(message->queue);
    return std::string(queue == queues_.end() ? "?" : queue->second.name) + " stage " +
           std::to_string(static_cast<int>(message->stage)) + " time " +
           std::to_string(message->time) + " base " + std::to_string(message->hint_base) +
           " delivery " + std::to_string(message->delivery) + " tries " +
           std::to_string(message->tries) + " number " + std::to_string(message->number);
  }
  static std::string NameOf(const MessageId& id) { return "message " + id.ToText(); }

  Stored Read(const MessageId& id) {
    const auto record = engine_.Get(store::Keyspace::kMessages, id.bytes());
    if (!record.ok() || !*record) return {};
    auto message = Message::Decode((*record)->value);
    if (!message.ok()) {
      Say(NameOf(id) + " is corrupt");
      return {};
    }
    return {*std::move(message), (*record)->stamp};
  }

  static std::set<MessageId> ConcernedBy(const store::WriteBatch& batch) {
    std::set<MessageId> ids;
    for (const store::Write& write : batch.writes()) {
      if (write.keyspace == store::Keyspace::kMessages) {
        if (const auto id = MessageId::FromBytes(write.key)) ids.insert(*id);
      } else if (write.keyspace == store::Keyspace::kQueueIndex) {
        if (const auto hint = ParseHintKey(write.key)) ids.insert(hint->id);
        if (const auto member = ParseMemberKey(write.key)) ids.insert(member->id);
      }
    }
    return ids;
  }

  void Remember(const MessageId& id, const std::optional<Message>& message) {
    living_.erase(id);
    if (message && message->live()) living_.emplace(id, *message);
  }

  void Expect(bool holds, const Change& change, const std::string& otherwise) {
    if (!holds) Say(NameOf(change.id) + " " + otherwise);
  }

  void Judge(const Change& change) {
    const std::optional<Message>& before = change.before;
    const std::optional<Message>& after = change.after;
    if (change.pushed()) {
      if (!after || after->stage == Stage::kTombstone) return;
      Expect(pushed_.insert(change.id).second, change, "is pushed twice");
    } else if (!before->live()) {
      // Purged; what its request id needs may be left.
      if (change.ended()) return;
      Expect(before->stage != Stage::kStub, change, "comes back after its end");
    }
    const bool lived = !change.pushed() && before->live();
    if (change.ended()) return JudgeEnd(change);
    Expect(!queues_[after->queue].delete_time, change, "comes into a queue that is deleted");
    if (!lived || after->queue != before->queue) JudgeNumber(change);
    if (change.handed_out()) return JudgeHandOut(change);
    Expect(after->delivery == change.deliveries(), change, "has a delivery without a hand-out");
    if (after->stage == Stage::kDead) return;
    if (lived && after->queue != before->queue) {
      Expect(after->time <= change.at + kAhead, change, "is moved and not ready in its new queue");
      Expect(after->tries == 0, change, "is moved with its tries");
    }
    if (after->stage == Stage::kReserved) {
      Expect(lived && before->stage == Stage::kReserved, change, "is reserved without a hand-out");
    }
  }

  // In a batch a message may have been given back before the rest.
  bool WasReleased(const Change& change) const {
    return batches_ && change.before && change.before->stage == Stage::kReserved &&
           releasing.contains({change.id, change.before->delivery});
  }

  void JudgeEnd(const Change& change) {
    const bool held = change.before && change.before->stage == Stage::kReserved;
    if (held && acknowledging.contains({change.id, change.before->delivery})) return;
    if (purging[change.process] > 0) return;
    Expect(popping[change.process] > 0, change, "vanishes: nobody has asked for its end");
    const bool early = !change.pushed() && change.before->time > change.at + kAhead;
    Expect(!early || WasReleased(change), change, "is popped early");
  }

  void JudgeHandOut(const Change& change) {
    const Message& after = *change.after;
    const UnixMicros now = after.time - reservation_;
    const int32_t tries_max = queues_[after.queue].settings.max_tries;
    Expect(tries_max == 0 || after.tries <= tries_max, change,
           "is tried more than max_tries times");
    Expect(now <= change.at + kAhead, change, "is reserved for too long");
    Expect(after.expire_time == 0 || after.expire_time > now, change,
           "is handed out after it expired");
    for (const auto& [id, other] : living_) {
      Expect(!IsBefore(other, after), change,
             "is handed out before " + NameOf(id) + " of its key is finished");
    }
    const bool lived = !change.pushed() && change.before->live();
    if (!lived || WasReleased(change)) {
      Expect(batches_, change, "is handed out without an open record");
      return;
    }
    const Message& before = *change.before;
    Expect(after.tries == before.tries + 1, change, "does not count its tries");
    Expect(before.time <= now, change, "is handed out early");
    Expect(before.stage != Stage::kWaiting || batches_, change, "is handed out while it waits");
  }

  static bool OfOneKey(const Message& left, const Message& right) {
    return left.queue == right.queue && left.ordering_key == right.ordering_key &&
           !left.ordering_key.empty();
  }
  static bool IsBefore(const Message& left, const Message& right) {
    return OfOneKey(left, right) && left.number < right.number;
  }

  // It comes last of its key: behind all that were there before and still are.
  void JudgeNumber(const Change& change) {
    for (const auto& [id, before] : living_before_) {
      const auto other = living_.find(id);
      if (id == change.id || other == living_.end() || !OfOneKey(before, *change.after)) continue;
      Expect(!IsBefore(*change.after, other->second), change, "comes before " + NameOf(id));
    }
  }

  bool IsThere(const std::string& key) {
    const auto record = engine_.Get(store::Keyspace::kQueueIndex, key);
    return record.ok() && *record;
  }

  // An unfinished message is found at every moment, and so is a dead one.
  void CheckHints(const MessageId& id, const Message& message) {
    const bool due = message.stage == Stage::kOpen || message.stage == Stage::kReserved;
    const bool dead = message.stage == Stage::kDead;
    if (due || dead) {
      const HintKind kind = due ? HintKind::kDue : HintKind::kDead;
      const Hint hint{kind, due ? message.priority : 0, message.time, id, message.hint_base};
      if (!IsThere(HintKey(message.queue, hint))) Say(NameOf(id) + " has no hint: it is lost");
    }
    if (message.sequence_number && (message.live() || dead)) {
      const Hint hint{HintKind::kSequence, 0, *message.sequence_number, id, message.sequence_base};
      if (!IsThere(HintKey(message.queue, hint))) Say(NameOf(id) + " is not under its number");
    }
    if (message.live() && !message.ordering_key.empty() &&
        !IsThere(MemberKey(message.queue, message.ordering_key, message.number, id))) {
      Say(NameOf(id) + " is no member of its key");
    }
  }

  // The first of each key, and it alone, does not wait; without a key nobody does.
  void CheckOrders() {
    std::map<std::pair<int64_t, std::string>, std::pair<int64_t, MessageId>> heads;
    for (const auto& [id, message] : living_) {
      if (message.ordering_key.empty()) {
        if (message.stage == Stage::kWaiting) Say(NameOf(id) + " waits without a key");
        continue;
      }
      const std::pair<int64_t, MessageId> place{message.number, id};
      auto& head = heads.try_emplace({message.queue, message.ordering_key}, place).first->second;
      head = std::min(head, place);
    }
    for (const auto& [id, message] : living_) {
      if (message.ordering_key.empty()) continue;
      const bool first = heads[{message.queue, message.ordering_key}].second == id;
      if (first == (message.stage != Stage::kWaiting)) continue;
      Say(NameOf(id) + (first ? ", the first of its key, waits" : " does not wait for its key"));
    }
    for (const auto& [key, head] : heads) {
      const auto record =
          engine_.Get(store::Keyspace::kQueueIndex, OrderKey(key.first, key.second));
      if (!record.ok() || !*record) {
        Say("a key with messages has no record");
        continue;
      }
      const auto order = Order::Decode((*record)->value);
      if (!order.ok() || order->head != head.second) Say("the record of a key names another head");
    }
  }

  store::Store& engine_;
  const Clock& clock_;
  const UnixMicros reservation_;
  const bool batches_;
  std::map<int64_t, QueueRecord> queues_;        // by incarnation, deleted ones too
  std::map<std::string, int64_t> incarnations_;  // those that have the names now
  std::vector<Change> changes_;
  std::map<MessageId, Message> living_;
  std::map<MessageId, Message> living_before_;  // the commit that is judged
  std::set<MessageId> pushed_;
  std::string problem_;
};

}  // namespace strata::queue::testing
