// Finding documents and versions: filters and times of List, filters of History and of
// preconditions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/documents/world.h"
#include "tests/support/hooked_store.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"

namespace strata::versioning::testing {
namespace {

using document::BsonBuilder;
using test_support::HasReason;
using test_support::HookedStore;
using test_support::IsOk;
using test_support::StoreHooks;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

document::Filter Compiled(const std::string& bson) {
  return *document::Filter::Compile(document::Content::FromTrusted(bson));
}
// {path: {operation: value}}.
document::Filter Where(std::string_view path, std::string_view operation, int64_t value) {
  return Compiled(
      BsonBuilder().Document(path, BsonBuilder().Int64(operation, value).Take()).Take());
}
document::Filter Everything() { return Compiled(BsonBuilder().Take()); }

// What a List answers: each id with its version; pages of `page_size` put together.
using Listed = std::map<std::string, int64_t>;

class FindTest : public CombinationTest {
 protected:
  bool stale() const { return GetParam().mode == Mode::kStale; }

  absl::StatusOr<Listed> List(ListQuery query, int page_size = 1000) {
    query.collection = "things";
    Listed listed;
    for (;;) {
      ListCursor found = world->documents().List(query);
      for (int taken = 0; found.Next() && taken < page_size; ++taken) {
        const StoredVersion& version = found.version();
        EXPECT_TRUE(listed.emplace(found.id(), version.header.version).second) << found.id();
        EXPECT_EQ(version.content.has_value(), !version.deleted());
      }
      if (!found.status().ok()) return found.status();
      if (!found.resume_after()) return listed;
      query.after_id = *found.resume_after();
    }
  }
  absl::StatusOr<Listed> ListWhere(document::Filter filter) {
    ListQuery query;
    query.filter = std::move(filter);
    return List(std::move(query));
  }

  absl::StatusOr<std::vector<int64_t>> Versions(HistoryQuery query, int page_size = 1000) {
    query.name = kName;
    std::vector<int64_t> versions;
    for (;;) {
      HistoryCursor found = world->documents().History(query);
      for (int taken = 0; found.Next() && taken < page_size; ++taken) {
        versions.push_back(found.version().header.version);
      }
      if (!found.status().ok()) return found.status();
      if (!found.resume_at()) return versions;
      query.resume_at = found.resume_at();
    }
  }
};

// The article's trap: a filter that is applied before documents are reduced to their current
// versions answers with documents whose *old* version matched.
TEST_P(FindTest, AFilterSeesTheCurrentVersionAndNeverAnOldOne) {
  ASSERT_THAT(world->Create(Request("changed"), Number(1)), IsOk());
  ASSERT_THAT(world->Create(Request("deleted"), Number(1)), IsOk());
  ASSERT_THAT(world->Create(Request("kept"), Number(1)), IsOk());
  const UnixMicros before = world.clock().Now();
  ASSERT_THAT(world->Update(Request("changed"), Number(2)), IsOk());
  ASSERT_THAT(world->Delete(Request("deleted")), IsOk());

  ASSERT_OK_AND_ASSIGN(Listed ones, ListWhere(Where("n", "$eq", 1)));
  ASSERT_OK_AND_ASSIGN(Listed twos, ListWhere(Where("n", "$eq", 2)));
  ListQuery then;
  then.filter = Where("n", "$eq", 1);
  then.at_time = before;
  ASSERT_OK_AND_ASSIGN(Listed ones_then, List(then));
  // A stale scan may miss what is new, but what it does answer is as right as anywhere.
  EXPECT_EQ(ones.count("changed") + ones.count("deleted"), 0u);
  EXPECT_EQ(twos.count("kept") + twos.count("deleted"), 0u);
  if (stale()) return;
  EXPECT_EQ(ones, (Listed{{"kept", 1}}));
  EXPECT_EQ(twos, (Listed{{"changed", 2}}));
  EXPECT_EQ(ones_then, (Listed{{"changed", 1}, {"deleted", 1}, {"kept", 1}}));
}

TEST_P(FindTest, ADeletionMatchesOnlyTheEmptyFilter) {
  if (stale()) GTEST_SKIP() << "exempt: a stale scan may miss recent changes";
  ASSERT_THAT(world->Create(Request("a"), Number(1)), IsOk());
  ASSERT_THAT(world->Create(Request("b"), Number(1)), IsOk());
  ASSERT_THAT(world->Delete(Request("b")), IsOk());
  ListQuery query;
  query.show_deleted = true;
  query.filter = Everything();
  ASSERT_OK_AND_ASSIGN(Listed all, List(query));
  EXPECT_EQ(all, (Listed{{"a", 1}, {"b", 2}}));
  query.filter = Where("gone", "$ne", 7);  // as a document without the member would
  ASSERT_OK_AND_ASSIGN(Listed live, List(query));
  EXPECT_EQ(live, (Listed{{"a", 1}}));
}

// Random histories of some documents, and what was true after each step.
TEST_P(FindTest, AListOfATimeIsWhatWasThen) {
  if (stale()) GTEST_SKIP() << "exempt: a stale scan may miss recent changes";
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 random(seed);
  struct State {
    int64_t version = 0;
    int64_t value = 0;
    bool deleted = false;
  };
  std::map<std::string, State> model;
  std::vector<std::pair<UnixMicros, std::map<std::string, State>>> moments;
  moments.emplace_back(world.clock().Now(), model);
  for (int step = 0; step < test_support::Sampled(120, 25); ++step) {
    const std::string id(1, static_cast<char>('a' + random() % 8));
    State& state = model[id];
    const auto value = static_cast<int64_t>(random() % 5);
    const bool live = state.version > 0 && !state.deleted;
    if (live && random() % 4 == 0) {
      ASSERT_THAT(world->Delete(Request(id)), IsOk());
      state = {state.version + 1, 0, true};
    } else {
      WriteRequest request = Request(id);
      request.keep_unchanged = true;
      ASSERT_THAT(world->Update(request, Number(value), /*allow_missing=*/true), IsOk());
      state = {state.version + 1, value, false};
    }
    moments.emplace_back(world.clock().Now(), model);
  }
  for (const auto& [time, then] : moments) {
    for (const bool show_deleted : {false, true}) {
      for (const int64_t least : {0, 3}) {
        Listed expected;
        for (const auto& [id, state] : then) {
          const bool shown = state.deleted ? show_deleted && least == 0
                                           : state.version > 0 && state.value >= least;
          if (shown) expected.emplace(id, state.version);
        }
        ListQuery query;
        query.at_time = time;
        query.show_deleted = show_deleted;
        if (least > 0) query.filter = Where("n", "$gte", least);
        ASSERT_OK_AND_ASSIGN(Listed listed, List(query, 3));
        ASSERT_EQ(listed, expected)
            << "at " << time << (show_deleted ? ", deleted too" : "") << ", n >= " << least;
      }
    }
  }
  ListQuery future;
  future.at_time = world.clock().Now() + 1'000'000;
  EXPECT_THAT(List(future), HasReason(ErrorReason::kInvalidField));
}

TEST_P(FindTest, HistoryTellsWhichVersionsMatched) {
  for (const int64_t n : {1, 5, 2, 5, 5}) {
    WriteRequest request = Request();
    request.keep_unchanged = true;
    ASSERT_THAT(world->Update(request, Number(n), /*allow_missing=*/true), IsOk());
  }
  ASSERT_THAT(world->Delete(Request()), IsOk());
  ASSERT_THAT(world->Create(Request(), Number(5)), IsOk());
  HistoryQuery query;
  query.filter = Where("n", "$eq", 5);
  for (const int page_size : {1, 2, 1000}) {
    query.oldest_first = false;
    ASSERT_OK_AND_ASSIGN(auto newest_first, Versions(query, page_size));
    EXPECT_THAT(newest_first, ElementsAre(7, 5, 4, 2));
    query.oldest_first = true;
    ASSERT_OK_AND_ASSIGN(auto oldest_first, Versions(query, page_size));
    EXPECT_THAT(oldest_first, ElementsAre(2, 4, 5, 7));
  }
  query.from_version = 3;
  query.to_version = 6;
  ASSERT_OK_AND_ASSIGN(auto between, Versions(query));
  EXPECT_THAT(between, ElementsAre(4, 5));
  query.filter = Where("n", "$ne", 5);
  ASSERT_OK_AND_ASSIGN(auto others, Versions(query));
  EXPECT_THAT(others, ElementsAre(3));
}

TEST_P(FindTest, ChangesOfAVersionThatMatchedAreThoseFromTheVersionBefore) {
  for (const int64_t n : {1, 5, 2, 9}) {
    ASSERT_THAT(world->Update(Request(), Number(n), /*allow_missing=*/true), IsOk());
  }
  for (const bool oldest_first : {false, true}) {
    HistoryQuery query;
    query.name = kName;
    query.filter = Where("n", "$gte", 5);
    query.oldest_first = oldest_first;
    query.include_changes = true;
    std::map<int64_t, int64_t> before;
    HistoryCursor found = world->documents().History(query);
    while (found.Next()) {
      EXPECT_FALSE(found.version().content);
      ASSERT_EQ(found.changes().list.size(), 1u);
      ASSERT_TRUE(found.changes().list[0].before);
      before[found.version().header.version] = found.changes().list[0].before->bytes[0];
    }
    ASSERT_THAT(found.status(), IsOk());
    EXPECT_EQ(before, (std::map<int64_t, int64_t>{{2, 1}, {4, 2}}));
  }
}

TEST_P(FindTest, APreconditionsFilterIsAboutTheCurrentContent) {
  WriteRequest sell = Request();
  sell.precondition.filter = Where("n", "$gt", 0);
  const auto missing = world->Update(sell, Increment("/n", -1), /*allow_missing=*/true);
  EXPECT_THAT(missing, HasReason(ErrorReason::kFilterNotMatched));
  EXPECT_EQ(MetadataOf(missing.status(), "actual"), "0");
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  EXPECT_THAT(world->Update(sell, Increment("/n", -1)), IsOk());
  const auto sold_out = world->Update(sell, Increment("/n", -1));
  EXPECT_THAT(sold_out, HasReason(ErrorReason::kFilterNotMatched));
  EXPECT_EQ(MetadataOf(sold_out.status(), "actual"), "2");

  WriteRequest remove = Request();
  remove.precondition.filter = Where("n", "$eq", 1);
  EXPECT_THAT(world->Delete(remove), HasReason(ErrorReason::kFilterNotMatched));
  remove.precondition.filter = Where("n", "$eq", 0);
  EXPECT_THAT(world->Delete(remove), IsOk());
  remove.precondition.filter = Everything();
  const auto deleted = world->Delete(remove);
  EXPECT_THAT(deleted, HasReason(ErrorReason::kFilterNotMatched));
  EXPECT_EQ(MetadataOf(deleted.status(), "actual"), "3");
  ASSERT_OK_AND_ASSIGN(const auto history, world->History(kName));
  EXPECT_EQ(history.size(), 3u);
}

// A race that leaves the filter true costs an attempt; one that makes it false ends the write.
TEST_P(FindTest, APreconditionsFilterIsLookedAtAgainAfterALostRace) {
  ASSERT_THAT(world->Create(Request(), Number(2)), IsOk());
  const std::unique_ptr<Process> rival = world.Another();
  HookedStore hooked(world.process().store());
  StoreHooks hooks;
  int races = 1;
  hooks.before_commit = [&](const store::WriteBatch& batch) {
    if (batch.writes().back().keyspace == store::Keyspace::kCollections || races == 0) return;
    --races;
    EXPECT_THAT(rival->Update(Request(), Increment("/n", -1)), IsOk());
  };
  hooked.set_hooks(hooks);
  test_support::SeededEntropy entropy(2);
  test_support::ThreadExecutor executor;
  DocumentsOptions options;
  options.write.default_strategy = FindStrategy(GetParam().strategy);
  options.write.combining = false;
  Documents documents(hooked, world.clock(), entropy, executor, options);
  const auto sell = [&] {
    WriteRequest request = Request();
    request.precondition.filter = Where("n", "$gt", 0);
    Answer answer;
    documents.Update(std::move(request), Increment("/n", -1), false, answer.Callback());
    return answer.Wait();
  };
  ASSERT_OK_AND_ASSIGN(const WriteResult sold, sell());
  EXPECT_EQ(sold.attempts, 2);
  EXPECT_EQ(sold.version.header.version, 3);
  EXPECT_EQ(*sold.version.content, *world->documents().Get(kName, {})->content);
  ASSERT_THAT(world->Update(Request(), Number(1)), IsOk());
  races = 1;
  EXPECT_THAT(sell(), HasReason(ErrorReason::kFilterNotMatched));
  executor.Stop();
}

TEST_P(FindTest, ARequestIdStandsForItsFilterToo) {
  ASSERT_THAT(world->Create(Request(), Number(2)), IsOk());
  WriteRequest sell = Request("a", "sale-1");
  sell.precondition.filter = Where("n", "$gt", 1);
  ASSERT_THAT(world->Update(sell, Increment("/n", -1)), IsOk());
  // The filter is false by now; the call was right when it was made.
  ASSERT_OK_AND_ASSIGN(const WriteResult again, world->Update(sell, Increment("/n", -1)));
  EXPECT_TRUE(again.replayed);
  sell.precondition.filter = Where("n", "$gt", 0);
  EXPECT_THAT(world->Update(sell, Increment("/n", -1)), HasReason(ErrorReason::kRequestIdReused));
}

STRATA_ALL_COMBINATIONS(FindTest);

// A page examines a bounded number of documents or versions, found or not.
TEST(FindPages, EndAfterTenThousandExamined) {
  WorldOptions options;
  options.strategy = "full-copies";
  World world(options);
  constexpr int kDocuments = kExaminedMax + 50;
  for (int i = 0; i < kDocuments; ++i) {
    std::string id = std::to_string(i);
    id.insert(0, 6 - id.size(), '0');
    ASSERT_THAT(world->Create(Request(id), Number(i)), IsOk());
  }
  ListQuery query;
  query.collection = "things";
  query.filter = Where("n", "$gte", kExaminedMax + 10);
  ListCursor first = world->documents().List(query);
  EXPECT_FALSE(first.Next());
  EXPECT_FALSE(first.Next());
  EXPECT_THAT(first.status(), IsOk());
  EXPECT_EQ(first.examined(), kExaminedMax);
  ASSERT_EQ(first.resume_after(), "009999");
  query.after_id = *first.resume_after();
  ListCursor second = world->documents().List(query);
  int found = 0;
  while (second.Next()) ++found;
  EXPECT_THAT(second.status(), IsOk());
  EXPECT_EQ(second.examined(), 50);
  EXPECT_EQ(found, 40);
  EXPECT_FALSE(second.resume_after());
}

TEST(FindPages, OfAHistoryEndAfterTenThousandExamined) {
  WorldOptions options;
  options.strategy = "full-copies";
  World world(options);
  for (int i = 0; i < kExaminedMax + 50; ++i) {
    ASSERT_THAT(world->Update(Request(), Number(i), /*allow_missing=*/true), IsOk());
  }
  HistoryQuery query;
  query.name = kName;
  query.filter = Where("n", "$lt", 40);
  HistoryCursor first = world->documents().History(query);
  EXPECT_FALSE(first.Next());
  EXPECT_FALSE(first.Next());
  EXPECT_THAT(first.status(), IsOk());
  EXPECT_EQ(first.resume_at(), 50);
  query.resume_at = first.resume_at();
  HistoryCursor second = world->documents().History(query);
  int found = 0;
  while (second.Next()) ++found;
  EXPECT_THAT(second.status(), IsOk());
  EXPECT_EQ(found, 40);
  EXPECT_FALSE(second.resume_at());
}

}  // namespace
}  // namespace strata::versioning::testing
