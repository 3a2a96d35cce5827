// Schedules are kept and fired. Internal to this folder.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "schemas/queue/queue_directory.h"
#include "schemas/queue/queues.h"
#include "schemas/queue/schedule_agenda.h"

namespace strata::queue {

// A firing replaces the schedule's record under its stamp and pushes a message whose id is made of
// schedule and time: so each time fires at most once, however many servers look; without atomic
// batches the push comes first. Thread-safe; kept in a shared_ptr.
class Schedules : public std::enable_shared_from_this<Schedules> {
 public:
  Schedules(QueueEnvironmentPtr environment, QueueDirectory& directory, DamagedSchedule report)
      : environment_(std::move(environment)),
        directory_(directory),
        agenda_(environment_->store, environment_->clock, std::move(report)) {}

  // May read every schedule there is.
  void Create(Schedule schedule, Deadline deadline, ScheduleCallback done);
  absl::StatusOr<std::vector<Schedule>> List(const std::string& queue,
                                             const std::string& after_name, size_t most) const;
  void Delete(const std::string& queue, const std::string& name, Deadline deadline,
              std::function<void(absl::Status)> done);

  // Fires what is due, and sets right what waits for a time of a clock that was ahead. When there
  // is something to do again, if nobody else makes schedules: at `look_again` at the latest. By one
  // thread at a time.
  absl::StatusOr<UnixMicros> Fire(UnixMicros look_again);

 private:
  absl::StatusOr<QueueRecordPtr> Check(const Schedule& schedule) const;
  absl::Status CheckCount(const QueueRecord& queue);
  absl::StatusOr<Schedule> PlanCreate(Schedule schedule, store::WriteBatch& batch,
                                      int64_t& incarnation);
  absl::Status PlanDelete(const std::string& queue, const std::string& name,
                          store::WriteBatch& batch, int64_t& incarnation);
  template <typename Plan, typename Done>
  void Write(const std::string& queue, const std::string& name, Deadline deadline, Plan plan,
             Done done);
  void SetNextTime(const std::string& key, ScheduleRecord record, UnixMicros next_time);

  const QueueEnvironmentPtr environment_;
  QueueDirectory& directory_;
  ScheduleAgenda agenda_;
  UnixMicros fired_at_ = 0;  // by the clock as it was then
};

}  // namespace strata::queue
