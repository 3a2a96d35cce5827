// Walks end with whoever waits for them: soon after they are told to stop they look at nothing
// more.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "schemas/base/error.h"
#include "tests/documents/world.h"
#include "tests/support/status_matchers.h"

namespace strata::versioning::testing {
namespace {

using test_support::HasReason;
using test_support::IsOk;

// Says stop when it is asked for the n-th time, and from then on.
class StopAt {
 public:
  explicit StopAt(int asks) : asks_(asks) {}

  StopCheck Check() {
    return [this] {
      ++asked_;
      if (asked_ > asks_) ++asked_in_vain_;
      return asked_ >= asks_;
    };
  }
  int asked() const { return asked_; }
  // How often it was asked after it had said stop.
  int asked_in_vain() const { return asked_in_vain_; }

 private:
  const int asks_;
  int asked_ = 0;
  int asked_in_vain_ = 0;
};

constexpr int kNever = 1'000'000;
constexpr int kManyDocuments = 12;

document::Filter MatchesNothing() {
  const std::string condition = document::BsonBuilder().String("$regex", "nothing like it").Take();
  return *document::Filter::Compile(
      document::Content::FromTrusted(document::BsonBuilder().Document("text", condition).Take()));
}

class StopTest : public CombinationTest {
 protected:
  void SetUp() override {
    for (int i = 0; i < kManyDocuments; ++i) {
      const std::string id(1, static_cast<char>('a' + i));
      ASSERT_THAT(world->Create(Request(id), Text("one")), IsOk());
      ASSERT_THAT(world->Update(Request(id), Text("two")), IsOk());
    }
    for (int i = 0; i < kManyDocuments; ++i) {
      ASSERT_THAT(world->Update(Request("a"), Text("more " + std::to_string(i))), IsOk());
    }
  }

  // Walks to the end, for which it asks at least `least` times, and then again, stopped at each of
  // the first asks.
  template <typename Open>
  void ExpectStops(int least, Open open) {
    StopAt never(kNever);
    {
      auto whole = open(never.Check());
      while (whole.Next()) continue;
      EXPECT_THAT(whole.status(), IsOk());
    }
    EXPECT_GE(never.asked(), least);
    for (const int asks : {1, 2, least / 2, least}) {
      StopAt stop(asks);
      auto cursor = open(stop.Check());
      while (cursor.Next()) continue;
      EXPECT_THAT(cursor.status(), HasReason(ErrorReason::kCancelled));
      EXPECT_LE(stop.asked_in_vain(), 1) << "asks: " << asks;
      EXPECT_FALSE(cursor.Next());
    }
  }
};

TEST_P(StopTest, AListThatMatchesNothing) {
  ExpectStops(kManyDocuments, [this](StopCheck stopped) {
    ListQuery query;
    query.collection = "things";
    query.filter = MatchesNothing();
    query.stopped = std::move(stopped);
    return world->documents().List(query);
  });
}

TEST_P(StopTest, AListOfATime) {
  const UnixMicros time = world.clock().Now();
  world.clock().Advance(std::chrono::seconds(1));
  ASSERT_THAT(world->Update(Request("a"), Text("later")), IsOk());
  ExpectStops(kManyDocuments, [this, time](StopCheck stopped) {
    ListQuery query;
    query.collection = "things";
    query.at_time = time;
    query.stopped = std::move(stopped);
    return world->documents().List(query);
  });
}

TEST_P(StopTest, AHistory) {
  for (const bool oldest_first : {false, true}) {
    ExpectStops(kManyDocuments, [this, oldest_first](StopCheck stopped) {
      HistoryQuery query;
      query.name = {"things", "a"};
      query.filter = MatchesNothing();
      query.oldest_first = oldest_first;
      query.stopped = std::move(stopped);
      return world->documents().History(query);
    });
  }
}

TEST_P(StopTest, AnAuditOfOneDocument) {
  ExpectStops(kManyDocuments, [this](StopCheck stopped) {
    AuditQuery query;
    query.collection = "things";
    query.id = "a";
    query.actor = "nobody";
    query.stopped = std::move(stopped);
    return world->documents().Audit(query);
  });
}

TEST_P(StopTest, AnAuditOfTheLedger) {
  if (!world->documents().capabilities().commit_positions) GTEST_SKIP() << "there is no ledger";
  ExpectStops(2 * kManyDocuments, [this](StopCheck stopped) {
    AuditQuery query;
    query.actor = "nobody";
    query.stopped = std::move(stopped);
    return world->documents().Audit(query);
  });
}

STRATA_ALL_COMBINATIONS(StopTest);

}  // namespace
}  // namespace strata::versioning::testing
