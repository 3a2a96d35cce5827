#include "bench/render/goals.h"

#include "absl/strings/str_cat.h"

namespace strata::bench {
namespace {

constexpr char kPostgres[] = "postgresql";
constexpr char kPostgresCopies[] = "postgresql full copies";
constexpr char kEtcd[] = "etcd";
constexpr char kGet[] = "W3 get";
constexpr char kUpdate[] = "W1 update";
constexpr char kHot[] = "W2 hot document";
constexpr char kHotCas[] = "W2 hot document, compare-and-swap by the client";
constexpr double kMillisecond = 1e3;
constexpr double kKibibyte = 1024;
constexpr double kMebibyte = 1024 * kKibibyte;

Measured Of(const std::string& figure, const std::string& system, const std::string& workload,
            int in_flight) {
  return {figure,
          {{"system", system}, {"workload", workload}, {"in_flight", std::to_string(in_flight)}}};
}

Measured Strata(const std::string& figure, const std::string& workload, int in_flight,
                const std::string& encoding = "BSON") {
  return Of(figure, "strata deltas", absl::StrCat(workload, ", ", encoding), in_flight);
}

Goal AgainstPeer(const std::string& what, double limit, const std::string& workload, int in_flight,
                 const std::string& peer, const std::string& peer_workload = "") {
  const std::string& its = peer_workload.empty() ? workload : peer_workload;
  return {.what = what,
          .bound = Bound::kAtLeast,
          .limit = limit,
          .figure = Strata("calls_per_second", workload, in_flight),
          .by = {Of("calls_per_second", peer, its, in_flight)}};
}

void AddGets(std::vector<Goal>& goals) {
  const auto of_empty = [](const char* what, double limit, const char* encoding) {
    return Goal{.what = what,
                .bound = Bound::kAtLeast,
                .limit = limit,
                .figure = Strata("share_of_empty_calls", kGet, 64, encoding)};
  };
  goals.push_back(of_empty("W3 Get, BSON: calls/s of the empty call's", 0.75, "BSON"));
  goals.push_back({.what = "W3 Get, BSON: server CPU above the empty call's",
                   .limit = 5,
                   .unit = Unit::kMicroseconds,
                   .figure = Strata("server_cpu", kGet, 64),
                   .less = {Strata("empty_server_cpu", kGet, 64)}});
  goals.push_back(of_empty("W3 Get, JSON, 300 B: of the empty call's", 0.6, "JSON"));
  goals.push_back(of_empty("W3 Get, JSON, 2 KB: of the empty call's", 0.4, "JSON of 2048 B"));
  goals.push_back(AgainstPeer("W3 Get: calls/s of PostgreSQL's", 1, kGet, 64, kPostgres));
  goals.push_back(AgainstPeer("W3 Get: of etcd's", 4, kGet, 64, kEtcd));
}

void AddUpdates(std::vector<Goal>& goals) {
  goals.push_back(
      AgainstPeer("W1 Update, 64 in flight: calls/s of PostgreSQL's", 1.5, kUpdate, 64, kPostgres));
  goals.push_back(AgainstPeer("W1 Update, 64 in flight: of etcd's", 3, kUpdate, 64, kEtcd));
  goals.push_back({.what = "W1 Update, 64 in flight: server CPU of PostgreSQL's",
                   .limit = 0.5,
                   .figure = Strata("server_cpu", kUpdate, 64),
                   .by = {Of("server_cpu", kPostgres, kUpdate, 64)}});
  goals.push_back({.what = "W1 Update, 64 in flight: p99",
                   .limit = 5 * kMillisecond,
                   .unit = Unit::kMicroseconds,
                   .figure = Strata("latency_p99", kUpdate, 64)});
  goals.push_back(AgainstPeer("W1 Update, 16 in flight: of PostgreSQL's full copies", 1.1, kUpdate,
                              16, kPostgresCopies));
  goals.push_back({.what = "W1 Update, one in flight: p50 of (empty call + fdatasync)",
                   .limit = 1.3,
                   .figure = Strata("latency_p50", kUpdate, 1),
                   .by = {Strata("empty_latency_p50", kUpdate, 1),
                          Of("latency_p50", "disk", "fdatasync of 300 bytes, preallocated", 1)}});
  goals.push_back({.what = "W2 hot document, 16 writers: calls/s of W1's at 16",
                   .bound = Bound::kAtLeast,
                   .limit = 0.8,
                   .figure = Strata("calls_per_second", kHot, 16),
                   .by = {Strata("calls_per_second", kUpdate, 16)}});
  goals.push_back({.what = "W2 hot document: attempts a call",
                   .limit = 1.1,
                   .figure = Strata("attempts_per_call", kHot, 16)});
  goals.push_back(AgainstPeer("W2 hot document: of PostgreSQL's compare-and-swap", 10, kHot, 16,
                              kPostgres, kHotCas));
  goals.push_back(
      AgainstPeer("W2 hot document: of etcd's compare-and-swap", 10, kHot, 16, kEtcd, kHotCas));
}

void AddOldVersions(std::vector<Goal>& goals) {
  for (const char* depth : {"100", "10000"}) {
    for (const char* workload : {"W4 get one of ", "W5 newest ten of "}) {
      const std::string one = absl::StrCat(workload, depth, " versions");
      goals.push_back(AgainstPeer(one + ": of PostgreSQL's", 1, one, 64, kPostgres));
    }
  }
  for (const char* workload : {"W4 get one of ", "W5 newest ten of "}) {
    goals.push_back({.what = absl::StrCat(workload, "10000 versions: server CPU of that of 100"),
                     .limit = 1.1,
                     .figure = Strata("server_cpu", absl::StrCat(workload, "10000 versions"), 64),
                     .by = {Strata("server_cpu", absl::StrCat(workload, "100 versions"), 64)}});
  }
}

// On the 12,206 real versions of compat.ndjson.zst.
void AddStorage(std::vector<Goal>& goals) {
  const auto part = [](const char* strategy, const char* name) {
    return Measured{"bytes_per_version",
                    {{"engine", "rocksdb"}, {"strategy", strategy}, {"part", name}}};
  };
  for (const char* strategy :
       {"full-copies", "current-flag", "embedded-history", "shadow-collection", "deltas"}) {
    goals.push_back(
        {.what = absl::StrCat(strategy, ": bytes a version of headers, requests, ledger"),
         .limit = 200,
         .unit = Unit::kBytes,
         .figure = part(strategy, "all but contents")});
    if (std::string_view(strategy) == "deltas") continue;
    goals.push_back({.what = absl::StrCat(strategy, ": contents of what RocksDB makes of them raw"),
                     .limit = 1.15,
                     .figure = part(strategy, "contents"),
                     .by = {{"raw_bytes_per_version", {{"engine", "rocksdb"}}}}});
  }
  goals.push_back({.what = "deltas: contents and headers of the BSON",
                   .limit = 0.04,
                   .figure = part("deltas", "contents and headers"),
                   .by = {{"bson_bytes_per_version", {}}}});
}

// Only embedded history may cost more with each version.
void AddVersions(std::vector<Goal>& goals) {
  for (const char* strategy : {"full-copies", "current-flag", "shadow-collection", "deltas"}) {
    for (const char* call : {"Get", "History, newest ten"}) {
      const auto with = [&](const char* versions) {
        return Measured{
            "server_cpu",
            {{"strategy", strategy}, {"versions", versions}, {"call", call}, {"in_flight", "64"}}};
      };
      goals.push_back({.what = absl::StrCat(strategy, ", ", call,
                                            ": CPU with 10,000 versions of that with 100"),
                       .limit = 1.1,
                       .figure = with("10000"),
                       .by = {with("100")}});
    }
  }
}

void AddIdle(std::vector<Goal>& goals) {
  for (const char* idle : {"connections", "streams (health Watch)", "streams (enrollment Apply)"}) {
    const auto gets = [&](const char* when) {
      return Measured{"calls_per_second", {{"idle", idle}, {"when", when}}};
    };
    goals.push_back({.what = absl::StrCat("Get beside idle ", idle, ": calls/s of those without"),
                     .bound = Bound::kAtLeast,
                     .limit = 0.9,
                     .figure = gets("beside"),
                     .by = {gets("before")}});
    if (std::string_view(idle) == "connections") continue;
    goals.push_back({.what = absl::StrCat("memory of each of idle ", idle),
                     .limit = 32 * kKibibyte,
                     .unit = Unit::kBytes,
                     .figure = {"memory_each", {{"idle", idle}}}});
  }
}

// A write is held as message, content, record and in a memtable, so four times what may be in
// flight; memtables, log and caches have their own besides.
void AddBursts(std::vector<Goal>& goals) {
  struct Burst {
    const char* what;
    double in_flight_mib;
    bool stalled = false;
  };
  constexpr Burst kBursts[] = {
      {"200 updates of 1 MiB on 1 connection, one after the other, 256 MiB in flight", 256},
      {"1000 updates of 1 MiB on 1 connection, 256 MiB in flight", 256},
      {"1000 updates of 1 MiB on 10 connections, 256 MiB in flight", 256},
      {"1000 updates of 1 MiB on 10 connections, 64 MiB in flight", 64},
      {"1000 updates of 1 MiB on 10 connections, 8 MiB in flight", 8},
      {"1000 unfinished updates of 1 MiB on 10 connections, 64 MiB in flight", 64, true}};
  for (const Burst& burst : kBursts) {
    const Where where = {{"burst", burst.what}};
    if (!burst.stalled) {
      goals.push_back({.what = absl::StrCat(burst.what, ": outcomes that should not be"),
                       .limit = 0,
                       .unit = Unit::kCount,
                       .figure = {"wrong_outcomes", where}});
    }
    goals.push_back({.what = absl::StrCat(burst.what, ": memory grows by"),
                     .limit = (4 * burst.in_flight_mib + 256) * kMebibyte,
                     .unit = Unit::kBytes,
                     .figure = {"memory_growth", where}});
  }
}

void AddStarts(std::vector<Goal>& goals) {
  goals.push_back({.what = "start on an empty directory: resident memory",
                   .limit = 64 * kMebibyte,
                   .unit = Unit::kBytes,
                   .figure = {"resident_memory", {{"start_on", "an empty directory"}}}});
  for (const char* start : {"an empty directory", "a filled directory",
                            "the same, 20,000 writes and a kill -9 later"}) {
    goals.push_back({.what = absl::StrCat("start on ", start, ": serving after"),
                     .limit = 1000 * kMillisecond,
                     .unit = Unit::kMicroseconds,
                     .figure = {"serving", {{"start_on", start}}}});
  }
}

}  // namespace

std::vector<Goal> AllGoals() {
  std::vector<Goal> goals;
  for (const auto add : {AddGets, AddUpdates, AddOldVersions, AddStorage, AddVersions, AddIdle,
                         AddBursts, AddStarts}) {
    add(goals);
  }
  return goals;
}

std::optional<double> Reached(const Goal& goal, const Figures& figures) {
  std::optional<double> reached = figures.Value(goal.figure.figure, goal.figure.parameters);
  for (const Measured& one : goal.less) {
    const std::optional<double> value = figures.Value(one.figure, one.parameters);
    if (!reached || !value) return std::nullopt;
    *reached -= *value;
  }
  if (goal.by.empty()) return reached;
  double sum = 0;
  for (const Measured& one : goal.by) {
    const std::optional<double> value = figures.Value(one.figure, one.parameters);
    if (!value) return std::nullopt;
    sum += *value;
  }
  if (!reached || sum <= 0) return std::nullopt;
  return *reached / sum;
}

bool IsMet(const Goal& goal, double reached) {
  return goal.bound == Bound::kAtLeast ? reached >= goal.limit : reached <= goal.limit;
}

}  // namespace strata::bench
