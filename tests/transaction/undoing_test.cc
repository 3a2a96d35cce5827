// That a transaction which is cancelled can always be undone, and exactly: room, full disks, and
// what a document says afterwards, in every layout.
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "schemas/base/error.h"
#include "schemas/transaction/evaluation.h"
#include "schemas/transaction/two_phase.h"
#include "tests/support/hooked_store.h"
#include "tests/support/seeded_entropy.h"
#include "tests/transaction/transactions_world.h"

namespace strata::transaction::testing {
namespace {

using versioning::testing::Request;
using versioning::testing::Text;

std::string Large(char letter) { return std::string(1'900'000, letter); }

class RoomTest : public TransactionsTest {
 protected:
  RoomTest() : TransactionsTest("embedded-history") {}

  // Until one more such version has no room.
  void Fill(const std::string& id) {
    char letter = 'a';
    while (world->Update(Request(id), Text(Large(letter++)), true).ok()) {
    }
  }
  // A small document that has about so much room left.
  void FillUpTo(int64_t room, const std::string& id) {
    Fill(id);
    const auto refused = world->Update(Request(id), Text(Large('z')));
    const auto number = [&](const char* name) {
      return std::stoll(MetadataOf(refused.status(), name).value());
    };
    const int64_t fits = static_cast<int64_t>(Large('z').size()) - number("size") + number("limit");
    ASSERT_GT(fits, room);
    ASSERT_TRUE(
        world->Update(Request(id), Text(std::string(static_cast<size_t>(fits - room), 'z'))).ok());
    ASSERT_TRUE(world->Update(Request(id), Number(1)).ok());
  }
  // As much as a change may say.
  static versioning::ChangeInfo LargeChange() {
    versioning::ChangeInfo change = By(std::string(256, 'a'), std::string(1'024, 'r'));
    change.on_behalf_of.assign(256, 'b');
    for (int i = 0; i < 32; ++i) {
      std::string name = std::to_string(100 + i);
      name.resize(128, 'n');
      change.labels[name] = std::string(256, 'v');
    }
    return change;
  }
  void ExpectCanBeCancelled(const CommitRequest& request) {
    LeaveAfter(HoldAfter::kFirstSlot, request);
    TransactingProcess process = Start();
    const auto cancelled =
        process.Cancel(request.request_id, By(std::string(256, 'c'), std::string(1'024, 'd')));
    ASSERT_TRUE(cancelled.ok()) << cancelled.status();
    EXPECT_EQ(cancelled->record.status, TransactionStatus::kCancelled);
  }
};
STRATA_ALL_GROUNDS(RoomTest);

TEST_P(RoomTest, NothingIsDoneThatCouldNotBeUndone) {
  Create({"a", "z"});
  Fill("full");
  TransactingProcess process = Start();
  const auto before = Stored();
  const auto refused = process.Commit(InTwoPhases({Add("a", 1), Write("full", 1)}, "id"));
  EXPECT_EQ(ReasonOf(refused.status()), ErrorReason::kLayoutLimit) << refused.status();
  EXPECT_EQ(MetadataOf(refused.status(), "index"), "1");
  EXPECT_EQ(Stored(), before);
  // What is only read is held by a version that has to fit as well.
  CommitRequest reading = InTwoPhases({Add("a", 1)}, "id");
  reading.reads.push_back({{"things", "full"}, Get("full")->header.version});
  const auto held = process.Commit(reading);
  EXPECT_EQ(ReasonOf(held.status()), ErrorReason::kLayoutLimit);
  EXPECT_EQ(MetadataOf(held.status(), "field"), "reads[0]");
  EXPECT_EQ(Stored(), before);
  // Its own version would fit.
  EXPECT_TRUE(world->Update(Request("full"), Number(1)).ok());
}

// The undoing says who asked for the transaction, and for what, as its versions do.
TEST_P(RoomTest, TheLargestChangeThatIsAdmittedCanBeUndone) {
  Create({"z"});
  FillUpTo(40'000, "full");
  TransactingProcess process = Start();
  const auto request = [&](size_t size) {
    CommitRequest made = InTwoPhases({Add("z", 1), Add("full", 1)}, std::string(128, 'i'));
    made.writes.back().what = Update{Text(std::string(size, 't')), false};
    made.change = LargeChange();
    return made;
  };
  size_t fits = 0;
  size_t too_large = 50'000;
  while (fits + 1 < too_large) {
    const size_t middle = (fits + too_large) / 2;
    CommitRequest asked = request(middle);
    asked.validate_only = true;
    const auto answer = process.Commit(asked);
    if (!answer.ok()) {
      ASSERT_EQ(ReasonOf(answer.status()), ErrorReason::kLayoutLimit);
    }
    (answer.ok() ? fits : too_large) = middle;
  }
  EXPECT_GT(fits, 20'000u);
  ExpectCanBeCancelled(request(fits));
  EXPECT_EQ(Get("full")->content, Number(1));
}

TEST_P(RoomTest, WhatIsOnlyReadHasRoomForTheWholeChangeTwice) {
  Create({"z"});
  FillUpTo(48'000, "full");
  int admitted = 0;
  for (int i = 0; i < 10; ++i) {
    CommitRequest request = InTwoPhases({Add("z", 1)}, "id-" + std::to_string(i));
    request.reads.push_back({{"things", "full"}, Get("full")->header.version});
    request.change = LargeChange();
    CommitRequest asked = request;
    asked.validate_only = true;
    TransactingProcess process = Start();
    const auto answer = process.Commit(asked);
    if (!answer.ok()) {
      EXPECT_EQ(ReasonOf(answer.status()), ErrorReason::kLayoutLimit);
      break;
    }
    ++admitted;
    ExpectCanBeCancelled(request);
  }
  EXPECT_EQ(admitted, 1);
}

TEST_P(RoomTest, DocumentsThatAreTooLargeTogetherAreNotEvenRead) {
  Create({"a"});
  for (const char* const id : {"b", "c"}) {
    ASSERT_TRUE(world->Create(Request(id), Text(Large('b'))).ok());
  }
  test_support::InlineExecutor executor;
  test_support::SeededEntropy entropy(3);
  versioning::DocumentsOptions few;
  few.write.unit_bytes_max = 3'000'000;
  const auto process = world.Another();
  versioning::Documents documents(process->store(), world.clock(), entropy, executor, few);
  Transactions transactions(process->store(), documents, world.clock(), entropy, executor, {});
  const auto commit = [&](CommitRequest request) {
    std::optional<absl::StatusOr<Committed>> answer;
    transactions.Commit(std::move(request), [&](auto done) { answer = std::move(done); });
    return answer.value_or(absl::UnknownError("no answer"));
  };
  for (const TransactionMode mode : {TransactionMode::kTwoPhase, TransactionMode::kOneCommit}) {
    if (mode == TransactionMode::kOneCommit && GetParam() != Mode::kAtomic) continue;
    CommitRequest request = InTwoPhases({Write("a", 1), Write("b", 1), Write("c", 1)});
    request.mode = mode;
    const auto before = Stored();
    const auto refused = commit(request);
    EXPECT_EQ(ReasonOf(refused.status()), ErrorReason::kLayoutLimit) << refused.status();
    EXPECT_EQ(MetadataOf(refused.status(), "index"), "2");
    EXPECT_EQ(MetadataOf(refused.status(), "limit"), "3000000");
    EXPECT_EQ(Stored(), before);
    // Nor may they become so.
    request.writes = {Write("a", 1), Write("d", 1), Write("e", 1)};
    for (size_t i = 1; i < 3; ++i) request.writes[i].what = Update{Text(Large('d')), true};
    EXPECT_EQ(MetadataOf(commit(request).status(), "index"), "2");
    EXPECT_EQ(Stored(), before);
    request.writes.pop_back();
    request.validate_only = true;
    EXPECT_TRUE(commit(request).ok());
  }
  // What was done before they were so large is answered as done.
  for (const TransactionMode mode : {TransactionMode::kTwoPhase, TransactionMode::kOneCommit}) {
    if (mode == TransactionMode::kOneCommit && GetParam() != Mode::kAtomic) continue;
    CommitRequest repeated = InTwoPhases({Write("b", 5), Write("c", 5)}, "id-of-one");
    repeated.mode = mode;
    if (mode == TransactionMode::kTwoPhase) repeated.request_id = "id-of-two";
    TransactingProcess unlimited = Start();
    ASSERT_TRUE(unlimited.Commit(repeated).ok());
    for (const char* const id : {"b", "c"}) {
      ASSERT_TRUE(world->Update(Request(id), Text(Large('b'))).ok());
    }
    const auto answered = commit(repeated);
    ASSERT_TRUE(answered.ok()) << answered.status();
    EXPECT_TRUE(answered->replayed);
    EXPECT_EQ(answered->results.size(), 2u);
  }
}

class FullDiskTest : public TransactionsTest {};
STRATA_ALL_GROUNDS(FullDiskTest);

TEST_P(FullDiskTest, WhatWasBegunIsCancelledAllTheSame) {
  Create({"a", "b"});
  LeaveAfter(HoldAfter::kFirstSlot, InTwoPhases({Add("a", 1), Add("b", 1)}, "left"));
  test_support::HookedStore full(world.engine());
  test_support::StoreHooks hooks;
  hooks.instead_of_commit =
      [](const store::WriteBatch& batch) -> std::optional<store::CommitResult> {
    if (batch.removal()) return std::nullopt;
    return store::CommitResult{.status = Error(ErrorReason::kDiskFull, "no room")};
  };
  full.set_hooks(hooks);
  test_support::InlineExecutor executor;
  test_support::SeededEntropy entropy(3);
  versioning::Documents documents(full, world.clock(), entropy, executor, {});
  Transactions transactions(full, documents, world.clock(), entropy, executor, {});
  std::optional<absl::StatusOr<Transaction>> cancelled;
  transactions.Cancel("left", {}, Deadline::max(), [&](auto done) { cancelled = std::move(done); });
  ASSERT_TRUE(cancelled.has_value());
  ASSERT_TRUE(cancelled->ok()) << cancelled->status();
  EXPECT_EQ((*cancelled)->record.status, TransactionStatus::kCancelled);
  EXPECT_EQ(NumberIn("a"), 1);
}

class DeletedCollectionTest : public TransactionsTest {};
STRATA_ALL_GROUNDS(DeletedCollectionTest);

// When all slots are filled, and it is not applied yet.
TEST_P(DeletedCollectionTest, NothingTakesEffectThatIsPartlyGone) {
  Create({"a"});
  versioning::WriteRequest make = Request("x");
  make.name.collection = "others";
  ASSERT_TRUE(world->Create(make, Number(1)).ok());
  const auto delete_it = [&] {
    std::promise<bool> deleted;
    world->documents().collections().Delete(
        {.name = "others", .force = true},
        [&](const auto& answer) { deleted.set_value(answer.ok()); });
    EXPECT_TRUE(deleted.get_future().get());
  };
  const auto another = world.Another();
  test_support::HookedStore hooked(another->store());
  int commits = 0;
  test_support::StoreHooks hooks;
  // Begun, pending, two slots, applied.
  hooks.before_commit = [&](const store::WriteBatch&) {
    if (++commits == 5 && GetParam() == Mode::kAtomic) delete_it();
  };
  hooks.before_get = [&](store::Keyspace keyspace, std::string_view key) {
    if (keyspace != store::Keyspace::kCollections || key != "others") return;
    if (commits != 4 || GetParam() != Mode::kSingle) return;
    ++commits;
    delete_it();
  };
  hooked.set_hooks(hooks);
  test_support::InlineExecutor executor;
  test_support::SeededEntropy entropy(3);
  versioning::Documents documents(hooked, world.clock(), entropy, executor, {});
  Transactions transactions(hooked, documents, world.clock(), entropy, executor, {});
  CommitRequest request = InTwoPhases({Add("a", 1), Add("x", 1)}, "id");
  request.writes.back().name.collection = "others";
  request.max_attempts = 1;
  std::optional<absl::StatusOr<Committed>> answer;
  transactions.Commit(request, [&](auto done) { answer = std::move(done); });
  ASSERT_TRUE(answer.has_value());
  EXPECT_GE(commits, 5);
  EXPECT_FALSE(answer->ok());
  const auto ended = transactions.Get("id");
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->record.status, TransactionStatus::kCancelled);
  EXPECT_EQ(ended->record.cause, "the collection of others/x was deleted");
  EXPECT_EQ(NumberIn("a"), 1);
}

// All that is found wrong.
std::string FindingsOf(versioning::Verification verification) {
  std::string all;
  for (bool complete = false; !complete;) {
    const auto step = verification.Next();
    if (!step.ok()) return std::string(step.status().message());
    for (const versioning::Finding& finding : step->findings) {
      all += finding.id + "@" + std::to_string(finding.version) + ": " + finding.problem + "\n";
    }
    complete = step->complete;
  }
  return all;
}

// All strategies, with and without atomic batches.
class UndoingTest : public ::testing::TestWithParam<std::string_view> {};

// What was there before is there again, with the time of its creation.
TEST_P(UndoingTest, GivesBackTheDocumentAsItWas) {
  for (const Mode mode : {Mode::kAtomic, Mode::kSingle}) {
    World world({.engine = "memory", .mode = mode, .strategy = GetParam()});
    const auto number_request = [](const char* id) { return Request(id); };
    ASSERT_TRUE(world->Create(number_request("live"), Number(1)).ok());
    ASSERT_TRUE(world->Update(number_request("live"), Number(2)).ok());
    ASSERT_TRUE(world->Create(number_request("gone"), Number(1)).ok());
    ASSERT_TRUE(world->Delete(number_request("gone")).ok());
    ASSERT_TRUE(world->Create(number_request("last"), Number(1)).ok());
    const auto was = [&](const char* id) {
      return world->History({"things", id}).value().front().header;
    };
    const versioning::VersionHeader live = was("live");
    const versioning::VersionHeader gone = was("gone");

    CommitRequest request;
    request.mode = TransactionMode::kTwoPhase;
    request.request_id = "id";
    const auto add = [&](const char* id, auto what) {
      Operation& operation = request.writes.emplace_back();
      operation.name = {"things", id};
      operation.what = std::move(what);
    };
    add("gone", transaction::Create{Number(5)});
    add("live", transaction::Delete{});
    add("never", transaction::Create{Number(5)});
    add("z", transaction::Create{Number(5)});
    {
      // All slots but the last are its own, and that one is another's.
      TransactionsOptions options;
      options.hold_after = HoldAfter::kPending;
      TransactingProcess held(world.Another(), world.clock(), options);
      ASSERT_EQ(ReasonOf(held.Commit(request).status()), ErrorReason::kOutcomeUnknown);
    }
    ASSERT_TRUE(world->Create(number_request("z"), Number(7)).ok());
    TransactingProcess process(world.Another(), world.clock());
    const auto ended = process.Resume("id");
    ASSERT_TRUE(ended.ok()) << ended.status();
    ASSERT_EQ(ended->record.status, TransactionStatus::kCancelled);

    EXPECT_EQ(was("live").mark, versioning::VersionMark::kUndone);
    EXPECT_EQ(was("live").create_time, live.create_time);
    EXPECT_EQ(was("gone").create_time, gone.create_time);
    EXPECT_EQ(was("gone").kind, versioning::VersionKind::kDeleted);
    EXPECT_EQ(was("never").kind, versioning::VersionKind::kDeleted);
    ASSERT_TRUE(world->Update(number_request("live"), Number(3)).ok());
    EXPECT_EQ(was("live").create_time, live.create_time);
    EXPECT_EQ(FindingsOf(world->documents().Verify({.collection = "things", .id = ""})), "")
        << ModeName(mode);
  }
}
INSTANTIATE_TEST_SUITE_P(Strategies, UndoingTest,
                         ::testing::Values("full-copies", "current-flag", "shadow-collection",
                                           "embedded-history", "deltas"),
                         [](const auto& strategy) {
                           std::string name(strategy.param);
                           for (char& letter : name) letter = letter == '-' ? '_' : letter;
                           return name;
                         });

// Without snapshots, what was undecided when it was read may be settled a moment later.
TEST(Evaluation, NeverStandsOnAVersionThatWasUndoneSinceItWasRead) {
  World world({.engine = "memory", .mode = Mode::kSingle, .strategy = "deltas"});
  for (const char* const id : {"a", "b"}) {
    ASSERT_TRUE(world->Create(Request(id), Number(1)).ok());
  }
  const auto write = [](const char* id) {
    Operation operation;
    operation.name = {"things", id};
    operation.what = Update{versioning::testing::Increment("/n", 1), false};
    return operation;
  };
  {
    TransactionsOptions options;
    options.hold_after = HoldAfter::kFirstSlot;
    TransactingProcess held(world.Another(), world.clock(), options);
    CommitRequest request;
    request.mode = TransactionMode::kTwoPhase;
    request.request_id = "left";
    request.writes = {write("a"), write("b")};
    ASSERT_FALSE(held.Commit(request).ok());
  }
  TransactingProcess other(world.Another(), world.clock());
  bool cancelled = false;
  world->single().set_hooks({.before_get =
                                 [&](store::Keyspace keyspace, std::string_view) {
                                   if (keyspace != store::Keyspace::kTransactions || cancelled) {
                                     return;
                                   }
                                   cancelled = true;
                                   EXPECT_TRUE(other.Cancel("left").ok());
                                 },
                             .before_scan = nullptr,
                             .before_write = nullptr});
  const auto evaluation =
      Evaluate(world->store(), world->documents(), world.clock(), {write("a")}, {}, {}, {});
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_TRUE(cancelled);
  EXPECT_EQ(evaluation->undecided, "");
  ASSERT_EQ(evaluation->participants.size(), 1u);
  EXPECT_EQ(evaluation->participants.front().base, 3);
  EXPECT_EQ(evaluation->results.front().version.content, Number(2));
}

}  // namespace
}  // namespace strata::transaction::testing
