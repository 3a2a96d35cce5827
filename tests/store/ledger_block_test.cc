// The ledger's blocks: literal bytes, round trips, what they prove, what is refused.
#include "schemas/store/ledger_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "schemas/base/varint.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Placed {
  CommitPosition position = 0;
  uint32_t index = 0;
  LedgerEntry entry;

  friend bool operator==(const Placed&, const Placed&) = default;
};

std::vector<Placed> EntriesOf(std::string_view block) {
  std::vector<Placed> entries;
  LedgerBlockReader reader(block);
  while (reader.Next()) {
    entries.push_back({reader.position(), reader.index(), reader.entry().ToEntry()});
  }
  EXPECT_FALSE(reader.corrupt());
  return entries;
}

bool Reads(std::string_view block) {
  LedgerBlockReader reader(block);
  while (reader.Next()) continue;
  return !reader.corrupt();
}

LedgerEntry Version(std::string id, int64_t version, UnixMicros time) {
  LedgerEntry entry;
  entry.kind = 2;
  entry.collection = "books";
  entry.incarnation = 7;
  entry.id = std::move(id);
  entry.version = version;
  entry.time = time;
  entry.chain = std::string(kLedgerChainBytes, 'c');
  return entry;
}

std::string Bytes(std::initializer_list<int> bytes) {
  std::string made;
  for (const int byte : bytes) made += static_cast<char>(byte);
  return made;
}

// Everything after the hash.
std::string Body(const LedgerBlockWriter::Block& block) { return block.value.substr(32); }

TEST(LedgerBlock, TheLiteralBytes) {
  LedgerEntry first = Version("moby", 3, 1000);
  first.actor = "ann";
  first.request_id = "r-0123456789abcdef-5";
  LedgerEntry second = Version("moby", 4, 998);
  second.reason = "ann";
  second.chain.clear();
  const std::vector<LedgerEntry> entries = {first, second};
  LedgerBlockWriter writer(LedgerTail{.last = 4, .hash = {}, .latest = 500, .late = 2});
  writer.Add(5, entries);
  const LedgerBlockWriter::Block block = writer.Finish(9);
  EXPECT_EQ(block.first, 5);
  EXPECT_EQ(Body(block),
            Bytes({0, 0, 0, 0, 0, 0, 0, 5}) + Bytes({0, 0, 0, 0, 0, 0, 0, 9}) +
                Bytes({0, 0, 0, 0, 0, 0, 3, 0xE8}) + Bytes({0, 0, 0, 2}) +
                // The commit: no step, two entries.
                Bytes({0, 4}) +
                // Kind 2 with actor (1 << 5), request id (1 << 9) and chain (1 << 11); a new place.
                Bytes({0xA2, 0x14}) + Bytes({0, 7, 10}) + "books" + Bytes({8}) + "moby" +
                Bytes({3, 0xD0, 0x0F}) + Bytes({6}) + "ann" +
                // "r-", eight bytes for sixteen digits, "-5".
                Bytes({5}) + "r-" + Bytes({8, 0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF, 2}) +
                "-5" + std::string(16, 'c') +
                // Kind 2 with reason (1 << 7); the place before; the text one before the newest.
                Bytes({0x82, 0x01}) + Bytes({1}) + Bytes({3}) + Bytes({4, 3}) + Bytes({1}));
  EXPECT_EQ(block.tail.hash, Sha256().Update(std::string(32, '\0')).Update(Body(block)).Finish());
  EXPECT_EQ(block.value.substr(0, 32), HashBytes(block.tail.hash));
}

// Entries with any members, some of them alike.
LedgerEntry AnyEntry(std::mt19937_64& generator) {
  const auto chance = [&](uint64_t n) { return generator() % n == 0; };
  const auto text = [&]() -> std::string {
    if (chance(3)) return "text " + std::to_string(generator() % 5);
    std::string made(generator() % 40, '\0');
    for (char& byte : made) byte = static_cast<char>(generator());
    return made;
  };
  const auto id = [&]() -> std::string {
    std::string made = text();
    const size_t digits = generator() % 40;
    for (size_t i = 0; i < digits; ++i) made += "0123456789abcdefABCxyz-"[generator() % 23];
    return made;
  };
  LedgerEntry entry;
  entry.kind = static_cast<uint8_t>(generator() % (kLedgerKindMax + 1));
  entry.collection = "c" + std::to_string(generator() % 3);
  entry.incarnation = static_cast<int64_t>(generator() % 3);
  entry.id = text();
  entry.version = static_cast<int64_t>(generator() % 1000);
  entry.time = static_cast<int64_t>(generator() >> (2 + generator() % 60));
  if (chance(2)) entry.actor = text();
  if (chance(2)) entry.on_behalf_of = text();
  if (chance(2)) entry.reason = text();
  for (uint64_t i = generator() % 3; i > 0; --i) entry.labels[text()] = text();
  if (chance(2)) entry.request_id = id();
  if (chance(3)) entry.transaction_id = id();
  if (!chance(4)) entry.chain = std::string(kLedgerChainBytes, static_cast<char>(generator()));
  return entry;
}

TEST(LedgerBlock, WhatIsWrittenIsReadInItsOrder) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 generator(seed);
  for (int round = 0; round < 2'000; ++round) {
    std::vector<std::vector<LedgerEntry>> commits(1 + generator() % 20);
    for (auto& commit : commits) {
      for (uint64_t i = 0; i <= generator() % 4; ++i) commit.push_back(AnyEntry(generator));
    }
    LedgerBlockWriter writer({});
    std::vector<Placed> expected;
    CommitPosition position = static_cast<int64_t>(generator() >> (1 + generator() % 60)) / 2;
    UnixMicros latest = 0;
    for (const auto& commit : commits) {
      position += 1 + static_cast<int64_t>(generator() % 300);
      writer.Add(position, commit);
      for (uint32_t i = 0; i < commit.size(); ++i) {
        expected.push_back({position, i, commit[i]});
        latest = std::max(latest, commit[i].time);
      }
    }
    const CommitPosition last = position + static_cast<int64_t>(generator() % 3);
    const LedgerBlockWriter::Block block = writer.Finish(last);
    ASSERT_EQ(EntriesOf(block.value), expected);
    const auto header = ParseLedgerBlockHeader(block.value);
    ASSERT_TRUE(header);
    ASSERT_EQ(header->first, expected.front().position);
    ASSERT_EQ(header->tail, block.tail);
    ASSERT_EQ(header->tail.last, last);
    ASSERT_EQ(header->tail.latest, latest);
  }
}

// What an engine does that learns only while it commits which commits are in.
TEST(LedgerBlock, CommitsThatWereCodedAloneCanBeJoined) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 generator(seed);
  LedgerBlockWriter writer({});
  std::vector<std::vector<LedgerEntry>> commits(20);
  for (auto& commit : commits) {
    for (uint64_t i = 0; i <= generator() % 3; ++i) commit.push_back(AnyEntry(generator));
  }
  writer.Add(10, commits[0]);
  std::string block = writer.Finish(100).value;
  std::vector<Placed> expected;
  for (uint32_t i = 0; i < commits[0].size(); ++i) expected.push_back({10, i, commits[0][i]});
  for (size_t c = 1; c < commits.size(); ++c) {
    if (c % 3 == 0) continue;  // was refused
    const CommitPosition position = 10 + static_cast<int64_t>(c) * 2;
    AppendVarint(position - expected.back().position, block);
    block += CodeCommit(commits[c]);
    for (uint32_t i = 0; i < commits[c].size(); ++i) {
      expected.push_back({position, i, commits[c][i]});
    }
  }
  EXPECT_EQ(EntriesOf(block), expected);
}

TEST(LedgerBlock, ABlockIsFullBehindItsLimit) {
  LedgerBlockWriter writer({});
  std::vector<LedgerEntry> entries;
  entries.reserve(10'000);
  CommitPosition position = 0;
  while (!writer.full()) {
    entries.push_back(Version("document " + std::to_string(position), 1, 1));
    writer.Add(++position, {&entries.back(), 1});
  }
  const std::string value = writer.Finish(position).value;
  EXPECT_GT(value.size(), kLedgerBlockBytesMax);
  EXPECT_LT(value.size(), kLedgerBlockBytesMax + 100);
  EXPECT_GT(position, 1000) << "entries cost some 40 bytes each";
}

TEST(LedgerBlock, BlocksCountHowOftenTimesWentBack) {
  LedgerTail tail;
  const auto add = [&](CommitPosition position, UnixMicros time) {
    const LedgerEntry entry = Version("a", 1, time);
    LedgerBlockWriter writer(tail);
    writer.Add(position, {&entry, 1});
    tail = writer.Finish(position).tail;
  };
  add(1, 100'000'000);
  add(2, 100'000'000 - kLateMicros);  // as far as commits may overtake each other
  EXPECT_EQ(tail.late, 0u);
  EXPECT_EQ(tail.latest, 100'000'000);
  add(3, 100'000'000 - kLateMicros - 1);
  EXPECT_EQ(tail.late, 1u);
  add(4, 200'000'000);
  EXPECT_EQ(tail.late, 1u);
  EXPECT_EQ(tail.latest, 200'000'000);
}

TEST(LedgerBlock, WhateverIsChangedChangesTheHash) {
  LedgerTail tail;
  std::vector<std::string> blocks;
  for (CommitPosition position = 1; position <= 5; ++position) {
    LedgerEntry entry = Version("a", position, 1000 + position);
    LedgerBlockWriter writer(tail);
    writer.Add(position, {&entry, 1});
    LedgerBlockWriter::Block block = writer.Finish(position);
    tail = block.tail;
    blocks.push_back(std::move(block.value));
  }
  const auto whole = [](const std::vector<std::string>& all) {
    Hash before = kNoHash;
    for (const std::string& block : all) {
      const auto header = ParseLedgerBlockHeader(block);
      if (!header || LedgerBlockHash(before, block) != header->tail.hash) return false;
      before = header->tail.hash;
    }
    return true;
  };
  EXPECT_TRUE(whole(blocks));
  for (size_t block = 0; block < blocks.size(); ++block) {
    std::vector<std::string> without = blocks;
    without.erase(without.begin() + static_cast<ptrdiff_t>(block));
    EXPECT_EQ(whole(without), block + 1 == blocks.size());  // the end needs a head to compare with
    for (size_t byte = 0; byte < blocks[block].size(); ++byte) {
      std::vector<std::string> changed = blocks;
      changed[block][byte] = static_cast<char>(changed[block][byte] ^ 1);
      ASSERT_FALSE(whole(changed)) << block << " " << byte;
    }
  }
  std::swap(blocks[1], blocks[2]);
  EXPECT_FALSE(whole(blocks));
}

TEST(LedgerBlock, WhatWasNeverWrittenIsRefused) {
  const LedgerEntry entry = Version("a", 1, 1000);
  LedgerBlockWriter writer({});
  writer.Add(5, {&entry, 1});
  const std::string good = writer.Finish(6).value;
  ASSERT_TRUE(Reads(good));
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(Reads(std::string_view(good).substr(0, size))) << size;
  }
  const auto with_body = [&](const std::string& commits) { return good.substr(0, 60) + commits; };
  EXPECT_FALSE(Reads(with_body("")));
  EXPECT_FALSE(Reads(with_body(Bytes({0, 0}))));  // a commit of no entries
  EXPECT_FALSE(
      Reads(with_body(Bytes({1, 2, 1, 0, 1, 0, 0, 1, 0}))));     // not at the block's position
  EXPECT_FALSE(Reads(with_body(Bytes({0, 2, 1, 1, 0, 1, 0}))));  // a place that nobody named
  EXPECT_FALSE(Reads(with_body(Bytes({0, 2, 1, 0, 1, 1, 0, 1, 0}))));  // a text that nobody wrote
  EXPECT_FALSE(Reads(with_body(Bytes({0, 2, 1, 0, 1, 0, 0, 1, 1}))));  // a time before 1970
  EXPECT_FALSE(Reads(with_body(Bytes({0, 2, 0x81, 0x20, 0, 1, 0, 0, 1, 0}))));  // unknown members
  const std::string least = Bytes({0, 2, 1, 0, 1, 0, 0, 1, 0});
  ASSERT_TRUE(Reads(with_body(least)));
  const std::string next = Bytes({2, 1, 1, 1, 1, 0});
  EXPECT_TRUE(Reads(with_body(least + Bytes({1}) + next)));
  EXPECT_FALSE(Reads(with_body(least + Bytes({0}) + next)));  // the same position
  EXPECT_FALSE(Reads(with_body(least + Bytes({2}) + next)));  // after the block's last
}

TEST(LedgerBlock, AnyBytesAreReadWithinTheirBounds) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 generator(seed);
  std::vector<LedgerEntry> entries;
  for (int i = 0; i < 8; ++i) entries.push_back(AnyEntry(generator));
  LedgerBlockWriter writer({});
  writer.Add(5, entries);
  const std::string good = writer.Finish(6).value;
  int read = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string hostile = good;
    for (uint64_t flips = 1 + generator() % 4; flips > 0; --flips) {
      hostile[32 + generator() % (hostile.size() - 32)] = static_cast<char>(generator());
    }
    hostile.resize(32 + generator() % (hostile.size() - 31));
    read += Reads(hostile) ? 1 : 0;
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace strata::store
