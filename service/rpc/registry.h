// The services that there are.
#pragma once

#include <string>
#include <vector>

#include "service/rpc/context.h"
#include "service/server/method.h"

namespace strata::rpc {

// The names of all services, each once.
std::vector<std::string> ServiceNames();

// All methods of all services, bound to `services`, which outlive them.
std::vector<server::Method> AllMethods(const Services& services);

}  // namespace strata::rpc
