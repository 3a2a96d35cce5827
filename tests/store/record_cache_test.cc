// What the RocksDB engine's cache of records may answer, and when it must keep silent.
#include "service/engines/rocksdb/record_cache.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace strata::engines::rocks {
namespace {

using store::Keyspace;
using Entry = RecordCache::Entry;
using Place = RecordCache::Place;

constexpr size_t kBytes = size_t{1} << 20;
constexpr store::CommitPosition kNewest = RecordCache::kNewest;

Entry Record(store::CommitPosition position, std::string_view value) {
  return {position, Bytes(value)};
}

// What the cache knows: the value, "(none)" for no record, "?" for nothing.
std::string Known(RecordCache& cache, std::string_view key, store::CommitPosition as_of = kNewest) {
  const std::optional<Entry> found = cache.Find({Keyspace::kHeads, key}, as_of);
  if (!found) return "?";
  return found->value.none() ? "(none)" : std::string(found->value);
}

void Write(RecordCache& cache, std::string_view key, Entry entry) {
  const std::vector<Place> places = {{Keyspace::kHeads, key}};
  cache.BeginWrite(places);
  cache.EndWrite(places, {std::move(entry)});
}

TEST(RecordCacheTest, AnswersWhatWasWrittenAndWhatWasLearned) {
  RecordCache cache(kBytes);
  EXPECT_EQ(Known(cache, "a"), "?");
  Write(cache, "a", Record(5, "written"));
  EXPECT_EQ(Known(cache, "a"), "written");
  cache.Learn({Keyspace::kHeads, "b"}, Record(2, "read"), 7);
  EXPECT_EQ(Known(cache, "b"), "read");
  cache.Learn({Keyspace::kHeads, "c"}, {}, 7);
  EXPECT_EQ(Known(cache, "c"), "(none)");
  Write(cache, "d", Record(8, ""));
  EXPECT_EQ(Known(cache, "d"), "") << "a record without bytes is one";
}

TEST(RecordCacheTest, KeysOfAnyLengthAreTold) {
  RecordCache cache(kBytes);
  const size_t inlined = RecordCache::kInlineKeyBytes;
  for (const size_t bytes :
       {size_t{0}, size_t{1}, inlined - 1, inlined, inlined + 1, size_t{300}}) {
    const std::string key(bytes, 'k');
    Write(cache, key, Record(5, std::to_string(bytes)));
  }
  for (const size_t bytes :
       {size_t{0}, size_t{1}, inlined - 1, inlined, inlined + 1, size_t{300}}) {
    EXPECT_EQ(Known(cache, std::string(bytes, 'k')), std::to_string(bytes));
  }
  EXPECT_EQ(Known(cache, std::string(inlined + 2, 'k')), "?");
}

// Its map knows hashes, and the key only where a node is.
TEST(RecordCacheTest, OfTwoKeysWithOneHashTheLaterStays) {
  RecordCache cache(kBytes, [](std::string_view) -> size_t { return 7; });
  Write(cache, "a", Record(1, "of a"));
  EXPECT_EQ(Known(cache, "b"), "?");
  const std::vector<Place> b = {{Keyspace::kHeads, "b"}};
  cache.BeginWrite(b);
  EXPECT_EQ(Known(cache, "a"), "of a");
  cache.EndWrite(b, {});
  EXPECT_EQ(Known(cache, "a"), "of a") << "it was not a's write that failed";
  Write(cache, "b", Record(2, "of b"));
  EXPECT_EQ(Known(cache, "a"), "?");
  EXPECT_EQ(Known(cache, "b"), "of b");
  cache.Learn({Keyspace::kHeads, "a"}, Record(1, "of a"), 2);
  EXPECT_EQ(Known(cache, "a"), "of a");
  EXPECT_EQ(Known(cache, "b"), "?");
  cache.Prefetch(b);
  const std::vector<Place> both = {{Keyspace::kHeads, "a"}, {Keyspace::kHeads, "b"}};
  cache.BeginWrite(both);
  EXPECT_EQ(Known(cache, "a"), "?") << "being written";
  cache.EndWrite(both, {Record(3, "a's next"), Record(3, "b's next")});
  EXPECT_EQ(Known(cache, "a"), "a's next");
  EXPECT_EQ(Known(cache, "b"), "?");
}

TEST(RecordCacheTest, PrefetchingLeavesWhatIsKnownAsItIs) {
  RecordCache cache(kBytes);
  Write(cache, "there", Record(5, "written"));
  Write(cache, "gone", {6, {}});
  const std::vector<Place> places = {{Keyspace::kHeads, "there"},
                                     {Keyspace::kHeads, "gone"},
                                     {Keyspace::kHeads, "unknown"},
                                     {Keyspace::kHeads, "there"}};
  cache.Prefetch(places);
  cache.Prefetch({});
  EXPECT_EQ(Known(cache, "there"), "written");
  EXPECT_EQ(Known(cache, "gone"), "(none)");
  EXPECT_EQ(Known(cache, "unknown"), "?");
}

TEST(RecordCacheTest, KeyspacesAreApart) {
  RecordCache cache(kBytes);
  Write(cache, "a", Record(5, "head"));
  EXPECT_FALSE(cache.Find({Keyspace::kCollections, "a"}, kNewest));
  const std::vector<Place> places = {{Keyspace::kCollections, "a"}};
  cache.BeginWrite(places);
  EXPECT_EQ(Known(cache, "a"), "head");
  cache.EndWrite(places, {Record(6, "collection")});
  EXPECT_EQ(cache.Find({Keyspace::kCollections, "a"}, kNewest)->value, "collection");
  EXPECT_EQ(Known(cache, "a"), "head");
}

TEST(RecordCacheTest, AMomentBeforeTheNewestRecordIsNotAnswered) {
  RecordCache cache(kBytes);
  Write(cache, "a", Record(5, "newest"));
  EXPECT_EQ(Known(cache, "a", 5), "newest");
  EXPECT_EQ(Known(cache, "a", 4), "?");
  // That there is none says nothing of the time before somebody looked.
  cache.Learn({Keyspace::kHeads, "b"}, {}, 7);
  EXPECT_EQ(Known(cache, "b", 7), "(none)");
  EXPECT_EQ(Known(cache, "b", 6), "?");
}

TEST(RecordCacheTest, ADeletionIsKnownFromItsCommitOn) {
  RecordCache cache(kBytes);
  Write(cache, "a", Record(5, "there"));
  Write(cache, "a", {6, {}});
  EXPECT_EQ(Known(cache, "a", 6), "(none)");
  EXPECT_EQ(Known(cache, "a", 5), "?");
}

TEST(RecordCacheTest, WhileACommitIsUnderWayNothingIsKnownOfItsPlacesNorLearned) {
  RecordCache cache(kBytes);
  Write(cache, "a", Record(5, "old"));
  const std::vector<Place> places = {{Keyspace::kHeads, "a"}};
  cache.BeginWrite(places);
  EXPECT_EQ(Known(cache, "a"), "?");
  // A reader that found the old record just before the commit became visible.
  cache.Learn(places[0], Record(5, "old"), 5);
  EXPECT_EQ(Known(cache, "a"), "?");
  cache.EndWrite(places, {Record(6, "new")});
  EXPECT_EQ(Known(cache, "a"), "new");
  // The same reader, late.
  cache.Learn(places[0], Record(5, "old"), 5);
  EXPECT_EQ(Known(cache, "a"), "new");
}

TEST(RecordCacheTest, AFailedCommitLeavesItsPlacesUnknown) {
  RecordCache cache(kBytes);
  Write(cache, "a", Record(5, "old"));
  const std::vector<Place> places = {{Keyspace::kHeads, "a"}};
  cache.BeginWrite(places);
  cache.EndWrite(places, {});
  EXPECT_EQ(Known(cache, "a"), "?");
  cache.Learn(places[0], Record(5, "old"), 5);
  EXPECT_EQ(Known(cache, "a"), "old");
}

TEST(RecordCacheTest, OfTwoWritesUnderOneKeyInAGroupTheLaterStays) {
  RecordCache cache(kBytes);
  const std::vector<Place> places = {{Keyspace::kHeads, "a"}, {Keyspace::kHeads, "a"}};
  cache.BeginWrite(places);
  cache.EndWrite(places, {Record(5, "first"), Record(6, "second")});
  EXPECT_EQ(Known(cache, "a"), "second");
  cache.Learn({Keyspace::kHeads, "b"}, Record(1, "read"), 9);
  EXPECT_EQ(Known(cache, "b"), "read") << "no place is blocked any more";
  cache.BeginWrite(places);
  EXPECT_EQ(Known(cache, "a"), "?");
  cache.EndWrite(places, {Record(7, "third"), Record(8, "fourth")});
  EXPECT_EQ(Known(cache, "a"), "fourth");
  // In one batch both have its position.
  cache.BeginWrite(places);
  cache.EndWrite(places, {Record(9, "fifth"), {9, {}}});
  EXPECT_EQ(Known(cache, "a"), "(none)");
}

TEST(RecordCacheTest, ARecordThatIsWrittenAgainAndAgainTakesOneRecordsRoom) {
  RecordCache cache(kBytes);
  for (int i = 0; i < 100; ++i) Write(cache, "key " + std::to_string(i), Record(1, "beside it"));
  for (int i = 0; i < 10'000; ++i) {
    const auto bytes = static_cast<size_t>(i * 37 % 3'000);
    Write(cache, "hot", Record(2 + i, std::string(bytes, 'x')));
    ASSERT_EQ(Known(cache, "hot").size(), bytes);
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Known(cache, "key " + std::to_string(i)), "beside it");
}

TEST(RecordCacheTest, RecordsThatGrowTakeMoreOfTheRoom) {
  RecordCache cache(kBytes);
  constexpr int kKeys = 2'000;
  for (const size_t bytes : {size_t{10}, size_t{3'000}}) {
    const auto position = static_cast<store::CommitPosition>(bytes);
    for (int i = 0; i < kKeys; ++i) {
      Write(cache, std::to_string(i), Record(position, std::string(bytes, 'x')));
    }
  }
  size_t known = 0;
  for (int i = 0; i < kKeys; ++i) known += Known(cache, std::to_string(i)).size() == 3'000 ? 1 : 0;
  EXPECT_LE(known, kBytes / 3'000);
  EXPECT_GE(known, kBytes / 3'000 / 2);
}

TEST(RecordCacheTest, ARecordThatHasGrownTooLargeIsForgotten) {
  RecordCache cache(kBytes);
  Write(cache, "a", Record(1, "small"));
  Write(cache, "a", Record(2, std::string(kBytes / 200, 'x')));
  EXPECT_EQ(Known(cache, "a"), "?");
  Write(cache, "a", Record(3, "small again"));
  EXPECT_EQ(Known(cache, "a"), "small again");
}

TEST(RecordCacheTest, ForgetsWhatWasUsedLeast) {
  RecordCache cache(kBytes);
  const std::string value(1000, 'x');
  Write(cache, "used", Record(1, value));
  for (int i = 0; i < 10'000; ++i) {
    Write(cache, "key " + std::to_string(i), Record(2 + i, value));
    ASSERT_EQ(Known(cache, "used"), value) << i;
  }
  int known = 0;
  for (int i = 0; i < 10'000; ++i) known += Known(cache, "key " + std::to_string(i)) != "?";
  EXPECT_GT(known, 600);
  EXPECT_LT(known, 1'048);
  EXPECT_EQ(Known(cache, "key 9999"), value);
}

TEST(RecordCacheTest, ForgetsInTheEndWhatIsUsedNoMore) {
  RecordCache cache(kBytes);
  const std::string value(1000, 'x');
  for (int i = 0; i < 100; ++i) {
    Write(cache, "old " + std::to_string(i), Record(1, value));
    ASSERT_EQ(Known(cache, "old " + std::to_string(i)), value);
  }
  for (int i = 0; i < 10'000; ++i) Write(cache, "key " + std::to_string(i), Record(2 + i, value));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Known(cache, "old " + std::to_string(i)), "?") << i;
}

TEST(RecordCacheTest, WhereAllWereUsedThereIsRoomForNewOnes) {
  RecordCache cache(kBytes);
  const std::string value(1000, 'x');
  for (int i = 0; i < 3'000; ++i) {
    const std::string key = "key " + std::to_string(i);
    Write(cache, key, Record(1 + i, value));
    ASSERT_EQ(Known(cache, key), value) << i;
  }
}

TEST(RecordCacheTest, OnceFullLearnsWhatIsReadAgain) {
  RecordCache cache(kBytes);
  const std::string value(100, 'v');
  for (int i = 0; i < 20'000; ++i) Write(cache, "old" + std::to_string(i), Record(1, value));
  int once = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string key = "once" + std::to_string(i);
    cache.Learn({Keyspace::kHeads, key}, Record(1, value), 1);
    once += Known(cache, key) == value ? 1 : 0;
  }
  EXPECT_GT(once, 150);
  EXPECT_LT(once, 400);
  int tries = 0;
  for (; Known(cache, "again") == "?" && tries < 10; ++tries)
    cache.Learn({Keyspace::kHeads, "again"}, Record(1, value), 1);
  EXPECT_LE(tries, 4);
}

TEST(RecordCacheTest, KeepsTheNewestWhenItIsMadeSmallerAndGrowsAgain) {
  RecordCache cache(kBytes);
  const std::string value(1000, 'x');
  const auto write = [&](int from, int to) {
    for (int i = from; i < to; ++i) Write(cache, "key " + std::to_string(i), Record(1 + i, value));
  };
  const auto known = [&](int from, int to) {
    int count = 0;
    for (int i = from; i < to; ++i) count += Known(cache, "key " + std::to_string(i)) == value;
    return count;
  };
  write(0, 600);
  ASSERT_GT(known(0, 600), 550);
  cache.Resize(kBytes / 4);
  EXPECT_LT(known(0, 600), 256);
  EXPECT_GT(known(0, 600), 100);
  write(600, 700);
  EXPECT_LT(known(0, 700), 256);
  cache.Resize(kBytes);
  write(700, 1100);
  EXPECT_GT(known(700, 1100), 350);
}

// Of a value that stays for being used there is another copy in the end, beside those that are
// written now, and who holds the first one goes on holding it.
TEST(RecordCacheTest, WhatStaysForBeingUsedMovesToWhereNewValuesAre) {
  RecordCache cache(kBytes);
  const std::string value(1000, 'x');
  Write(cache, "used", Record(1, value));
  const auto held = cache.Find({Keyspace::kHeads, "used"}, kNewest)->value;
  for (int i = 0; i < 10'000; ++i) {
    Write(cache, "key " + std::to_string(i), Record(2 + i, value));
    ASSERT_EQ(Known(cache, "used"), value) << i;
  }
  const auto kept = cache.Find({Keyspace::kHeads, "used"}, kNewest)->value;
  EXPECT_NE(std::string_view(kept).data(), std::string_view(held).data());
  EXPECT_EQ(held, value);
}

TEST(RecordCacheTest, DoesNotKeepWhatWouldPushOutAllElse) {
  RecordCache cache(kBytes);
  Write(cache, "a", Record(1, "small"));
  Write(cache, "a", Record(2, std::string(kBytes / 100, 'x')));
  EXPECT_EQ(Known(cache, "a"), "?");
}

}  // namespace
}  // namespace strata::engines::rocks
