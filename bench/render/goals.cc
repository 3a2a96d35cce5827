#include "bench/render/goals.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/render/goal_forms.h"

namespace strata::bench {
namespace {

constexpr char kPostgres[] = "postgresql";
constexpr char kPostgresCopies[] = "postgresql full copies";
constexpr char kEtcd[] = "etcd";
constexpr char kNats[] = "nats, each write synced";
constexpr char kGet[] = "W3 get";
constexpr char kUpdate[] = "W1 update";
constexpr char kHot[] = "W2 hot document";
constexpr char kHotCas[] = "W2 hot document, compare-and-swap by the client";
constexpr char kTransfer[] = "T1 transfer";
constexpr char kHotTransfer[] = "T2 transfer, hot account";

Measured Of(const std::string& figure, const std::string& system, const std::string& workload,
            int in_flight) {
  return {figure,
          {{"system", system}, {"workload", workload}, {"in_flight", std::to_string(in_flight)}}};
}

Measured Strata(const std::string& figure, const std::string& workload, int in_flight = 64,
                const std::string& encoding = "BSON") {
  return Of(figure, "strata deltas", absl::StrCat(workload, ", ", encoding), in_flight);
}

// Calls/s against a peer's, at the same workload or another.
Goal Against(const std::string& peer, const std::string& what, double limit,
             const std::string& workload, int in_flight = 64,
             const std::string& peer_workload = "") {
  const std::string& its = peer_workload.empty() ? workload : peer_workload;
  return AtLeast(what, limit, Strata("calls_per_second", workload, in_flight),
                 {Of("calls_per_second", peer, its, in_flight)});
}

std::vector<Goal> Gets() {
  return {AtLeast("W3 Get, BSON: calls/s of the empty call's", 0.75,
                  Strata("share_of_empty_calls", kGet)),
          AtMost("W3 Get, BSON: server CPU above the empty call's", 5, Unit::kMicroseconds,
                 Strata("server_cpu_above_empty", kGet)),
          AtLeast("W3 Get, JSON, 300 B: of the empty call's", 0.6,
                  Strata("share_of_empty_calls", kGet, 64, "JSON")),
          AtLeast("W3 Get, JSON, 2 KB: of the empty call's", 0.4,
                  Strata("share_of_empty_calls", kGet, 64, "JSON of 2048 B")),
          Against(kPostgres, "W3 Get: calls/s of PostgreSQL's", 1, kGet),
          Against(kEtcd, "W3 Get: of etcd's", 4, kGet)};
}

std::vector<Goal> Updates() {
  return {Against(kPostgres, "W1 Update, 64 in flight: calls/s of PostgreSQL's", 1.5, kUpdate),
          Against(kEtcd, "W1 Update, 64 in flight: of etcd's", 3, kUpdate),
          AtMost("W1 Update, 64 in flight: server CPU of PostgreSQL's", 0.5,
                 Strata("server_cpu", kUpdate), {Of("server_cpu", kPostgres, kUpdate, 64)}),
          AtMost("W1 Update, 64 in flight: p99", 5 * kMillisecond, Unit::kMicroseconds,
                 Strata("latency_p99", kUpdate)),
          Against(kPostgresCopies, "W1 Update, 16 in flight: of PostgreSQL's full copies", 1.1,
                  kUpdate, 16),
          AtMost("W1 Update, one in flight: p50 of (empty call + fdatasync)", 1.3,
                 Strata("latency_p50", kUpdate, 1),
                 {Strata("empty_latency_p50", kUpdate, 1),
                  Of("latency_p50", "disk", "fdatasync of 300 bytes, preallocated", 1)}),
          AtLeast("W2 hot document, 16 writers: calls/s of W1's at 16", 0.8,
                  Strata("calls_per_second", kHot, 16), {Strata("calls_per_second", kUpdate, 16)}),
          AtMost("W2 hot document: attempts a call", 1.1, Unit::kRatio,
                 Strata("attempts_per_call", kHot, 16)),
          Against(kPostgres, "W2 hot document: of PostgreSQL's compare-and-swap", 10, kHot, 16,
                  kHotCas),
          Against(kEtcd, "W2 hot document: of etcd's compare-and-swap", 10, kHot, 16, kHotCas)};
}

std::vector<Goal> OldVersions() {
  std::vector<Goal> goals;
  for (const std::string workload : {"W4 get one of ", "W5 newest ten of "}) {
    const std::string few = workload + "100 versions";
    const std::string many = workload + "10000 versions";
    goals.push_back(Against(kPostgres, few + ": of PostgreSQL's", 1, few));
    goals.push_back(Against(kPostgres, many + ": of PostgreSQL's", 1, many));
    goals.push_back(AtMost(many + ": server CPU of that of 100", 1.1, Strata("server_cpu", many),
                           {Strata("server_cpu", few)}));
  }
  return goals;
}

// What came with transactions costs calls without them nothing: against a server from before.
std::vector<Goal> AgainstBaseline() {
  std::vector<Goal> goals;
  for (const char* workload : {kUpdate, kHot, kGet}) {
    const std::string of = absl::StrCat(workload, ", BSON");
    const std::string to = absl::StrCat(of, ", the baseline");
    goals.push_back(AtLeast(absl::StrCat(workload, ": calls/s of the baseline's"), 0.97,
                            RatioOf("calls_ratio", of, to)));
    goals.push_back(AtMost(absl::StrCat(workload, ": server CPU above the baseline's"), 1,
                           Unit::kMicroseconds, RatioOf("server_cpu_above", of, to)));
  }
  return goals;
}

std::vector<Goal> Transactions() {
  const auto calls = [](const char* workload) { return Strata("calls_per_second", workload); };
  const auto in_turns = [](const char* figure, const std::string& of, const std::string& to) {
    return RatioOf(figure, of + ", BSON", to + ", BSON");
  };
  const std::string beside = "W1 update beside ";
  return {
      AtLeast("T1 transfer, in turns with W1: calls/s of its", 0.55,
              in_turns("calls_ratio", kTransfer, kUpdate)),
      AtMost("T1 transfer, in turns with W1: server CPU of its", 1.8, Unit::kRatio,
             in_turns("server_cpu_ratio", kTransfer, kUpdate)),
      Against(kPostgres, "T1 transfer: calls/s of PostgreSQL's", 0.75, kTransfer),
      Against(kEtcd, "T1 transfer: of etcd's", 0.9, kTransfer),
      AtMost("T1 transfer: server CPU of PostgreSQL's", 0.85, Strata("server_cpu", kTransfer),
             {Of("server_cpu", kPostgres, kTransfer, 64)}),
      AtLeast("T2 hot account: calls/s of T1's", 0.7, calls(kHotTransfer), {calls(kTransfer)}),
      Against(kPostgres, "T2 hot account: of PostgreSQL's, which locks it", 2, kHotTransfer),
      Against(kEtcd, "T2 hot account: of etcd's compare-and-swap", 2, kHotTransfer, 64,
              absl::StrCat(kHotTransfer, ", compare-and-swap by the client")),
      AtMost("T2 hot account: attempts a call", 1.1, Unit::kRatio,
             Strata("attempts_per_call", kHotTransfer)),
      AtLeast("T3 twenty updates: documents/s of W1's", 0.6,
              Strata("documents_per_second", "T3 twenty updates"), {calls(kUpdate)}),
      AtLeast("T4 Read of ten, in turns with W3: calls/s of its", 0.5,
              in_turns("calls_ratio", "T4 read of ten", kGet)),
      AtMost("T1 in two phases, one in flight: p50 of W1's", 6,
             Strata("latency_p50", "T1 transfer, two phases", 1),
             {Strata("latency_p50", kUpdate, 1)}),
      AtMost("an update beside T2, 64 in flight, in turns with one beside W1: p99 of its", 1.5,
             Unit::kRatio, in_turns("latency_p99_ratio", beside + kHotTransfer, beside + kUpdate))};
}

constexpr char kDeliveryOf[] = "delivery, one update in flight";

Measured Feed(const std::string& figure, const std::string& what,
              const std::string& system = "strata") {
  return {figure, {{"system", system}, {"feed", what}}};
}

// Calls/s of W1 beside followers, by those while nobody follows and by those of another server.
std::vector<Goal> BesideWatchers() {
  constexpr char kNobody[] = "W1 update, nobody follows";
  constexpr char kBaseline[] = "W1 update, the baseline";
  const auto calls = [](const std::string& what, double limit, const char* of, const char* to) {
    return AtLeast(what, limit, RatioOf("calls_ratio", of, to));
  };
  std::vector<Goal> goals = {
      calls("W1, nobody follows: calls/s of the baseline's", 0.98, kNobody, kBaseline)};
  for (const auto& [followers, limit] :
       {std::pair("one watcher", 0.9), std::pair("1,000 parked watchers", 0.95)}) {
    const std::string workload = absl::StrCat("W1 update, ", followers);
    goals.push_back(
        calls(absl::StrCat("W1, ", followers, ": calls/s of those while nobody follows"), limit,
              workload.c_str(), kNobody));
    goals.push_back(calls(absl::StrCat("W1, ", followers, ": of the baseline's"), limit,
                          workload.c_str(), kBaseline));
  }
  return goals;
}

constexpr char kOne[] = "1 watcher of everything, under W1";
constexpr char kHundred[] = "100 watchers of everything, under W1";
constexpr char kCatchUp[] = "catch-up, with contents";

std::vector<Goal> Following() {
  return {
      AtMost("delivery, from sending one update: p50 above the update's own", 0.3 * kMillisecond,
             Unit::kMicroseconds, Feed("delivery_p50_above_update", kDeliveryOf)),
      AtMost("delivery, from sending one update: p99", 5 * kMillisecond, Unit::kMicroseconds,
             Feed("delivery_p99", kDeliveryOf)),
      AtMost("an idle server with 1,000 watchers: share of a core", 0.005, Unit::kRatio,
             Feed("core_share", "idle, 1,000 watchers")),
      AtMost("1 watcher of everything under W1: behind its end by", 100 * kMillisecond,
             Unit::kMicroseconds, Feed("behind", kOne)),
      AtLeast("1 watcher under W1: events/s of etcd's", 1, Feed("events_per_second", kOne),
              {Feed("events_per_second", kOne, kEtcd)}),
      AtLeast("100 watchers under W1: events/s of etcd's", 1, Feed("events_per_second", kHundred),
              {Feed("events_per_second", kHundred, kEtcd)}),
      AtLeast("catch-up, headers: events/s", 100'000, Unit::kPerSecond,
              Feed("events_per_second", "catch-up, headers")),
      AtLeast("catch-up, with contents: events/s", 30'000, Unit::kPerSecond,
              Feed("events_per_second", kCatchUp)),
      AtLeast("catch-up, with contents: of etcd's from an old revision", 1,
              Feed("events_per_second", kCatchUp), {Feed("events_per_second", kCatchUp, kEtcd)}),
      AtMost("memory of a parked watcher", 32 * kKibibyte, Unit::kBytes,
             Feed("memory_each", "parked watchers, the next 4,000")),
      AtMost("100 slow watchers under W1: memory grows more than without them by", 16 * kMebibyte,
             Unit::kBytes, Feed("memory_growth_above", "100 slow watchers, under W1"))};
}

// Of peers that no goal names.
std::vector<Goal> FollowingOthers() {
  std::vector<Goal> goals;
  for (const auto& [peer, its] : {std::pair(kPostgres, "PostgreSQL's with LISTEN/NOTIFY"),
                                  std::pair(kNats, "NATS JetStream's, each write synced")}) {
    for (const auto& [feed, what] :
         {std::pair(kOne, "1 watcher under W1"), std::pair(kHundred, "100 watchers under W1"),
          std::pair(kCatchUp, "catch-up, with contents")}) {
      goals.push_back(ToLookAt(absl::StrCat(what, ": events/s of ", its),
                               Feed("events_per_second", feed),
                               {Feed("events_per_second", feed, peer)}));
    }
  }
  return goals;
}

std::vector<Goal> LeasesAndSubscriptions() {
  constexpr char kPlain[] = "W1 update, not fenced";
  constexpr char kConsume[] = "Consume with ack";
  return {
      AtLeast("Renew, 64 in flight: calls/s of W1's", 1, RatioOf("calls_ratio", "Renew", kPlain)),
      AtMost("fenced Update: server CPU of a plain one's", 1.05, Unit::kRatio,
             RatioOf("server_cpu_ratio", "W1 update, fenced", kPlain)),
      AtMost("fenced Update with place: server CPU of a plain one's", 1.35, Unit::kRatio,
             RatioOf("server_cpu_ratio", "W1 update, fenced with place", kPlain)),
      AtLeast("Consume with ack, 8 partitions, 2 consumers: events/s", 20'000, Unit::kPerSecond,
              Feed("events_per_second", kConsume)),
      AtMost("Consume with ack: commits an event", 0.05, Unit::kRatio,
             Feed("commits_per_event", kConsume)),
      AtLeast(
          "exactly once, 8 partitions: calls/s of W1's, 8 in flight", 0.6,
          RatioOf("calls_ratio", "exactly once, 8 partitions", "W1 update, beside exactly once"))};
}

// To a million entries, and ten with --full.
std::vector<Goal> FeedGrowth() {
  std::vector<Goal> goals;
  for (const std::string entries : {"10^6", "10^7"}) {
    for (const std::string what :
         {"W1 update, one watcher", "W1 update, 100 watchers", "update, one in flight, one watcher",
          "catch-up, an event", "catch-up with contents, an event", "Renew", "Update, fenced",
          "Update, fenced with place", "Consume, an event", "Acquire"}) {
      const std::string leases = what == "Acquire" ? " and 10^5 leases" : "";
      goals.push_back(AtMost(absl::StrCat(what, ": server CPU with ", entries, " entries", leases,
                                          " of that with 10^4"),
                             1.1, Unit::kRatio,
                             {"growth_ratio", {{"growth", what}, {"entries", entries}}}));
    }
    const std::string storage = "flushes and compaction, an update";
    goals.push_back(
        ToLookAt(absl::StrCat(storage, ": server CPU with ", entries, " entries of that with 10^4"),
                 {"growth_ratio", {{"growth", storage}, {"entries", entries}}}, {}));
  }
  return goals;
}

// On the 12,206 real versions of compat.ndjson.zst.
std::vector<Goal> Storage() {
  const auto part = [](const std::string& strategy, const char* name) {
    return Measured{"bytes_per_version",
                    {{"engine", "rocksdb"}, {"strategy", strategy}, {"part", name}}};
  };
  std::vector<Goal> goals;
  for (const std::string strategy :
       {"full-copies", "current-flag", "embedded-history", "shadow-collection", "deltas"}) {
    goals.push_back(AtMost(strategy + ": headers, requests and ledger of a version", 200,
                           Unit::kBytes, part(strategy, "all but contents")));
    if (strategy == "deltas") continue;
    goals.push_back(AtMost(strategy + ": contents of what RocksDB makes of them raw", 1.15,
                           part(strategy, "contents"),
                           {{"raw_bytes_per_version", {{"engine", "rocksdb"}}}}));
  }
  goals.push_back(AtMost("deltas: contents and headers of the BSON", 0.04,
                         part("deltas", "contents and headers"), {{"bson_bytes_per_version", {}}}));
  return goals;
}

// Only embedded history may cost more with each version.
std::vector<Goal> Versions() {
  std::vector<Goal> goals;
  for (const std::string strategy :
       {"full-copies", "current-flag", "shadow-collection", "deltas"}) {
    for (const std::string call : {"Get", "History, newest ten"}) {
      Where where = {{"strategy", strategy}, {"call", call}, {"in_flight", "64"}};
      const Measured few = {"server_cpu", Both(where, {{"versions", "100"}})};
      const Measured many = {"server_cpu", Both(where, {{"versions", "10000"}})};
      goals.push_back(AtMost(strategy + ", " + call + ": CPU with 10,000 versions of that with 100",
                             1.1, many, {few}));
    }
  }
  return goals;
}

std::vector<Goal> Idle() {
  std::vector<Goal> goals;
  for (const std::string idle :
       {"connections", "streams (health Watch)", "streams (enrollment Apply)"}) {
    const Measured before = {"calls_per_second", {{"idle", idle}, {"when", "before"}}};
    const Measured beside = {"calls_per_second", {{"idle", idle}, {"when", "beside"}}};
    goals.push_back(
        AtLeast("Get beside idle " + idle + ": calls/s of those without", 0.9, beside, {before}));
    if (idle == "connections") continue;
    goals.push_back(AtMost("memory of each of idle " + idle, 32 * kKibibyte, Unit::kBytes,
                           {"memory_each", {{"idle", idle}}}));
  }
  return goals;
}

// A write is held as message, content, record and in a memtable, so four times what may be in
// flight; memtables, log and caches have their own besides.
std::vector<Goal> Bursts() {
  constexpr std::pair<const char*, double> kBursts[] = {
      {"200 updates of 1 MiB on 1 connection, one after the other, 256 MiB in flight", 256},
      {"1000 updates of 1 MiB on 1 connection, 256 MiB in flight", 256},
      {"1000 updates of 1 MiB on 10 connections, 256 MiB in flight", 256},
      {"1000 updates of 1 MiB on 10 connections, 64 MiB in flight", 64},
      {"1000 updates of 1 MiB on 10 connections, 8 MiB in flight", 8},
      {"1000 unfinished updates of 1 MiB on 10 connections, 64 MiB in flight", 64}};
  std::vector<Goal> goals;
  for (const auto& [burst, in_flight_mib] : kBursts) {
    const Where where = {{"burst", burst}};
    goals.push_back(AtMost(absl::StrCat(burst, ": outcomes that should not be"), 0, Unit::kCount,
                           {"wrong_outcomes", where}));
    goals.push_back(AtMost(absl::StrCat(burst, ": memory grows by"),
                           (4 * in_flight_mib + 256) * kMebibyte, Unit::kBytes,
                           {"memory_growth", where}));
  }
  return goals;
}

std::vector<Goal> Starts() {
  const auto on = [](const std::string& figure, const std::string& start) {
    return Measured{figure, {{"start_on", start}}};
  };
  std::vector<Goal> goals = {AtMost("start on an empty directory: resident memory", 64 * kMebibyte,
                                    Unit::kBytes, on("resident_memory", "an empty directory"))};
  for (const std::string start : {"an empty directory", "a filled directory",
                                  "the same, 20,000 writes and a kill -9 later"}) {
    goals.push_back(AtMost("start on " + start + ": serving after", 1000 * kMillisecond,
                           Unit::kMicroseconds, on("serving", start)));
  }
  return goals;
}

}  // namespace

std::vector<Goal> AllGoals() {
  std::vector<Goal> all;
  for (const auto some :
       {Gets, Updates, OldVersions, AgainstBaseline, Transactions, BesideWatchers, Following,
        FollowingOthers, LeasesAndSubscriptions, FeedGrowth, QueueGoals, HttpGoals, ScaleGoals,
        Storage, Versions, Idle, Bursts, Starts}) {
    for (Goal& goal : some()) all.push_back(std::move(goal));
  }
  return all;
}

std::optional<double> Reached(const Goal& goal, const Figures& figures) {
  const std::optional<double> reached = figures.Value(goal.figure.figure, goal.figure.parameters);
  if (!reached || goal.by.empty()) return reached;
  double sum = 0;
  for (const Measured& one : goal.by) {
    const std::optional<double> value = figures.Value(one.figure, one.parameters);
    if (!value) return std::nullopt;
    sum += *value;
  }
  if (sum <= 0) return std::nullopt;
  return *reached / sum;
}

std::optional<bool> IsMet(const Goal& goal, double reached) {
  if (goal.bound == Bound::kNone) return std::nullopt;
  return goal.bound == Bound::kAtLeast ? reached >= goal.limit : reached <= goal.limit;
}

}  // namespace strata::bench
