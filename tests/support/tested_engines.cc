#include "tests/support/tested_engines.h"

#include "schemas/base/status_macros.h"
#include "tests/support/live_store.h"
#include "tests/support/remote_store.h"
#include "tests/support/restarting_stamps.h"

namespace strata::test_support {
namespace {

template <typename Decorator>
absl::StatusOr<std::unique_ptr<store::Store>> OpenBehind(const engines::OpenOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<store::Store> inner, engines::OpenEngine("memory", options));
  return std::make_unique<Decorator>(std::move(inner));
}

}  // namespace

const std::vector<engines::Engine>& TestedEngines() {
  static const auto* const all = [] {
    auto* const engines = new std::vector<engines::Engine>(engines::AllEngines());
    engines->push_back({"remote", {}, 0, &OpenBehind<RemoteStore>});
    engines->push_back({"live", {}, 0, &OpenBehind<LiveStore>});
    engines->push_back({"restarting", {}, 0, &OpenBehind<RestartingStamps>});
    return engines;
  }();
  return *all;
}

absl::StatusOr<std::unique_ptr<store::Store>> OpenTestedEngine(
    std::string_view name, const engines::OpenOptions& options) {
  for (const engines::Engine& engine : TestedEngines()) {
    if (engine.name == name) return engine.open(options);
  }
  return engines::OpenEngine(name, options);
}

}  // namespace strata::test_support
