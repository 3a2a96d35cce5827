// The records of leases, and places in the order of events.
#include "schemas/lease/lease_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schemas/document/bson_builder.h"
#include "schemas/store/store.h"
#include "tests/support/status_matchers.h"

namespace strata::lease {
namespace {

using test_support::HasReason;
using test_support::IsOkAndHolds;
using ::testing::ElementsAre;

// Of one lease, its owner's record alone.
class OneOwner final : public store::Reader {
 public:
  OneOwner(std::string value, store::Stamp stamp) : value_(std::move(value)), stamp_(stamp) {}

  absl::StatusOr<std::optional<store::Record>> Get(store::Keyspace keyspace,
                                                   std::string_view key) const override {
    if (keyspace != store::Keyspace::kLeases || key != OwnerKey("a")) return std::nullopt;
    return store::Record{value_, stamp_, stamp_};
  }
  std::unique_ptr<store::Cursor> Scan(store::Keyspace /*keyspace*/,
                                      const store::Range& /*range*/) const override {
    return nullptr;
  }

 private:
  const std::string value_;
  const store::Stamp stamp_;
};

// A lease as each read of both its records finds it, where these are of no one moment.
class Moments final : public store::Reader {
 public:
  using Found = std::optional<store::Record>;
  explicit Moments(std::vector<std::pair<Found, Found>> moments) : moments_(std::move(moments)) {}

  absl::StatusOr<Found> Get(store::Keyspace /*keyspace*/, std::string_view /*key*/) const override {
    return absl::UnimplementedError("both at once");
  }
  std::vector<absl::StatusOr<Found>> GetMany(
      std::span<const store::RecordKey> keys) const override {
    EXPECT_EQ(keys.size(), 2u);
    const auto& [owner, state] = moments_.at(reads++);
    return {owner, state};
  }
  std::unique_ptr<store::Cursor> Scan(store::Keyspace /*keyspace*/,
                                      const store::Range& /*range*/) const override {
    return nullptr;
  }

  mutable size_t reads = 0;

 private:
  const std::vector<std::pair<Found, Found>> moments_;
};

TEST(LeaseRecord, OneThatIsForgottenBetweenItsReadsIsReadAgain) {
  const auto owner = [](store::Stamp stamp) {
    return store::Record{Owner{"worker", {}, 17, 0}.Encode(), stamp, 0};
  };
  const store::Record state{State{18, {}, {}, {}}.Encode(), 40, 0};
  const Moments gone({{owner(5), {}}, {{}, {}}});
  const auto nobodys = ReadLease(gone, "a");
  ASSERT_TRUE(nobodys.ok()) << nobodys.status();
  EXPECT_FALSE(nobodys->owner);
  const Moments anew({{owner(5), {}}, {owner(9), state}});
  const auto anothers = ReadLease(anew, "a");
  ASSERT_TRUE(anothers.ok()) << anothers.status();
  EXPECT_EQ(anothers->token, 9);
  EXPECT_EQ(anothers->state_stamp, 40);
  const Moments damaged({{owner(5), {}}, {owner(5), {}}});
  EXPECT_THAT(ReadLease(damaged, "a"), HasReason(ErrorReason::kRecordCorrupt));
  EXPECT_EQ(damaged.reads, 2u);
  const Moments restless({{owner(5), {}}, {owner(6), {}}, {owner(7), {}}});
  EXPECT_THAT(ReadLease(restless, "a"), HasReason(ErrorReason::kRecordCorrupt));
  EXPECT_EQ(restless.reads, 3u);
}

TEST(Place, AWholeCommitLiesBehindEachOfItsEvents) {
  const std::vector<Place> ordered = {{0, {}}, {4, 0}, {4, 1}, {4, INT32_MAX}, {4, {}}, {5, 0}};
  for (size_t i = 0; i < ordered.size(); ++i) {
    for (size_t j = 0; j < ordered.size(); ++j) {
      EXPECT_EQ(ordered[i] < ordered[j], i < j) << i << " " << j;
      EXPECT_EQ(ordered[i] == ordered[j], i == j) << i << " " << j;
    }
  }
}

TEST(LeaseRecord, AnOwnerIsReadAsItWasWritten) {
  const Owner held{"worker-1", {{"address", "10.0.0.7:80"}, {"zone", ""}}, 17, 0};
  const Owner released{"", {}, 17, 18};
  EXPECT_THAT(Owner::Decode(held.Encode()), IsOkAndHolds(held));
  EXPECT_THAT(Owner::Decode(released.Encode()), IsOkAndHolds(released));
}

TEST(LeaseRecord, AnOwnersTokenIsToldAsByTheWholeRecord) {
  const std::string held = Owner{"worker-1", {{"released", "no"}}, 17, 0}.Encode();
  const std::string cut = held.substr(0, held.size() - 1);
  for (const std::string& value :
       {held, cut, Owner{"", {}, 17, 18}.Encode(), std::string("none"),
        document::BsonBuilder().Take(), document::BsonBuilder().Int64("holder", 1).Take(),
        document::BsonBuilder().String("holder", "both").Int64("released", 1).Take(),
        document::BsonBuilder().String("holder", "one").String("what", "else").Take()}) {
    const OneOwner reader(value, 5);
    for (const store::Stamp shown : {4, 5, 6}) {
      const absl::StatusOr<StoredLease> whole = ReadOwner(reader, "a");
      EXPECT_THAT(IsHeldBy(reader, OwnerKey("a"), shown),
                  IsOkAndHolds(whole.ok() && whole->IsHeldBy(shown)))
          << value << " " << shown;
    }
  }
  EXPECT_THAT(IsHeldBy(OneOwner(held, 5), OwnerKey("a"), 5), IsOkAndHolds(true));
  EXPECT_THAT(IsHeldBy(OneOwner(held, 5), OwnerKey("b"), 5), IsOkAndHolds(false));
}

TEST(LeaseRecord, AStateIsReadAsItWasWritten) {
  for (const Place& place : {Place{}, Place{900, {}}, Place{900, 0}, Place{1, INT32_MAX}}) {
    for (const std::string& data : {std::string(), std::string("a\0b", 3)}) {
      const State state{17, std::chrono::seconds(10), place, data};
      EXPECT_THAT(State::Decode(state.Encode()), IsOkAndHolds(state));
    }
  }
}

TEST(LeaseRecord, OtherBytesAreCorrupt) {
  const auto document = [] { return document::BsonBuilder().String("what", "else").Take(); };
  for (const std::string& bytes :
       {std::string("none"), document(), Owner().Encode(),
        document::BsonBuilder().Int64("holder", 1).Take(),
        document::BsonBuilder().String("holder", "both").Int64("released", 1).Take()}) {
    EXPECT_THAT(Owner::Decode(bytes), HasReason(ErrorReason::kRecordCorrupt));
  }
  for (const std::string& bytes :
       {std::string("none"), document(), document::BsonBuilder().Int64("position", -1).Take(),
        document::BsonBuilder().Int64("index", -1).Take(),
        document::BsonBuilder().Int64("index", int64_t{1} << 31).Take()}) {
    EXPECT_THAT(State::Decode(bytes), HasReason(ErrorReason::kRecordCorrupt));
  }
}

TEST(LeaseRecord, KeysAreInTheOrderOfNames) {
  std::vector<std::string> keys;
  for (const char* const name : {"a", "a b", "a/b", "ab", "b"}) {
    keys.push_back(OwnerKey(name));
    keys.push_back(StateKey(name));
    EXPECT_THAT(LeaseNameOf(keys.back()), IsOkAndHolds(std::string_view(name)));
  }
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  EXPECT_THAT(LeaseNameOf("a"), HasReason(ErrorReason::kRecordCorrupt));

  const auto inside = [&](std::string_view prefix, std::string_view after) {
    const store::Range range = LeaseRange(prefix, after);
    std::vector<std::string> names;
    for (const std::string& key : keys) {
      if (key < range.begin || (!range.end.empty() && key >= range.end)) continue;
      if (key == OwnerKey(*LeaseNameOf(key))) names.emplace_back(*LeaseNameOf(key));
    }
    return names;
  };
  EXPECT_THAT(inside("", ""), ElementsAre("a", "a b", "a/b", "ab", "b"));
  EXPECT_THAT(inside("a", ""), ElementsAre("a", "a b", "a/b", "ab"));
  EXPECT_THAT(inside("a", "a"), ElementsAre("a b", "a/b", "ab"));
  EXPECT_THAT(inside("a/", "a"), ElementsAre("a/b"));
  EXPECT_THAT(inside("", "ab"), ElementsAre("b"));
}

}  // namespace
}  // namespace strata::lease
