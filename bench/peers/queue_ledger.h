// The messages of one workload on one queue: each is told from all others by its payload, so that
// it shows if one comes twice, changed or not at all.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata::bench {

class QueueLedger {
 public:
  static constexpr size_t kPayloadBytes = 300;

  QueueLedger();

  // A payload that no other message has. Call it right before it is pushed.
  std::string NextPayload();
  // Whether it is one of those, and had not come before.
  bool Take(std::string_view payload);

  // Every push is counted once it is answered, so that what is left can be told.
  void Pushed(int64_t count) { pushed_ += count; }
  void Acknowledged(int64_t count) { acknowledged_ += count; }
  int64_t pushed() const { return pushed_; }
  int64_t taken() const { return taken_count_; }
  int64_t left() const { return pushed_ - acknowledged_; }

 private:
  static constexpr size_t kFillings = 61;

  std::array<std::string, kFillings> fillings_;  // what a payload is but for its number
  std::vector<bool> taken_;                      // by number; as many as there are
  int64_t taken_count_ = 0;
  int64_t pushed_ = 0;
  int64_t acknowledged_ = 0;
};

}  // namespace strata::bench
