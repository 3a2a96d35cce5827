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

WriteQueuePtr WriteQueues::Add(std::unique_ptr<PendingWrite> write) {
  std::string key = QueueKey(write->request.name);
  Shard& shard = *shards_[std::hash<std::string>{}(key) % kShards];
  const std::lock_guard lock(shard.mutex);
  WriteQueuePtr& queue = shard.queues[std::move(key)];
  const bool made = queue == nullptr;
  if (made) queue = std::make_shared<WriteQueue>(write->request.name, shard);
  queue->waiting_.push_back(std::move(write));
  return made ? queue : nullptr;
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

}  // namespace strata::versioning
