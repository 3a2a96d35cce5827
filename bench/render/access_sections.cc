// What strata_access measured: the price of knowing who calls, denials, quotas.
#include "bench/render/sections.h"
#include "bench/render/views.h"

namespace strata::bench {
namespace {

std::optional<Table> Cost(const Figures& figures) {
  return MakeTable(
      figures,
      {.keys = {{"system", "what is asked"}, {"workload", "workload"}, {"in_flight", "in flight"}},
       .columns = {{.heading = "server us/call above nothing asked",
                    .figure = "server_cpu_above_open",
                    .shown = Shown::kMicroseconds}}});
}

std::optional<Table> Denials(const Figures& figures) {
  return MakeTable(
      figures,
      {.keys = {{"denied", "denied Gets of a"}, {"calls", "calls"}},
       .columns = {{.heading = "p50 us", .figure = "latency_p50", .shown = Shown::kMicroseconds},
                   {"of an existing document's", "of_existing"},
                   {"answer", "answer_bytes"}}});
}

std::optional<Table> SteadyCaller(const Figures& figures) {
  return MakeTable(
      figures,
      {.keys = {{"steady_caller", "a caller without quota"}},
       .columns = {{"answered", "answered"},
                   {.heading = "p50 ms", .figure = "latency_p50", .shown = Shown::kMilliseconds},
                   {.heading = "p99 ms", .figure = "latency_p99", .shown = Shown::kMilliseconds}}});
}

std::optional<Table> Quotas(const Figures& figures) {
  return MakeTable(figures, {.keys = {{"quota_calls_per_second", "quota, calls/s"}},
                             .columns = {{"asked for, of it", "asked_of_quota"},
                                         {"taken, of it", "taken_of_quota"},
                                         {.heading = "RetryInfo off by ms, median",
                                          .figure = "retry_info_error_p50",
                                          .shown = Shown::kMilliseconds},
                                         {.heading = "at most",
                                          .figure = "retry_info_error_max",
                                          .shown = Shown::kMilliseconds}}});
}

}  // namespace

std::vector<Section> AccessSections(const Figures& figures) {
  Section section;
  section.title = "Who calls";
  section.words =
      "What the server's CPU pays for knowing it, measured in turns with a server that asks "
      "nothing; "
      "what denials tell; and quotas.";
  for (const std::optional<Table>& table :
       {Cost(figures), Denials(figures), SteadyCaller(figures), Quotas(figures)}) {
    if (table) section.tables.push_back(*table);
  }
  if (section.tables.empty()) return {};
  return {section};
}

}  // namespace strata::bench
