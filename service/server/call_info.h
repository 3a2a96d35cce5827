// Who calls what, as handlers and admission see it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "service/security/identity.h"
#include "service/server/caller.h"

namespace strata::server {

struct CallInfo {
  using Time = std::chrono::steady_clock::time_point;

  std::string_view method;         // "strata.v1.DocumentService/Get"; lives as long as the call
  std::string peer;                // "ipv4:10.0.0.7:51234", as far as the connection tells
  std::shared_ptr<Caller> caller;  // whom it counts for; never null
  std::shared_ptr<const security::Identity> identity;  // who calls, perhaps nobody; never null
  // Whatever its identity may do, it came through a port that only reads.
  bool reads_only = false;
  // When the answer is due: the caller's deadline or, for unary calls, the server's own, whichever
  // is first.
  Time deadline = Time::max();
};

}  // namespace strata::server
