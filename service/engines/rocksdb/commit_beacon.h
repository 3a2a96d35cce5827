// A small file that says how far log and manifest must reach: what tells a torn end from damage.
//
// The log is opened with absolute consistency, which refuses every damage, and with it the harmless
// end that a killed process leaves when it dies within a write. Then the beacon decides: a log that
// still holds every commit up to the beacon lost nothing but what was being written.
//
// The manifest, RocksDB's own log of its files, is always read as if its end might be torn: one
// that was cut is an older state of the database, whose newer tables would be deleted as unknown.
// So the beacon says how long it must be, too.
//
//   beacon = slot slot          slots take turns, and no disk's unit of writing holds both, so a
//                               torn write spoils one at most
//   slot   = position manifest length crc zeros    4096 bytes
//   position = 8 bytes, little-endian    commits up to here are durable
//   manifest = 8 bytes, little-endian    the number in the manifest's name; 0: not known
//   length   = 8 bytes, little-endian    as much of that manifest is durable
//   crc      = 4 bytes, little-endian    CRC-32 of the bytes before it
//
// Slots were 512 bytes once, with position and crc alone. Where a beacon still has its two there,
// the greatest of all counts, and the next is written after them.
//
// A beacon is there before the database is, so one that is missing or unreadable beside a database
// was lost, and then nothing vouches for a log that is torn.
#pragma once

#include <rocksdb/file_system.h>

#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/store/record.h"

namespace strata::engines::rocks {

// What is durable.
struct Durable {
  store::CommitPosition position = 0;
  uint64_t manifest = 0;
  uint64_t manifest_bytes = 0;
  friend auto operator<=>(const Durable&, const Durable&) = default;
};

// The greatest that the beacon of `directory` vouches for; nothing if there is no beacon, or no
// slot of it is whole. STORE_UNAVAILABLE.
absl::StatusOr<std::optional<Durable>> ReadBeacon(rocksdb::FileSystem& files,
                                                  const std::string& directory);

// Makes the beacon of `directory` anew, in one step, and its name durable. STORE_UNAVAILABLE.
absl::Status MakeBeacon(rocksdb::FileSystem& files, const std::string& directory, Durable durable);

// As ReadBeacon, before the database is opened; where there is no database yet, makes a beacon.
// RECORD_CORRUPT if the beacon vouches for a database, or for a manifest, that is not there.
absl::StatusOr<std::optional<Durable>> ReadOrMakeBeacon(rocksdb::FileSystem& files,
                                                        const std::string& directory);

// Writes the beacon in the background, at most `behind_max` late, and once more at the end.
class CommitBeacon {
 public:
  // `durable` answers on the beacon's thread. REQUIRES: there is a beacon. STORE_UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<CommitBeacon>> Start(rocksdb::FileSystem& files,
                                                             const std::string& directory,
                                                             std::chrono::milliseconds behind_max,
                                                             std::function<Durable()> durable);
  // Writes the last state before it returns.
  ~CommitBeacon();
  CommitBeacon(const CommitBeacon&) = delete;
  CommitBeacon& operator=(const CommitBeacon&) = delete;

 private:
  CommitBeacon(std::unique_ptr<rocksdb::FSRandomRWFile> file, std::chrono::milliseconds behind_max,
               std::function<Durable()> durable);
  void Run();
  void Write(const Durable& durable);

  const std::unique_ptr<rocksdb::FSRandomRWFile> file_;
  const std::chrono::milliseconds behind_max_;
  const std::function<Durable()> durable_;
  Durable written_;
  int next_slot_ = 0;
  bool failed_ = false;

  std::mutex mutex_;  // guards stopping_
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace strata::engines::rocks
