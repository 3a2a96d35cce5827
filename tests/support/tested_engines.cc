#include "tests/support/tested_engines.h"

#include "schemas/base/status_macros.h"
#include "tests/support/remote_store.h"

namespace strata::test_support {
namespace {

absl::StatusOr<std::unique_ptr<store::Store>> OpenRemote(const engines::OpenOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<store::Store> inner, engines::OpenEngine("memory", options));
  return std::make_unique<RemoteStore>(std::move(inner));
}

}  // namespace

const std::vector<engines::Engine>& TestedEngines() {
  static const auto* const all = [] {
    auto* const engines = new std::vector<engines::Engine>(engines::AllEngines());
    engines->push_back({"remote", {}, 0, &OpenRemote});
    return engines;
  }();
  return *all;
}

}  // namespace strata::test_support
