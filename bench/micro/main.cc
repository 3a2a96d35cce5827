// strata_micro: what each mechanism costs by itself. Takes google-benchmark's flags, such as
// --benchmark_filter=Delta.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "bench/micro/world.h"

int main(int argc, char** argv) {
  // Hundreds of benchmarks at the library's half second would take too long to be run often. In
  // front of the caller's flags, of which the last one counts.
  std::string min_time = "--benchmark_min_time=0.1";
  std::vector<char*> arguments(argv, argv + argc);
  arguments.insert(arguments.begin() + 1, min_time.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);

  benchmark::SetDefaultTimeUnit(benchmark::kMicrosecond);
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  strata::bench::World::DropShared();
  return 0;
}
