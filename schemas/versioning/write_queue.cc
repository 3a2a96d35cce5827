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

}  // namespace

WriteQueues::WriteQueues() {
  for (auto& shard : shards_) shard = std::make_unique<Shard>();
}

WriteQueues::~WriteQueues() = default;

WriteQueues::Added WriteQueues::Add(std::unique_ptr<PendingWrite> write, bool at_length) {
  std::string key = QueueKey(write->request.name);
  Shard& shard = *shards_[std::hash<std::string>{}(key) % kShards];
  const std::lock_guard lock(shard.mutex);
  WriteQueuePtr& queue = shard.queues[std::move(key)];
  Added added{.to_run = queue == nullptr};
  if (added.to_run) queue = std::make_shared<WriteQueue>(write->request.name, shard);
  if (queue->parked_ && at_length) {
    queue->parked_ = false;
    added.to_run = true;
  } else if (queue->parked_) {
    added.wanted = queue->WantTurn(*write);
  }
  queue->waiting_.push_back(std::move(write));
  added.queue = queue;
  return added;
}

WriteQueue::WriteQueue(DocumentName name, WriteQueues::Shard& shard)
    : name_(std::move(name)), shard_(shard) {}

size_t WriteQueue::size() const {
  const std::lock_guard lock(shard_.mutex);
  return waiting_.size();
}

PendingWrites WriteQueue::Take(size_t writes_max) {
  if (next_take_max_) writes_max = std::min(writes_max, *next_take_max_);
  next_take_max_.reset();
  PendingWrites taken;
  const std::lock_guard lock(shard_.mutex);
  if (waiting_.empty()) {
    shard_.queues.erase(QueueKey(name_));
    return taken;
  }
  const size_t count = std::min(waiting_.size(), writes_max);
  for (size_t i = 0; i < count; ++i) {
    taken.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return taken;
}

void WriteQueue::PutBack(PendingWrites& writes) {
  const std::lock_guard lock(shard_.mutex);
  for (auto write = writes.rbegin(); write != writes.rend(); ++write) {
    (*write)->answer.reset();
    (*write)->planned.reset();
    waiting_.push_front(std::move(*write));
  }
  writes.clear();
}

std::vector<WantedTurn> WriteQueue::Park() {
  std::vector<WantedTurn> wanted;
  const std::lock_guard lock(shard_.mutex);
  parked_ = true;
  for (const auto& write : waiting_) {
    if (std::optional<WantedTurn> turn = WantTurn(*write)) wanted.push_back(*std::move(turn));
  }
  return wanted;
}

// None if it was asked for already. REQUIRES: the shard's mutex is held.
std::optional<WantedTurn> WriteQueue::WantTurn(const PendingWrite& write) {
  const Waiter* const waiter = write.request.waiter;
  const void* const line = waiter != nullptr ? waiter->line() : nullptr;
  if (!lines_.insert(line).second) return std::nullopt;
  return WantedTurn{waiter, line, waiter != nullptr ? write.done : nullptr};
}

bool WriteQueue::Resume(const void* line) {
  const std::lock_guard lock(shard_.mutex);
  lines_.erase(line);
  return std::exchange(parked_, false);
}

bool WriteQueue::ResumeWithoutTurn(const void* line) {
  const std::lock_guard lock(shard_.mutex);
  lines_.erase(line);
  return lines_.empty() && std::exchange(parked_, false);
}

}  // namespace strata::versioning
