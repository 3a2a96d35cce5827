// Diffs for readers.
#include <benchmark/benchmark.h>

#include "bench/micro/orders.h"
#include "schemas/document/diff.h"

namespace strata::bench {
namespace {

constexpr size_t kAll = size_t{1} << 30;

void SixFields(benchmark::State& state) {
  const document::Content before = Order(state.range(0), 1);
  const document::Content after = Order(state.range(0), 2);
  for (auto _ : state) benchmark::DoNotOptimize(document::Diff(before, after, kAll));
}
BENCHMARK(SixFields)->Name("Diff/Fields")->Apply(Sizes);

void FirstElementGone(benchmark::State& state) {
  const document::Content before = Order(state.range(0), 1);
  const document::Content after = OrderWithoutFirstLine(state.range(0), 1);
  for (auto _ : state) benchmark::DoNotOptimize(document::Diff(before, after, kAll));
}
BENCHMARK(FirstElementGone)->Name("Diff/FirstElementGone")->Apply(Sizes);

}  // namespace
}  // namespace strata::bench
