// What a thief or a failing disk may do to the ledger and what belongs to it: each is found, and an
// expected head is refused for each, even when all running hashes were made right again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schemas/store/key_codec.h"
#include "schemas/versioning/ledger.h"
#include "schemas/versioning/transaction_record.h"
#include "tests/versioning/verify_world.h"

namespace strata::versioning::testing {
namespace {

using store::Keyspace;
using test_support::HasReason;
using test_support::IsOk;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Eq;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kCollection = "things";

// A block as its entries.
struct Block {
  store::CommitPosition last = 0;
  std::vector<std::pair<store::CommitPosition, std::vector<store::LedgerEntry>>> commits;
  std::string stored;  // as it was
};

// One collection under full copies, whose versions are one record each, and its ledger laid open.
class LedgerDamageTest : public ::testing::TestWithParam<engines::Engine> {
 protected:
  LedgerDamageTest() : world_({.engine = GetParam().name, .strategy = "full-copies"}) {
    for (const char* id : {"a", "b", "c"}) {
      EXPECT_THAT(world_->Create(Request(id, std::string("create-") + id), Number(1)), IsOk());
      for (int version = 2; version <= 4; ++version) {
        const std::string request = std::string(id) + "-" + std::to_string(version);
        EXPECT_THAT(world_->Update(Request(id, request), Number(version)), IsOk());
      }
    }
    incarnation_ =
        (*world_->documents().collections().Require(world_.engine(), kCollection))->incarnation;
    head_ = *world_->documents().GetLedgerHead();
    // Life goes on: what is damaged below is not the end of the ledger.
    EXPECT_THAT(world_->Create(Request("later"), Number(1)), IsOk());
  }

  absl::StatusOr<Verified> Run(std::optional<LedgerHead> head, std::string_view collection,
                               std::string_view id = "") {
    VerifyQuery query;
    query.collection = collection;
    query.id = id;
    query.expect_head = head;
    return Verify(world_.engine(), world_->documents().collections(), world_.clock(), query);
  }

  void Commit(std::string transaction_id, std::string fingerprint, const std::string& id) {
    UnitRequest unit;
    unit.transaction_id = std::move(transaction_id);
    unit.request_fingerprint = std::move(fingerprint);
    unit.changes.push_back({Request(id), [](const CurrentState&) {
                              return Mutation{VersionKind::kUpdated, Number(100)};
                            }});
    std::promise<absl::Status> answer;
    world_->documents().Commit(std::move(unit),
                               [&](const auto& result) { answer.set_value(result.status()); });
    EXPECT_THAT(answer.get_future().get(), IsOk());
  }

  void DeleteCollection(std::string_view name) {
    std::promise<absl::Status> answer;
    world_->documents().collections().Delete(
        {.name = std::string(name), .force = true},
        [&](const auto& result) { answer.set_value(result.status()); });
    EXPECT_THAT(answer.get_future().get(), IsOk());
  }

  std::vector<Block> Blocks() {
    std::vector<Block> blocks;
    for (auto cursor = world_.engine().Scan(Keyspace::kLedger, {}); cursor->Valid();
         cursor->Next()) {
      Block& block = blocks.emplace_back();
      block.stored = cursor->value();
      block.last = store::ParseLedgerBlockHeader(block.stored)->tail.last;
      store::LedgerBlockReader entries(block.stored);
      while (entries.Next()) {
        if (entries.index() == 0)
          block.commits.emplace_back(entries.position(), std::vector<store::LedgerEntry>());
        block.commits.back().second.push_back(entries.entry().ToEntry());
      }
    }
    return blocks;
  }

  // Puts these blocks in place of the ledger: as stored, or made anew with all hashes right.
  void Replace(const std::vector<Block>& blocks, bool made_right) {
    store::WriteBatch batch;
    for (auto cursor = world_.engine().Scan(Keyspace::kLedger, {}); cursor->Valid();
         cursor->Next()) {
      batch.Delete(Keyspace::kLedger, std::string(cursor->key()));
    }
    ASSERT_TRUE(test_support::AwaitCommit(world_.engine(), std::move(batch)).committed);
    store::WriteBatch puts;
    store::LedgerTail tail;
    for (const Block& block : blocks) {
      if (block.commits.empty()) continue;
      std::string value = block.stored;
      if (made_right) {
        store::LedgerBlockWriter writer(tail);
        for (const auto& [position, entries] : block.commits) writer.Add(position, entries);
        auto made = writer.Finish(block.last);
        tail = made.tail;
        value = std::move(made.value);
      }
      puts.Put(Keyspace::kLedger, store::LedgerKey(block.commits.front().first), value);
    }
    ASSERT_TRUE(test_support::AwaitCommit(world_.engine(), std::move(puts)).committed);
  }

  void Drop(Keyspace keyspace, std::string key) {
    store::WriteBatch batch;
    batch.Delete(keyspace, std::move(key));
    ASSERT_TRUE(test_support::AwaitCommit(world_.engine(), std::move(batch)).committed);
  }

  // Removes the entries of versions of `id` from `first` on.
  static std::vector<Block> Without(std::vector<Block> blocks, std::string_view id, int64_t first) {
    for (Block& block : blocks) {
      std::erase_if(block.commits, [&](const auto& commit) {
        return commit.second.front().id == id && commit.second.front().version >= first;
      });
    }
    return blocks;
  }

  World world_;
  int64_t incarnation_ = 0;
  LedgerHead head_;
};

TEST_P(LedgerDamageTest, AWholeLedgerLeadsToItsHead) {
  EXPECT_GT(head_.position, 0);
  const auto now = *world_->documents().GetLedgerHead();
  EXPECT_GT(now.position, head_.position);
  for (const LedgerHead& head : {head_, now}) {
    for (const std::string_view collection : {std::string_view(), kCollection}) {
      const auto verified = Run(head, collection);
      ASSERT_THAT(verified, IsOk());
      EXPECT_THAT(verified->findings, IsEmpty());
      EXPECT_EQ(verified->last.ledger_entries, 13);
    }
  }
  // It need not be a block's end that somebody invents.
  const auto invented = Run(LedgerHead{head_.position, Hash{}}, "");
  ASSERT_THAT(invented, IsOk());
  ASSERT_THAT(invented->findings, SizeIs(1));
  EXPECT_EQ(invented->findings[0].kind, FindingKind::kLedgerHeadMismatch);
}

struct Damage {
  const char* name;
  // The ledger as it is left; what belongs to the versions is done besides.
  std::function<std::vector<Block>(std::vector<Block>)> ledger;
};

TEST_P(LedgerDamageTest, EachIsFoundAndNoHeadIsLedTo) {
  const std::vector<Block> sound = Blocks();
  const std::vector<Damage> damages = {
      {"an entry changed",
       [](std::vector<Block> blocks) {
         blocks[2].commits[0].second[0].reason = "another";
         return blocks;
       }},
      {"an entry added",
       [](std::vector<Block> blocks) {
         blocks[2].commits[0].second.push_back(blocks[1].commits[0].second[0]);
         return blocks;
       }},
      {"a block removed",
       [](std::vector<Block> blocks) {
         blocks.erase(blocks.begin() + 2);
         return blocks;
       }},
      {"the first block removed",
       [](std::vector<Block> blocks) {
         blocks.erase(blocks.begin());
         return blocks;
       }},
      {"two blocks swapped",
       [](std::vector<Block> blocks) {
         std::swap(blocks[2].commits[0].second, blocks[4].commits[0].second);
         std::swap(blocks[2].stored, blocks[4].stored);
         return blocks;
       }},
      {"a block moved",
       [](std::vector<Block> blocks) {
         // Under the position of another commit, which had no entry.
         blocks[0].commits[0].first -= 1;
         return blocks;
       }},
      {"the newest version's entry", [](auto blocks) { return Without(blocks, "b", 4); }},
      {"a document's entries", [](auto blocks) { return Without(blocks, "b", 1); }},
      {"all up to the head",
       [this](std::vector<Block> blocks) {
         std::erase_if(blocks, [&](const Block& block) { return block.last <= head_.position; });
         return blocks;
       }},
      {"the end with the head",
       [this](std::vector<Block> blocks) {
         std::erase_if(blocks, [&](const Block& block) { return block.last >= head_.position; });
         return blocks;
       }},
  };
  std::printf("| %s | running hashes left | made right | expected head |\n|---|---|---|---|\n",
              std::string(GetParam().name).c_str());
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.name);
    std::string row = std::string("| ") + damage.name + " |";
    for (const bool made_right : {false, true}) {
      std::vector<Block> damaged = damage.ledger(sound);
      if (!made_right) {
        // The disk's own damage: blocks are as they were stored, but for what was touched.
        for (Block& block : damaged) {
          const bool touched = std::none_of(sound.begin(), sound.end(), [&](const Block& before) {
            return before.stored == block.stored && before.commits == block.commits;
          });
          if (!touched || block.commits.empty()) continue;
          store::LedgerBlockWriter writer({});
          for (const auto& [position, entries] : block.commits) writer.Add(position, entries);
          block.stored = writer.Finish(block.last).value;
        }
      }
      Replace(damaged, made_right);
      const auto alone = Run(std::nullopt, kCollection);
      ASSERT_THAT(alone, IsOk());
      row += alone->findings.empty() ? " - |"
                                     : " " + std::string(KindName(alone->findings[0].kind)) + " |";
      if (!made_right && damage.name != std::string_view("the end with the head")) {
        EXPECT_THAT(alone->findings,
                    Contains(::testing::Field(&Finding::kind, AnyOf(FindingKind::kLedgerBroken,
                                                                    FindingKind::kRecordCorrupt))));
      }
      const auto expected = Run(head_, "");
      ASSERT_THAT(expected, IsOk());
      EXPECT_THAT(expected->findings, Not(IsEmpty()));
      if (made_right) {
        EXPECT_THAT(expected->findings, Contains(::testing::Field(
                                            &Finding::kind, Eq(FindingKind::kLedgerHeadMismatch))));
        row += expected->findings.empty() ? " LOST |" : " refused |";
      }
      Replace(sound, /*made_right=*/false);
      const auto restored = Run(head_, kCollection);
      ASSERT_THAT(restored, IsOk());
      ASSERT_THAT(restored->findings, IsEmpty()) << "the test's own repair";
    }
    std::printf("%s\n", row.c_str());
  }
}

// With everything that points at it, by somebody who makes the ledger right again: nothing in the
// store tells, but the head does.
TEST_P(LedgerDamageTest, AVersionRemovedWithAllItsTracesIsMissedByTheHead) {
  Drop(Keyspace::kVersions, store::VersionKey(incarnation_, "b", 4));
  auto verified = Run(std::nullopt, kCollection);
  ASSERT_THAT(verified, IsOk());
  EXPECT_THAT(verified->findings,
              Contains(::testing::Field(&Finding::kind, Eq(FindingKind::kLedgerEntryOrphan))));
  Replace(Without(Blocks(), "b", 4), /*made_right=*/true);
  verified = Run(head_, kCollection);
  ASSERT_THAT(verified, IsOk());
  EXPECT_THAT(verified->findings,
              Contains(::testing::Field(&Finding::kind, Eq(FindingKind::kLedgerHeadMismatch))));
}

TEST_P(LedgerDamageTest, ADocumentRemovedWithAllItsTracesIsMissedByTheHead) {
  for (int64_t version = 1; version <= 4; ++version) {
    Drop(Keyspace::kVersions, store::VersionKey(incarnation_, "c", version));
    if (version == 4) continue;
    const std::string request = version == 1 ? "create-c" : "c-" + std::to_string(version);
    Drop(Keyspace::kRequests, store::RequestKey(incarnation_, "c", request));
  }
  Replace(Without(Blocks(), "c", 1), /*made_right=*/true);
  const auto verified = Run(head_, kCollection);
  ASSERT_THAT(verified, IsOk());
  EXPECT_THAT(verified->findings,
              Contains(::testing::Field(&Finding::kind, Eq(FindingKind::kLedgerHeadMismatch))));
}

TEST_P(LedgerDamageTest, ARequestRecordIsMissedWhileItHasToBeThere) {
  Drop(Keyspace::kRequests, store::RequestKey(incarnation_, "b", "b-2"));
  auto verified = Run(std::nullopt, kCollection);
  ASSERT_THAT(verified, IsOk());
  ASSERT_THAT(verified->findings, SizeIs(1));
  EXPECT_EQ(verified->findings[0].kind, FindingKind::kRequestMissing);
  EXPECT_EQ(verified->findings[0].id, "b");
  EXPECT_EQ(verified->findings[0].version, 2);
  world_.clock().Advance(std::chrono::hours(25));
  verified = Run(std::nullopt, kCollection);
  ASSERT_THAT(verified, IsOk());
  EXPECT_THAT(verified->findings, IsEmpty());
}

// What a call did not look at it does not call whole.
TEST_P(LedgerDamageTest, ADocumentThatLostItsNewestVersionIsNotWhole) {
  Drop(Keyspace::kVersions, store::VersionKey(incarnation_, "b", 4));
  for (const auto& head : {std::optional<LedgerHead>(), std::optional(head_)}) {
    const auto verified = Run(head, kCollection, "b");
    ASSERT_THAT(verified, IsOk());
    ASSERT_THAT(verified->findings, SizeIs(1));
    EXPECT_EQ(verified->findings[0].kind, FindingKind::kLedgerEntryOrphan);
    EXPECT_EQ(verified->findings[0].version, 4);
    const auto other = Run(head, kCollection, "a");
    ASSERT_THAT(other, IsOk());
    EXPECT_THAT(other->findings, IsEmpty());
    EXPECT_EQ(other->last.ledger_entries, 4);
  }
}

TEST_P(LedgerDamageTest, ADocumentThatLostAllItsRecordsIsNotUnknown) {
  for (int64_t version = 1; version <= 4; ++version) {
    Drop(Keyspace::kVersions, store::VersionKey(incarnation_, "c", version));
    if (version == 4) continue;
    const std::string request = version == 1 ? "create-c" : "c-" + std::to_string(version);
    Drop(Keyspace::kRequests, store::RequestKey(incarnation_, "c", request));
  }
  for (const auto& head : {std::optional<LedgerHead>(), std::optional(head_)}) {
    const auto verified = Run(head, kCollection, "c");
    ASSERT_THAT(verified, IsOk());
    ASSERT_THAT(verified->findings, SizeIs(4));
    for (const Finding& finding : verified->findings) {
      EXPECT_EQ(finding.kind, FindingKind::kLedgerEntryOrphan);
      EXPECT_EQ(finding.id, "c");
    }
    EXPECT_EQ(verified->last.documents, 0);
    EXPECT_THAT(Run(head, kCollection, "never"), HasReason(ErrorReason::kDocumentNotFound));
  }
}

TEST_P(LedgerDamageTest, ACollectionWithoutItsRecordIsMissed) {
  const auto is_missed = [&](const absl::StatusOr<Verified>& verified) {
    ASSERT_THAT(verified, IsOk());
    ASSERT_THAT(verified->findings, SizeIs(1));
    EXPECT_EQ(verified->findings[0].kind, FindingKind::kCollectionMissing);
    EXPECT_THAT(verified->findings[0].problem, ::testing::HasSubstr("\"things\""));
    EXPECT_GT(verified->findings[0].position, 0);
  };
  Drop(Keyspace::kCollections, std::string(kCollection));
  is_missed(Run(head_, ""));
  // Nor does a namesake stand for it.
  ASSERT_THAT(world_->Create(Request("other"), Number(1)), IsOk());
  is_missed(Run(head_, ""));
  is_missed(Run(head_, kCollection));
  is_missed(Run(std::nullopt, kCollection));
  is_missed(Run(head_, kCollection, "other"));
}

TEST_P(LedgerDamageTest, ACollectionThatWasDeletedIsNotMissed) {
  DeleteCollection(kCollection);
  for (int round = 0; round < 2; ++round) {
    ASSERT_THAT(world_->Create(Request("a"), Number(1)), IsOk());
    if (round == 0) DeleteCollection(kCollection);
  }
  for (const std::string_view collection : {"", "things"}) {
    const auto verified = Run(head_, collection);
    ASSERT_THAT(verified, IsOk());
    EXPECT_THAT(verified->findings, IsEmpty()) << collection;
  }
}

TEST_P(LedgerDamageTest, ATransactionsRecordIsMissedWhileItHasToBeThere) {
  Commit("pay-1", "fingerprint", "b");
  Commit("0123456789abcdef0123456789abcdef/0", "", "c");
  auto verified = Run(std::nullopt, kCollection);
  ASSERT_THAT(verified, IsOk());
  ASSERT_THAT(verified->findings, IsEmpty());
  Drop(Keyspace::kTransactions, TransactionKey("pay-1"));
  for (const std::string_view id : {"", "b"}) {
    verified = Run(std::nullopt, kCollection, id);
    ASSERT_THAT(verified, IsOk());
    ASSERT_THAT(verified->findings, SizeIs(1));
    EXPECT_EQ(verified->findings[0].kind, FindingKind::kRequestMissing);
    EXPECT_EQ(verified->findings[0].version, 5);
  }
  world_.clock().Advance(std::chrono::hours(25));
  verified = Run(std::nullopt, kCollection);
  ASSERT_THAT(verified, IsOk());
  EXPECT_THAT(verified->findings, IsEmpty());
}

TEST_P(LedgerDamageTest, TheLedgerAloneNeedsAHead) {
  EXPECT_THAT(Run(std::nullopt, ""), HasReason(ErrorReason::kInvalidName));
  VerifyQuery query;
  query.id = "a";
  query.expect_head = head_;
  EXPECT_THAT(Verify(world_.engine(), world_->documents().collections(), world_.clock(), query),
              HasReason(ErrorReason::kInvalidField));
}

INSTANTIATE_TEST_SUITE_P(Engines, LedgerDamageTest, ::testing::ValuesIn(EnginesWithLedger()),
                         [](const auto& engine) { return std::string(engine.param.name); });

// Times that are found without walking there.
class LedgerTimesTest : public ::testing::TestWithParam<engines::Engine> {};

TEST_P(LedgerTimesTest, ARangeOfTimesHoldsAllThatWasWrittenInItHoweverTheClockWent) {
  World world({.engine = GetParam().name});
  std::vector<std::pair<UnixMicros, std::string>> written;
  const auto write = [&](int count) {
    for (int i = 0; i < count; ++i) {
      world.clock().Advance(std::chrono::seconds(5));
      const std::string id = "d" + std::to_string(written.size());
      const auto made = world->Create(Request(id), Number(1));
      ASSERT_THAT(made, IsOk());
      written.emplace_back(made->version.header.commit_time, id);
    }
  };
  const auto check = [&] {
    for (size_t i = 0; i < written.size(); i += 7) {
      for (const size_t span : {size_t{1}, size_t{10}, written.size()}) {
        const UnixMicros start = written[i].first;
        const UnixMicros end = start + static_cast<UnixMicros>(span) * 5'000'000;
        std::vector<std::string> expected;
        for (const auto& [time, id] : written) {
          if (time >= start && time < end) expected.push_back(id);
        }
        std::vector<std::string> found;
        AuditQuery query;
        query.start_time = start;
        query.end_time = end;
        AuditCursor rows = world->documents().Audit(query);
        while (rows.Next()) found.push_back(rows.row().id);
        ASSERT_THAT(rows.status(), IsOk());
        ASSERT_EQ(found, expected) << i << " " << span;
      }
    }
  };
  write(60);
  check();
  world.clock().SetNow(world.clock().Now() - 180'000'000);
  write(60);
  check();
}

INSTANTIATE_TEST_SUITE_P(Engines, LedgerTimesTest, ::testing::ValuesIn(EnginesWithLedger()),
                         [](const auto& engine) { return std::string(engine.param.name); });

}  // namespace
}  // namespace strata::versioning::testing
