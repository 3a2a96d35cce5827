#include "schemas/versioning/write_queue.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace strata::versioning {
namespace {

std::string QueueKey(const DocumentName& name) {
  std::string key;
  key.reserve(name.collection.size() + 1 + name.id.size());
  // Names hold no control characters, so the zero byte parts them.
  key.append(name.collection).append(1, '\0').append(name.id);
  return key;
}

// Of a unit without documents. No document's key begins so.
std::string QueueKey(const PendingUnit& unit) {
  return std::string(1, '\0') + std::to_string(reinterpret_cast<uintptr_t>(&unit));
}

// A document of a unit, and who wants to know its write queue.
struct Place {
  std::string key;
  DocumentName name;
  WriteQueue** queue = nullptr;  // null: nobody
};

// Those that are the same stand beside each other.
std::vector<Place> PlacesOf(PendingUnit& unit) {
  std::vector<Place> places;
  places.reserve(unit.writes.size() + unit.request.reads.size());
  for (PendingWrite& write : unit.writes) {
    places.push_back({QueueKey(write.request.name), write.request.name, &write.queue});
  }
  unit.read_queues.resize(unit.request.reads.size());
  for (size_t i = 0; i < unit.read_queues.size(); ++i) {
    const DocumentName& name = unit.request.reads[i].name;
    places.push_back({QueueKey(name), name, &unit.read_queues[i]});
  }
  if (places.empty()) places.push_back({QueueKey(unit), DocumentName()});
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.key < b.key; });
  return places;
}

}  // namespace

bool Waiting::removal() const {
  if (!unit) return write->request.removal;
  return !unit->writes.empty() &&
         std::all_of(unit->writes.begin(), unit->writes.end(),
                     [](const PendingWrite& change) { return change.request.removal; });
}

void Waiting::Refuse(absl::Status status) {
  if (unit) {
    unit->answer = std::move(status);
  } else {
    write->answer = std::move(status);
  }
}

void Waiting::Forget() {
  if (unit) {
    unit->answer.reset();
    unit->planned = false;
  }
  ForEachWrite([](PendingWrite& part) {
    part.answer.reset();
    part.planned = part.makes_version = false;
  });
}

void Waiting::Answer(Waiting waiting) {
  if (waiting.write) return waiting.write->done(*std::move(waiting.write->answer));
  PendingUnit& unit = *waiting.unit;
  if (unit.answer->ok() && !(*unit.answer)->replayed) {
    std::vector<WriteResult>& changes = (*unit.answer)->changes;
    changes.reserve(unit.writes.size());
    for (PendingWrite& write : unit.writes) changes.push_back(**std::move(write.answer));
  }
  unit.done(*std::move(unit.answer));
}

// As far as those who run its write queues have looked. REQUIRES: the units' mutex is held.
bool WriteQueues::StandsAtAllFronts(const PendingUnit& unit) {
  return std::all_of(unit.queues.begin(), unit.queues.end(),
                     [&](const WriteQueue* queue) { return queue->front_ == &unit; });
}

// Collects one round. Holds the units' mutex.
class WriteQueues::RoundTaker {
 public:
  RoundTaker(WriteQueues& queues, const Limits& limits, Taken& taken)
      : lock_(queues.units_mutex_), limits_(limits), taken_(taken) {}

  void Take() {
    WriteQueue& first = *taken_.queues.front();
    do {
      Collect();
    } while (taken_.entries.empty() && first.front_ == nullptr && !IsOver(first));
    // Of a round all are run; one that gave nothing stands still from now on, or is over.
    if (!taken_.entries.empty()) {
      for (const WriteQueuePtr& queue : taken_.queues) queue->front_ = nullptr;
      return;
    }
    if (first.front_ != nullptr && IsBehindParked(*first.front_)) {
      Park(taken_.queues, taken_.wanted);
    }
    taken_.queues.clear();
  }

 private:
  // From write queue to write queue; a unit that is taken brings others, and uncovers what stands
  // behind it in those that were looked at before.
  void Collect() {
    std::vector<WriteQueue*> to_look_at;
    for (const WriteQueuePtr& queue : taken_.queues) to_look_at.push_back(queue.get());
    while (!to_look_at.empty()) {
      WriteQueue& queue = *to_look_at.back();
      to_look_at.pop_back();
      const PendingUnitPtr unit = TakeWrites(queue);
      queue.front_ = unit.get();
      if (unit == nullptr || !MayTake(*unit)) continue;
      TakeUnit(unit);
      to_look_at.insert(to_look_at.end(), unit->queues.begin(), unit->queues.end());
    }
  }

  // All that was in it may have been withdrawn since its caller looked.
  static bool IsOver(WriteQueue& queue) {
    const std::lock_guard lock(queue.shard_.mutex);
    if (!queue.waiting_.empty()) return false;
    queue.shard_.queues.erase(queue.key_);
    return true;
  }

  bool full() const { return taken_.entries.size() >= limits_.entries_max; }

  // The writes at the front. The unit whose ticket is there then, if it is one.
  PendingUnitPtr TakeWrites(WriteQueue& queue) {
    const std::lock_guard lock(queue.shard_.mutex);
    while (!queue.waiting_.empty() && queue.waiting_.front().write && !full()) {
      taken_.entries.push_back(std::move(queue.waiting_.front()));
      queue.waiting_.pop_front();
    }
    return queue.waiting_.empty() ? nullptr : queue.waiting_.front().unit;
  }

  bool MayTake(const PendingUnit& unit) const {
    if (full()) return false;
    const bool first = taken_.entries.empty();
    if (!first && taken_.queues.size() + unit.queues.size() > limits_.documents_max) return false;
    return StandsAtAllFronts(unit);
  }

  void TakeUnit(const PendingUnitPtr& unit) {
    for (WriteQueue* const queue : unit->queues) {
      queue->front_ = nullptr;
      const std::lock_guard lock(queue->shard_.mutex);
      queue->parked_ = false;
      queue->waiting_.pop_front();
      --queue->tickets_;
      const auto held = [&](const WriteQueuePtr& other) { return other.get() == queue; };
      if (std::none_of(taken_.queues.begin(), taken_.queues.end(), held)) {
        taken_.queues.push_back(queue->shared_from_this());
      }
    }
    taken_.entries.push_back(Waiting{nullptr, unit});
  }

  const std::lock_guard<std::mutex> lock_;
  const Limits& limits_;
  Taken& taken_;
};

WriteQueues::WriteQueues() {
  for (auto& shard : shards_) shard = std::make_unique<Shard>();
}

WriteQueues::~WriteQueues() = default;

WriteQueues::Shard& WriteQueues::ShardOf(const std::string& key) {
  return *shards_[std::hash<std::string>{}(key) % kShards];
}

Added WriteQueues::Add(std::unique_ptr<PendingWrite> write, bool at_length) {
  std::string key = QueueKey(write->request.name);
  Shard& shard = ShardOf(key);
  Waiting entry{std::move(write), nullptr};
  {
    const std::lock_guard lock(shard.mutex);
    if (!at_length || !IsParked(shard, key)) {
      return AddWrite(std::move(entry), std::move(key), shard);
    }
  }
  const std::lock_guard units_lock(units_mutex_);
  WriteQueuePtrs to_run;
  WriteQueuePtr queue;
  {
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.queues.find(key);
    if (found != shard.queues.end()) queue = found->second;
  }
  if (queue != nullptr) Unpark(std::move(queue), to_run);
  const std::lock_guard lock(shard.mutex);
  Added added = AddWrite(std::move(entry), std::move(key), shard);
  added.to_run.insert(added.to_run.end(), to_run.begin(), to_run.end());
  return added;
}

// REQUIRES: the shard's mutex is held.
bool WriteQueues::IsParked(const Shard& shard, const std::string& key) {
  const auto found = shard.queues.find(key);
  return found != shard.queues.end() && found->second->parked_;
}

// REQUIRES: the shard's mutex is held.
Added WriteQueues::AddWrite(Waiting entry, std::string key, Shard& shard) {
  Added added;
  WriteQueuePtr& queue = shard.queues[key];
  if (queue == nullptr) {
    queue = std::make_shared<WriteQueue>(std::move(key), entry.write->request.name, shard);
    added.to_run.push_back(queue);
  } else if (queue->parked_) {
    added.wanted.Add(entry, queue);
  }
  entry.write->queue = queue.get();
  queue->waiting_.push_back(std::move(entry));
  return added;
}

Added WriteQueues::Add(const PendingUnitPtr& unit, bool at_length) {
  std::vector<Place> places = PlacesOf(*unit);
  Added added;
  bool all_new = true;
  unit->queues.reserve(places.size());
  const std::lock_guard units_lock(units_mutex_);
  for (size_t i = 0; i < places.size(); ++i) {
    Place& place = places[i];
    const bool same = i > 0 && place.key == unit->queues.back()->key_;
    if (!same) {
      const WriteQueuePtr queue =
          AddTicket(unit, std::move(place.key), place.name, at_length, added);
      all_new = all_new && queue->front_ == unit.get();
      unit->queues.push_back(queue.get());
      if (at_length) Unpark(queue, added.to_run);
    }
    if (place.queue != nullptr) *place.queue = unit->queues.back();
  }
  if (IsBehindParked(*unit)) {
    WriteQueuePtrs standing;
    for (WriteQueue* const queue : unit->queues) {
      if (queue->front_ == unit.get()) standing.push_back(queue->shared_from_this());
    }
    Park(std::move(standing), added.wanted);
  }
  // Nobody else runs any of them.
  if (all_new) added.to_run.push_back(unit->queues.front()->shared_from_this());
  return added;
}

// Puts the ticket into one queue. A new one stands still. REQUIRES: the units' mutex is held.
WriteQueuePtr WriteQueues::AddTicket(const PendingUnitPtr& unit, std::string key,
                                     const DocumentName& name, bool at_length, Added& added) {
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  WriteQueuePtr& queue = shard.queues[key];
  if (queue == nullptr) {
    queue = std::make_shared<WriteQueue>(std::move(key), name, shard);
    queue->front_ = unit.get();
  } else if (queue->parked_ && !at_length) {
    added.wanted.Add({nullptr, unit}, queue);
  }
  queue->waiting_.push_back({nullptr, unit});
  ++queue->tickets_;
  return queue;
}

WriteQueues::Taken WriteQueues::TakeRound(const WriteQueuePtr& queue, const Limits& limits) {
  Taken taken;
  Limits now = limits;
  if (queue->next_take_max_) now.entries_max = std::min(now.entries_max, *queue->next_take_max_);
  queue->next_take_max_.reset();
  taken.queues.push_back(queue);
  {
    const std::lock_guard lock(queue->shard_.mutex);
    if (queue->waiting_.empty()) {
      queue->shard_.queues.erase(queue->key_);
      taken.queues.clear();
      return taken;
    }
    if (queue->tickets_ == 0) {
      const size_t count = std::min(queue->waiting_.size(), now.entries_max);
      taken.entries.reserve(count);
      for (size_t i = 0; i < count; ++i) {
        taken.entries.push_back(std::move(queue->waiting_.front()));
        queue->waiting_.pop_front();
      }
      return taken;
    }
  }
  RoundTaker(*this, now, taken).Take();
  return taken;
}

void WriteQueues::PutBack(std::vector<Waiting>& entries) {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    entry->Forget();
    if (entry->write) {
      WriteQueue& queue = *entry->write->queue;
      const std::lock_guard lock(queue.shard_.mutex);
      queue.waiting_.push_front(std::move(*entry));
      continue;
    }
    for (WriteQueue* const queue : entry->unit->queues) {
      const std::lock_guard lock(queue->shard_.mutex);
      queue->waiting_.push_front(Waiting{nullptr, entry->unit});
      ++queue->tickets_;
    }
  }
  entries.clear();
}

WantedTurns WriteQueues::Park(const WriteQueuePtrs& queues) {
  WantedTurns wanted;
  const std::lock_guard units_lock(units_mutex_);
  Park(queues, wanted);
  return wanted;
}

// With those that stand still behind a unit in one of them, and so on. REQUIRES: the units' mutex
// is held; something waits in each, and nobody else runs it.
void WriteQueues::Park(WriteQueuePtrs queues, WantedTurns& wanted) {
  while (!queues.empty()) {
    const WriteQueuePtr queue = std::move(queues.back());
    queues.pop_back();
    const std::lock_guard lock(queue->shard_.mutex);
    if (std::exchange(queue->parked_, true)) continue;
    queue->front_ = queue->waiting_.front().unit.get();
    for (const Waiting& entry : queue->waiting_) {
      wanted.Add(entry, queue);
      if (!entry.unit) continue;
      for (WriteQueue* const other : entry.unit->queues) {
        if (other->front_ != entry.unit.get() || other->parked_) continue;
        queues.push_back(other->shared_from_this());
      }
    }
  }
}

// REQUIRES: the units' mutex is held.
bool WriteQueues::IsBehindParked(const PendingUnit& unit) {
  return std::any_of(unit.queues.begin(), unit.queues.end(),
                     [](const WriteQueue* queue) { return queue->parked_; });
}

WriteQueuePtrs WriteQueues::Resume(const void* line, const WriteQueuePtrs& queues) {
  WriteQueuePtrs to_run;
  const std::lock_guard units_lock(units_mutex_);
  for (const WriteQueuePtr& queue : queues) {
    {
      const std::lock_guard lock(queue->shard_.mutex);
      queue->lines_.erase(line);
    }
    Unpark(queue, to_run);
  }
  return to_run;
}

WriteQueuePtrs WriteQueues::ResumeWithoutTurn(const void* line, const WriteQueuePtrs& queues) {
  WriteQueuePtrs to_run;
  const std::lock_guard units_lock(units_mutex_);
  for (const WriteQueuePtr& queue : queues) {
    const std::lock_guard lock(queue->shard_.mutex);
    queue->lines_.erase(line);
  }
  for (const WriteQueuePtr& queue : queues) {
    if (!queue->parked_ || HasTurn(*queue) || IsBroughtAlong(*queue)) continue;
    const std::lock_guard lock(queue->shard_.mutex);
    queue->parked_ = false;
    queue->front_ = nullptr;
    to_run.push_back(queue);
  }
  return to_run;
}

bool WriteQueues::HasTurn(const WriteQueue& queue) {
  const std::lock_guard lock(queue.shard_.mutex);
  return !queue.lines_.empty();
}

// Whether a unit that stands in it stands in another parked one that has a turn: that brings it
// here, or parks the other one anew. REQUIRES: the units' mutex is held.
bool WriteQueues::IsBroughtAlong(const WriteQueue& queue) {
  std::vector<PendingUnitPtr> units;
  {
    const std::lock_guard lock(queue.shard_.mutex);
    for (const Waiting& entry : queue.waiting_) {
      if (entry.unit) units.push_back(entry.unit);
    }
  }
  return std::any_of(units.begin(), units.end(), [&](const PendingUnitPtr& unit) {
    return std::any_of(unit->queues.begin(), unit->queues.end(), [&](const WriteQueue* other) {
      return other != &queue && other->parked_ && HasTurn(*other);
    });
  });
}

// If it is parked, the caller runs it now, with all that has to move for what is at its front: the
// other parked write queues of that unit, and so on. REQUIRES: the units' mutex is held.
void WriteQueues::Unpark(WriteQueuePtr queue, WriteQueuePtrs& to_run) {
  WriteQueuePtrs unparked;
  WriteQueuePtrs to_look_at{std::move(queue)};
  while (!to_look_at.empty()) {
    const WriteQueuePtr next = std::move(to_look_at.back());
    to_look_at.pop_back();
    const std::lock_guard lock(next->shard_.mutex);
    if (!std::exchange(next->parked_, false)) continue;
    next->front_ = nullptr;
    unparked.push_back(next);
    if (next->waiting_.empty() || !next->waiting_.front().unit) continue;
    for (WriteQueue* const other : next->waiting_.front().unit->queues) {
      to_look_at.push_back(other->shared_from_this());
    }
  }
  // They are run from the last on: each stands still then, until what stands in its way brings it
  // along, so that one round takes all.
  to_run.insert(to_run.end(), unparked.rbegin(), unparked.rend());
}

WriteQueues::Withdrawn WriteQueues::Withdraw(const WriteQueuePtr& queue) {
  Withdrawn withdrawn;
  const std::lock_guard units_lock(units_mutex_);
  {
    const std::lock_guard lock(queue->shard_.mutex);
    if (queue->waiting_.empty()) return withdrawn;
    withdrawn.entry = std::move(queue->waiting_.front());
    queue->waiting_.pop_front();
    if (!withdrawn.entry->unit) return withdrawn;
    --queue->tickets_;
  }
  const PendingUnitPtr& unit = withdrawn.entry->unit;
  for (WriteQueue* const other : unit->queues) {
    if (other == queue.get()) continue;
    const std::lock_guard lock(other->shard_.mutex);
    other->waiting_.remove_if([&](const Waiting& entry) { return entry.unit == unit; });
    --other->tickets_;
    const bool stood_still = other->front_ == unit.get();
    if (stood_still) other->front_ = nullptr;
    // One that is parked waits for the turns that were asked for, even if nothing is left in it;
    // one that has none has waited for the unit's.
    if (other->parked_ ? !other->lines_.empty() : !stood_still) continue;
    other->parked_ = false;
    other->front_ = nullptr;
    withdrawn.to_run.push_back(other->shared_from_this());
  }
  return withdrawn;
}

WriteQueue::WriteQueue(std::string key, DocumentName name, WriteQueues::Shard& shard)
    : key_(std::move(key)), name_(std::move(name)), shard_(shard) {}

size_t WriteQueue::size() const {
  const std::lock_guard lock(shard_.mutex);
  return waiting_.size();
}

// REQUIRES: the mutex of the queue's shard is held.
void WantedTurns::Add(const Waiting& entry, const WriteQueuePtr& queue) {
  const Waiter* const waiter = entry.waiter();
  const void* const line = waiter != nullptr ? waiter->line() : nullptr;
  if (!queue->lines_.insert(line).second) return;
  size_t index = all_.size();
  if (entry.unit) index = of_units_.emplace(entry.unit.get(), index).first->second;
  if (index == all_.size()) {
    WantedTurn& turn = all_.emplace_back();
    turn.waiter = waiter;
    turn.line = line;
    if (waiter != nullptr && entry.write) turn.keeps_waiter = entry.write->done;
    if (waiter != nullptr) turn.keeps_unit = entry.unit;
  }
  all_[index].queues.push_back(queue);
}

}  // namespace strata::versioning
