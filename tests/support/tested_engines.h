// The engines that suites run over, with what no engine of ours does but the port allows.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "service/engines/engines.h"

namespace strata::test_support {

// Those of the registry, and the memory engine behind a store of the tests:
// - "remote": a RemoteStore;
// - "live": a LiveStore;
// - "restarting": RestartingStamps.
const std::vector<engines::Engine>& TestedEngines();

// As engines::OpenEngine, of any of these.
absl::StatusOr<std::unique_ptr<store::Store>> OpenTestedEngine(std::string_view name,
                                                               const engines::OpenOptions& options);

}  // namespace strata::test_support
