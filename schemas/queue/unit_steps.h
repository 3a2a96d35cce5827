// Acknowledgements and pushes that commit with a unit. Internal to this folder.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "schemas/queue/operations.h"
#include "schemas/queue/queue_directory.h"
#include "schemas/queue/queues.h"

namespace strata::queue {

class QueueUnitSteps final : public UnitSteps {
 public:
  struct Push {
    DispatcherPtr dispatcher;
    PreparedPush push;
  };
  struct Acknowledgement {
    DispatcherPtr dispatcher;
    Token token;
  };

  // `refusal`: what the plan is to answer. A unit that was done before is answered before it is
  // asked for its plan, though its queues may be gone since.
  QueueUnitSteps(QueueEnvironmentPtr environment, QueueDirectory& directory,
                 std::vector<Acknowledgement> acknowledge, std::vector<Push> pushes,
                 absl::Status refusal = absl::OkStatus());

  store::JoinedPlan plan() override;
  void Committed(store::CommitPosition position) override;
  std::vector<MessageId> pushed() const override;

 private:
  // What plans share, which may outlive this object.
  struct Shared;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace strata::queue
