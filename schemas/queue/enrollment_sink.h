// The server as a queue's consumer: messages about enrollments are applied as they come.
//
// A message is { operation: "insert" or "delete", student_id: string or integer, class: string,
// sequence_number: integer } and perhaps reason: string, on_behalf_of (or actor): string, for which
// its pusher has to have the right, and set, which is the queue's own. It is applied and
// acknowledged in one commit where the engine has atomic batches; elsewhere first the one, then
// the other, and the sequence guard makes a repetition harmless. What cannot be applied, and what a
// producer did wrong (CONFLICT, BELOW_FLOOR), ends among the dead, with the reason; nothing is
// dropped.
#pragma once

#include <chrono>
#include <memory>

#include "schemas/base/executor.h"
#include "schemas/enrollment/enrollments.h"
#include "schemas/queue/queues.h"
#include "schemas/versioning/documents.h"

namespace strata::queue {

// Thread-safe.
class EnrollmentSinks {
 public:
  // All must outlive it, and the executor the work in flight. Without `grants` everything is
  // granted.
  EnrollmentSinks(Queues& queues, versioning::Documents& documents,
                  enrollment::Enrollments& enrollments, const store::Capabilities& capabilities,
                  const document::Limits& limits, Executor& executor,
                  const StandingGrants* grants = nullptr);
  // What is under way leaves the others alone from now on.
  ~EnrollmentSinks();

  // Serves the queues whose settings say so, as they are and as they will be, looking every
  // `interval` for those of other servers.
  void Start(std::chrono::microseconds interval = std::chrono::seconds(2));
  // Looks now.
  void Look();

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace strata::queue
