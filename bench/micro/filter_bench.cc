// Filters: checked and compiled once a call, then asked once a document.
#include <benchmark/benchmark.h>

#include <string_view>

#include "bench/micro/must.h"
#include "bench/micro/orders.h"
#include "schemas/document/filter.h"

namespace strata::bench {
namespace {

using document::Content;
using document::Filter;

constexpr std::string_view kFields = R"({"city": "Rotterdam", "age": {"$gte": 18, "$lt": 30}})";
constexpr std::string_view kPattern = R"({"note": {"$regex": "w[a-z]+9[0-9] word"}})";
// Holds for no line, so that all are asked.
constexpr std::string_view kElements = R"({"lines": {"$elemMatch": {"counter": 0, "age": 5}}})";

void Compile(benchmark::State& state, std::string_view json) {
  const Content filter = ContentOf(json);
  Must(Filter::Compile(filter));
  for (auto _ : state) benchmark::DoNotOptimize(Filter::Compile(filter));
}
BENCHMARK_CAPTURE(Compile, fields, kFields)->Name("Filter/Compile/Fields");
BENCHMARK_CAPTURE(Compile, pattern, kPattern)->Name("Filter/Compile/Pattern");

void Matches(benchmark::State& state, std::string_view json) {
  const Filter filter = Must(Filter::Compile(ContentOf(json)));
  const Content content = Order(state.range(0), 1);
  for (auto _ : state) benchmark::DoNotOptimize(filter.Matches(content));
}
BENCHMARK_CAPTURE(Matches, fields, kFields)->Name("Filter/Matches/Fields")->Apply(Sizes);
BENCHMARK_CAPTURE(Matches, pattern, kPattern)->Name("Filter/Matches/Pattern")->Apply(Sizes);
BENCHMARK_CAPTURE(Matches, elements, kElements)->Name("Filter/Matches/Elements")->Apply(Sizes);

}  // namespace
}  // namespace strata::bench
