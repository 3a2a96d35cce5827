// A small database with one bit flipped, a page zeroed, a file cut or gone: whatever it is, it is
// refused or does no harm. No read answers with what was never stored, none misses what was
// acknowledged.
//
// STRATA_DAMAGES: how many places each test damages, evenly spread over all files; 0: every one.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "schemas/base/error.h"
#include "service/engines/rocksdb/commit_beacon.h"
#include "tests/disk/disk_world.h"
#include "tests/support/await_commit.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::engines::rocks {
namespace {

using test_support::IsOk;
using Image = FaultFileSystem::Image;

enum class Outcome { kRefusedAtOpen, kRefusedAtRead, kHarmless };

class DamageTest : public testing::Test {
 protected:
  // Tables of two generations, and a log after them.
  void MakeDatabase(bool closed) {
    std::mt19937_64 chance(seed_);
    world_.options.beacon_behind_max = std::chrono::milliseconds(1);
    ASSERT_THAT(world_.Open(), IsOk());
    for (int generation = 0; generation < 2; ++generation) {
      for (int i = 0; i < 8; ++i) world_.commits.CommitSome(*world_.store, 3, chance);
      ASSERT_THAT(world_.store->CompactAll(), IsOk());
    }
    for (int i = 0; i < 8; ++i) world_.commits.CommitSome(*world_.store, 3, chance);
    KeepState(closed);
  }

  void KeepState(bool closed) {
    position_ = world_.store->LastPosition();
    AwaitBeacon();
    if (closed) world_.Close();
    intact_ = world_.files->Save();
    world_.Close();
    expected_ = world_.commits.StateAt(position_);
  }

  void AwaitBeacon() {
    while (true) {
      const auto durable = ReadBeacon(*world_.files, world_.options.directory);
      ASSERT_THAT(durable, IsOk());
      if (*durable && (*durable)->position == position_) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  Outcome Try(const Image& image) {
    STRATA_TRACE_SEED(seed_);
    world_.files->Load(image);
    const absl::Status opened = world_.Open();
    if (!opened.ok()) {
      const auto reason = ReasonOf(opened);
      EXPECT_TRUE(reason == ErrorReason::kRecordCorrupt || reason == ErrorReason::kStoreUnavailable)
          << opened;
      return Outcome::kRefusedAtOpen;
    }
    EXPECT_EQ(world_.store->LastPosition(), position_);
    const absl::StatusOr<StoredCommits::State> stored = ReadAll(*world_.store);
    if (stored.ok()) {
      ExpectSame(*stored, expected_);
    } else {
      EXPECT_EQ(ReasonOf(stored.status()), ErrorReason::kRecordCorrupt) << stored.status();
      ExpectNoWrongAnswer();
    }
    world_.Close();
    return stored.ok() ? Outcome::kHarmless : Outcome::kRefusedAtRead;
  }

  // Of each key alone, where a scan was refused.
  void ExpectNoWrongAnswer() {
    for (const auto& [place, value] : expected_) {
      const auto record = world_.store->Get(place.first, place.second);
      if (!record.ok()) {
        EXPECT_EQ(ReasonOf(record.status()), ErrorReason::kRecordCorrupt);
        continue;
      }
      ASSERT_TRUE(*record) << place.second << " is missing";
      EXPECT_TRUE((*record)->value == value.bytes) << place.second << " has another value";
    }
  }

  static std::vector<std::string> Logs(const Image& image) {
    std::vector<std::string> logs;
    for (const auto& [path, bytes] : image.files) {
      if (path.ends_with(".log") && !bytes.empty()) logs.push_back(path);
    }
    return logs;
  }

  // Many small commits in one log.
  void MakeLog() {
    std::mt19937_64 chance(1);
    world_.options.beacon_behind_max = std::chrono::milliseconds(1);
    ASSERT_THAT(world_.Open(), IsOk());
    for (int i = 0; i < 100; ++i) world_.commits.CommitSome(*world_.store, 3, chance);
    KeepState(/*closed=*/false);
    ASSERT_EQ(Logs(intact_).size(), 1u);
  }

  // Calls `damage` for places of all files, `step` bytes apart, and tries each.
  void TryAll(size_t step, const std::function<bool(std::string& bytes, size_t at)>& damage) {
    size_t places = 0;
    for (const auto& [path, bytes] : intact_.files) places += bytes.size() / step + 1;
    const auto wanted = static_cast<size_t>(Volume("STRATA_DAMAGES", 60));
    const size_t every = wanted == 0 ? 1 : std::max<size_t>(1, places / wanted);
    size_t place = 0;
    int outcomes[3] = {};
    for (const auto& [path, bytes] : intact_.files) {
      for (size_t at = 0; at < bytes.size(); at += step) {
        if (++place % every != 0) continue;
        Image image = intact_;
        if (!damage(image.files[path], at)) continue;
        SCOPED_TRACE(testing::Message() << path << ", " << at << " of " << bytes.size());
        ++outcomes[static_cast<int>(Try(image))];
        if (HasFailure()) return;
      }
    }
    std::printf("%d of %zu places: %d refused at open, %d at a read, %d harmless\n",
                outcomes[0] + outcomes[1] + outcomes[2], place, outcomes[0], outcomes[1],
                outcomes[2]);
  }

  const uint64_t seed_ = test_support::TestSeed();
  DiskWorld world_{StoredCommits(300)};
  Image intact_;
  store::CommitPosition position_ = 0;
  StoredCommits::State expected_;
};

// Where the `first` to `last` record of a log begin, and the bytes around it.
std::vector<size_t> AboutRecordStarts(const std::string& log, size_t first, size_t last) {
  std::vector<size_t> places;
  size_t at = 0;
  for (size_t record = 0; record < last && at + 7 <= log.size(); ++record) {
    if (record >= first) places.insert(places.end(), {at, at + 1, at + 4, at + 5});
    at += 7 + static_cast<uint8_t>(log[at + 4]) + (size_t{static_cast<uint8_t>(log[at + 5])} << 8);
    if (at % 32768 > 32768 - 7) at += 32768 - at % 32768;
  }
  return places;
}

uint64_t TakeVarint(std::string_view& bytes) {
  uint64_t number = 0;
  for (int shift = 0; !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    number |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) break;
  }
  return number;
}

// Where a table's block of properties says whether it has an index by hash: in the top bit of its
// last byte. RocksDB 7.8 looks at it before it has checked the block's checksum, and where it was
// built with assertions, as Debian's is, a table with that bit flipped ends the process that opens
// it. That is the one flip that is not refused in a better way, and the tests leave it out.
size_t AssertedByte(const std::string& table) {
  constexpr std::string_view kName = "rocksdb.properties";
  const size_t entry = table.rfind(kName);
  if (entry == std::string::npos) return std::string::npos;
  std::string_view handle = std::string_view(table).substr(entry + kName.size());
  const uint64_t offset = TakeVarint(handle);
  return offset + TakeVarint(handle) - 1;
}

bool FlipBit(std::string& bytes, size_t at) {
  if (at % 8 == 7 && at == AssertedByte(bytes)) return false;
  bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
  return true;
}

TEST_F(DamageTest, AFlippedBitIsRefusedOrHarmless) {
  MakeDatabase(/*closed=*/true);
  TryAll(1, FlipBit);
}

TEST_F(DamageTest, AFlippedBitBesideARunningStoreIsRefusedOrHarmless) {
  MakeDatabase(/*closed=*/false);
  TryAll(1, FlipBit);
}

bool Zero(std::string& bytes, size_t at, size_t count) {
  const size_t end = std::min(at + count, bytes.size());
  const std::string before = bytes;
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(at),
            bytes.begin() + static_cast<std::ptrdiff_t>(end), '\0');
  return bytes != before;
}

TEST_F(DamageTest, AZeroedPageOrSectorIsRefusedOrHarmless) {
  MakeDatabase(/*closed=*/true);
  TryAll(4096, [](std::string& bytes, size_t at) { return Zero(bytes, at, 4096); });
  TryAll(512, [](std::string& bytes, size_t at) { return Zero(bytes, at, 512); });
  TryAll(1, [](std::string& bytes, size_t at) { return Zero(bytes, at, 512); });
}

TEST_F(DamageTest, ACutFileIsRefusedOrHarmless) {
  MakeDatabase(/*closed=*/true);
  TryAll(1, [](std::string& bytes, size_t at) {
    bytes.resize(at);
    return true;
  });
}

TEST_F(DamageTest, AMissingFileIsRefusedOrHarmless) {
  MakeDatabase(/*closed=*/true);
  for (const auto& [path, bytes] : intact_.files) {
    SCOPED_TRACE(path);
    Image image = intact_;
    image.files.erase(path);
    Try(image);
  }
}

// RocksDB's reader takes zeros at the beginning of a record for space that was never written.
TEST_F(DamageTest, AHoleInTheLogIsRefusedWhereverItBegins) {
  ASSERT_NO_FATAL_FAILURE(MakeLog());
  const std::string log = Logs(intact_).front();
  const size_t written = intact_.files[log].find_last_not_of('\0') + 1;
  for (const size_t length : {4096, 32768}) {
    for (const size_t at : AboutRecordStarts(intact_.files[log], 15, 30)) {
      if (at + length >= written) continue;
      SCOPED_TRACE(testing::Message() << length << " zeros at " << at << " of " << written);
      Image image = intact_;
      Zero(image.files[log], at, length);
      ASSERT_EQ(Try(image), Outcome::kRefusedAtOpen);
    }
  }
}

// One keyspace's table was written and the log went on in a new file, while the old one is still
// needed for the other keyspaces.
TEST_F(DamageTest, WhatIsGoneFromTheEndOfALogIsMissedByTheNextOne) {
  std::mt19937_64 chance(1);
  world_.options.beacon_behind_max = std::chrono::milliseconds(1);
  ASSERT_THAT(world_.Open(), IsOk());
  for (int i = 0; i < 20; ++i) world_.commits.CommitSome(*world_.store, 3, chance);
  while (Logs(world_.files->Save()).size() < 2) {
    world_.commits.CommitLarge(*world_.store, chance);
    world_.commits.CommitSome(*world_.store, 3, chance);
  }
  KeepState(/*closed=*/false);
  const std::string log = Logs(intact_).front();
  const size_t written = intact_.files[log].find_last_not_of('\0') + 1;
  for (const size_t first : {size_t{0}, size_t{30}}) {
    for (const size_t at : AboutRecordStarts(intact_.files[log], first, first + 8)) {
      if (at >= written) continue;
      SCOPED_TRACE(testing::Message() << "at " << at << " of " << written);
      Image zeroed = intact_;
      Zero(zeroed.files[log], at, written);
      ASSERT_EQ(Try(zeroed), Outcome::kRefusedAtOpen);
      Image cut_off = intact_;
      cut_off.files[log].resize(at);
      ASSERT_EQ(Try(cut_off), Outcome::kRefusedAtOpen);
    }
  }
  Image missing = intact_;
  missing.files.erase(log);
  ASSERT_EQ(Try(missing), Outcome::kRefusedAtOpen);
}

// RocksDB takes a manifest that ends early for one whose writer died: an older state.
TEST_F(DamageTest, AManifestThatEndsEarlyIsRefused) {
  MakeDatabase(/*closed=*/true);
  std::string manifest;
  for (const auto& [path, bytes] : intact_.files) {
    if (path.find("MANIFEST-") != std::string::npos) manifest = path;
  }
  const std::string& bytes = intact_.files[manifest];
  for (const size_t at : AboutRecordStarts(bytes, 0, 1000)) {
    if (at >= bytes.size()) continue;
    SCOPED_TRACE(testing::Message() << at << " of " << bytes.size());
    Image image = intact_;
    image.files[manifest].resize(at);
    ASSERT_EQ(Try(image), Outcome::kRefusedAtOpen);
  }
}

// Two tables of one level, the scan goes from one to the next.
TEST_F(DamageTest, AScanDoesNotEndAtATableThatItCannotRead) {
  ASSERT_THAT(world_.Open(), IsOk());
  for (const std::string prefix : {"a", "z"}) {
    store::WriteBatch batch;
    for (int i = 0; i < 9; ++i)
      batch.Put(store::Keyspace::kMeta, prefix + std::to_string(i), "value");
    ASSERT_TRUE(test_support::AwaitCommit(*world_.store, std::move(batch)).committed);
    ASSERT_THAT(world_.store->CompactAll(), IsOk());
  }
  world_.Close();
  intact_ = world_.files->Save();
  int refused = 0;
  for (const auto& [path, bytes] : intact_.files) {
    if (!path.ends_with(".sst")) continue;
    for (const bool reverse : {false, true}) {
      SCOPED_TRACE(testing::Message() << path << (reverse ? ", backwards" : ""));
      Image image = intact_;
      FlipBit(image.files[path], 3);
      world_.files->Load(image);
      ASSERT_THAT(world_.Open(), IsOk());
      auto cursor =
          world_.store->Scan(store::Keyspace::kMeta, {.begin = "", .end = "", .reverse = reverse});
      int keys = 0;
      for (; cursor->Valid(); cursor->Next()) ++keys;
      if (cursor->status().ok()) {
        EXPECT_EQ(keys, 18);
      } else {
        EXPECT_EQ(ReasonOf(cursor->status()), ErrorReason::kRecordCorrupt);
        ++refused;
      }
      cursor.reset();
      world_.Close();
    }
  }
  EXPECT_EQ(refused, 4);
}

// As service/docs/operations.md says, damage newer than the beacon can pass for a torn end. Then
// the commits from there on are gone, all of them, and none before the beacon.
TEST_F(DamageTest, OnlyWhatIsNewerThanTheBeaconCanPassForATornEnd) {
  std::mt19937_64 chance(1);
  world_.options.beacon_behind_max = std::chrono::milliseconds(1);
  ASSERT_THAT(world_.Open(), IsOk());
  for (int i = 0; i < 10; ++i) world_.commits.CommitSome(*world_.store, 3, chance);
  position_ = world_.store->LastPosition();
  AwaitBeacon();
  const std::string beacon = world_.PathOf("commit-beacon");
  const std::string vouched = world_.files->Save().files[beacon];
  const store::CommitPosition durable = position_;
  for (int i = 0; i < 10; ++i) world_.commits.CommitSome(*world_.store, 3, chance);
  KeepState(/*closed=*/false);
  intact_.files[beacon] = vouched;
  const std::string log = Logs(intact_).front();
  const size_t written = intact_.files[log].find_last_not_of('\0') + 1;
  int dropped = 0;
  for (size_t at = 0; at < written; at += 1 + written * kOneIn / 60) {
    SCOPED_TRACE(testing::Message() << "byte " << at << " of " << written);
    Image image = intact_;
    FlipBit(image.files[log], at);
    world_.files->Load(image);
    if (const absl::Status opened = world_.Open(); !opened.ok()) {
      EXPECT_EQ(ReasonOf(opened), ErrorReason::kRecordCorrupt) << opened;
      continue;
    }
    ++dropped;
    const store::CommitPosition left = world_.store->LastPosition();
    ASSERT_GE(left, durable);
    ASSERT_LT(left, position_);
    const auto stored = ReadAll(*world_.store);
    ASSERT_THAT(stored, IsOk());
    ASSERT_NO_FATAL_FAILURE(ExpectSame(*stored, world_.commits.StateAt(left)));
    world_.Close();
  }
  EXPECT_GT(dropped, 0);
}

}  // namespace
}  // namespace strata::engines::rocks
