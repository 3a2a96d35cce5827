// Documents as of a commit: Get and List with a position, and copies. What is right is what the
// ledger tells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <future>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "tests/documents/world.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"

namespace strata::versioning::testing {
namespace {

using store::CommitPosition;
using test_support::HasReason;
using test_support::IsOk;
using ::testing::IsEmpty;

// One entry of the ledger.
struct Written {
  CommitPosition position = 0;
  std::string collection;
  std::string id;
  int64_t version = 0;
  bool deleted = false;
};

using Ids = std::pair<std::string, std::string>;
// Live documents, with their versions.
using ListedThen = std::map<Ids, int64_t>;

document::Filter NumberFrom(int64_t least) {
  const std::string bson = document::BsonBuilder()
                               .Document("n", document::BsonBuilder().Int64("$gte", least).Take())
                               .Take();
  return *document::Filter::Compile(document::Content::FromTrusted(bson));
}

class AsOfTest : public CombinationTest {
 protected:
  bool numbered() const { return GetParam().mode == Mode::kAtomic; }
  store::Store& store() { return world->store(); }
  CommitPosition last() { return store().LastPosition(); }

  // Writes some documents at random, a burst of writes at once, so that there are commits of
  // several versions.
  void WriteAtRandom(std::mt19937_64& random, int bursts) {
    for (int burst = 0; burst < bursts; ++burst) {
      std::deque<Answer> answers(1 + random() % 6);
      const std::string collection = random() % 3 == 0 ? "others" : "things";
      const std::string id(1, static_cast<char>('a' + random() % 6));
      for (Answer& answer : answers) {
        WriteRequest request = Request(id);
        request.name.collection = collection;
        request.keep_unchanged = true;
        if (random() % 5 == 0) {
          world->documents().Delete(std::move(request), answer.Callback());
        } else {
          world->documents().Update(std::move(request), Number(static_cast<int64_t>(random() % 9)),
                                    /*allow_missing=*/true, answer.Callback());
        }
      }
      for (Answer& answer : answers) answer.Wait().IgnoreError();
    }
  }

  std::vector<Written> Ledger() {
    std::vector<Written> written;
    LedgerCursor cursor(store(), 0, 0);
    while (cursor.Next()) {
      const store::LedgerEntryView& entry = cursor.entry();
      written.push_back({cursor.position(), std::string(entry.collection), std::string(entry.id),
                         entry.version,
                         static_cast<VersionKind>(entry.kind) == VersionKind::kDeleted});
    }
    EXPECT_THAT(cursor.status(), IsOk());
    return written;
  }

  // The newest version of each document, as of a position.
  static std::map<Ids, Written> State(const std::vector<Written>& ledger, CommitPosition position) {
    std::map<Ids, Written> state;
    for (const Written& each : ledger) {
      if (each.position <= position) state[{each.collection, each.id}] = each;
    }
    return state;
  }
  static ListedThen Live(const std::map<Ids, Written>& state) {
    ListedThen live;
    for (const auto& [ids, written] : state) {
      if (!written.deleted) live[ids] = written.version;
    }
    return live;
  }

  ListedThen ListAt(CommitPosition position, int page_size) {
    ListedThen listed;
    for (const std::string collection : {"others", "things"}) {
      ListQuery query;
      query.collection = collection;
      query.at_position = position;
      for (bool more = true; more;) {
        ListCursor cursor = world->documents().List(query);
        for (int taken = 0; cursor.Next() && taken < page_size; ++taken) {
          listed[{collection, cursor.id()}] = cursor.version().header.version;
          EXPECT_LE(cursor.version().position, position);
          EXPECT_TRUE(cursor.version().content);
        }
        EXPECT_THAT(cursor.status(), IsOk());
        more = cursor.resume_after().has_value();
        if (more) query.after_id = *cursor.resume_after();
      }
    }
    return listed;
  }

  // Takes up to `taken` documents a walk; `between` is called from walk to walk.
  ListedThen Copy(
      CopyQuery query, int taken, const std::function<void()>& between = [] {}) {
    ListedThen copied;
    Ids before;
    while (true) {
      CopyCursor cursor = world->documents().Copy(query);
      for (int i = 0; cursor.Next() && i < taken; ++i) {
        const Ids ids{cursor.collection(), cursor.id()};
        EXPECT_LT(before, ids);
        EXPECT_TRUE(copied.emplace(ids, cursor.version().header.version).second);
        before = ids;
      }
      EXPECT_THAT(cursor.status(), IsOk());
      if (!cursor.status().ok() || !cursor.resume_after()) return copied;
      query.after = *cursor.resume_after();
      between();
    }
  }

  absl::Status GetAt(const DocumentName& name, CommitPosition position) {
    return world->documents().Get(name, {.version = {}, .time = {}, .position = position}).status();
  }
};
STRATA_ALL_COMBINATIONS(AsOfTest);

TEST_P(AsOfTest, GetListAndCopyAnswerWhatTheLedgerTells) {
  if (!numbered()) GTEST_SKIP() << "exempt: commits have no positions";
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 random(seed);
  WriteAtRandom(random, test_support::Sampled(40, 15));
  const std::vector<Written> ledger = Ledger();
  std::set<CommitPosition> positions{last(), 0};
  std::set<std::tuple<CommitPosition, std::string, std::string>> commits;
  bool several = false;
  for (const Written& each : ledger) {
    positions.insert({each.position - 1, each.position});
    several |= !commits.emplace(each.position, each.collection, each.id).second;
  }
  // An engine that commits at once leaves nothing to combine.
  EXPECT_TRUE(several || GetParam().engine != "rocksdb")
      << "no commit has two versions of one document";
  for (const CommitPosition position : positions) {
    SCOPED_TRACE(position);
    if (position != 0 && position < store().StartPosition()) continue;
    const std::map<Ids, Written> state = State(ledger, position);
    for (const Written& each : ledger) {
      const DocumentName name{each.collection, each.id};
      const auto right = state.find({each.collection, each.id});
      const auto got =
          world->documents().Get(name, {.version = {}, .time = {}, .position = position});
      if (right == state.end()) {
        EXPECT_THAT(got, HasReason(ErrorReason::kVersionNotFound));
      } else if (right->second.deleted) {
        EXPECT_THAT(got, HasReason(ErrorReason::kDocumentDeleted));
        EXPECT_EQ(MetadataOf(got.status(), "version"), std::to_string(right->second.version));
      } else {
        ASSERT_THAT(got, IsOk());
        EXPECT_EQ(got->header.version, right->second.version);
        EXPECT_EQ(got->position, right->second.position);
        EXPECT_EQ(ContentHashOf(got->header.salt, got->content), got->header.content_hash);
      }
    }
    EXPECT_EQ(ListAt(position, 1 + static_cast<int>(random() % 4)), Live(state));
    CopyQuery copy;
    copy.at_position = position;
    EXPECT_EQ(Copy(copy, 1 + static_cast<int>(random() % 4)), Live(state));
  }
}

// What a follower does: a copy, cut off again and again, and the ledger behind it.
TEST_P(AsOfTest, ACopyBesideWritersAndTheLedgerBehindItAreTheDocuments) {
  if (!numbered()) GTEST_SKIP() << "exempt: commits have no positions";
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 random(seed);
  WriteAtRandom(random, 30);
  CopyQuery query;
  query.at_position = last();
  ListedThen copied = Copy(query, 2, [&] { WriteAtRandom(random, 2); });
  const std::vector<Written> ledger = Ledger();
  EXPECT_EQ(copied, Live(State(ledger, query.at_position)));
  for (const Written& each : ledger) {
    if (each.position <= query.at_position) continue;
    int64_t& version = copied[{each.collection, each.id}];
    EXPECT_LT(version, each.version);
    version = each.version;
  }
  const std::map<Ids, Written> now = State(ledger, last());
  for (const auto& [ids, written] : now) {
    if (written.deleted) copied.erase(ids);
  }
  EXPECT_EQ(copied, Live(now));
}

TEST_P(AsOfTest, ACopyIsOfTheCollectionsIdsAndContentsThatAreAskedFor) {
  if (!numbered()) GTEST_SKIP() << "exempt: commits have no positions";
  for (const auto& [collection, id, number] : {std::tuple("b", "x/1", 1),
                                               {"b", "y/1", 5},
                                               {"a", "x/1", 5},
                                               {"c", "x/2", 5},
                                               {"a", "x/0", 1},
                                               {"d", "x/9", 9}}) {
    WriteRequest request = Request(id);
    request.name.collection = collection;
    ASSERT_THAT(world->Create(request, Number(number)), IsOk());
  }
  CopyQuery query;
  query.at_position = last();
  const auto ids = [&](const CopyQuery& asked) {
    std::string all;
    for (const auto& [each, version] : Copy(asked, 1)) all += each.first + ":" + each.second + " ";
    return all;
  };
  EXPECT_EQ(ids(query), "a:x/0 a:x/1 b:x/1 b:y/1 c:x/2 d:x/9 ");
  query.collections = {"c", "none", "b", "c", "a"};
  EXPECT_EQ(ids(query), "a:x/0 a:x/1 b:x/1 b:y/1 c:x/2 ");
  query.id_prefix = "x/";
  EXPECT_EQ(ids(query), "a:x/0 a:x/1 b:x/1 c:x/2 ");
  query.filter = NumberFrom(5);
  EXPECT_EQ(ids(query), "a:x/1 c:x/2 ");
  query.after = {"a", "x/1"};
  EXPECT_EQ(ids(query), "c:x/2 ");
  query.after = {"bb", "x/1"};  // between two
  EXPECT_EQ(ids(query), "c:x/2 ");
  query.collections.clear();
  EXPECT_EQ(ids(query), "c:x/2 d:x/9 ");
  query.after = {"d", "x/9"};
  EXPECT_EQ(ids(query), "");
}

TEST_P(AsOfTest, CollectionsThatAreDeletedAreNotCopiedNorWhatIsMadeAnewInThem) {
  if (!numbered()) GTEST_SKIP() << "exempt: commits have no positions";
  for (const std::string collection : {"gone", "new", "stays"}) {
    WriteRequest request = Request("a");
    request.name.collection = collection;
    ASSERT_THAT(world->Create(request, Number(1)), IsOk());
  }
  CopyQuery query;
  query.at_position = last();
  for (const std::string collection : {"gone", "new"}) {
    std::promise<absl::Status> deleted;
    world->documents().collections().Delete(
        {.name = collection, .force = true},
        [&](const absl::StatusOr<CollectionDeleted>& done) { deleted.set_value(done.status()); });
    ASSERT_THAT(deleted.get_future().get(), IsOk());
  }
  WriteRequest request = Request("a");
  request.name.collection = "new";
  ASSERT_THAT(world->Create(request, Number(2)), IsOk());
  const ListedThen copied = Copy(query, 1);
  EXPECT_EQ(copied, (ListedThen{{{"stays", "a"}, 1}}));
  query.after = {"gone", "a"};
  EXPECT_EQ(Copy(query, 1), copied);
}

TEST_P(AsOfTest, AWalkThatMayLookNoFurtherSaysWhereItIs) {
  if (!numbered() || GetParam().engine != "memory" || GetParam().strategy != "full-copies") {
    GTEST_SKIP() << "exempt: takes long, and is the same everywhere";
  }
  const int documents = static_cast<int>(kExaminedMax) + 100;
  std::deque<Answer> answers(static_cast<size_t>(documents));
  for (int i = 0; i < documents; ++i) {
    WriteRequest request = Request("d" + std::to_string(100'000 + i));
    request.name.collection = i % 2 == 0 ? "a" : "b";
    world->documents().Create(std::move(request), Number(i),
                              answers[static_cast<size_t>(i)].Callback());
  }
  for (Answer& answer : answers) ASSERT_THAT(answer.Wait(), IsOk());
  CopyQuery query;
  query.at_position = last();
  query.filter = NumberFrom(documents - 2);
  CopyCursor cursor = world->documents().Copy(query);
  while (cursor.Next()) {
  }
  EXPECT_THAT(cursor.status(), IsOk());
  // All of "a", and as much again of "b", at most.
  EXPECT_FALSE(cursor.Next());
  EXPECT_FALSE(cursor.resume_after());
  query.filter = NumberFrom(documents);
  query.collections = {"a", "b", "c"};
  CopyCursor none = world->documents().Copy(query);
  EXPECT_FALSE(none.Next());
  ASSERT_THAT(none.status(), IsOk());
  ASSERT_TRUE(none.resume_after());
  EXPECT_EQ(*none.resume_after(), (CopyPlace{"c", ""}));
  query.after = *none.resume_after();
  EXPECT_THAT(Copy(query, 1), IsEmpty());
}

TEST_P(AsOfTest, PlacesThatCannotBeAreRefused) {
  ASSERT_THAT(world->Create(Request("a"), Number(1)), IsOk());
  const auto list = [&](ListQuery query) {
    query.collection = "things";
    ListCursor cursor = world->documents().List(std::move(query));
    EXPECT_FALSE(cursor.Next());
    return cursor.status();
  };
  ListQuery query;
  query.at_position = 1;
  if (!numbered()) {
    EXPECT_THAT(GetAt({"things", "a"}, 1), HasReason(ErrorReason::kUnsupportedByEngine));
    EXPECT_THAT(list(query), HasReason(ErrorReason::kUnsupportedByEngine));
    return;
  }
  const absl::Status unknown = GetAt({"things", "a"}, last() + 1);
  EXPECT_THAT(unknown, HasReason(ErrorReason::kPositionUnknown));
  EXPECT_EQ(MetadataOf(unknown, "field"), "at_position");
  EXPECT_EQ(MetadataOf(unknown, "position"), std::to_string(last() + 1));
  EXPECT_EQ(MetadataOf(unknown, "last"), std::to_string(last()));
  EXPECT_THAT(GetAt({"things", "a"}, -1), HasReason(ErrorReason::kInvalidField));
  query.at_position = last() + 1;
  EXPECT_THAT(list(query), HasReason(ErrorReason::kPositionUnknown));
  query.at_position = -1;
  EXPECT_THAT(list(query), HasReason(ErrorReason::kInvalidField));
  query.at_position = last();
  query.at_time = world.clock().Now() - 1;
  EXPECT_THAT(list(query), HasReason(ErrorReason::kInvalidField));
  CopyQuery copy;
  copy.at_position = last() + 1;
  CopyCursor cursor = world->documents().Copy(copy);
  EXPECT_FALSE(cursor.Next());
  EXPECT_THAT(cursor.status(), HasReason(ErrorReason::kPositionUnknown));
}

TEST_P(AsOfTest, BeforeItsFirstVersionADocumentHasNone) {
  if (!numbered()) GTEST_SKIP() << "exempt: commits have no positions";
  ASSERT_THAT(world->Create(Request("b"), Number(1)), IsOk());
  const CommitPosition before = last();
  ASSERT_THAT(world->Create(Request("a"), Number(1)), IsOk());
  ASSERT_THAT(world->Update(Request("a"), Number(2)), IsOk());
  const absl::Status early = GetAt({"things", "a"}, before);
  EXPECT_THAT(early, HasReason(ErrorReason::kVersionNotFound));
  EXPECT_EQ(MetadataOf(early, "position"), std::to_string(before));
  EXPECT_EQ(MetadataOf(early, "first_position"), std::to_string(Ledger()[1].position));
  EXPECT_EQ(MetadataOf(early, "actual"), "2");
  EXPECT_FALSE(MetadataOf(early, "version"));
}

// Places of an earlier life of a store that forgets.
TEST(AsOfAStoreThatForgets, APlaceFromBeforeIsTrimmed) {
  World world;
  store::Store& store = world.engine();
  const CommitPosition start = store.StartPosition();
  ASSERT_GT(start, 1);
  ASSERT_THAT(world->Create(Request("a"), Number(1)), IsOk());
  const auto reason = [&](CommitPosition position) {
    return world->documents()
        .Get({"things", "a"}, {.version = {}, .time = {}, .position = position})
        .status();
  };
  EXPECT_THAT(reason(start - 1), HasReason(ErrorReason::kPositionTrimmed));
  EXPECT_EQ(MetadataOf(reason(start - 1), "oldest"), std::to_string(start));
  // Where this life began, and where every one does, there was nothing yet.
  EXPECT_THAT(reason(start), HasReason(ErrorReason::kVersionNotFound));
  EXPECT_THAT(reason(0), HasReason(ErrorReason::kVersionNotFound));
}

}  // namespace
}  // namespace strata::versioning::testing
