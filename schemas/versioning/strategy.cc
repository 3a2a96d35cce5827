#include "schemas/versioning/strategy.h"

namespace strata::versioning {

#define STRATEGY(id, name, make) std::unique_ptr<Strategy> make(const StrategyOptions& options);
#include "schemas/versioning/strategies.def"
#undef STRATEGY

const std::vector<StrategyEntry>& AllStrategies() {
  static const auto* const all = new std::vector<StrategyEntry>{
#define STRATEGY(id, name, make) {id, name, &make},
#include "schemas/versioning/strategies.def"
#undef STRATEGY
  };
  return *all;
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
