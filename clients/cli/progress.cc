// Redraws one line with carriage return and "erase to the end".
#include "clients/cli/progress.h"

#include <algorithm>
#include <cstdio>

#include "clients/cli/render.h"

namespace strata::cli {
namespace {

std::string DurationText(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 120) return std::to_string(whole) + " s";
  if (whole < 7200) return std::to_string(whole / 60) + " min";
  return std::to_string(whole / 3600) + " h";
}

}  // namespace

std::string ProgressLine(int64_t done, std::string_view what, double fraction, double seconds) {
  constexpr size_t kBarWidth = 24;
  std::string line;
  if (fraction > 0) {
    const double part = std::min(fraction, 1.0);
    const auto filled = static_cast<size_t>(part * static_cast<double>(kBarWidth));
    char percent[16];
    std::snprintf(percent, sizeof percent, "%3d %%", static_cast<int>(part * 100));
    line = "[" + std::string(filled, '#') + std::string(kBarWidth - filled, ' ') + "] " + percent +
           "  ";
  }
  const auto rate = static_cast<int64_t>(static_cast<double>(done) / std::max(seconds, 1e-3));
  line += WithCommas(done) + " " + std::string(what) + "  " + WithCommas(rate) + "/s";
  if (fraction > 0 && fraction < 1 && seconds > 1) {
    line += "  " + DurationText(seconds / fraction * (1 - fraction)) + " left";
  }
  return line;
}

Progress::Progress(std::ostream& out, bool enabled)
    : out_(out), enabled_(enabled), start_(std::chrono::steady_clock::now()), next_(start_) {}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Progress::Show(int64_t done, std::string_view what, double fraction) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  out_ << "\r\x1b[K" << ProgressLine(done, what, fraction, seconds()) << std::flush;
  shown_ = true;
}

void Progress::Clear() {
  if (shown_) out_ << "\r\x1b[K" << std::flush;
  shown_ = false;
}

}  // namespace strata::cli
