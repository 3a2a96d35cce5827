// What handlers work with.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "schemas/base/clock.h"
#include "schemas/enrollment/enrollments.h"
#include "schemas/feed/feed.h"
#include "schemas/feed/subscriptions.h"
#include "schemas/lease/leases.h"
#include "schemas/queue/queues.h"
#include "schemas/transaction/transactions.h"
#include "schemas/versioning/documents.h"
#include "service/observability/health.h"
#include "service/security/access.h"
#include "service/server/call.h"

namespace strata::rpc {

using server::Call;
using server::HandlerOf;
using server::Reply;
using server::Stream;

class Reflection;

// What a server says of itself.
struct ServerInfo {
  std::string version;
  std::string commit;  // that it was built from; empty: unknown
  std::string engine;
  int storage_format = 0;  // 0: the engine keeps nothing
  UnixMicros start_time = 0;
  size_t message_bytes_max = 0;
  bool reflection = true;  // among its services
};

// What the handlers of all services have in common. Outlives every call.
struct Services {
  versioning::Documents& documents;
  enrollment::Enrollments& enrollments;
  transaction::Transactions& transactions;
  lease::Leases& leases;
  feed::Feed& feed;
  feed::Subscriptions& subscriptions;
  queue::Queues& queues;
  const versioning::StrategyEntry& default_strategy;
  observability::Health& health;
  const Reflection& reflection;
  security::Access& access;
  const ServerInfo& info;
  std::chrono::milliseconds deadline;           // for each message of a stream, as for a call
  std::chrono::milliseconds stream_age_max{0};  // the server ends an older one; 0: none
};

// What a handler of unary calls gets besides the request.
struct Context {
  const Services& services;
  const Call& call;
};

}  // namespace strata::rpc
