// Strategies: what each pays for reading and planning, as its histories grow.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <optional>
#include <string>

#include "bench/micro/must.h"
#include "bench/micro/world.h"
#include "bench/support/ten_fields.h"
#include "schemas/versioning/strategy.h"

namespace strata::bench {
namespace {

using versioning::Head;
using versioning::Part;
using versioning::ReadContext;
using versioning::StoredVersion;
using versioning::Strategy;
using versioning::StrategyEntry;

// A document and what must be known of it before anything else is done.
struct Subject {
  versioning::CollectionPtr collection;
  ReadContext context;
  store::DocumentKey key;
  Head head;
  int64_t versions = 0;

  const Strategy& strategy() const { return *collection->strategy; }
};

using Function = void (*)(benchmark::State& state, const Subject& subject);

void ReadHead(benchmark::State& state, const Subject& subject) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(subject.strategy().ReadHead(subject.context, subject.key));
  }
}

// Any version, the head read before. Not always the same: what one costs may depend on its place.
void ReadVersion(benchmark::State& state, const Subject& subject) {
  constexpr int64_t kStep = 7'919;  // has no divisor in common with a number of versions
  int64_t place = 0;
  for (auto _ : state) {
    place = (place + kStep) % subject.versions;
    const auto version = subject.strategy().ReadVersion(subject.context, subject.key, subject.head,
                                                        place + 1, Part::kContent);
    if (!version.ok()) Must(version.status());
  }
}

void NewestTen(benchmark::State& state, const Subject& subject) {
  const versioning::VersionRange range{.first = std::max<int64_t>(subject.versions - 9, 1),
                                       .last = subject.versions,
                                       .newest_first = true};
  for (auto _ : state) {
    const auto cursor = subject.strategy().ScanVersions(subject.context, subject.key, subject.head,
                                                        range, Part::kContent);
    while (cursor->Next()) benchmark::DoNotOptimize(cursor->item());
    Must(cursor->status());
  }
}

// One more version; hashing it is measured apart.
void Plan(benchmark::State& state, const Subject& subject) {
  StoredVersion next;
  next.header = subject.head.version.header;
  next.header.version += 1;
  next.content = document::Content::FromTrusted(
      TenFields(1, next.header.version, subject.head.version.content->size()));
  for (auto _ : state) {
    store::WriteBatch batch;
    Must(subject.strategy().Plan(subject.key, &subject.head, {&next, 1},
                                 subject.context.capabilities, batch));
    benchmark::DoNotOptimize(batch);
  }
}

void Run(benchmark::State& state, const StrategyEntry& strategy, std::string_view engine,
         Function function) {
  const Shape shape{state.range(0), state.range(1)};
  const World& world = World::Shared(strategy, engine);
  const auto collection = world.collection();
  Subject subject{
      collection, world.context(), {collection->incarnation, World::IdOf(shape)}, {}, 0};
  std::optional<Head> head = Must(subject.strategy().ReadHead(subject.context, subject.key));
  if (!head || head->version.header.version != shape.versions) {
    state.SkipWithError("the layout cannot hold so many versions");
    return;
  }
  Must(subject.strategy().PrepareToPlan(subject.context, subject.key, *head));
  subject.head = *std::move(head);
  subject.versions = shape.versions;
  function(state, subject);
}

void Register(const std::string& name, const StrategyEntry& strategy, std::string_view engine,
              Function function) {
  auto* const benchmark = benchmark::RegisterBenchmark(
      name.c_str(), [&strategy, engine, function](benchmark::State& state) {
        Run(state, strategy, engine, function);
      });
  benchmark->ArgNames({"bytes", "versions"});
  for (const Shape& shape : kShapes) benchmark->Args({shape.bytes, shape.versions});
}

[[maybe_unused]] const bool kStrategiesRegistered = [] {
  const std::pair<std::string, Function> reads[] = {
      {"ReadHead", ReadHead}, {"ReadVersion", ReadVersion}, {"ReadNewestTen", NewestTen}};
  for (const StrategyEntry& strategy : versioning::AllStrategies()) {
    const std::string prefix = "Strategy/" + std::string(strategy.name) + "/";
    for (const auto& [name, function] : reads) {
      for (const engines::Engine& engine : engines::AllEngines()) {
        Register(prefix + name + "/" + std::string(engine.name), strategy, engine.name, function);
      }
    }
    // Pure: no engine has a share in it.
    Register(prefix + "Plan", strategy, kNoFiles, Plan);
  }
  return true;
}();

}  // namespace
}  // namespace strata::bench
