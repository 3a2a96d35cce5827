// Content: what it costs to take a document in and to hand it out, in both encodings.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/micro/must.h"
#include "bench/micro/orders.h"
#include "schemas/document/content.h"
#include "schemas/document/struct_codec.h"

namespace strata::bench {
namespace {

using document::Content;

void FromBson(benchmark::State& state) {
  const std::string bytes(Order(state.range(0), 1).bytes());
  Must(Content::FromBson(bytes, {}));
  for (auto _ : state) benchmark::DoNotOptimize(Content::FromBson(bytes, {}));
}
BENCHMARK(FromBson)->Name("Content/FromBson")->Apply(Sizes);

void FromStruct(benchmark::State& state) {
  std::string wire;
  document::AppendStruct(Order(state.range(0), 1), wire);
  Must(document::ContentFromStruct(wire, {}));
  for (auto _ : state) benchmark::DoNotOptimize(document::ContentFromStruct(wire, {}));
}
BENCHMARK(FromStruct)->Name("Content/FromStruct")->Apply(Sizes);

void ToStruct(benchmark::State& state) {
  const Content content = Order(state.range(0), 1);
  std::string wire;
  for (auto _ : state) {
    wire.clear();
    document::AppendStruct(content, wire);
    benchmark::DoNotOptimize(wire.data());
  }
}
BENCHMARK(ToStruct)->Name("Content/AppendStruct")->Apply(Sizes);

void SameMeaning(benchmark::State& state) {
  const Content a = Order(state.range(0), 1);
  const Content b = Content::FromTrusted(std::string(a.bytes()));
  for (auto _ : state) benchmark::DoNotOptimize(document::SameMeaning(a, b));
}
BENCHMARK(SameMeaning)->Name("Content/SameMeaning")->Apply(Sizes);

}  // namespace
}  // namespace strata::bench
