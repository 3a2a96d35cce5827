#include "schemas/queue/queue_directory.h"

#include <utility>

#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/queue/operations.h"
#include "schemas/queue/queue_errors.h"
#include "schemas/queue/queue_keys.h"

namespace strata::queue {

QueueRecordPtr QueueDirectory::Known(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto known = queues_.find(ToAbsl(name));
  return known == queues_.end() ? nullptr : known->second;
}

absl::StatusOr<QueueRecordPtr> QueueDirectory::Find(std::string_view name) {
  if (QueueRecordPtr known = Known(name)) return known;
  return FindAnew(name);
}

absl::StatusOr<QueueRecordPtr> QueueDirectory::FindAnew(std::string_view name) {
  return FindIn(store_, name);
}

absl::StatusOr<QueueRecordPtr> QueueDirectory::FindIn(const store::Reader& reader,
                                                      std::string_view name) {
  while (true) {
    const QueueRecordPtr before = Known(name);
    ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                     reader.Get(store::Keyspace::kQueues, name));
    std::optional<QueueRecord> queue;
    if (record) {
      if (stamps_are_positions_ && before != nullptr && before->stamp == record->stamp) {
        return before;
      }
      ASSIGN_OR_RETURN(queue, QueueRecord::Decode(name, *record));
    }
    const bool there = queue.has_value();
    std::optional<QueueRecordPtr> live = Learn(name, std::move(queue), before);
    if (!live) continue;
    if (there && *live != nullptr && *live != before) TellLater(*live);
    return *std::move(live);
  }
}

// Its dispatcher has to know too. Whoever reads here may be planning, and is not to run its rounds.
void QueueDirectory::TellLater(const QueueRecordPtr& queue) {
  const QueueEnvironmentPtr environment = environment_.lock();
  if (environment == nullptr) return;
  environment->executor.Schedule([environment, this, name = queue->name] {
    const Doors::Visit visit(environment->doors);
    if (visit.let_in()) TellDispatcher(name);
  });
}

void QueueDirectory::TellDispatcher(const std::string& name) {
  QueueRecordPtr queue;
  DispatcherPtr dispatcher;
  {
    const std::lock_guard lock(mutex_);
    const auto known = queues_.find(name);
    if (known == queues_.end()) return;
    queue = known->second;
    const auto found = dispatchers_.find(queue->incarnation);
    if (found == dispatchers_.end()) return;
    dispatcher = found->second;
  }
  dispatcher->Know(std::move(queue));
}

// Where stamps are no positions, one that is made anew once the tombstone of the one before was
// swept may begin with any stamp. Then the read is the newer one if it began when what is known was
// known already: `before`.
std::optional<QueueRecordPtr> QueueDirectory::Learn(std::string_view name,
                                                    std::optional<QueueRecord> queue,
                                                    const QueueRecordPtr& before) {
  std::optional<QueueRecord> read = std::move(queue);
  std::vector<DispatcherPtr> closed;
  QueueRecordPtr live;
  {
    const std::lock_guard lock(mutex_);
    const auto found = queues_.find(ToAbsl(name));
    if (found != queues_.end()) {
      const QueueRecordPtr& known = found->second;
      const bool comparable =
          read && (stamps_are_positions_ || read->incarnation == known->incarnation);
      if (comparable && read->stamp != 0 && read->stamp <= known->stamp) return known;
      if (!comparable && known != before) return std::nullopt;
    }
    if (read && !read->delete_time) live = std::make_shared<const QueueRecord>(*std::move(read));
    live = KnowLocked(name, std::move(live), closed);
  }
  for (const DispatcherPtr& dispatcher : closed) dispatcher->Close(QueueNotFound(name));
  return live;
}

// The dispatchers of what is not there any more are to be closed.
QueueRecordPtr QueueDirectory::KnowLocked(std::string_view name, QueueRecordPtr queue,
                                          std::vector<DispatcherPtr>& closed) {
  const auto known = queues_.find(ToAbsl(name));
  if (known != queues_.end()) {
    const int64_t before = known->second->incarnation;
    if (queue == nullptr || queue->incarnation != before) {
      if (const auto dispatcher = dispatchers_.extract(before)) {
        closed.push_back(dispatcher.mapped());
      }
    }
  }
  if (queue == nullptr) {
    if (known != queues_.end()) queues_.erase(known);
  } else {
    queues_.insert_or_assign(std::string(name), queue);
  }
  return queue;
}

void QueueDirectory::Know(QueueRecord queue) {
  const std::string name = queue.name;
  const std::optional<QueueRecordPtr> live = Learn(name, std::move(queue), nullptr);
  if (!live) {
    (void)FindAnew(name);
  } else if (*live != nullptr) {
    TellDispatcher(name);
  }
}

void QueueDirectory::Meet(const QueueRecord& queue) {
  const QueueRecordPtr known = Known(queue.name);
  if (known == nullptr) return;
  const bool comparable = stamps_are_positions_ || known->incarnation == queue.incarnation;
  if (comparable && known->stamp >= queue.stamp) return;
  Know(queue);
}

absl::StatusOr<QueueRecordPtr> QueueDirectory::Require(std::string_view name,
                                                       std::string_view field) {
  ASSIGN_OR_RETURN(QueueRecordPtr queue, FindAnew(name));
  if (queue == nullptr) return QueueNotFound(name, field);
  return queue;
}

absl::StatusOr<QueueRecordPtr> QueueDirectory::RequireKnown(std::string_view name,
                                                            std::string_view field) {
  ASSIGN_OR_RETURN(QueueRecordPtr queue, Find(name));
  if (queue == nullptr) return QueueNotFound(name, field);
  return queue;
}

bool QueueDirectory::IsMadeAnew(std::string_view name, int64_t incarnation) {
  const absl::StatusOr<QueueRecordPtr> queue = FindAnew(name);
  return queue.ok() && *queue != nullptr && (*queue)->incarnation != incarnation;
}

absl::StatusOr<DispatcherPtr> QueueDirectory::RequireDispatcher(std::string_view name,
                                                                std::string_view field) {
  RETURN_IF_ERROR(RequireKnown(name, field).status());
  const std::lock_guard lock(mutex_);
  // It may have been deleted since: a dispatcher made then would never be closed.
  const auto known = queues_.find(ToAbsl(name));
  if (known == queues_.end()) return QueueNotFound(name, field);
  DispatcherPtr& dispatcher = dispatchers_[known->second->incarnation];
  if (dispatcher == nullptr) {
    dispatcher = std::make_shared<Dispatcher>(environment_.lock(), known->second);
  }
  return dispatcher;
}

// By its dispatcher, which counts its index. Where the queue is gone its sweeper does it.
void QueueDirectory::Clean(std::string_view name, std::vector<Hint> untrue,
                           std::function<void()> done) {
  const absl::StatusOr<DispatcherPtr> dispatcher = RequireDispatcher(name);
  if (untrue.empty() || !dispatcher.ok()) return done();
  (*dispatcher)->Do(std::make_shared<CleanOperation>(std::move(untrue), std::move(done)));
}

void QueueDirectory::Tell(const Changes& changes, int64_t by) {
  std::vector<DispatcherPtr> touched;
  {
    const std::lock_guard lock(mutex_);
    for (const IndexChange& change : changes.index) {
      const std::optional<int64_t> incarnation = IncarnationOf(change.key);
      if (!incarnation || *incarnation == by) continue;
      const auto found = dispatchers_.find(*incarnation);
      if (found == dispatchers_.end()) continue;
      if (touched.empty() || touched.back() != found->second) touched.push_back(found->second);
    }
  }
  for (size_t i = 0; i < touched.size(); ++i) {
    bool told = false;
    for (size_t j = 0; j < i && !told; ++j) told = touched[j] == touched[i];
    if (!told) touched[i]->Apply(changes);
  }
}

std::vector<DispatcherPtr> QueueDirectory::dispatchers() const {
  std::vector<DispatcherPtr> all;
  const std::lock_guard lock(mutex_);
  all.reserve(dispatchers_.size());
  for (const auto& [incarnation, dispatcher] : dispatchers_) all.push_back(dispatcher);
  return all;
}

void QueueDirectory::Clear() {
  absl::flat_hash_map<int64_t, DispatcherPtr> going;  // after the lock: they let callers' things go
  const std::lock_guard lock(mutex_);
  going.swap(dispatchers_);
}

}  // namespace strata::queue
