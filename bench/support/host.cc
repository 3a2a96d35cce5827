#include "bench/support/host.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <fstream>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace strata::bench {
namespace {

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

std::string Compiler() {
#ifdef __clang__
  return __VERSION__;
#else
  return "g++ " __VERSION__;
#endif
}

}  // namespace

std::string DescribeHost() {
  utsname system{};
  uname(&system);
  const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return absl::StrCat(Today(), ", ", ProcessorName(), ", ", sysconf(_SC_NPROCESSORS_ONLN),
                      " cores, ", (memory + (1 << 29)) >> 30, " GiB, ", system.sysname, " ",
                      system.release, ", ", Compiler());
}

}  // namespace strata::bench
