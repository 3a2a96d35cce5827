// Streams of messages, and steps that commit with units.
#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/names.h"
#include "schemas/queue/plans.h"
#include "schemas/queue/queue_errors.h"
#include "schemas/queue/queue_requests.h"
#include "schemas/queue/queues_impl.h"
#include "schemas/queue/receiver.h"
#include "schemas/queue/unit_steps.h"

namespace strata::queue {
namespace {

using std::chrono::microseconds;

}  // namespace

class Queues::Impl::StreamReceiver final : public Receiver {
 public:
  StreamReceiver(std::shared_ptr<Impl> impl, DispatcherPtr dispatcher,
                 std::shared_ptr<StreamConsumer> consumer, std::shared_ptr<ReceiverSink> sink)
      : impl_(std::move(impl)),
        dispatcher_(std::move(dispatcher)),
        consumer_(std::move(consumer)),
        sink_(std::move(sink)) {}
  ~StreamReceiver() override { Leave(false); }

  void Acknowledge(std::vector<std::string> tokens) override {
    impl_->OnTokens(
        tokens, std::nullopt,
        [](Draft& draft, const Place& place, const Token& token) {
          return PlanAcknowledge(draft, place, token, false);
        },
        &QueueCounts::acknowledged, Answer(tokens));
  }
  absl::Status Rollback(RollbackRequest request) override {
    RETURN_IF_ERROR(CheckRollback("rollback", request));
    auto answer = Answer(request.tokens);
    impl_->Rollback(std::move(request), std::move(answer));
    return absl::OkStatus();
  }
  absl::Status Extend(std::vector<std::string> tokens,
                      std::optional<microseconds> timeout) override {
    RETURN_IF_ERROR(CheckTimeout("extend.timeout", timeout));
    impl_->OnTokens(tokens, std::nullopt, ExtendStep(timeout), nullptr, Answer(tokens));
    return absl::OkStatus();
  }
  absl::Status AddCredits(int32_t credits) override {
    RETURN_IF_ERROR(consumer_->AddCredits(credits));
    dispatcher_->Look();
    return absl::OkStatus();
  }
  void Ready() override { dispatcher_->Look(); }
  void Leave(bool orderly) override {
    // In this order, so that whoever adds it at the same time finds it gone.
    consumer_->Leave(orderly);
    dispatcher_->Remove(*consumer_);
  }

  static TokenOperation::Step ExtendStep(std::optional<microseconds> timeout) {
    return [timeout](Draft& draft, const Place& place, const Token& token) {
      return PlanExtend(draft, place, token,
                        timeout.value_or(place.queue.settings.reservation_timeout));
    };
  }

 private:
  TokensCallback Answer(std::vector<std::string> tokens) {
    return [tokens = std::move(tokens), sink = sink_, consumer = consumer_,
            dispatcher = dispatcher_](std::vector<absl::StatusOr<bool>> replayed) mutable {
      // What is not its any more gives the credit back, however that came about.
      for (size_t i = 0; i < tokens.size(); ++i) {
        if (replayed[i].ok() || ReasonOf(replayed[i].status()) == ErrorReason::kInvalidField) {
          continue;
        }
        const ErrorReason reason = ReasonOf(replayed[i].status()).value_or(ErrorReason::kInternal);
        if (reason != ErrorReason::kReservationLost && reason != ErrorReason::kMessageNotFound) {
          continue;
        }
        const absl::StatusOr<Token> token = Token::FromText("", tokens[i]);
        if (token.ok()) consumer->Released(token->message, token->delivery);
      }
      sink->Answer(std::move(tokens), std::move(replayed));
      dispatcher->Look();
    };
  }

  const std::shared_ptr<Impl> impl_;
  const DispatcherPtr dispatcher_;
  const std::shared_ptr<StreamConsumer> consumer_;
  const std::shared_ptr<ReceiverSink> sink_;
};

absl::StatusOr<std::unique_ptr<Receiver>> Queues::Impl::Receive(
    ReceiveRequest request, std::shared_ptr<ReceiverSink> sink) {
  RETURN_IF_ERROR(CheckReceive(request));
  if (draining_) return Draining();
  RETURN_IF_ERROR(directory_.Require(request.queue).status());
  ASSIGN_OR_RETURN(DispatcherPtr dispatcher, directory_.RequireDispatcher(request.queue));
  const auto give_back = [weak = weak_from_this()](std::vector<std::string> tokens, bool orderly) {
    const std::shared_ptr<Impl> self = weak.lock();
    if (self == nullptr) return;
    const Doors::Visit visit(self->environment_->doors);
    if (!visit.let_in()) return;
    const auto nobody = [](const std::vector<absl::StatusOr<bool>>&) {};
    if (!orderly) {
      return self->OnTokens(tokens, std::nullopt, StreamReceiver::ExtendStep(microseconds(0)),
                            nullptr, nobody);
    }
    RollbackRequest rollback;
    rollback.tokens = std::move(tokens);
    rollback.delay = microseconds(0);
    rollback.not_counted = true;
    rollback.deadline = std::nullopt;
    self->Rollback(std::move(rollback), nobody);
  };
  auto consumer =
      std::make_shared<StreamConsumer>(sink, request.credits, request.timeout, give_back);
  auto receiver =
      std::make_unique<StreamReceiver>(shared_from_this(), dispatcher, consumer, std::move(sink));
  // The sink gets nothing before the caller has its receiver.
  environment_->executor.Schedule([weak = weak_from_this(), dispatcher, consumer] {
    const std::shared_ptr<Impl> self = weak.lock();
    if (self == nullptr) return;
    const Doors::Visit visit(self->environment_->doors);
    if (!visit.let_in()) return;
    dispatcher->Add(consumer);
    if (consumer->gone()) dispatcher->Remove(*consumer);
    if (self->draining_) dispatcher->EndWaiting(Draining());
  });
  return receiver;
}

absl::StatusOr<std::unique_ptr<UnitSteps>> Queues::Impl::PlanUnit(
    std::vector<std::string> acknowledge, std::vector<UnitPush> pushes) {
  for (size_t i = 0; i < pushes.size(); ++i) {
    const std::string field = Element("pushes", i);
    RETURN_IF_ERROR(ValidateName(Inside(field, "queue"), pushes[i].queue));
    RETURN_IF_ERROR(CheckMessage(Inside(field, "message"), pushes[i].message));
  }
  if (!environment_->capabilities.atomic_batches) {
    return Error(ErrorReason::kUnsupportedByEngine,
                 "acknowledge and pushes need atomic batches, which the engine does not have")
        .With("field", acknowledge.empty() ? "pushes" : "acknowledge")
        .With("capability", "atomic_batches");
  }
  const auto refuse = [&](absl::Status status) {
    return std::make_unique<QueueUnitSteps>(environment_, directory_,
                                            std::vector<QueueUnitSteps::Acknowledgement>(),
                                            std::vector<QueueUnitSteps::Push>(), std::move(status));
  };
  std::vector<QueueUnitSteps::Acknowledgement> tokens;
  for (size_t i = 0; i < acknowledge.size(); ++i) {
    const std::string field = Element("acknowledge", i);
    ASSIGN_OR_RETURN(Token token, Token::FromText(field, acknowledge[i]));
    const auto twice = std::find_if(tokens.begin(), tokens.end(), [&](const auto& other) {
      return other.token.message == token.message;
    });
    if (twice != tokens.end()) {
      return Error(ErrorReason::kInvalidField, "names the same message twice").With("field", field);
    }
    // Anew: what a unit is refused with is not asked again.
    const absl::StatusOr<QueueRecordPtr> queue = directory_.Require(token.queue, field);
    if (!queue.ok()) return refuse(queue.status());
    absl::StatusOr<DispatcherPtr> dispatcher = directory_.RequireDispatcher(token.queue, field);
    if (!dispatcher.ok()) return refuse(dispatcher.status());
    tokens.push_back({*std::move(dispatcher), std::move(token)});
  }
  std::vector<QueueUnitSteps::Push> prepared;
  for (size_t i = 0; i < pushes.size(); ++i) {
    const std::string field = Element("pushes", i);
    const absl::StatusOr<QueueRecordPtr> queue =
        directory_.Require(pushes[i].queue, field + ".queue");
    if (!queue.ok()) return refuse(queue.status());
    absl::StatusOr<DispatcherPtr> dispatcher =
        directory_.RequireDispatcher(pushes[i].queue, field + ".queue");
    if (!dispatcher.ok()) return refuse(dispatcher.status());
    ASSIGN_OR_RETURN(PreparedPush push,
                     Prepare(field + ".message", **queue, pushes[i].message,
                             environment_->capabilities, (*dispatcher)->Now(), DrawId()));
    prepared.push_back({*std::move(dispatcher), std::move(push)});
  }
  return std::make_unique<QueueUnitSteps>(environment_, directory_, std::move(tokens),
                                          std::move(prepared));
}

}  // namespace strata::queue
