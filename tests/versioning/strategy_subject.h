// The test harness that drives a strategy: the least that reads and writes documents through it.
// Not the product's write path: no request ids, no combining, no backoff.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/versioning/strategy.h"
#include "tests/versioning/strategy_checks.h"

namespace strata::versioning::checks {

class StrategySubject : public Subject {
 public:
  // Documents stand under `incarnation` of a collection "shelf".
  StrategySubject(std::unique_ptr<Strategy> strategy, int64_t incarnation, int attempts_max = 8)
      : strategy_(std::move(strategy)), incarnation_(incarnation), attempts_max_(attempts_max) {}

  std::string_view collection() const override { return "shelf"; }
  absl::Status Write(store::Store& store, const std::string& id,
                     std::span<const Operation> operations) override;
  absl::StatusOr<std::optional<StoredVersion>> ReadHead(store::Store& store,
                                                        const std::string& id) override;
  absl::StatusOr<StoredVersion> ReadVersion(store::Store& store, const std::string& id,
                                            int64_t version, Part part) override;
  absl::StatusOr<std::vector<StoredVersion>> ReadVersions(store::Store& store,
                                                          const std::string& id,
                                                          const VersionRange& range,
                                                          Part part) override;

  // The batch that Write would commit now: reads the head, applies, plans.
  absl::StatusOr<store::WriteBatch> PlanWrite(store::Store& store, const std::string& id,
                                              std::span<const Operation> operations);

  const Strategy& strategy() const { return *strategy_; }
  store::DocumentKey Key(const std::string& id) const { return {incarnation_, id}; }

 private:
  const std::unique_ptr<Strategy> strategy_;
  const int64_t incarnation_;
  const int attempts_max_;
};

// CURRENT_FLAG besides: the newest version's record is flagged, and the flagged ones have no gap.
class FlaggedSubject final : public StrategySubject {
 public:
  using StrategySubject::StrategySubject;

  std::string CheckRecords(store::Store& store, const std::string& id) override;
};

// The subject for a registered strategy.
std::unique_ptr<StrategySubject> MakeSubject(const StrategyEntry& entry,
                                             const StrategyOptions& options, int64_t incarnation);

}  // namespace strata::versioning::checks
