#include "bench/support/host.h"

#include <ctime>
#include <fstream>
#include <string_view>

namespace strata::bench {

std::string ProcessorName() {
  std::ifstream in("/proc/cpuinfo");
  constexpr std::string_view kName = "model name";
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(kName)) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

}  // namespace strata::bench
