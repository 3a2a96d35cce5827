// What is particular to the RocksDB engine: its directory, its log, its failures.
#include "service/engines/rocksdb/rocksdb_store.h"

#include <fcntl.h>
#include <rocksdb/db.h>
#include <rocksdb/file_system.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/store/key_codec.h"
#include "tests/disk/fault_file_system.h"
#include "tests/support/await_commit.h"
#include "tests/support/ledger_entries.h"
#include "tests/support/manual_clock.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_directory.h"

namespace strata::engines::rocks {
namespace {

namespace fs = std::filesystem;

using store::CommitResult;
using store::Keyspace;
using store::WriteBatch;
using test_support::AwaitCommit;
using test_support::EntryThatSays;
using test_support::HasReason;
using test_support::IsOk;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class RocksDbStoreTest : public testing::Test {
 protected:
  RocksDbStoreTest() {
    options_.directory = directory_.Join("data");
    options_.clock = &clock_;
    options_.block_cache_bytes = size_t{8} << 20;
  }

  void Open() {
    auto opened = RocksDbStore::Open(options_);
    ASSERT_THAT(opened, IsOk());
    store_ = *std::move(opened);
  }
  void Reopen() {
    store_.reset();
    Open();
  }

  CommitResult Put(std::string key, std::string value, const std::string& ledger_entry = "") {
    WriteBatch batch;
    batch.Put(Keyspace::kMeta, std::move(key), std::move(value));
    if (!ledger_entry.empty()) batch.AppendToLedger(EntryThatSays(ledger_entry));
    return AwaitCommit(*store_, std::move(batch));
  }
  static std::string ValueAt(const store::Reader& reader, std::string_view key) {
    const auto record = reader.Get(Keyspace::kMeta, key);
    if (!record.ok()) return record.status().ToString();
    return *record ? std::string((*record)->value) : "(none)";
  }
  std::string ValueAt(std::string_view key) { return ValueAt(*store_, key); }

  std::vector<fs::path> Files(const std::string& extension) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(options_.directory)) {
      if (entry.path().extension() == extension && entry.file_size() > 0)
        files.push_back(entry.path());
    }
    return files;
  }

  // Lets `use` change the database without the store.
  using Families = std::vector<rocksdb::ColumnFamilyHandle*>;
  void ChangeDatabase(const std::function<void(rocksdb::DB&, const Families&)>& use) {
    rocksdb::Options raw;
    std::vector<std::string> names;
    ASSERT_TRUE(rocksdb::DB::ListColumnFamilies(raw, options_.directory, &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
    for (const std::string& name : names) descriptors.emplace_back(name, raw);
    Families families;
    rocksdb::DB* opened = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(raw, options_.directory, descriptors, &families, &opened).ok());
    const std::unique_ptr<rocksdb::DB> database(opened);
    use(*database, families);
    for (rocksdb::ColumnFamilyHandle* family : families) {
      EXPECT_TRUE(database->DestroyColumnFamilyHandle(family).ok());
    }
  }
  static void Drop(rocksdb::DB& database, const Families& families, Keyspace keyspace) {
    for (rocksdb::ColumnFamilyHandle* family : families) {
      if (family->GetName() != store::KeyspaceName(keyspace)) continue;
      ASSERT_TRUE(database.DropColumnFamily(family).ok());
      return;
    }
    FAIL() << "there is no such keyspace";
  }

  test_support::ManualClock clock_;
  test_support::TemporaryDirectory directory_;
  RocksDbOptions options_;
  std::unique_ptr<RocksDbStore> store_;
};

void FlipBit(const fs::path& path, std::uintmax_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 0x10));
  ASSERT_TRUE(file.good());
}

TEST_F(RocksDbStoreTest, ServesWhileItsCachesGiveWay) {
  std::promise<void> looked;
  options_.process_bytes = [&looked, looks = 0]() mutable {
    if (++looks == 2) looked.set_value();  // the caches were told after the first
    return uint64_t{1} << 40;
  };
  Open();
  ASSERT_THAT(Put("key", "value").status, IsOk());
  ASSERT_EQ(looked.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
  EXPECT_EQ(ValueAt("key"), "value");
  ASSERT_THAT(Put("another", "value").status, IsOk());
  EXPECT_EQ(ValueAt("another"), "value");
}

TEST_F(RocksDbStoreTest, MakesItsDirectoryForItsOwnerOnly) {
  options_.directory = directory_.Join("deep/down/data");
  Open();
  struct stat info = {};
  ASSERT_EQ(stat(options_.directory.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(RocksDbStoreTest, ASecondOpenerIsRefusedByTheDirectorysName) {
  Open();
  const auto second = RocksDbStore::Open(options_);
  EXPECT_THAT(second, HasReason(ErrorReason::kStoreUnavailable));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(options_.directory));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("in use"));
  EXPECT_THAT(Put("a", "1"), IsOk());
  store_.reset();
  Open();
  EXPECT_EQ(ValueAt("a"), "1");
}

TEST_F(RocksDbStoreTest, AnotherProcessFindsTheDirectoryHeld) {
  Open();
  const std::string lock = options_.directory + "/strata.lock";
  const pid_t child = fork();
  if (child == 0) {
    const int file = open(lock.c_str(), O_RDWR);
    _exit(file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0 ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(RocksDbStoreTest, AFileInPlaceOfTheDirectoryIsRefused) {
  std::ofstream(options_.directory) << "not a directory";
  EXPECT_THAT(RocksDbStore::Open(options_), HasReason(ErrorReason::kStoreUnavailable));
}

TEST_F(RocksDbStoreTest, PositionsGoOnAfterReopeningWhateverTheLastCommitWas) {
  Open();
  store::CommitPosition last = 0;
  for (int round = 0; round < 12; ++round) {
    // With and without a ledger entry, and refused ones between, in changing order.
    for (int i = 0; i < 1 + round % 3; ++i) {
      const CommitResult result = Put("a", "1", (round + i) % 2 == 0 ? "entry" : "");
      ASSERT_TRUE(result.committed);
      EXPECT_GT(result.position, last);
      last = result.position;
    }
    WriteBatch refused;
    refused.Insert(Keyspace::kMeta, "a", "2");
    refused.AppendToLedger(EntryThatSays("never"));
    EXPECT_FALSE(AwaitCommit(*store_, refused).committed);
    if (round % 4 == 3) {
      ASSERT_THAT(store_->CompactAll(), IsOk());
    }
    Reopen();
    EXPECT_EQ(store_->LastPosition(), last);
  }
}

TEST_F(RocksDbStoreTest, PositionsGoOnAfterTheLedgerWasEmptied) {
  Open();
  const store::CommitPosition first = Put("a", "1", "entry").position;
  WriteBatch prune;
  prune.Delete(Keyspace::kLedger, store::LedgerKey(first));
  const store::CommitPosition last = AwaitCommit(*store_, prune).position;
  Reopen();
  EXPECT_EQ(store_->LastPosition(), last);
  EXPECT_GT(Put("a", "2").position, last);
}

TEST_F(RocksDbStoreTest, CompactionDropsWhatHasExpiredAndNothingElse) {
  Open();
  WriteBatch batch;
  batch.Put(Keyspace::kRequests, "soon", "1").expire_time = clock_.Now() + 1'000'000;
  batch.Put(Keyspace::kRequests, "later", "1").expire_time = clock_.Now() + 9'000'000;
  batch.Put(Keyspace::kRequests, "never", "1");
  batch.AppendToLedger(EntryThatSays("entry"));
  ASSERT_TRUE(AwaitCommit(*store_, batch).committed);
  const auto keys = [this] {
    std::vector<std::string> found;
    for (auto cursor = store_->Scan(Keyspace::kRequests, {}); cursor->Valid(); cursor->Next())
      found.emplace_back(cursor->key());
    return found;
  };
  ASSERT_THAT(store_->CompactAll(), IsOk());
  EXPECT_THAT(keys(), testing::ElementsAre("later", "never", "soon"));
  clock_.Advance(std::chrono::seconds(2));
  ASSERT_THAT(store_->CompactAll(), IsOk());
  EXPECT_THAT(keys(), testing::ElementsAre("later", "never"));
  EXPECT_TRUE(store_->Scan(Keyspace::kLedger, {})->Valid());
  // The key is free again.
  WriteBatch insert;
  insert.Insert(Keyspace::kRequests, "soon", "2");
  EXPECT_TRUE(AwaitCommit(*store_, insert).committed);
}

TEST_F(RocksDbStoreTest, CompactionKeepsWhatOnlyTheWallClockCallsExpired) {
  Open();
  WriteBatch batch;
  batch.Put(Keyspace::kRequests, "a", "1").expire_time = clock_.Now() + 1'000'000;
  ASSERT_TRUE(AwaitCommit(*store_, batch).committed);
  clock_.SetNow(clock_.Now() + 2'000'000);
  ASSERT_THAT(store_->CompactAll(), IsOk());
  EXPECT_TRUE(store_->Scan(Keyspace::kRequests, {})->Valid());
  Reopen();  // and there is but the wall clock
  ASSERT_THAT(store_->CompactAll(), IsOk());
  EXPECT_FALSE(store_->Scan(Keyspace::kRequests, {})->Valid());
}

TEST_F(RocksDbStoreTest, AFlippedBitInTheLogIsRefusedAndNothingIsLostSilently) {
  Open();
  for (int i = 0; i < 5; ++i) Put(std::to_string(i), "acknowledged", "entry");
  store_.reset();
  const std::vector<fs::path> logs = Files(".log");
  ASSERT_EQ(logs.size(), 1u);
  const std::uintmax_t size = fs::file_size(logs[0]);
  const std::string intact = directory_.Join("intact");
  fs::copy(options_.directory, intact);
  const std::string log_name = logs[0].filename().string();

  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 generator(seed);
  for (int flip = 0; flip < 60; ++flip) {
    // Each record's ends and what lies between.
    const std::uintmax_t at = flip == 0 ? 0 : flip == 1 ? size - 1 : generator() % size;
    SCOPED_TRACE(testing::Message() << "byte " << at << " of " << size);
    fs::remove_all(options_.directory);
    fs::copy(intact, options_.directory);
    FlipBit(fs::path(options_.directory) / log_name, at);
    const auto opened = RocksDbStore::Open(options_);
    ASSERT_FALSE(opened.ok());
    const auto reason = ReasonOf(opened.status());
    EXPECT_TRUE(reason == ErrorReason::kRecordCorrupt || reason == ErrorReason::kStoreUnavailable);
  }
  fs::remove_all(options_.directory);
  fs::copy(intact, options_.directory);
  Open();
  EXPECT_EQ(ValueAt("4"), "acknowledged");
}

// What a process leaves that is killed within a write: the log ends anywhere in its last record.
TEST_F(RocksDbStoreTest, ALogThatEndsInATornWriteLosesNothingAcknowledged) {
  Open();
  for (int i = 0; i < 5; ++i) Put(std::to_string(i), "acknowledged", "entry");
  store_.reset();
  const std::vector<fs::path> logs = Files(".log");
  ASSERT_EQ(logs.size(), 1u);
  const std::uintmax_t acknowledged = fs::file_size(logs[0]);
  const std::string beacon = options_.directory + "/commit-beacon";
  fs::copy(beacon, directory_.Join("beacon"));
  Open();
  Put("torn", std::string(5000, 'x'), "entry");
  store_.reset();
  // As if the process had died in that last write: its log cut, its beacon not yet there.
  const std::vector<fs::path> after = Files(".log");
  ASSERT_EQ(after.size(), 1u);
  const std::string intact = directory_.Join("intact");
  fs::copy(options_.directory, intact);
  const std::uintmax_t size = fs::file_size(after[0]);
  for (std::uintmax_t cut = size - 1; cut > size - 4900; cut -= 700) {
    SCOPED_TRACE(testing::Message() << "cut at " << cut << " of " << size << ", " << acknowledged);
    fs::remove_all(options_.directory);
    fs::copy(intact, options_.directory);
    fs::resize_file(fs::path(options_.directory) / after[0].filename(), cut);
    // The beacon vouches for the last write: it is missed.
    EXPECT_THAT(RocksDbStore::Open(options_), HasReason(ErrorReason::kRecordCorrupt));
    fs::copy(directory_.Join("beacon"), beacon, fs::copy_options::overwrite_existing);
    Open();
    for (int i = 0; i < 5; ++i) EXPECT_EQ(ValueAt(std::to_string(i)), "acknowledged");
    EXPECT_EQ(ValueAt("torn"), "(none)");
    Put("next", "value", "entry");
    store_.reset();
    Open();
    EXPECT_EQ(ValueAt("next"), "value");
    store_.reset();
  }
}

TEST_F(RocksDbStoreTest, AFlippedBitInATableIsNeverServed) {
  Open();
  for (int i = 0; i < 50; ++i) Put(std::to_string(i), "value " + std::to_string(i));
  ASSERT_THAT(store_->CompactAll(), IsOk());
  store_.reset();
  const std::vector<fs::path> tables = Files(".sst");
  ASSERT_FALSE(tables.empty());
  const std::string intact = directory_.Join("intact");
  fs::copy(options_.directory, intact);

  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 generator(seed);
  int refused = 0;
  for (int flip = 0; flip < 40; ++flip) {
    fs::remove_all(options_.directory);
    fs::copy(intact, options_.directory);
    const fs::path& table = tables[generator() % tables.size()];
    const std::uintmax_t at = generator() % fs::file_size(table);
    SCOPED_TRACE(testing::Message() << "byte " << at << " of " << table);
    FlipBit(table, at);
    const auto opened = RocksDbStore::Open(options_);
    if (!opened.ok()) {
      ++refused;
      continue;
    }
    for (int i = 0; i < 50; ++i) {
      const auto record = (*opened)->Get(Keyspace::kMeta, std::to_string(i));
      if (!record.ok()) {
        EXPECT_THAT(record, HasReason(ErrorReason::kRecordCorrupt));
        ++refused;
        break;
      }
      ASSERT_TRUE(*record);
      EXPECT_EQ((*record)->value, "value " + std::to_string(i));
    }
  }
  EXPECT_GT(refused, 0);
}

// The last bytes of a table say its form, then that it is one of block-based form.
uint32_t FormOfTable(const fs::path& table) {
  constexpr std::streamoff kTailBytes = 12;
  std::ifstream file(table, std::ios::binary);
  file.seekg(-kTailBytes, std::ios::end);
  unsigned char tail[kTailBytes] = {};
  file.read(reinterpret_cast<char*>(tail), kTailBytes);
  constexpr unsigned char kBlockBased[] = {0xF7, 0xCF, 0xF4, 0x85, 0xB7, 0x41, 0xE2, 0x88};
  if (!file || !std::equal(std::begin(kBlockBased), std::end(kBlockBased), tail + 4)) return 0;
  return tail[0] | tail[1] << 8 | tail[2] << 16 | static_cast<uint32_t>(tail[3]) << 24;
}

// RocksDB 7, Debian 12's, reads up to form 5; RocksDB 9, Debian 13's, writes 6 unless it is told.
TEST_F(RocksDbStoreTest, TablesHaveAFormThatBothDebiansRead) {
  Open();
  ASSERT_THAT(Put("a", "1", "entry").status, IsOk());
  Reopen();  // which writes what the log holds into tables
  const std::vector<fs::path> tables = Files(".sst");
  ASSERT_FALSE(tables.empty());
  for (const fs::path& table : tables) EXPECT_EQ(FormOfTable(table), 5u) << table;
}

TEST_F(RocksDbStoreTest, AnUnknownFormatIsRefused) {
  Open();
  store_.reset();
  ChangeDatabase([](rocksdb::DB& database, const Families& /*families*/) {
    ASSERT_TRUE(database.Put(rocksdb::WriteOptions(), "format", "1").ok());
  });
  EXPECT_THAT(RocksDbStore::Open(options_), HasReason(ErrorReason::kStoreUnavailable));
}

// What a build left that did not know the keyspace yet.
TEST_F(RocksDbStoreTest, AKeyspaceThatTheDatabaseLacksIsMadeWhenItIsOpened) {
  for (const Keyspace keyspace : store::kAllKeyspaces) {
    const store::KeyspaceTraits& traits = store::TraitsOf(keyspace);
    if (traits.append_only || traits.made_when_used || keyspace == Keyspace::kMeta) continue;
    SCOPED_TRACE(store::KeyspaceName(keyspace));
    Reopen();
    const store::CommitPosition last = Put("a", "1", "entry").position;
    store_.reset();
    ChangeDatabase([&](rocksdb::DB& database, const Families& families) {
      Drop(database, families, keyspace);
    });
    Open();
    EXPECT_EQ(ValueAt("a"), "1");
    EXPECT_EQ(store_->LastPosition(), last);
    EXPECT_FALSE(store_->Scan(keyspace, {})->Valid());
    WriteBatch batch;
    batch.Insert(keyspace, "new", "1");
    EXPECT_TRUE(AwaitCommit(*store_, std::move(batch)).committed);
    Reopen();
    EXPECT_TRUE(store_->Scan(keyspace, {})->Valid());
  }
}

// So that an older build, which would refuse the directory for it, can still open it.
TEST_F(RocksDbStoreTest, AKeyspaceThatCameLaterIsMadeWithItsFirstRecord) {
  const auto families = [this] {
    std::vector<std::string> names;
    EXPECT_TRUE(rocksdb::DB::ListColumnFamilies({}, options_.directory, &names).ok());
    return names;
  };
  constexpr Keyspace kLater = Keyspace::kTransactions;
  const auto insert = [](std::string key) {
    WriteBatch batch;
    batch.Insert(kLater, std::move(key), "1");
    return batch;
  };
  Open();
  Put("a", "1", "entry");
  // Without it all is as in one that is empty.
  EXPECT_EQ(*store_->Get(kLater, "t"), std::nullopt);
  EXPECT_FALSE(store_->Scan(kLater, {})->Valid());
  EXPECT_THAT(store_->Scan(kLater, {.begin = "", .end = "", .reverse = true})->status(), IsOk());
  EXPECT_EQ(store_->Estimate(kLater, {}).records, 0);
  WriteBatch checks;
  checks.CheckAbsent(kLater, "t");
  checks.Delete(kLater, "t");
  EXPECT_TRUE(AwaitCommit(*store_, std::move(checks)).committed);
  WriteBatch stamped;
  stamped.Check(kLater, "t", 1);
  EXPECT_EQ(AwaitCommit(*store_, std::move(stamped)).refused, 0u);
  EXPECT_THAT(store_->CompactAll(), IsOk());
  Reopen();
  EXPECT_THAT(families(), Not(Contains("transactions")));

  std::unique_ptr<store::Reader> snapshot = store_->Snapshot();
  const auto cursor = store_->Scan(kLater, {});
  EXPECT_TRUE(AwaitCommit(*store_, insert("t")).committed);
  EXPECT_THAT(families(), Contains("transactions"));
  EXPECT_EQ((*store_->Get(kLater, "t"))->value, "1");
  EXPECT_EQ(*snapshot->Get(kLater, "t"), std::nullopt);
  EXPECT_FALSE(snapshot->Scan(kLater, {})->Valid());
  EXPECT_FALSE(cursor->Valid());
  snapshot.reset();
  EXPECT_FALSE(AwaitCommit(*store_, insert("t")).committed);
  EXPECT_TRUE(AwaitCommit(*store_, insert("u")).committed);
}

// Killed between the two, or whenever later: no copy of the directory has the record and lacks what
// makes an older build refuse it.
TEST_F(RocksDbStoreTest, WhatIsWrittenIntoAKeyspaceThatCameLaterOutlivesAKill) {
  Open();
  Put("a", "1", "entry");
  WriteBatch batch;
  batch.Put(Keyspace::kTransactions, "t", "1");
  batch.Put(Keyspace::kMeta, "a", "2");
  EXPECT_TRUE(AwaitCommit(*store_, std::move(batch)).committed);
  const std::string copy = directory_.Join("copy");
  fs::copy(options_.directory, copy);
  store_.reset();
  options_.directory = copy;
  Open();
  EXPECT_EQ(ValueAt("a"), "2");
  EXPECT_EQ((*store_->Get(Keyspace::kTransactions, "t"))->value, "1");
}

// The same build, killed within a write: who looks whether the log's end was only torn makes no
// keyspace, and must not miss it either.
TEST_F(RocksDbStoreTest, AKeyspaceThatTheDatabaseLacksIsMadeWhereTheLogIsTorn) {
  Open();
  Put("a", "1", "entry");
  store_.reset();
  ChangeDatabase([](rocksdb::DB& database, const Families& families) {
    Drop(database, families, Keyspace::kRequests);
    ASSERT_TRUE(database.Put(rocksdb::WriteOptions(), "torn", std::string(5'000, 'x')).ok());
  });
  const std::vector<fs::path> logs = Files(".log");
  ASSERT_EQ(logs.size(), 1u);
  fs::resize_file(logs[0], fs::file_size(logs[0]) - 100);
  Open();
  EXPECT_EQ(ValueAt("a"), "1");
  WriteBatch batch;
  batch.Insert(Keyspace::kRequests, "new", "1");
  EXPECT_TRUE(AwaitCommit(*store_, std::move(batch)).committed);
}

class FailingRocksDbStoreTest : public RocksDbStoreTest {
 protected:
  using Call = FaultFileSystem::Call;
  using CallKind = FaultFileSystem::CallKind;

  FailingRocksDbStoreTest() {
    options_.file_system = files_;
    files_->SetFault([this](const Call& call) {
      if (!call.path.ends_with(".log")) return rocksdb::IOStatus::OK();
      if (call.kind == CallKind::kSync) ++log_syncs_;
      const bool fails = call.kind == CallKind::kSync ? fail_log_syncs_ : fail_log_appends_;
      return fails && call.kind != CallKind::kRead ? rocksdb::IOStatus::IOError("by the test")
                                                   : rocksdb::IOStatus::OK();
    });
  }
  // The store writes when it closes, and what its faults ask has to be there then.
  ~FailingRocksDbStoreTest() override { store_.reset(); }

  void ExpectReadsOnly() {
    EXPECT_THAT(store_->Ready(), HasReason(ErrorReason::kStoreUnavailable));
    EXPECT_THAT(Put("c", "1"), HasReason(ErrorReason::kStoreUnavailable));
    EXPECT_EQ(ValueAt("a"), "1");
    EXPECT_EQ(ValueAt("b"), "(none)");
    EXPECT_EQ(store_->Scan(Keyspace::kMeta, {})->key(), "a");
    EXPECT_EQ(ValueAt(*store_->Snapshot(), "a"), "1");
  }

  std::atomic<bool> fail_log_syncs_ = false;
  std::atomic<bool> fail_log_appends_ = false;
  std::atomic<int64_t> log_syncs_ = 0;  // how many were tried
  const std::shared_ptr<FaultFileSystem> files_ =
      std::make_shared<FaultFileSystem>(directory_.path().string());
};

TEST_F(FailingRocksDbStoreTest, AFailedSyncIsAnUnknownOutcomeAndEndsWritingUntilReopened) {
  Open();
  ASSERT_TRUE(Put("a", "1").committed);
  fail_log_syncs_ = true;
  EXPECT_THAT(Put("b", "1"), HasReason(ErrorReason::kOutcomeUnknown));
  ExpectReadsOnly();
  fail_log_syncs_ = false;
  ExpectReadsOnly();  // a disk that works again does not tell what it lost

  Reopen();
  EXPECT_EQ(ValueAt("a"), "1");
  EXPECT_THAT(ValueAt("b"), testing::AnyOf("1", "(none)"));
  EXPECT_EQ(ValueAt("c"), "(none)");
  EXPECT_TRUE(Put("c", "1").committed);
  EXPECT_THAT(store_->Ready(), IsOk());
}

TEST_F(FailingRocksDbStoreTest, AFailedAppendIsAnUnknownOutcomeToo) {
  Open();
  ASSERT_TRUE(Put("a", "1").committed);
  fail_log_appends_ = true;
  EXPECT_THAT(Put("b", "1"), HasReason(ErrorReason::kOutcomeUnknown));
  ExpectReadsOnly();
}

// Keeps the committer inside a callback until it is let go, so that a test decides what waits.
class HeldCommitter {
 public:
  explicit HeldCommitter(store::Store& store) {
    WriteBatch batch;
    batch.Put(Keyspace::kMeta, "held", "1");
    store.Commit(std::move(batch), [this](const CommitResult&) {
      entered_.set_value();
      released_.get_future().wait();
    });
    entered_.get_future().wait();
  }
  void Release() { released_.set_value(); }

 private:
  std::promise<void> entered_;
  std::promise<void> released_;
};

TEST_F(FailingRocksDbStoreTest, BatchesThatWaitShareOneSyncAndOneFailure) {
  Open();
  Put("a", "1");
  HeldCommitter held(*store_);
  const int64_t syncs = log_syncs_;
  constexpr int kCommits = 50;
  std::vector<CommitResult> results(kCommits + 1);
  for (int i = 0; i <= kCommits; ++i) {
    WriteBatch batch;
    // The last one loses against the first of the same group.
    batch.Insert(Keyspace::kHeads, i == kCommits ? "0" : std::to_string(i), "1");
    store_->Commit(std::move(batch), [&results, i](CommitResult result) {
      results[static_cast<size_t>(i)] = std::move(result);
    });
  }
  fail_log_syncs_ = true;
  held.Release();
  store_.reset();
  for (int i = 0; i < kCommits; ++i) {
    EXPECT_THAT(results[static_cast<size_t>(i)], HasReason(ErrorReason::kOutcomeUnknown));
  }
  EXPECT_THAT(results[kCommits], HasReason(ErrorReason::kStoreUnavailable));
  EXPECT_EQ(log_syncs_ - syncs, 1);
}

TEST_F(FailingRocksDbStoreTest, BatchesThatWaitAreDecidedInTheirOrder) {
  Open();
  HeldCommitter held(*store_);
  const int64_t syncs = log_syncs_;
  std::vector<std::pair<int, bool>> answers;
  for (int i = 0; i < 6; ++i) {
    WriteBatch batch;
    batch.Insert(Keyspace::kMeta, std::to_string(i / 2), "by " + std::to_string(i));
    store_->Commit(std::move(batch), [&answers, i](const CommitResult& result) {
      answers.emplace_back(i, result.committed);
    });
  }
  held.Release();
  Put("z", "1");
  EXPECT_THAT(answers, testing::ElementsAre(testing::Pair(0, true), testing::Pair(1, false),
                                            testing::Pair(2, true), testing::Pair(3, false),
                                            testing::Pair(4, true), testing::Pair(5, false)));
  EXPECT_LE(log_syncs_ - syncs, 2);
  EXPECT_EQ(ValueAt("2"), "by 4");
}

TEST_F(RocksDbStoreTest, WhoReadsARecordThatIsCachedSharesItsBytes) {
  Open();
  WriteBatch batch;
  batch.Put(Keyspace::kHeads, "a", "1");
  ASSERT_TRUE(AwaitCommit(*store_, std::move(batch)).committed);
  const auto bytes_at = [](const store::Reader& reader) {
    return (*reader.Get(Keyspace::kHeads, "a"))->value;
  };
  const auto share = [](const Bytes& one, const Bytes& other) {
    return std::string_view(one).data() == std::string_view(other).data();
  };
  EXPECT_TRUE(share(bytes_at(*store_), bytes_at(*store_)));
  EXPECT_TRUE(share(bytes_at(*store_), bytes_at(*store_->Snapshot())));
  Reopen();
  const Bytes read = bytes_at(*store_);  // from the disk; and the cache keeps the same
  EXPECT_TRUE(share(bytes_at(*store_), read));
}

TEST_F(RocksDbStoreTest, ABatchThatWaitedBeyondItsDeadlineIsDroppedAndNoOther) {
  Open();
  HeldCommitter held(*store_);
  std::vector<CommitResult> results(4);
  std::latch answered(4);
  for (const int i : {0, 1, 2, 3}) {
    WriteBatch batch;
    // What is dropped is in nobody's way.
    batch.Insert(Keyspace::kMeta, std::to_string(i / 2), "by " + std::to_string(i));
    if (i % 2 == 0) batch.set_deadline(clock_.SteadyNow() + std::chrono::seconds(i == 0 ? 1 : 3));
    store_->Commit(std::move(batch), [&results, &answered, i](CommitResult result) {
      results[static_cast<size_t>(i)] = std::move(result);
      answered.count_down();
    });
  }
  clock_.Advance(std::chrono::seconds(2));
  held.Release();
  answered.wait();
  EXPECT_THAT(results[0], HasReason(ErrorReason::kDeadlineExceeded));
  EXPECT_TRUE(results[1].committed);
  EXPECT_TRUE(results[2].committed);
  EXPECT_FALSE(results[3].committed);
  EXPECT_EQ(ValueAt("0"), "by 1");
  EXPECT_EQ(ValueAt("1"), "by 2");
}

TEST_F(RocksDbStoreTest, ARefusedBatchLeavesNoTraceInItsGroup) {
  Open();
  Put("stored", "1");
  Put("in the way", "1");
  HeldCommitter held(*store_);
  WriteBatch refused;  // writes before its guard fails
  refused.Put(Keyspace::kMeta, "stored", "2");
  refused.Put(Keyspace::kMeta, "new", "2");
  refused.Insert(Keyspace::kMeta, "in the way", "2");
  WriteBatch insert_of_stored;
  insert_of_stored.Insert(Keyspace::kMeta, "stored", "3");
  WriteBatch insert_of_new;
  insert_of_new.Insert(Keyspace::kMeta, "new", "3");
  std::vector<bool> committed;
  for (const WriteBatch* batch : {&refused, &insert_of_stored, &insert_of_new}) {
    store_->Commit(*batch,
                   [&](const CommitResult& result) { committed.push_back(result.committed); });
  }
  held.Release();
  Put("z", "1");
  EXPECT_THAT(committed, testing::ElementsAre(false, false, true));
  EXPECT_EQ(ValueAt("stored"), "1");
  EXPECT_EQ(ValueAt("new"), "3");
}

TEST_F(RocksDbStoreTest, AFullCommitQueueRefusesAndRecovers) {
  options_.queue_batches_max = 3;
  options_.queue_bytes_max = 1'000;
  Open();
  HeldCommitter held(*store_);
  std::vector<std::optional<ErrorReason>> reasons(5);
  std::latch answered(5);
  const auto commit = [&](size_t i, size_t bytes) {
    WriteBatch batch;
    batch.Put(Keyspace::kHeads, std::to_string(i), std::string(bytes, 'x'));
    store_->Commit(std::move(batch), [&reasons, &answered, i](const CommitResult& result) {
      reasons[i] = ReasonOf(result.status);
      answered.count_down();
    });
  };
  commit(0, 600);
  commit(1, 600);  // too many bytes
  commit(2, 100);
  commit(3, 100);
  commit(4, 1);  // too many batches
  EXPECT_EQ(reasons[1], ErrorReason::kOverloaded);
  EXPECT_EQ(reasons[4], ErrorReason::kOverloaded);
  held.Release();
  answered.wait();
  EXPECT_TRUE(Put("a", "1").committed);
  EXPECT_TRUE(Put("b", std::string(5'000, 'x')).committed);  // alone, any batch fits
  for (const size_t i : {0, 2, 3}) EXPECT_EQ(reasons[i], std::nullopt);
}

TEST_F(RocksDbStoreTest, ARecordBeyondTheLimitIsRefusedAlone) {
  Open();
  EXPECT_THAT(Put("a", std::string((size_t{32} << 20) + 1, 'x')),
              HasReason(ErrorReason::kLayoutLimit));
  EXPECT_THAT(Put(std::string((size_t{64} << 10) + 1, 'k'), "1"),
              HasReason(ErrorReason::kLayoutLimit));
  EXPECT_TRUE(Put("a", "1").committed);
}

TEST_F(RocksDbStoreTest, AnEstimateOfCompactedRecordsIsOfTheRightOrder) {
  Open();
  std::mt19937_64 generator(1);
  for (int i = 0; i < 10'000; i += 500) {
    WriteBatch batch;
    for (int j = i; j < i + 500; ++j) {
      std::string value(300, '\0');
      for (char& byte : value) byte = static_cast<char>(generator() >> 56);
      batch.Put(Keyspace::kVersions, std::to_string(100'000 + j), std::move(value));
    }
    ASSERT_TRUE(AwaitCommit(*store_, std::move(batch)).committed);
  }
  ASSERT_THAT(store_->CompactAll(), IsOk());
  const store::RangeEstimate all = store_->Estimate(Keyspace::kVersions, {});
  EXPECT_NEAR(static_cast<double>(all.records), 10'000, 2'000);
  EXPECT_NEAR(static_cast<double>(all.bytes), 3'100'000, 600'000);
  const store::RangeEstimate tenth =
      store_->Estimate(Keyspace::kVersions, {.begin = "102000", .end = "103000"});
  EXPECT_NEAR(static_cast<double>(tenth.records), 1'000, 500);
}

// What readers find is remembered for guards, if nothing was written beside them.
TEST_F(RocksDbStoreTest, GuardsOfMessagesHoldBesideReaders) {
  constexpr int kKeys = 12;
  constexpr int kSteps = 3'000;
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  Open();
  const auto key_of = [](uint64_t number) { return "message-" + std::to_string(number % kKeys); };
  std::atomic<bool> over = false;
  std::vector<std::thread> readers;
  for (uint64_t reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&, reader] {
      for (uint64_t i = reader; !over; ++i) {
        EXPECT_THAT(store_->Get(Keyspace::kMessages, key_of(i)), IsOk());
      }
    });
  }
  std::mt19937_64 random(seed);
  std::vector<store::Stamp> stored(kKeys);  // 0: none
  std::vector<store::Stamp> outdated(kKeys);
  int wrong = 0;
  for (int step = 0; step < kSteps; ++step) {
    const size_t number = random() % kKeys;
    const bool right = random() % 3 != 0;
    const bool there = stored[number] != 0;
    // Of a guard that does not hold: what was there before, or that anything is.
    const store::Stamp claimed = right ? stored[number] : outdated[number];
    WriteBatch batch;
    bool holds = false;
    bool removes = false;
    if (claimed == 0) {
      batch.Insert(Keyspace::kMessages, key_of(number), "inserted");
      holds = !there;
    } else {
      removes = random() % 3 == 0;
      if (removes) {
        batch.DeleteIf(Keyspace::kMessages, key_of(number), claimed);
      } else {
        batch.Replace(Keyspace::kMessages, key_of(number), "replaced", claimed);
      }
      holds = there && claimed == stored[number];
    }
    const CommitResult result = AwaitCommit(*store_, std::move(batch));
    if (!result.status.ok() || result.committed != holds) ++wrong;
    if (!result.committed) continue;
    outdated[number] = stored[number];
    stored[number] = removes ? 0 : result.position;
  }
  over = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0) << "of " << kSteps;
}

}  // namespace
}  // namespace strata::engines::rocks
