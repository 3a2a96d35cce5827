// strata_goals FILE: the table of goals, with what the measurements in FILE reached beside each.
//
// Each goal is a number that is held against a bound. What a goal needs and FILE has not, such as
// the peers without --full, leaves its row open.
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "bench/goals/results.h"
#include "bench/support/table.h"

namespace strata::bench {
namespace {

constexpr char kStrata[] = "strata deltas";
constexpr char kPostgres[] = "postgresql";
constexpr char kPostgresCopies[] = "postgresql full copies";
constexpr char kEtcd[] = "etcd";
constexpr char kGet[] = "W3 get";
constexpr char kUpdate[] = "W1 update";
constexpr char kHot[] = "W2 hot document";
constexpr char kHotCas[] = "W2 hot document, compare-and-swap by the client";

enum class Bound { kAtLeast, kAtMost };

struct Goal {
  std::string what;
  Bound bound = Bound::kAtLeast;
  double limit = 0;
  std::function<std::optional<double>(const Results&)> reached;
};

using Field = double Result::*;

std::optional<double> Value(const Result* result, Field field) {
  if (result == nullptr || result->*field <= 0) return std::nullopt;
  return result->*field;
}

std::optional<double> Ratio(const Result* above, Field above_field, const Result* below,
                            Field below_field) {
  const std::optional<double> a = Value(above, above_field);
  const std::optional<double> b = Value(below, below_field);
  if (!a || !b) return std::nullopt;
  return *a / *b;
}

const Result* Strata(const Results& results, const std::string& workload, int in_flight) {
  return results.Find(kStrata, workload + ", BSON", in_flight);
}

// Calls/s against the empty call's of the same minute.
Goal OfEmpty(const std::string& what, double limit, const std::string& workload) {
  return {what, Bound::kAtLeast, limit, [workload](const Results& results) {
            const Result* const one = results.Find(kStrata, workload, 64);
            return Ratio(one, &Result::calls_per_second, one, &Result::empty_calls_per_second);
          }};
}

// Strata's calls/s against a peer's.
Goal AgainstPeer(const std::string& what, double limit, const std::string& workload, int in_flight,
                 const std::string& peer, const std::string& strata_workload = "") {
  return {what, Bound::kAtLeast, limit,
          [workload, in_flight, peer, strata_workload](const Results& results) {
            return Ratio(
                Strata(results, strata_workload.empty() ? workload : strata_workload, in_flight),
                &Result::calls_per_second, results.Find(peer, workload, in_flight),
                &Result::calls_per_second);
          }};
}

// How much slower the deeper document is.
Goal Deeper(const std::string& what, const std::string& prefix) {
  return {what, Bound::kAtMost, 1.1, [prefix](const Results& results) {
            return Ratio(Strata(results, prefix + "10000 versions", 64), &Result::server_cpu_us,
                         Strata(results, prefix + "100 versions", 64), &Result::server_cpu_us);
          }};
}

std::vector<Goal> Goals() {
  std::vector<Goal> goals;
  const auto add = [&](Goal goal) { goals.push_back(std::move(goal)); };
  add(OfEmpty("W3 Get, BSON: calls/s of the empty call's", 0.75, "W3 get, BSON"));
  add({"W3 Get, BSON: server CPU above the empty call's, us", Bound::kAtMost, 5,
       [](const Results& results) -> std::optional<double> {
         const Result* const get = Strata(results, kGet, 64);
         if (get == nullptr) return std::nullopt;
         return get->server_cpu_us - get->empty_server_cpu_us;
       }});
  add(OfEmpty("W3 Get, JSON, 300 B: of the empty call's", 0.6, "W3 get, JSON"));
  add(OfEmpty("W3 Get, JSON, 2 KB: of the empty call's", 0.4, "W3 get, JSON of 2048 B"));
  add(AgainstPeer("W3 Get: calls/s of PostgreSQL's", 1, kGet, 64, kPostgres));
  add(AgainstPeer("W3 Get: of etcd's", 4, kGet, 64, kEtcd));
  add(AgainstPeer("W1 Update, 64 in flight: calls/s of PostgreSQL's", 1.5, kUpdate, 64, kPostgres));
  add(AgainstPeer("W1 Update, 64 in flight: of etcd's", 3, kUpdate, 64, kEtcd));
  add({"W1 Update, 64 in flight: server CPU of PostgreSQL's", Bound::kAtMost, 0.5,
       [](const Results& results) {
         return Ratio(Strata(results, kUpdate, 64), &Result::server_cpu_us,
                      results.Find(kPostgres, kUpdate, 64), &Result::server_cpu_us);
       }});
  add({"W1 Update, 64 in flight: p99, ms", Bound::kAtMost, 5, [](const Results& results) {
         return Value(Strata(results, kUpdate, 64), &Result::p99_ms);
       }});
  add(AgainstPeer("W1 Update, 16 in flight: of PostgreSQL's full copies", 1.1, kUpdate, 16,
                  kPostgresCopies));
  add({"W1 Update, one in flight: p50 of (empty call + fdatasync)", Bound::kAtMost, 1.3,
       [](const Results& results) -> std::optional<double> {
         const Result* const update = Strata(results, kUpdate, 1);
         const Result* const disk = results.Find("disk", "fdatasync of 300 bytes, preallocated", 1);
         if (update == nullptr || disk == nullptr) return std::nullopt;
         return update->p50_ms / (update->empty_p50_ms + disk->p50_ms);
       }});
  add({"W2 hot document, 16 writers: calls/s of W1's at 16", Bound::kAtLeast, 0.8,
       [](const Results& results) {
         return Ratio(Strata(results, kHot, 16), &Result::calls_per_second,
                      Strata(results, kUpdate, 16), &Result::calls_per_second);
       }});
  add({"W2 hot document: attempts a call", Bound::kAtMost, 1.1, [](const Results& results) {
         return Value(Strata(results, kHot, 16), &Result::attempts_per_call);
       }});
  add(AgainstPeer("W2 hot document: of PostgreSQL's compare-and-swap", 10, kHotCas, 16, kPostgres,
                  kHot));
  add(AgainstPeer("W2 hot document: of etcd's compare-and-swap", 10, kHotCas, 16, kEtcd, kHot));
  for (const char* depth : {"100", "10000"}) {
    const std::string versions = std::string(depth) + " versions";
    const std::string old_version = "W4 get one of " + versions;
    const std::string newest = "W5 newest ten of " + versions;
    add(AgainstPeer(old_version + ": of PostgreSQL's", 1, old_version, 64, kPostgres));
    add(AgainstPeer(newest + ": of PostgreSQL's", 1, newest, 64, kPostgres));
  }
  add(Deeper("W4: server CPU at 10,000 versions of that at 100", "W4 get one of "));
  add(Deeper("W5: server CPU at 10,000 versions of that at 100", "W5 newest ten of "));
  return goals;
}

int Main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: strata_goals FILE\n";
    return 2;
  }
  const std::optional<Results> results = Results::Read(argv[1]);
  if (!results) {
    std::cerr << "strata_goals: cannot read results from " << argv[1] << "\n";
    return 1;
  }
  Table table({"goal", "bound", "reached", ""});
  for (const Goal& goal : Goals()) {
    const std::optional<double> reached = goal.reached(*results);
    const bool at_least = goal.bound == Bound::kAtLeast;
    const std::string bound = (at_least ? ">= " : "<= ") + Number(goal.limit, 2);
    if (!reached) {
      table.Add({goal.what, bound, "", "not measured"});
      continue;
    }
    const bool met = at_least ? *reached >= goal.limit : *reached <= goal.limit;
    table.Add({goal.what, bound, Number(*reached, 2), met ? "met" : "MISSED"});
  }
  std::cout << table.Text();
  return 0;
}

}  // namespace
}  // namespace strata::bench

int main(int argc, char** argv) { return strata::bench::Main(argc, argv); }
