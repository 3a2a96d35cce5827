// One line on the terminal that says how far a long command is.
#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace strata::cli {

// "[#########           ]  45 %  5,493 versions  6,120/s  1 s left"; `fraction` 0: unknown, no bar.
std::string ProgressLine(int64_t done, std::string_view what, double fraction, double seconds);

// Prints ProgressLine over and over at the same place, at most ten times a second.
class Progress {
 public:
  // Nothing is printed if not `enabled`.
  Progress(std::ostream& out, bool enabled);
  void Show(int64_t done, std::string_view what, double fraction);
  void Clear();
  // Since the start.
  double seconds() const;

 private:
  std::ostream& out_;
  bool enabled_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace strata::cli
