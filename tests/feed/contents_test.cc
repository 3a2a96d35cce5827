// Contents that are gone before a watcher has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "schemas/feed/feed.h"
#include "tests/documents/swept.h"
#include "tests/feed/feed_world.h"
#include "tests/support/hooked_store.h"
#include "tests/support/live_store.h"
#include "tests/support/status_matchers.h"

namespace strata::feed::testing {
namespace {

using test_support::IsOk;

// Another process deletes the collection and sweeps it while it is read, on a store without
// snapshots.
class SweptContents : public ::testing::TestWithParam<std::string> {};

TEST_P(SweptContents, AreMissingToAWatcherThatGoesOn) {
  bool happened = true;
  for (int at = 0; happened; ++at) {
    ASSERT_LT(at, 100);
    SCOPED_TRACE("before read " + std::to_string(at));
    const versioning::testing::WorldOptions options{.strategy = GetParam()};
    versioning::testing::World world(options);
    versioning::testing::Deleter deleter(world.engine(), world.clock());
    test_support::HookedStore hooked(world.engine());
    test_support::LiveStore live(hooked);
    test_support::ManualExecutor executor(world.clock());
    versioning::testing::Process reading(live, options, world.clock());
    Feed feed(live, reading.documents(), world.clock(), executor);
    for (int64_t number = 1; number <= 3; ++number) {
      ASSERT_THAT(world->Update(versioning::testing::Request(), versioning::testing::Number(number),
                                /*allow_missing=*/true),
                  IsOk());
    }
    int reads = 0;
    happened = false;
    const auto step_in = [&](store::Keyspace keyspace) {
      const bool of_documents =
          keyspace == store::Keyspace::kHeads || keyspace == store::Keyspace::kVersions;
      if (!of_documents || reads++ != at) return;
      happened = true;
      deleter.DeleteAndSweep("things");
    };
    test_support::StoreHooks hooks;
    hooks.before_get = [&](store::Keyspace keyspace, std::string_view) { step_in(keyspace); };
    hooks.before_scan = [&](store::Keyspace keyspace, const store::Range&) { step_in(keyspace); };
    hooked.set_hooks(std::move(hooks));
    WatchQuery query = From(0);
    query.include_content = query.include_before = true;
    Watcher watcher{std::make_shared<Inbox>(1000), nullptr};
    watcher.watch = *feed.Open(query, watcher.inbox);
    watcher.watch->Ready();
    const auto run = [&] {
      size_t done = 1;
      while (done > 0) {
        done = executor.RunDue();
        for (; watcher.inbox->waiting > 0; --watcher.inbox->waiting, ++done) watcher.watch->Ready();
      }
    };
    run();
    hooked.set_hooks({});
    run();
    EXPECT_EQ(watcher.inbox->end, std::nullopt);
    std::vector<std::string> seen{"things/a@1", "things/a@2", "things/a@3"};
    if (happened) seen.emplace_back("things");
    EXPECT_EQ(watcher.Seen(), seen);
    // Once one is missing, those after it are too.
    bool missing = false;
    for (const Message& message : watcher.inbox->messages) {
      for (const Event& event : message.events) {
        if (event.type != EventType::kVersion) continue;
        EXPECT_TRUE(event.content_missing || !missing);
        missing = event.content_missing;
      }
    }
    EXPECT_EQ(missing, happened);
    watcher.watch.reset();
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, SweptContents, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& strategy : versioning::AllStrategies()) {
                             names.emplace_back(strategy.name);
                           }
                           return names;
                         }()));

}  // namespace
}  // namespace strata::feed::testing
