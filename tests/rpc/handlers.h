// All handlers without a server: bound to a facade over the memory engine, called by the test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

#include "schemas/enrollment/enrollments.h"
#include "schemas/feed/feed.h"
#include "schemas/feed/subscriptions.h"
#include "schemas/lease/leases.h"
#include "schemas/queue/queues.h"
#include "schemas/transaction/transactions.h"
#include "service/observability/health.h"
#include "service/rpc/reflection.h"
#include "service/rpc/registry.h"
#include "tests/documents/world.h"

namespace strata::rpc_test {

struct Handlers {
  versioning::testing::World world;
  enrollment::Enrollments enrollments{world->documents()};
  test_support::InlineExecutor executor;
  transaction::Transactions transactions{world->store(),    world->documents(), Clock::System(),
                                         Entropy::System(), executor,           {}};
  lease::Leases leases{world->store(), Clock::System(), executor};
  feed::Feed feed{world->store(), world->documents(), Clock::System(), executor};
  feed::Subscriptions subscriptions{world->store(),    feed,    leases, Clock::System(),
                                    Entropy::System(), executor};
  queue::Queues queues{world->store(), Clock::System(), Entropy::System(), executor};
  observability::Health health{{}};
  const rpc::Reflection reflection{{}};
  security::Access access;
  const rpc::ServerInfo info{};
  const rpc::Services services{world->documents(),
                               enrollments,
                               transactions,
                               leases,
                               feed,
                               subscriptions,
                               queues,
                               *versioning::FindStrategy("deltas"),
                               health,
                               reflection,
                               access,
                               info,
                               std::chrono::milliseconds(1000)};
  const std::vector<server::Method> methods = rpc::AllMethods(services);

  const server::Method& Find(std::string_view path) const {
    const auto found =
        std::find_if(methods.begin(), methods.end(),
                     [path](const server::Method& method) { return method.path() == path; });
    EXPECT_NE(found, methods.end()) << path;
    return *found;
  }
};

}  // namespace strata::rpc_test
