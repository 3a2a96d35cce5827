#include "schemas/base/status_macros.h"
#include "service/rpc/convert.h"

namespace strata::rpc::collection_service {
namespace {

absl::StatusOr<const versioning::StrategyEntry*> ToStrategy(const Context& context,
                                                            wire::Strategy strategy) {
  if (strategy == wire::STRATEGY_UNSPECIFIED) return &context.services.default_strategy;
  const versioning::StrategyEntry* const entry = versioning::FindStrategy(strategy);
  if (entry != nullptr) return entry;
  std::string problem = "is " + std::to_string(strategy) + ", which is none of";
  for (const versioning::StrategyEntry& each : versioning::AllStrategies()) {
    problem += " " + wire::Strategy_Name(static_cast<wire::Strategy>(each.id));
  }
  return FieldError("strategy", problem);
}

}  // namespace

absl::Status CreateCollection(const Context& context, const wire::CreateCollectionRequest& request,
                              Reply<wire::CreateCollectionResponse> reply) {
  ASSIGN_OR_RETURN(const versioning::StrategyEntry* const strategy,
                   ToStrategy(context, request.strategy()));
  context.services.documents.collections().Create(
      request.name(), *strategy, ToOptions(request.options()), context.call.deadline(),
      [reply = std::move(reply)](absl::StatusOr<versioning::CollectionPtr> made) {
        if (!made.ok()) return reply.Fail(made.status());
        FillCollection(**made, *reply.response().mutable_collection());
        reply.Ok();
      });
  return absl::OkStatus();
}

}  // namespace strata::rpc::collection_service
