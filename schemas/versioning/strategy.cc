#include "schemas/versioning/strategy.h"

#include <algorithm>

#include "schemas/base/field_checks.h"
#include "schemas/base/status_macros.h"

namespace strata::versioning {

#define STRATEGY(id, name, describe) StrategyEntry describe(int32_t, std::string_view);
#include "schemas/versioning/strategies.def"
#undef STRATEGY

namespace {

const StrategyOption* FindOption(const StrategyEntry& strategy, std::string_view name) {
  const auto found =
      std::find_if(strategy.options.begin(), strategy.options.end(),
                   [&](const StrategyOption& option) { return option.name == name; });
  return found == strategy.options.end() ? nullptr : &*found;
}

absl::Status NotItsOption(const StrategyEntry& strategy, std::string_view name,
                          const std::string& field) {
  std::string problem;
  for (const StrategyEntry& other : AllStrategies()) {
    const StrategyOption* const option = FindOption(other, name);
    if (option == nullptr) continue;
    problem += problem.empty() ? "(" + std::string(option->meaning) + ") is for " : ", ";
    problem += other.name;
  }
  if (problem.empty()) problem = "is for no strategy";
  return FieldError(field, problem + ", and not for " + std::string(strategy.name));
}

}  // namespace

const std::vector<StrategyEntry>& AllStrategies() {
  static const auto* const all = new std::vector<StrategyEntry>{
#define STRATEGY(id, name, describe) describe(id, name),
#include "schemas/versioning/strategies.def"
#undef STRATEGY
  };
  return *all;
}

int32_t ValueOf(const StrategyOptions& options, const StrategyOption& option) {
  const auto given = options.find(option.name);
  return given != options.end() ? given->second : option.default_value;
}

absl::StatusOr<StrategyOptions> CompleteOptions(const StrategyEntry& strategy,
                                                StrategyOptions given) {
  for (const auto& [name, value] : given) {
    const std::string field = "options." + name;
    const StrategyOption* const option = FindOption(strategy, name);
    if (option == nullptr) return NotItsOption(strategy, name, field);
    RETURN_IF_ERROR(CheckRange(field, value, option->least, option->most));
  }
  for (const StrategyOption& option : strategy.options) {
    given.emplace(option.name, option.default_value);
  }
  return given;
}

const StrategyEntry* FindStrategy(std::string_view name) {
  for (const StrategyEntry& entry : AllStrategies()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

const StrategyEntry* FindStrategy(int32_t id) {
  for (const StrategyEntry& entry : AllStrategies()) {
    if (entry.id == id) return &entry;
  }
  return nullptr;
}

}  // namespace strata::versioning
