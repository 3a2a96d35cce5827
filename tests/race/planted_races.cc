// Races that are there on purpose: planted_races NAME runs one of them, and ThreadSanitizer must
// report it. Each stands for what a suppression, an option or a library that is not instrumented
// could hide.
#include <rocksdb/compaction_filter.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "tests/support/temporary_directory.h"

namespace strata::race {
namespace {

// Two accesses at the very same moment can miss each other in the detector's notes.
constexpr int kRounds = 10;

// Nothing orders the two, so the detector needs no luck with the schedule.
void Beside(const std::function<void()>& one, const std::function<void()>& other) {
  std::thread first(one);
  std::thread second(other);
  first.join();
  second.join();
}

void NoRace() {
  std::mutex mutex;
  int count = 0;
  const auto add = [&] {
    const std::lock_guard lock(mutex);
    ++count;
  };
  Beside(add, add);
}

void PlantedOnACounter() {
  int count = 0;
  Beside([&] { ++count; }, [&] { ++count; });
}

// Seen by the sanitizer's memcpy, not by what the compiler adds.
void PlantedOnCopiedBytes() {
  const std::vector<char> from(1000, 'x');
  std::vector<char> to(from.size());
  const auto copy = [&] { std::memcpy(to.data(), from.data(), from.size()); };
  Beside(copy, copy);
}

void PlantedOnDeletedMemory() {
  const auto* const number = new int(1);
  int read = 0;
  Beside([&] { delete number; }, [&] { read = *number; });
}

// A status shares what it holds by a count that the sanitizer does not see; who changes it is seen.
void PlantedOnAStatus() {
  absl::Status status;
  bool read = false;
  Beside([&] { status = absl::InternalError("a message that has to be allocated"); },
         [&] { read = status.ok(); });
}

class CountingFilter final : public rocksdb::CompactionFilter {
 public:
  const char* Name() const override { return "counting"; }
  bool Filter(int, const rocksdb::Slice&, const rocksdb::Slice&, std::string*,
              bool*) const override {
    ++calls;
    return false;
  }
  mutable int calls = 0;
};

// In a callback on a thread of RocksDB's own.
void PlantedBelowRocksDb() {
  const test_support::TemporaryDirectory directory;
  CountingFilter filter;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compaction_filter = &filter;
  rocksdb::DB* opened = nullptr;
  if (!rocksdb::DB::Open(options, directory.Join("db"), &opened).ok()) return;
  const std::unique_ptr<rocksdb::DB> database(opened);
  const auto compact = [&] {
    rocksdb::CompactRangeOptions all;
    all.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    database->Put(rocksdb::WriteOptions(), "key", "value").PermitUncheckedError();
    database->CompactRange(all, nullptr, nullptr).PermitUncheckedError();
  };
  Beside(compact, [&] { ++filter.calls; });
}

// A batch takes a copy of what it is given, in the middle of a library that is not instrumented.
void PlantedOnBytesGivenToRocksDb() {
  std::string given(1000, 'x');
  Beside([&] { given.assign(1000, 'y'); },
         [&] { rocksdb::WriteBatch().Put("key", given).PermitUncheckedError(); });
}

const std::map<std::string_view, void (*)()> kRaces = {
    {"none", NoRace},
    {"counter", PlantedOnACounter},
    {"copied", PlantedOnCopiedBytes},
    {"deleted", PlantedOnDeletedMemory},
    {"status", PlantedOnAStatus},
    {"below_rocksdb", PlantedBelowRocksDb},
    {"given_to_rocksdb", PlantedOnBytesGivenToRocksDb},
};

}  // namespace
}  // namespace strata::race

int main(int argc, char** argv) {
  const auto race = strata::race::kRaces.find(argc == 2 ? argv[1] : "");
  if (race == strata::race::kRaces.end()) {
    std::fprintf(stderr, "usage: planted_races NAME\n");
    return 2;
  }
  for (int round = 0; round < strata::race::kRounds; ++round) race->second();
  return 0;
}
