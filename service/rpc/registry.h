// The services that there are.
#pragma once

#include <string>
#include <vector>

#include "service/rpc/context.h"
#include "service/server/method.h"

namespace strata::rpc {

// The names of all services, each once; `reflection`: of those, too, that tell of the others.
std::vector<std::string> ServiceNames(bool reflection = true);

// All methods of the same services, bound to `services`, which outlive them.
std::vector<server::Method> AllMethods(const Services& services, bool reflection = true);

}  // namespace strata::rpc
