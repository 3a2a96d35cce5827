// What takes long is not done on threads that others wait for, however few bytes ask for it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <utility>

#include "schemas/base/error.h"
#include "tests/documents/turn.h"
#include "tests/documents/world.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"

namespace strata::versioning::testing {
namespace {

using document::BsonBuilder;
using test_support::HasReason;
using test_support::IsOk;

const std::string kLargeText(100'000, 'x');

document::Filter TextMatches(std::string_view pattern) {
  const std::string condition = BsonBuilder().String("$regex", pattern).Take();
  return *document::Filter::Compile(
      document::Content::FromTrusted(BsonBuilder().Document("text", condition).Take()));
}

// None of the so many patterns is found.
document::Filter AnyMatches(int patterns) {
  BsonBuilder all;
  for (int i = 0; i < patterns; ++i) {
    const std::string condition = BsonBuilder().String("$regex", "no " + std::to_string(i)).Take();
    all.Document(std::to_string(i), BsonBuilder().Document("text", condition).Take());
  }
  return *document::Filter::Compile(
      document::Content::FromTrusted(BsonBuilder().Array("$or", all.Take()).Take()));
}

class LongWorkTest : public CombinationTest {
 protected:
  WriteRequest Brief() {
    WriteRequest request = Request();
    request.waiter = &turn_;
    request.brief = true;
    return request;
  }
  absl::StatusOr<WriteResult> UpdateInTurn(const WriteRequest& request) {
    Answer answer;
    world->documents().Update(request, Increment("/n", 1), false, answer.Callback());
    while (!answer.ready()) turn_.RunAll();
    return answer.Wait();
  }
  int64_t Newest() {
    const auto newest = world->documents().Get(kName, {});
    EXPECT_THAT(newest, IsOk());
    return newest.ok() ? newest->header.version : 0;
  }

  Turn turn_;
};

TEST_P(LongWorkTest, AWriteOfASmallDocumentIsDoneAtOnce) {
  ASSERT_THAT(world->Create(Brief(), Text("small")), IsOk());
  ASSERT_THAT(world->Update(Brief(), Increment("/n", 1)), IsOk());
  ASSERT_THAT(world->Restore(Brief(), 1), IsOk());
  ASSERT_THAT(world->Delete(Brief()), IsOk());
  EXPECT_EQ(turn_.deferred(), 0u);
}

TEST_P(LongWorkTest, APatchOfALargeDocumentWaitsForItsTurn) {
  ASSERT_THAT(world->Create(Request(), Text(kLargeText)), IsOk());
  Answer answer;
  world->documents().Update(Brief(), Increment("/n", 1), false, answer.Callback());
  turn_.AwaitDeferred();
  EXPECT_FALSE(answer.ready());
  while (!answer.ready()) turn_.RunAll();
  EXPECT_THAT(answer.Wait(), IsOk());
  EXPECT_EQ(Newest(), 2);
}

// However small the document.
TEST_P(LongWorkTest, APatchOfManyOperationsWaitsForItsTurn) {
  ASSERT_THAT(world->Create(Request(), Text(std::string(50'000, 'x'))), IsOk());
  document::Patch patch = Increment("/n", 1);
  patch.operations.resize(20, patch.operations.front());
  ASSERT_THAT(world->Update(Brief(), patch), IsOk());
  EXPECT_EQ(turn_.deferred(), 0u);
  patch.operations.resize(200, patch.operations.front());
  Answer answer;
  world->documents().Update(Brief(), patch, false, answer.Callback());
  turn_.AwaitDeferred();
  EXPECT_FALSE(answer.ready());
  while (!answer.ready()) turn_.RunAll();
  EXPECT_THAT(answer.Wait(), IsOk());
  EXPECT_EQ(Newest(), 3);
}

TEST_P(LongWorkTest, APreconditionThatTakesTimeWaitsForItsTurn) {
  ASSERT_THAT(world->Create(Request(), Text("small")), IsOk());
  WriteRequest request = Brief();
  request.precondition.filter = TextMatches("no such text");
  EXPECT_THAT(world->Update(request, Increment("/n", 1)),
              HasReason(ErrorReason::kFilterNotMatched));
  EXPECT_EQ(turn_.deferred(), 0u);
  request.precondition.filter = AnyMatches(20);
  turn_.TakeTime(world.clock());
  Answer answer;
  world->documents().Update(request, Increment("/n", 1), false, answer.Callback());
  turn_.AwaitDeferred();
  EXPECT_FALSE(answer.ready());
  while (!answer.ready()) turn_.RunAll();
  EXPECT_THAT(answer.Wait(), HasReason(ErrorReason::kFilterNotMatched));
}

// However quick it looks: of what it costs at the worst, the clock would only tell afterwards.
TEST_P(LongWorkTest, ACostlyPatternIsNotSearchedWhereOthersWait) {
  if (test_support::LeftOut(GetParam().engine != "memory")) GTEST_SKIP() << "sampled";
  ASSERT_THAT(world->Create(Request(), Text(std::string(60'000, 'a'))), IsOk());
  WriteRequest request = Brief();
  request.precondition.filter = TextMatches("a[ab]{300}c");
  Answer answer;
  world->documents().Update(request, Increment("/n", 1), false, answer.Callback());
  turn_.AwaitDeferred();
  EXPECT_FALSE(answer.ready());
  while (!answer.ready()) turn_.RunAll();
  EXPECT_THAT(answer.Wait(), HasReason(ErrorReason::kFilterNotMatched));
}

TEST_P(LongWorkTest, APatternThatIsTooCostlyForATextIsRefused) {
  ASSERT_THAT(world->Create(Request(), Text(std::string(1'000'000, 'a'))), IsOk());
  WriteRequest request = Request();
  request.precondition.filter = TextMatches("a[ab]{950}[ab]{950}c");
  const auto refused = world->Update(request, Increment("/n", 1));
  EXPECT_THAT(refused, HasReason(ErrorReason::kInvalidFilter));
  EXPECT_EQ(MetadataOf(refused.status(), "limit"),
            std::to_string(document::Filter::kSearchWorkMax));
  EXPECT_EQ(MetadataOf(refused.status(), "field"), "precondition.filter");
  request.precondition.filter = TextMatches("^a+$");
  EXPECT_THAT(world->Update(request, Increment("/n", 1)), IsOk());
}

// Each of their comparisons takes long, and there are many in few bytes.
TEST_P(LongWorkTest, ComparisonsOfManyElementsWaitForTheirTurn) {
  ASSERT_THAT(world->Create(Request(), Text(std::string(50'000, 'x'))), IsOk());
  document::Patch patch = Increment("/n", 1);
  document::Operation& operation = patch.operations.front();
  operation.path = *document::Path::Parse("/list");
  operation.kind = document::OperationKind::kAppendMissing;
  operation.operand = {0x04, BsonBuilder().Int64("0", 1).Take()};
  Answer answer;
  world->documents().Update(Brief(), patch, false, answer.Callback());
  turn_.AwaitDeferred();
  EXPECT_FALSE(answer.ready());
  while (!answer.ready()) turn_.RunAll();
  EXPECT_THAT(answer.Wait(), IsOk());
}

// On the way to the version of a time others are read, whole ones too.
TEST_P(LongWorkTest, AVersionIsNotLookedForByItsTimeWhereOthersWait) {
  ASSERT_THAT(world->Create(Request(), Text("first")), IsOk());
  const UnixMicros then = world.clock().Now();
  world.clock().Advance(std::chrono::seconds(1));
  ASSERT_THAT(world->Update(Request(), Text("second"), true), IsOk());
  const ReadLimits brief{.searches = false};
  const auto looked_for = world->documents().Get(kName, {std::nullopt, then}, brief);
  EXPECT_TRUE(DoesTakeLong(looked_for.status())) << looked_for.status();
  EXPECT_THAT(world->documents().Get(kName, {std::nullopt, then}), IsOk());
  world.clock().Advance(std::chrono::seconds(1));
  EXPECT_THAT(world->documents().Get(kName, {std::nullopt, world.clock().Now()}, brief), IsOk());
  EXPECT_THAT(world->documents().Get(kName, {1, {}}, brief), IsOk());
}

TEST_P(LongWorkTest, ALargeContentWaitsForItsTurn) {
  Answer answer;
  world->documents().Create(Brief(), Text(kLargeText), answer.Callback());
  turn_.AwaitDeferred();
  EXPECT_FALSE(answer.ready());
  while (!answer.ready()) turn_.RunAll();
  EXPECT_THAT(answer.Wait(), IsOk());
  EXPECT_EQ(Newest(), 1);
}

TEST_P(LongWorkTest, WhereNobodyIsKnownToWaitTheExecutorDoesIt) {
  ASSERT_THAT(world->Create(Request(), Text(kLargeText)), IsOk());
  WriteRequest request = Brief();
  request.waiter = nullptr;
  EXPECT_THAT(world->Update(request, Increment("/n", 1)), IsOk());
  EXPECT_EQ(Newest(), 2);
}

TEST_P(LongWorkTest, AWriteThatGetsNoTurnIsRefusedAndHoldsUpNobody) {
  ASSERT_THAT(world->Create(Request(), Text(kLargeText)), IsOk());
  turn_.RefuseAll();
  Answer refused;
  world->documents().Update(Brief(), Increment("/n", 1), false, refused.Callback());
  EXPECT_THAT(refused.Wait(), HasReason(ErrorReason::kOverloaded));
  EXPECT_EQ(Newest(), 1);
  EXPECT_THAT(world->Update(Request(), Increment("/n", 1)), IsOk());
  EXPECT_EQ(Newest(), 2);
}

// Others that came meanwhile are decided in the same turn.
TEST_P(LongWorkTest, WritesThatWaitTogetherTakeTheirOrder) {
  ASSERT_THAT(world->Create(Request(), Text(kLargeText)), IsOk());
  std::deque<Answer> answers(5);
  for (Answer& answer : answers) {
    world->documents().Update(Brief(), Increment("/n", 1), false, answer.Callback());
  }
  turn_.AwaitDeferred();
  int64_t version = 1;
  for (Answer& answer : answers) {
    while (!answer.ready()) turn_.RunAll();
    ASSERT_THAT(answer.Wait(), IsOk());
    EXPECT_EQ(answer.Wait()->version.header.version, ++version);
  }
}

// What else the first of them waits for is not what the others wait for.
TEST_P(LongWorkTest, WritesThatWaitTogetherGoOnInTheFirstTurnOfAny) {
  ASSERT_THAT(world->Create(Request(), Text(kLargeText)), IsOk());
  Turn other;
  std::deque<Answer> answers(3);
  for (Answer& answer : answers) {
    WriteRequest request = Brief();
    if (&answer != &answers.front()) request.waiter = &other;
    world->documents().Update(request, Increment("/n", 1), false, answer.Callback());
  }
  turn_.AwaitDeferred();
  other.AwaitDeferred();
  EXPECT_EQ(other.deferred(), 1u);  // for both
  int64_t version = 1;
  for (Answer& answer : answers) {
    while (!answer.ready()) other.RunAll();
    ASSERT_THAT(answer.Wait(), IsOk());
    EXPECT_EQ(answer.Wait()->version.header.version, ++version);
  }
  turn_.RunAll();  // finds nothing to do
  EXPECT_EQ(Newest(), 4);
}

TEST_P(LongWorkTest, WritesThatCameBeforeTheFirstTurnedOutToTakeLongGetTheirTurnsToo) {
  ASSERT_THAT(world->Create(Request(), Text("small")), IsOk());
  Turn other;
  Answer first;
  Answer second;
  bool came = false;
  world->documents().Modify(
      Brief(),
      [&](const CurrentState& current) -> absl::StatusOr<Mutation> {
        if (!current.brief) return Mutation{VersionKind::kUpdated, Text("first")};
        if (!std::exchange(came, true)) {
          WriteRequest request = Brief();
          request.waiter = &other;
          world->documents().Update(request, Text("second"), false, second.Callback());
        }
        return TakesLong();
      },
      first.Callback());
  other.AwaitDeferred();
  while (!first.ready() || !second.ready()) other.RunAll();
  EXPECT_THAT(first.Wait(), IsOk());
  EXPECT_THAT(second.Wait(), IsOk());
  EXPECT_EQ(Newest(), 3);
}

// It is done in another's.
TEST_P(LongWorkTest, AWriteThatGetsNoTurnBesideOthersIsNotRefused) {
  ASSERT_THAT(world->Create(Request(), Text(kLargeText)), IsOk());
  Turn other;
  other.RefuseAll();
  std::deque<Answer> answers(3);
  for (Answer& answer : answers) {
    WriteRequest request = Brief();
    if (&answer == &answers[1]) request.waiter = &other;
    world->documents().Update(request, Increment("/n", 1), false, answer.Callback());
    turn_.AwaitDeferred();
  }
  for (Answer& answer : answers) {
    while (!answer.ready()) turn_.RunAll();
    EXPECT_THAT(answer.Wait(), IsOk());
  }
  EXPECT_EQ(Newest(), 4);
}

TEST_P(LongWorkTest, AWriteThatMayTakeLongDoesWhatWaits) {
  ASSERT_THAT(world->Create(Request(), Text(kLargeText)), IsOk());
  Answer waiting;
  world->documents().Update(Brief(), Increment("/n", 1), false, waiting.Callback());
  turn_.AwaitDeferred();
  WriteRequest request = Request();
  Turn other;
  request.waiter = &other;
  Answer answer;
  world->documents().Update(request, Increment("/n", 1), false, answer.Callback());
  while (!waiting.ready() || !answer.ready()) other.RunAll();
  EXPECT_THAT(waiting.Wait(), IsOk());
  EXPECT_THAT(answer.Wait(), IsOk());
  EXPECT_EQ(Newest(), 3);
}

TEST_P(LongWorkTest, AWriteWhoseCallerIsGoneDecidesNothing) {
  ASSERT_THAT(world->Create(Request(), Text(kLargeText)), IsOk());
  int asked = 0;
  Answer answer;
  world->documents().Modify(
      Brief(),
      [&](const CurrentState& current) -> absl::StatusOr<Mutation> {
        ++asked;
        return Mutation{VersionKind::kUpdated, *current.version->content};
      },
      answer.Callback());
  turn_.AwaitDeferred();
  turn_.LeaveAfter(0);
  turn_.RunAll();
  EXPECT_THAT(answer.Wait(), HasReason(ErrorReason::kDeadlineExceeded));
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(Newest(), 1);
}

TEST_P(LongWorkTest, APreconditionEndsWithItsCaller) {
  ASSERT_THAT(world->Create(Request(), Text(kLargeText)), IsOk());
  WriteRequest request = Request();
  request.waiter = &turn_;
  request.precondition.filter = TextMatches("no such text");
  EXPECT_THAT(UpdateInTurn(request), HasReason(ErrorReason::kFilterNotMatched));
  request.precondition.filter = TextMatches("x");
  turn_.LeaveAfter(1);  // when it begins
  EXPECT_THAT(UpdateInTurn(request), HasReason(ErrorReason::kDeadlineExceeded));
  EXPECT_EQ(Newest(), 1);
}

TEST_P(LongWorkTest, AReadSaysThatItTakesLong) {
  ASSERT_THAT(world->Create(Request(), Text(kLargeText)), IsOk());
  ASSERT_THAT(world->Update(Request(), Text("small")), IsOk());
  const ReadLimits brief{.document_bytes_max = kBriefDocumentBytesMax};
  const auto old = world->documents().Get(kName, {1, {}}, brief);
  EXPECT_TRUE(DoesTakeLong(old.status())) << old.status();
  EXPECT_THAT(world->documents().Get(kName, {1, {}}), IsOk());
}

STRATA_ALL_COMBINATIONS(LongWorkTest);

// A version costs what lies between it and its keyframe.
class LongChainTest : public ::testing::Test {
 protected:
  static constexpr int kVersions = 300;

  void SetUp() override {
    std::atomic<bool> done = false;
    world_->documents().collections().Create(
        "things", *FindStrategy("deltas"), {{"keyframe_interval", 1000}},
        Collections::Deadline::max(), [&](const absl::StatusOr<CollectionPtr>& result) {
          EXPECT_THAT(result, IsOk());
          done = true;
        });
    while (!done) std::this_thread::yield();
    ASSERT_THAT(world_->Create(Request(), Text(std::string(20'000, 'x'))), IsOk());
    for (int i = 1; i < kVersions; ++i) {
      ASSERT_THAT(world_->Update(Request(), Increment("/n", 1)), IsOk());
    }
  }

  World world_;
};

TEST_F(LongChainTest, IsNotRebuiltWhereOthersWait) {
  const ReadLimits brief{.document_bytes_max = kBriefDocumentBytesMax,
                         .rebuilt_bytes_max = kBriefRebuiltBytesMax};
  EXPECT_THAT(world_->documents().Get(kName, {}, brief), IsOk());
  EXPECT_THAT(world_->documents().Get(kName, {2, {}}, brief), IsOk());
  const At old{kVersions - 1, {}};
  const auto brief_read = world_->documents().Get(kName, old, brief);
  EXPECT_TRUE(DoesTakeLong(brief_read.status())) << brief_read.status();
  EXPECT_THAT(world_->documents().Get(kName, old), IsOk());
}

TEST_F(LongChainTest, IsRebuiltOnlyAsLongAsSomebodyWaits) {
  int links = 0;
  const ReadLimits stopping{.stopped = [&] { return ++links == 10; }};
  EXPECT_THAT(world_->documents().Get(kName, {kVersions - 1, {}}, stopping),
              HasReason(ErrorReason::kCancelled));
  EXPECT_EQ(links, 10);
}

TEST_F(LongChainTest, IsRestoredInItsTurn) {
  Turn turn;
  WriteRequest request = Request();
  request.waiter = &turn;
  request.brief = true;
  Answer answer;
  world_->documents().Restore(request, kVersions - 1, answer.Callback());
  turn.AwaitDeferred();
  while (!answer.ready()) turn.RunAll();
  EXPECT_THAT(answer.Wait(), IsOk());
}

}  // namespace
}  // namespace strata::versioning::testing
