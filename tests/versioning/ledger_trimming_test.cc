// Trimming takes what is old from the ledger and nothing else, whoever writes, reads or dies
// meanwhile; what is left proves itself as before.
#include "schemas/versioning/ledger_trimming.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/store/key_codec.h"
#include "schemas/versioning/ledger.h"
#include "tests/support/hooked_store.h"
#include "tests/versioning/verify_world.h"

namespace strata::versioning::testing {
namespace {

using std::chrono::hours;
using store::CommitPosition;
using store::Keyspace;
using test_support::HasReason;
using test_support::HookedStore;
using test_support::IsOk;
using test_support::StoreHooks;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr hours kDay{24};

// The ends of the ledger's blocks, upward.
std::vector<store::LedgerBlockHeader> Blocks(const store::Reader& reader) {
  std::vector<store::LedgerBlockHeader> blocks;
  LedgerBlocks walk(reader, 0);
  for (; walk.Valid(); walk.Next()) {
    EXPECT_TRUE(walk.header());
    blocks.push_back(*walk.header());
  }
  EXPECT_THAT(walk.status(), IsOk());
  return blocks;
}

// One document of which a version was written each day: ten blocks.
class LedgerTrimmingTest : public ::testing::TestWithParam<engines::Engine> {
 protected:
  LedgerTrimmingTest() : world_({.engine = GetParam().name}) {
    for (int day = 0; day < 10; ++day) {
      EXPECT_THAT(world_->Update(Request(), Number(day), /*allow_missing=*/true), IsOk());
      world_.clock().Advance(kDay);
    }
    blocks_ = Blocks(world_.engine());
    EXPECT_THAT(blocks_, SizeIs(10));
  }

  store::Store& store() { return world_.engine(); }
  LedgerFloor Floor() { return *ReadLedgerFloor(store()); }

  // Leaves `days` of the ten.
  absl::Status Trim(int days, store::Store& through, size_t chunk = 1000) {
    // The newest is a day old.
    LedgerTrimmer trimmer(through, world_.clock(), days * kDay + hours(12), holders_, chunk);
    return trimmer.Trim();
  }
  absl::Status Trim(int days) { return Trim(days, store()); }

  void ExpectFloor(size_t block) {
    const LedgerFloor floor = Floor();
    EXPECT_EQ(floor.position, blocks_[block].first);
    EXPECT_EQ(floor.trimmed, blocks_[block - 1].tail.last);
    EXPECT_EQ(floor.hash, blocks_[block - 1].tail.hash);
  }

  absl::StatusOr<Verified> Check(std::string_view collection, std::optional<LedgerHead> head = {},
                                 VerifyPlace place = {}) {
    VerifyQuery query;
    query.collection = collection;
    query.expect_head = head;
    return Verify(store(), world_->documents().collections(), world_.clock(), query,
                  std::move(place));
  }
  // What is left proves itself, and nothing that went is missed.
  void ExpectWhole() {
    const auto verified = Check("things");
    ASSERT_THAT(verified, IsOk());
    EXPECT_THAT(verified->findings, IsEmpty());
    EXPECT_EQ(verified->last.versions, 10);
    const auto rows = Audited({});
    ASSERT_THAT(rows, IsOk());
    for (const AuditRow& row : *rows) EXPECT_GE(row.place.position, Floor().position);
    AuditQuery one;
    one.collection = "things";
    one.id = "a";
    const auto versions = Audited(one);
    ASSERT_THAT(versions, IsOk());
    ASSERT_THAT(*versions, SizeIs(10));
    for (size_t i = 0; i < versions->size(); ++i) {
      EXPECT_EQ((*versions)[i].place.position, blocks_[i].first);
      EXPECT_EQ((*versions)[i].place.index, 0u);
    }
  }
  absl::StatusOr<std::vector<AuditRow>> Audited(AuditQuery query) {
    std::vector<AuditRow> rows;
    AuditCursor cursor = world_->documents().Audit(std::move(query));
    while (cursor.Next()) rows.push_back(cursor.row());
    if (!cursor.status().ok()) return cursor.status();
    return rows;
  }

  World world_;
  FloorHolders holders_;
  std::vector<store::LedgerBlockHeader> blocks_;
};

TEST_P(LedgerTrimmingTest, WhatIsOlderGoesAndTheNewestBlockStays) {
  const LedgerHead head = *world_->documents().GetLedgerHead();
  ASSERT_THAT(Trim(10), IsOk());
  EXPECT_THAT(Blocks(store()), SizeIs(10));
  EXPECT_EQ(Floor().stamp, 0);
  ASSERT_THAT(Trim(7), IsOk());
  EXPECT_THAT(Blocks(store()), SizeIs(7));
  ExpectFloor(3);
  ExpectWhole();
  // Nothing to do is done without a commit.
  const CommitPosition last = store().LastPosition();
  ASSERT_THAT(Trim(7), IsOk());
  ASSERT_THAT(Trim(9), IsOk());
  EXPECT_EQ(store().LastPosition(), last);
  ExpectFloor(3);
  ASSERT_THAT(Trim(0), IsOk());
  EXPECT_THAT(Blocks(store()), SizeIs(1));
  ExpectFloor(9);
  ExpectWhole();
  EXPECT_EQ(*world_->documents().GetLedgerHead(), head);
}

TEST_P(LedgerTrimmingTest, AClockThatJumpsAheadTrimsNothing) {
  LedgerTrimmer trimmer(store(), world_.clock(), 30 * kDay, holders_);
  ASSERT_THAT(trimmer.Trim(), IsOk());
  world_.clock().SetNow(world_.clock().Now() + std::chrono::microseconds(365 * kDay).count());
  ASSERT_THAT(trimmer.Trim(), IsOk());
  EXPECT_THAT(Blocks(store()), SizeIs(10));
}

TEST_P(LedgerTrimmingTest, WhatAHolderNeedsStays) {
  CommitPosition needed = blocks_[6].first;
  absl::Status failure;
  holders_.Add([](const store::Reader&) { return std::nullopt; });
  holders_.Add([&](const store::Reader&) -> absl::StatusOr<std::optional<FloorHolder>> {
    if (!failure.ok()) return failure;
    return FloorHolder{needed, "subscription/mail"};
  });
  holders_.Add([&](const store::Reader&) { return FloorHolder{blocks_[8].first, "view/all"}; });
  EXPECT_EQ((*holders_.Lowest(store()))->name, "subscription/mail");
  failure = Error(ErrorReason::kStoreUnavailable, "cannot be asked");
  EXPECT_THAT(Trim(1), HasReason(ErrorReason::kStoreUnavailable));
  EXPECT_THAT(Blocks(store()), SizeIs(10));
  failure = absl::OkStatus();
  ASSERT_THAT(Trim(1), IsOk());
  ExpectFloor(6);
  EXPECT_THAT(Blocks(store()), SizeIs(4));
  // Behind the last commit of a block nothing of that block is needed.
  needed = blocks_[7].tail.last + 1;
  ASSERT_THAT(Trim(1), IsOk());
  ExpectFloor(8);
  needed = blocks_[2].first;
  ASSERT_THAT(Trim(0), IsOk());
  ExpectFloor(8);
}

TEST_P(LedgerTrimmingTest, AHolderThatComesMeanwhileAndTheFloorDoNotPassEachOther) {
  const auto add_holder = [&](const LedgerFloor& read) {
    store::WriteBatch batch;
    batch.Put(Keyspace::kFeed, "test/holder", document::BsonBuilder().Take());
    AddFloorHolder(read, batch);
    return test_support::AwaitCommit(store(), std::move(batch)).committed;
  };
  const LedgerFloor before = Floor();
  for (int round = 0; round < 2; ++round) {  // the record is not there yet, and then it is
    HookedStore hooked(store());
    StoreHooks hooks;
    hooks.before_commit = [&](const store::WriteBatch&) { EXPECT_TRUE(add_holder(before)); };
    hooked.set_hooks(hooks);
    ASSERT_THAT(Trim(5, hooked), IsOk());
    EXPECT_EQ(Floor().stamp, 0);
    EXPECT_THAT(Blocks(store()), SizeIs(10));
  }
  ASSERT_THAT(Trim(5), IsOk());
  ExpectFloor(5);
  EXPECT_FALSE(add_holder(before));
  EXPECT_TRUE(add_holder(Floor()));
  const LedgerFloor first = Floor();
  ASSERT_THAT(Trim(3), IsOk());
  EXPECT_FALSE(add_holder(first));
}

// Dies before and after each of its commits in turn, and another one goes on.
TEST_P(LedgerTrimmingTest, KilledBetweenAnyTwoStepsItIsGoneOnWith) {
  constexpr int kCommits = 1 + 4;  // the floor; seven blocks, two at a time
  for (int kill = 0; kill < 2 * kCommits; ++kill) {
    SCOPED_TRACE(kill);
    World world({.engine = GetParam().name});
    for (int day = 0; day < 10; ++day) {
      ASSERT_THAT(world->Update(Request(), Number(day), /*allow_missing=*/true), IsOk());
      world.clock().Advance(kDay);
    }
    const std::vector<store::LedgerBlockHeader> blocks = Blocks(world.engine());
    const auto trim = [&](store::Store& through) {
      LedgerTrimmer trimmer(through, world.clock(), 3 * kDay + hours(12), holders_, /*chunk=*/2);
      return trimmer.Trim();
    };
    const auto expect_whole = [&] {
      VerifyQuery query;
      query.collection = "things";
      const auto verified = Verify(world.process(), world.clock(), query);
      ASSERT_THAT(verified, IsOk());
      EXPECT_THAT(verified->findings, IsEmpty());
      AuditCursor audit = world->documents().Audit({});
      int rows = 0;
      while (audit.Next()) ++rows;
      ASSERT_THAT(audit.status(), IsOk());
      EXPECT_EQ(rows, ReadLedgerFloor(world.engine())->position == 0 ? 10 : 3);
    };
    int commits = 0;
    HookedStore hooked(world.engine());
    StoreHooks hooks;
    hooks.instead_of_commit = [&](const store::WriteBatch&) -> std::optional<store::CommitResult> {
      if (commits++ != kill / 2 || kill % 2 == 1) return std::nullopt;
      return store::CommitResult{.status = Error(ErrorReason::kStoreUnavailable, "killed")};
    };
    hooks.after_commit = [&](store::CommitResult& result) {
      if (commits != kill / 2 + 1 || kill % 2 == 0) return;
      result = {.status = Error(ErrorReason::kOutcomeUnknown, "killed")};
    };
    hooked.set_hooks(hooks);
    EXPECT_FALSE(trim(hooked).ok());
    EXPECT_EQ(commits, kill / 2 + 1);
    expect_whole();
    ASSERT_THAT(trim(world.engine()), IsOk());
    const std::vector<store::LedgerBlockHeader> left = Blocks(world.engine());
    ASSERT_THAT(left, SizeIs(3));
    EXPECT_EQ(left[0].first, blocks[7].first);
    EXPECT_EQ(ReadLedgerFloor(world.engine())->position, blocks[7].first);
    expect_whole();
  }
}

TEST_P(LedgerTrimmingTest, AWalkBelowTheFloorIsToldSo) {
  AuditQuery query;
  query.resume_at = {blocks_[4].first, 0, 0};
  ASSERT_THAT(Trim(6), IsOk());  // up to block 3
  EXPECT_THAT(*Audited(query), SizeIs(6));
  query.resume_at.position = blocks_[3].first;
  const absl::Status trimmed = Audited(query).status();
  EXPECT_THAT(trimmed, HasReason(ErrorReason::kPositionTrimmed));
  EXPECT_EQ(MetadataOf(trimmed, "field"), "page_token");
  EXPECT_EQ(MetadataOf(trimmed, "oldest"), std::to_string(blocks_[3].tail.last));
  // A time is asked for, and not a place.
  AuditQuery since;
  since.start_time = 1;
  EXPECT_THAT(*Audited(since), SizeIs(6));
  EXPECT_EQ(*FirstPositionSince(store(), 1), blocks_[3].tail.last + 1);
}

TEST_P(LedgerTrimmingTest, AHeadIsHeldAgainstWhatIsLeft) {
  ASSERT_THAT(Trim(6), IsOk());
  const auto head = [&](size_t block) {
    return LedgerHead{blocks_[block].tail.last, blocks_[block].tail.hash};
  };
  for (const std::string_view collection : {std::string_view(), std::string_view("things")}) {
    for (const size_t block : {3, 4, 9}) {
      const auto verified = Check(collection, head(block));
      ASSERT_THAT(verified, IsOk());
      EXPECT_THAT(verified->findings, IsEmpty()) << block;
    }
    const auto below = Check(collection, head(2));
    EXPECT_THAT(below, HasReason(ErrorReason::kPositionTrimmed));
    EXPECT_EQ(MetadataOf(below.status(), "field"), "expect_head.position");
    EXPECT_EQ(MetadataOf(below.status(), "oldest"), std::to_string(blocks_[3].tail.last));
    for (const size_t block : {3, 4}) {
      LedgerHead other = head(block);
      other.hash[0] ^= 1;
      const auto verified = Check(collection, other);
      ASSERT_THAT(verified, IsOk());
      ASSERT_THAT(verified->findings, SizeIs(1)) << block;
      EXPECT_EQ(verified->findings[0].kind, FindingKind::kLedgerHeadMismatch);
    }
  }
}

// A verification that stood below the floor when it was raised.
TEST_P(LedgerTrimmingTest, AVerificationThatIsOvertakenGoesOnAtTheFloor) {
  VerifyPlace place;
  place.stage = VerifyPlace::Stage::kLedger;
  place.ledger = VerifyPlace::Ledger{.last = store().LastPosition(),
                                     .next = blocks_[2].first,
                                     .before = blocks_[1].tail.hash,
                                     .head_passed = true,
                                     .entries = 2};
  const LedgerHead head{blocks_[1].tail.last, blocks_[1].tail.hash};
  ASSERT_THAT(Trim(5), IsOk());
  const auto verified = Check("", head, place);
  ASSERT_THAT(verified, IsOk());
  EXPECT_THAT(verified->findings, IsEmpty());
  EXPECT_EQ(verified->last.ledger_entries, 7);
  place.ledger->head_passed = false;
  EXPECT_THAT(Check("", head, place), HasReason(ErrorReason::kPositionTrimmed));
}

TEST_P(LedgerTrimmingTest, WhatIsChangedAboveTheFloorIsFound) {
  ASSERT_THAT(Trim(6), IsOk());
  const LedgerFloor floor = Floor();
  const auto put = [&](Keyspace keyspace, const std::string& key, std::string value) {
    store::WriteBatch batch;
    batch.Put(keyspace, key, std::move(value));
    ASSERT_TRUE(test_support::AwaitCommit(store(), std::move(batch)).committed);
  };
  const auto kinds = [&] {
    std::string found;
    const auto verified = Check("things");
    if (!verified.ok()) return std::string(verified.status().message());
    for (const Finding& finding : verified->findings) {
      found += std::string(KindName(finding.kind)) + " ";
    }
    return found;
  };
  for (const size_t block : {4, 5}) {  // the one that stands on the floor, and the next
    const std::string key = store::LedgerKey(blocks_[block].first);
    const std::string value((*store().Get(Keyspace::kLedger, key))->value);
    std::string changed = value;
    changed[value.size() - 1] ^= 1;  // of the chain hash that the entry tells
    put(Keyspace::kLedger, key, changed);
    EXPECT_THAT(kinds(), ::testing::HasSubstr("LEDGER_BROKEN")) << block;
    put(Keyspace::kLedger, key, value);
    EXPECT_EQ(kinds(), "");
    store::WriteBatch removal;
    removal.Delete(Keyspace::kLedger, key);
    ASSERT_TRUE(test_support::AwaitCommit(store(), std::move(removal)).committed);
    EXPECT_THAT(kinds(), ::testing::HasSubstr("LEDGER_ENTRY_MISSING")) << block;
    EXPECT_THAT(kinds(), ::testing::HasSubstr("LEDGER_BROKEN")) << block;
    put(Keyspace::kLedger, key, value);
  }
  // A floor that somebody raised to hide what was in between has to know the hash.
  LedgerFloor forged = floor;
  forged.position = blocks_[6].first;
  forged.trimmed = blocks_[5].tail.last;
  put(Keyspace::kFeed, std::string(kLedgerFloorKey), forged.Encode());
  EXPECT_THAT(kinds(), ::testing::HasSubstr("LEDGER_BROKEN"));
  put(Keyspace::kFeed, std::string(kLedgerFloorKey), document::BsonBuilder().Take());
  EXPECT_THAT(ReadLedgerFloor(store()), HasReason(ErrorReason::kRecordCorrupt));
}

// Readers that scan first and read the floor then miss nothing without knowing it.
TEST_P(LedgerTrimmingTest, BesideWritersAndReadersNothingIsMissed) {
  constexpr int kVersions = 150;
  constexpr auto kRetention = hours(5) + std::chrono::minutes(30);
  std::atomic<bool> written = false;
  std::thread writer([&] {
    for (int i = 0; i < kVersions; ++i) {
      EXPECT_THAT(world_->Update(Request("w"), Number(i), /*allow_missing=*/true), IsOk());
      world_.clock().Advance(hours(1));
    }
    written = true;
  });
  std::thread trimmer([&] {
    LedgerTrimmer trimming(store(), world_.clock(), kRetention, holders_, /*chunk=*/3);
    do {
      EXPECT_THAT(trimming.Trim(), IsOk());
    } while (!written);
  });
  std::thread verifier([&] {
    while (!written) {
      const auto verified = Check("things");
      ASSERT_THAT(verified, IsOk());
      EXPECT_THAT(verified->findings, IsEmpty());
    }
  });
  CommitPosition place = blocks_.back().tail.last;
  int64_t seen = 0;
  for (bool last_look = false; seen < kVersions; last_look = written) {
    LedgerCursor cursor(store(), place + 1, 0);
    std::vector<std::pair<CommitPosition, int64_t>> entries;
    while (cursor.Next()) entries.emplace_back(cursor.position(), cursor.entry().version);
    ASSERT_THAT(cursor.status(), IsOk());
    const LedgerFloor floor = Floor();
    if (place < floor.trimmed) {
      // Begins anew behind it, knowing that something is missing.
      place = floor.trimmed;
      seen = 0;
      continue;
    }
    for (const auto& [position, version] : entries) {
      EXPECT_TRUE(seen == 0 || version == seen + 1) << version << " follows " << seen;
      seen = version;
      place = position;
    }
    if (last_look) break;
  }
  EXPECT_EQ(seen, kVersions);
  writer.join();
  trimmer.join();
  verifier.join();
  LedgerTrimmer trimming(store(), world_.clock(), kRetention, holders_);
  EXPECT_THAT(trimming.Trim(), IsOk());
  EXPECT_THAT(Blocks(store()), SizeIs(5));
}

INSTANTIATE_TEST_SUITE_P(Engines, LedgerTrimmingTest, ::testing::ValuesIn(engines::AllEngines()),
                         [](const auto& engine) { return std::string(engine.param.name); });

// What comes after a restart stands on the newest block, which trimming leaves.
TEST(LedgerTrimmingOnDisk, TheLedgerGoesOnAfterARestart) {
  const test_support::TemporaryDirectory directory;
  test_support::ManualClock clock;
  clock.StepAtEachCall(std::chrono::microseconds(7));
  engines::OpenOptions open;
  open.directory = directory.path();
  open.clock = &clock;
  const WorldOptions options{.engine = "rocksdb"};
  const FloorHolders holders;
  for (int life = 0; life < 3; ++life) {
    auto store = engines::OpenEngine("rocksdb", open);
    ASSERT_THAT(store, IsOk());
    Process process(**store, options, clock);
    VerifyQuery query;
    query.collection = "things";
    for (int i = 0; i < 4; ++i) {
      ASSERT_THAT(process.Update(Request(), Number(10 * life + i), /*allow_missing=*/true), IsOk());
      clock.Advance(kDay);
    }
    const auto before = Verify(process, clock, query);
    ASSERT_THAT(before, IsOk());
    EXPECT_THAT(before->findings, IsEmpty());
    EXPECT_EQ(before->last.ledger_entries, 4 + (life > 0 ? 1 : 0));
    LedgerTrimmer trimmer(**store, clock, hours(1), holders);
    ASSERT_THAT(trimmer.Trim(), IsOk());
    EXPECT_THAT(Blocks(**store), SizeIs(1));
  }
}

}  // namespace
}  // namespace strata::versioning::testing
