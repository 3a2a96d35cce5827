// The life of one connection: requests are read, checked, called and answered, one after the other.
// Private to the port.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "service/http/access_checks.h"
#include "service/http/budget.h"
#include "service/http/json.h"
#include "service/http/port.h"
#include "service/http/routes.h"
#include "service/http/slots.h"
#include "service/http/socket.h"

namespace strata::http {

// What all connections of a port have in common.
struct PortState {
  PortState(const PortOptions& port_options, PortParts port_parts)
      : options(port_options),
        parts(std::move(port_parts)),
        hosts(options.listen, options.loopback, options.hosts),
        routes(*parts.calls),
        budget(options.limits.bytes_held_max) {}

  const PortOptions options;
  const PortParts parts;
  const HostNames hosts;
  const Routes routes;
  const JsonCodec codec;
  Budget budget;
  std::atomic<bool> draining = false;
  std::atomic<int> health_watches = 0;

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  int answers = 0;  // requests that have come and are not answered yet
};

// Serves the connection until it ends: within `limits` at the door, and within the port's own once
// it has a slot. `idle`: it waits for a request.
void ServeConnection(PortState& state, Socket& socket, const Limits& limits, Slots::Slot& slot,
                     std::atomic<bool>& idle);

}  // namespace strata::http
