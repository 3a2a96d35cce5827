// What the log tells of those who are denied: enough to see who asks for what, however often they
// ask and however many they are.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace strata::security {

// Thread-safe.
class Denials {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Of one caller no more lines are written in a second. Before the next one stands how many were
  // not.
  static constexpr int kLinesASecondMax = 10;
  // Callers beyond so many in a second count as one.
  static constexpr size_t kCallersMax = 4096;

  struct Denial {
    std::string_view principal;  // empty: nobody
    std::string_view permission;
    std::string_view resource;
    std::string_view peer;
    std::string_view reason;
  };
  void Tell(const Denial& denial, Time now);

  // How many callers are remembered.
  size_t size();

 private:
  struct Told {
    Time second{};  // which began then
    int lines = 0;
    int64_t untold = 0;
  };

  bool MayTell(std::string_view caller, Time now, int64_t& untold);
  Told& ToldOf(std::string_view caller, Time now);

  std::mutex mutex_;  // guards what follows
  absl::flat_hash_map<std::string, Told> callers_;
  Told others_;
  Time forgot_{};  // those of seconds that are over
};

}  // namespace strata::security
