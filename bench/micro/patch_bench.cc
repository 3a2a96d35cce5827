// Patches: both kinds, the check of the result included.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/micro/must.h"
#include "bench/micro/orders.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/patch.h"

namespace strata::bench {
namespace {

using document::Content;
using document::Operation;
using document::OperationKind;
using document::Patch;
using document::Path;
using document::Value;

void Apply(benchmark::State& state, const Patch& patch) {
  const Content base = Order(state.range(0), 1);
  Must(document::ApplyPatch(base, patch, {}));
  for (auto _ : state) benchmark::DoNotOptimize(document::ApplyPatch(base, patch, {}));
}

void Merge(benchmark::State& state) {
  Patch patch;
  patch.merge = ContentOf(R"({"counter": 2, "city": "Delft", "street": null})");
  Apply(state, patch);
}
BENCHMARK(Merge)->Name("Patch/Merge")->Apply(Sizes);

Operation Make(OperationKind kind, std::string_view path, std::string_view member) {
  const Content operand = ContentOf(member);
  document::MemberReader members(operand.bytes());
  document::Member value;
  members.Next(value);
  return {Must(Path::Parse(path)), kind, Value{value.type, std::string(value.value)}};
}

void Operations(benchmark::State& state) {
  Patch patch;
  patch.operations = {Make(OperationKind::kIncrement, "/counter", R"({"": 1})"),
                      Make(OperationKind::kSet, "/city", R"({"": "Delft"})"),
                      Make(OperationKind::kAppend, "/tags", R"({"": ["new", "paid"]})")};
  Apply(state, patch);
}
BENCHMARK(Operations)->Name("Patch/ThreeOperations")->Apply(Sizes);

}  // namespace
}  // namespace strata::bench
