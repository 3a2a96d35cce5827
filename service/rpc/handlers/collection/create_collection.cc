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

absl::StatusOr<versioning::StrategyOptions> ToOptions(const wire::CollectionOptions& options,
                                                      const versioning::StrategyEntry& strategy) {
  versioning::StrategyOptions made;
  if (options.keyframe_interval() == 0) return made;
  constexpr std::string_view kField = "options.keyframe_interval";
  if (options.keyframe_interval() < 1 ||
      options.keyframe_interval() > versioning::kKeyframeIntervalMax) {
    return FieldOutOfRange(kField, options.keyframe_interval(), 1,
                           versioning::kKeyframeIntervalMax);
  }
  if (strategy.id != wire::STRATEGY_DELTAS) {
    return FieldError(kField, "is for STRATEGY_DELTAS only");
  }
  made.keyframe_interval = options.keyframe_interval();
  return made;
}

}  // namespace

absl::Status CreateCollection(const Context& context, const wire::CreateCollectionRequest& request,
                              Reply<wire::CreateCollectionResponse> reply) {
  ASSIGN_OR_RETURN(const versioning::StrategyEntry* const strategy,
                   ToStrategy(context, request.strategy()));
  ASSIGN_OR_RETURN(const versioning::StrategyOptions options,
                   ToOptions(request.options(), *strategy));
  context.services.documents.collections().Create(
      request.name(), *strategy, options,
      [reply = std::move(reply)](absl::StatusOr<versioning::CollectionPtr> made) {
        if (!made.ok()) return reply.Fail(made.status());
        FillCollection(**made, *reply.response().mutable_collection());
        reply.Ok();
      });
  return absl::OkStatus();
}

}  // namespace strata::rpc::collection_service
