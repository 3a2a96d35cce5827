// The facade: a whole Get and a whole Update but for the wire and the disk.
#include <benchmark/benchmark.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "bench/micro/must.h"
#include "bench/micro/world.h"
#include "bench/support/ten_fields.h"
#include "schemas/versioning/documents.h"

namespace strata::bench {
namespace {

using document::Content;
using versioning::StrategyEntry;
using versioning::WriteResult;

constexpr int64_t kDocuments = 200;
constexpr int64_t kVersions = 20;

void Get(benchmark::State& state, const StrategyEntry& strategy) {
  const Shape shape{state.range(0), state.range(1)};
  const versioning::Documents& documents = World::Shared(strategy, kNoFiles).documents();
  const DocumentName name = World::NameOf(World::IdOf(shape));
  if (Must(documents.Get(name, {})).header.version != shape.versions) {
    state.SkipWithError("the layout cannot hold so many versions");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(documents.Get(name, {}));
}

void Update(versioning::Documents& documents, const std::string& id, Content content) {
  absl::Status answer = absl::UnknownError("not answered before the call's end");
  documents.Update(World::RequestFor(id), std::move(content), /*allow_missing=*/true,
                   [&](absl::StatusOr<WriteResult> result) { answer = result.status(); });
  Must(answer);
}

// Documents in turn, each with one to twenty versions: as many as any layout is meant for.
void UpdateInTurn(benchmark::State& state, const StrategyEntry& strategy) {
  std::vector<Content> contents;
  for (int64_t version = 1; version <= kVersions + 1; ++version) {
    contents.push_back(
        Content::FromTrusted(TenFields(1, version, static_cast<size_t>(state.range(0)))));
  }
  World world(strategy, kNoFiles);
  std::vector<std::string> ids;
  for (int64_t i = 0; i < kDocuments; ++i) {
    ids.push_back("customer-" + std::to_string(i));
    Update(world.documents(), ids.back(), contents.back());
  }
  size_t turn = 0;
  for (auto _ : state) {
    Update(world.documents(), ids[turn % ids.size()], contents[turn / ids.size()]);
    ++turn;
  }
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const StrategyEntry& strategy : versioning::AllStrategies()) {
    const std::string name(strategy.name);
    auto* const get = benchmark::RegisterBenchmark(
        ("Documents/Get/" + name).c_str(),
        [&strategy](benchmark::State& state) { Get(state, strategy); });
    get->ArgNames({"bytes", "versions"});
    for (const Shape& shape : kShapes) get->Args({shape.bytes, shape.versions});
  }
  for (const StrategyEntry& strategy : versioning::AllStrategies()) {
    benchmark::RegisterBenchmark(
        ("Documents/Update/" + std::string(strategy.name)).c_str(),
        [&strategy](benchmark::State& state) { UpdateInTurn(state, strategy); })
        ->ArgName("bytes")
        ->Arg(300)
        ->Arg(2'048)
        ->Arg(20'480)
        ->Iterations(kDocuments * kVersions);
  }
  return true;
}();

}  // namespace
}  // namespace strata::bench
