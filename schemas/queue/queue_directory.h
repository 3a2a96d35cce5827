// The queues of a store as one process knows them, with a dispatcher for each that it uses.
// Internal to this folder.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "schemas/queue/dispatcher.h"

namespace strata::queue {

using DispatcherPtr = std::shared_ptr<Dispatcher>;

// Thread-safe.
class QueueDirectory final : public Directory {
 public:
  // `store` outlives it.
  explicit QueueDirectory(store::Store& store)
      : store_(store), stamps_are_positions_(store.capabilities().commit_positions) {}
  // The environment's directory is this one. Before any dispatcher is asked for.
  void SetEnvironment(const QueueEnvironmentPtr& environment) { environment_ = environment; }

  absl::StatusOr<QueueRecordPtr> Find(std::string_view name) override;
  absl::StatusOr<QueueRecordPtr> FindAnew(std::string_view name) override;
  void Tell(const Changes& changes, int64_t by) override;

  // As `reader` shows it.
  absl::StatusOr<QueueRecordPtr> FindIn(const store::Reader& reader, std::string_view name);
  // As the store has it, for what only reads: no guard says there that another process has made the
  // queue anew. QUEUE_NOT_FOUND, naming `field` unless that is empty.
  absl::StatusOr<QueueRecordPtr> Require(std::string_view name, std::string_view field = "");
  // As this process knows it, for operations, whose drafts guard it. QUEUE_NOT_FOUND as above.
  absl::StatusOr<QueueRecordPtr> RequireKnown(std::string_view name, std::string_view field = "");
  absl::StatusOr<DispatcherPtr> RequireDispatcher(std::string_view name,
                                                  std::string_view field = "");
  // Whether the store has another queue of this name than that of the incarnation: then what was
  // refused on that one is to be asked of this one.
  bool IsMadeAnew(std::string_view name, int64_t incarnation);

  // Drops those hints of the queue that can no more come true, now or later; then calls back.
  void Clean(std::string_view name, std::vector<Hint> untrue, std::function<void()> done);

  // The queue's record was written: it is this now, perhaps a tombstone.
  void Know(QueueRecord queue);
  // As Know, for a record that was met and may be older than what is known; of a queue that nobody
  // here has used it is not kept.
  void Meet(const QueueRecord& queue);
  // Those that there are now.
  std::vector<DispatcherPtr> dispatchers() const;
  // Lets the dispatchers go, with the calls that they keep unanswered, which may keep their facade.
  void Clear();

 private:
  QueueRecordPtr KnowLocked(std::string_view name, QueueRecordPtr queue,
                            std::vector<DispatcherPtr>& closed);
  void TellLater(const QueueRecordPtr& queue);
  void TellDispatcher(const std::string& name);
  QueueRecordPtr Known(std::string_view name) const;
  // Nothing, and nothing is learned: it is not known which of two is the newer one.
  std::optional<QueueRecordPtr> Learn(std::string_view name, std::optional<QueueRecord> queue,
                                      const QueueRecordPtr& before);

  store::Store& store_;
  const bool stamps_are_positions_;
  std::weak_ptr<QueueEnvironment> environment_;
  mutable std::mutex mutex_;  // guards what follows
  absl::flat_hash_map<std::string, QueueRecordPtr> queues_;
  absl::flat_hash_map<int64_t, DispatcherPtr> dispatchers_;  // by incarnation
};

}  // namespace strata::queue
