// Who calls what, as handlers and admission see it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/server/caller.h"

namespace strata::server {

// What nobody asked for (LoopOptions) is empty.
struct CallInfo {
  using Time = std::chrono::steady_clock::time_point;

  std::string_view method;         // "strata.v1.DocumentService/Get"; lives as long as the call
  std::string peer;                // "ipv4:10.0.0.7:51234", as far as the connection tells
  std::shared_ptr<Caller> caller;  // never null
  // Names in lower case, in the order of LoopOptions::metadata_told; one may come several times.
  std::vector<std::pair<std::string, std::string>> metadata;
  std::string identity;  // whom the connection's credentials vouch for
  // When the answer is due: the caller's deadline or, for unary calls, the server's own, whichever
  // is first.
  Time deadline = Time::max();
};

}  // namespace strata::server
