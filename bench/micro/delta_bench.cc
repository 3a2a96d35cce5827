// Deltas between successive versions. The counter "delta" is the delta's size in bytes.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/micro/must.h"
#include "bench/micro/orders.h"
#include "schemas/document/delta.h"

namespace strata::bench {
namespace {

using document::Content;

void Encode(benchmark::State& state, const Content& base, const Content& next) {
  const std::string delta = document::EncodeDelta(base, next);
  state.counters["delta"] = static_cast<double>(delta.size());
  for (auto _ : state) benchmark::DoNotOptimize(document::EncodeDelta(base, next));
}

void EncodeFields(benchmark::State& state) {
  Encode(state, Order(state.range(0), 1), Order(state.range(0), 2));
}
BENCHMARK(EncodeFields)->Name("Delta/Encode")->Apply(Sizes);

void EncodeFirstElementGone(benchmark::State& state) {
  Encode(state, Order(state.range(0), 1), OrderWithoutFirstLine(state.range(0), 1));
}
BENCHMARK(EncodeFirstElementGone)->Name("Delta/EncodeFirstElementGone")->Apply(Sizes);

void Apply(benchmark::State& state) {
  const Content base = Order(state.range(0), 1);
  const std::string delta = document::EncodeDelta(base, Order(state.range(0), 2));
  Must(document::ApplyDelta(base, delta));
  for (auto _ : state) benchmark::DoNotOptimize(document::ApplyDelta(base, delta));
}
BENCHMARK(Apply)->Name("Delta/Apply")->Apply(Sizes);

}  // namespace
}  // namespace strata::bench
