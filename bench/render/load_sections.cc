// What strata_load and strata_peers measured: the calls, and what shared a commit.
#include "bench/render/sections.h"
#include "bench/render/views.h"

namespace strata::bench {

std::vector<Section> LoadSections(const Figures& figures) {
  std::optional<Table> table = MakeTable(
      figures,
      {.keys = {{"system", "system"}, {"workload", "workload"}, {"in_flight", "in flight"}},
       .columns = {
           {"calls/s", "calls_per_second"},
           {"of empty", "share_of_empty_calls"},
           {.heading = "server us/call", .figure = "server_cpu", .shown = Shown::kMicroseconds},
           {.heading = "empty us/call",
            .figure = "empty_server_cpu",
            .shown = Shown::kMicroseconds},
           {.heading = "client us/call", .figure = "client_cpu", .shown = Shown::kMicroseconds},
           {.heading = "p50 ms", .figure = "latency_p50", .shown = Shown::kMilliseconds},
           {.heading = "p99 ms", .figure = "latency_p99", .shown = Shown::kMilliseconds},
           {"attempts", "attempts_per_call"},
           {"failures", "failures"}}});
  if (!table) return {};
  std::vector<Table> tables = {*std::move(table)};
  std::optional<Table> commits = MakeTable(
      figures,
      {.keys = {{"system", "system"}, {"workload", "workload"}, {"in_flight", "in flight"}},
       .columns = {{"transactions a commit", "units_per_commit"},
                   {"documents a commit", "documents_per_commit"}}});
  if (commits) tables.push_back(*std::move(commits));
  std::optional<Table> ratios =
      MakeTable(figures, {.keys = {{"of", "of"}, {"to", "to"}},
                          .columns = {{"calls/s", "calls_ratio"},
                                      {"server us/call", "server_cpu_ratio"},
                                      {"server us/call more", "server_cpu_above"},
                                      {"p50", "latency_p50_ratio"},
                                      {"p99", "latency_p99_ratio"}}});
  if (ratios) tables.push_back(*std::move(ratios));
  return {{.title = "Calls",
           .words =
               "Over loopback, client and server on one machine. Of empty: calls/s as a share "
               "of those of the empty call, which was measured right before. Ratios are of two "
               "workloads in turns: the median of the rounds.",
           .plots = {},
           .tables = std::move(tables),
           .notes = {}}};
}

}  // namespace strata::bench
