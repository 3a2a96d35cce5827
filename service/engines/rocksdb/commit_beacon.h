// A small file that says how far the log must reach: what tells a torn end of the log from damage.
//
// The log is opened with absolute consistency, which refuses every damage, and with it the harmless
// end that a killed process leaves when it dies within a write. Then the beacon decides: a log that
// still holds every commit up to the beacon lost nothing but what was being written.
//
//   beacon = slot slot          slots take turns, so that a torn write spoils one at most
//   slot   = position crc zeros 512 bytes
//   position = 8 bytes, little-endian    commits up to here are durable
//   crc      = 4 bytes, little-endian    CRC-32 of the position's bytes
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/store/record.h"

namespace strata::engines::rocks {

// The greatest position that the beacon of `directory` vouches for; 0 if there is no beacon (a new
// database). RECORD_CORRUPT if there is one and no slot of it is whole, STORE_UNAVAILABLE.
absl::StatusOr<store::CommitPosition> ReadBeacon(const std::string& directory);

// Writes the beacon in the background, at most 100 ms behind, and once more at the end.
class CommitBeacon {
 public:
  // `position` answers with the newest durable commit, on the beacon's thread.
  static absl::StatusOr<std::unique_ptr<CommitBeacon>> Start(
      const std::string& directory, std::function<store::CommitPosition()> position);
  // Writes the last position before it returns.
  ~CommitBeacon();
  CommitBeacon(const CommitBeacon&) = delete;
  CommitBeacon& operator=(const CommitBeacon&) = delete;

 private:
  CommitBeacon(int file, std::function<store::CommitPosition()> position);
  void Run();
  void Write(store::CommitPosition position);

  const int file_;
  const std::function<store::CommitPosition()> position_;
  store::CommitPosition written_ = 0;
  int next_slot_ = 0;
  bool failed_ = false;

  std::mutex mutex_;  // guards stopping_
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace strata::engines::rocks
