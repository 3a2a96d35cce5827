// Hashes: every version has one of its content and one of its chain.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/micro/orders.h"
#include "schemas/document/hash.h"
#include "schemas/versioning/version.h"

namespace strata::bench {
namespace {

void HashContent(benchmark::State& state) {
  const std::string salt(versioning::kSaltSize, 's');
  const document::Content content = Order(state.range(0), 1);
  for (auto _ : state) benchmark::DoNotOptimize(document::ContentHash(salt, content));
}
BENCHMARK(HashContent)->Name("Hash/Content")->Apply(Sizes);

void Chain(benchmark::State& state) {
  const document::Hash start = versioning::ChainStart("customers", "customer-1");
  versioning::VersionHeader header;
  header.version = 2;
  header.change = {.actor = "alice", .on_behalf_of = "", .reason = "moved house", .labels = {}};
  for (auto _ : state) benchmark::DoNotOptimize(versioning::ChainHash(start, header));
}
BENCHMARK(Chain)->Name("Hash/Chain");

}  // namespace
}  // namespace strata::bench
