// Access: what each call pays for being asked who it is, what it may do and how much.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "bench/micro/must.h"
#include "service/security/access.h"
#include "service/security/tokens.h"

namespace strata::bench {
namespace {

using security::Access;
using security::Credentials;
using security::Demands;
using security::Identity;
using security::Permission;
using security::ResourceKind;

constexpr int kGrants = 100;

// Tokens and a policy of a hundred principals, each with its own collections and quota.
void Use(Access& access) {
  std::string lines;
  std::string grants;
  std::string quotas;
  for (int i = 0; i < kGrants; ++i) {
    const std::string name = "service-" + std::to_string(i);
    const std::string comma = i == 0 ? "" : ",";
    lines += Must(security::TokenLine(name, "secret-" + name, std::nullopt)) + "\n";
    grants += comma + R"({"principals": ["user:)" + name +
              R"("], "role": "writer", "resources": ["collection/)" + name + R"(-*"]})";
    quotas += comma + R"({"principals": ["user:)" + name +
              R"("], "calls_per_second": 1e9, "mib_per_second": 1e6, "calls_in_flight": 64})";
  }
  const std::string json = R"({"grants": [)" + grants + R"(], "quotas": [)" + quotas + "]}";
  access.Use({.tokens = std::make_shared<security::Tokens>(Must(security::Tokens::Parse(lines, 0))),
              .policy = std::make_shared<security::Policy>(Must(security::Policy::Parse(json)))});
}

const Identity kLast{.principal = "user:service-99", .token_hash = {}};

void Known(benchmark::State& state) {
  static Access access;
  if (state.thread_index() == 0) Use(access);
  const Demands demands{{Permission::kWrite, {ResourceKind::kCollection, "service-99-orders"}}};
  for (auto _ : state) benchmark::DoNotOptimize(access.Authorize(kLast, demands, "peer"));
}
BENCHMARK(Known)->Name("Access/Authorize/Known")->Threads(1)->Threads(2);

// More names than are remembered, so that the policy is asked each time.
void New(benchmark::State& state) {
  Access access;
  Use(access);
  int64_t number = 0;
  for (auto _ : state) {
    const std::string name = "service-99-" + std::to_string(number++);
    const Demands demands{{Permission::kWrite, {ResourceKind::kCollection, name}}};
    benchmark::DoNotOptimize(access.Authorize(kLast, demands, "peer"));
  }
}
BENCHMARK(New)->Name("Access/Authorize/New");

void Identify(benchmark::State& state) {
  Access access;
  Use(access);
  const std::string header = "Bearer secret-service-99";
  const Credentials credentials{.authorization = {header}, .uris = {}, .dns_names = {}};
  for (auto _ : state) benchmark::DoNotOptimize(access.Identify(credentials));
}
BENCHMARK(Identify)->Name("Access/Identify/Token");

void StillValid(benchmark::State& state) {
  Access access;
  Use(access);
  const std::string header = "Bearer secret-service-99";
  const Identity identity =
      Must(access.Identify({.authorization = {header}, .uris = {}, .dns_names = {}}));
  for (auto _ : state) benchmark::DoNotOptimize(access.CheckStillValid(identity));
}
BENCHMARK(StillValid)->Name("Access/CheckStillValid");

// All that a call asks of its caller's quota.
void TakeQuota(benchmark::State& state, const std::string& principal) {
  Access access;
  Use(access);
  const auto quota = access.QuotaOf(principal);
  for (auto _ : state) {
    const auto now = Clock::System().SteadyNow();
    benchmark::DoNotOptimize(quota->Enter());
    benchmark::DoNotOptimize(quota->Take(100, now));
    quota->Charge(1000, now);
    quota->Leave();
  }
}
BENCHMARK_CAPTURE(TakeQuota, Limited, "user:service-99")->Name("Access/Quota/Limited");
BENCHMARK_CAPTURE(TakeQuota, Unlimited, "user:other")->Name("Access/Quota/Unlimited");

}  // namespace
}  // namespace strata::bench
