// The engines that the conformance suites run over.
#pragma once

#include <vector>

#include "service/engines/engines.h"

namespace strata::test_support {

// Those of the registry, and "remote": the memory engine behind a RemoteStore.
const std::vector<engines::Engine>& TestedEngines();

}  // namespace strata::test_support
