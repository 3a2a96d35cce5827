// Keys, as every read and write makes them and every scan takes them apart.
#include <benchmark/benchmark.h>

#include <string>

#include "schemas/store/key_codec.h"

namespace strata::bench {
namespace {

const store::DocumentKey kDocument{.incarnation = 7, .id = "customers/customer-1234"};

void HeadKey(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(store::HeadKey(kDocument));
}
BENCHMARK(HeadKey)->Name("KeyCodec/HeadKey")->Unit(benchmark::kNanosecond);

void Version(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(store::VersionKey(kDocument, 1234));
}
BENCHMARK(Version)->Name("KeyCodec/VersionKey")->Unit(benchmark::kNanosecond);

void ParseVersion(benchmark::State& state) {
  const std::string key = store::VersionKey(kDocument, 1234);
  for (auto _ : state) benchmark::DoNotOptimize(store::ParseVersionKey(key));
}
BENCHMARK(ParseVersion)->Name("KeyCodec/ParseVersionKey")->Unit(benchmark::kNanosecond);

}  // namespace
}  // namespace strata::bench
