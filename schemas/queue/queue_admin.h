// Queues are made, changed and deleted. Internal to this folder.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "schemas/queue/history_sweep.h"
#include "schemas/queue/message_reads.h"
#include "schemas/queue/queue_directory.h"
#include "schemas/queue/queues.h"

namespace strata::queue {

// A deleted queue's record stays as a tombstone until its messages are gone and a day has passed,
// on engines whose writers may be slow to hear of it. A deletion without force first marks the
// record (QueueRecord::closing), then looks whether the queue is empty, then puts the tombstone
// under the mark's stamp: whoever pushes or moves something into it meanwhile takes the mark back,
// in the same commit or, without atomic batches, between hint and message (draft.h).
//
// Thread-safe; kept in a shared_ptr.
class QueueAdmin : public std::enable_shared_from_this<QueueAdmin> {
 public:
  QueueAdmin(QueueEnvironmentPtr environment, QueueDirectory& directory, int64_t queues_max)
      : environment_(std::move(environment)),
        directory_(directory),
        queues_max_(queues_max),
        history_(environment_) {}

  void Create(std::string name, QueueSettings settings, Deadline deadline, QueueCallback done);
  void Update(std::string name, std::function<absl::Status(QueueSettings&)> change,
              Deadline deadline, QueueCallback done);
  void Delete(std::string name, bool force, Deadline deadline,
              std::function<void(absl::Status)> done);

  // Removes what deleted queues have left, and what history is over, some of it; whether there is
  // more to do now. By one thread at a time.
  absl::StatusOr<bool> Sweep();

 private:
  using RecordCallback = std::function<void(absl::StatusOr<QueueRecord>)>;
  // What is to become of a record that is stored, or of none.
  using Change =
      std::function<absl::StatusOr<QueueRecord>(const std::optional<QueueRecord>& stored)>;
  void Write(std::string name, Change change, Deadline deadline, RecordCallback done);
  void DeleteEmpty(std::string name, Deadline deadline, int attempts,
                   std::function<void(absl::Status)> done);
  absl::StatusOr<bool> IsUsed(const QueueRecord& queue, UntrueHints& untrue) const;
  absl::Status Admit();
  absl::StatusOr<bool> SweepQueue(const QueueRecord& queue);
  absl::StatusOr<bool> SweepSchedules(const QueueRecord& queue);
  UnixMicros KeptFor(const QueueRecord& tombstone, bool former) const;
  void Commit(store::WriteBatch batch);

  const QueueEnvironmentPtr environment_;
  QueueDirectory& directory_;
  const int64_t queues_max_;
  HistorySweep history_;
  std::mutex mutex_;              // guards what follows
  std::optional<int64_t> count_;  // nothing: not counted yet
};

Queue ToQueue(const QueueRecord& record);

}  // namespace strata::queue
