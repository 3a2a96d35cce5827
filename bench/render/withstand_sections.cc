// What strata_withstand measured: an honest caller beside attacks, and idle connections.
#include "bench/render/sections.h"
#include "bench/render/views.h"

namespace strata::bench {
namespace {

Column Latency(const char* heading, const char* figure, const char* when) {
  return {.heading = heading,
          .figure = figure,
          .where = {{"when", when}},
          .shown = Shown::kMilliseconds};
}

std::optional<Table> Attacks(const Figures& figures) {
  const auto count = [](const char* heading, const char* figure) {
    return Column{.heading = heading, .figure = figure, .where = {{"when", "beside"}}};
  };
  return MakeTable(
      figures,
      {.keys = {{"attack", "attack"}, {"event_loops", "event loops"}, {"honest", "honest"}},
       .columns = {count("answered", "answered"),
                   count("failed", "failures"),
                   Latency("p99 before ms", "latency_p99", "before"),
                   Latency("p50 ms", "latency_p50", "beside"),
                   Latency("p99 ms", "latency_p99", "beside"),
                   Latency("longest ms", "latency_max", "beside"),
                   {"memory before", "memory_before"},
                   {"peak", "memory_peak"},
                   {"sent", "sent"}}});
}

std::optional<Table> Idle(const Figures& figures) {
  return MakeTable(figures, {.keys = {{"idle_connections", "idle connections"}},
                             .columns = {{"memory each", "memory_each"},
                                         {"slowest fresh call", "fresh_call_max"}}});
}

}  // namespace

std::vector<Section> WithstandSections(const Figures& figures) {
  Section section;
  section.title = "Attacks";
  section.words =
      "An honest caller with a call every 5 ms beside each; times count from when a call should "
      "have "
      "begun. Some of the attacks are what gRPC by itself does not resist.";
  for (const std::optional<Table>& table : {Attacks(figures), Idle(figures)}) {
    if (table) section.tables.push_back(*table);
  }
  if (section.tables.empty()) return {};
  return {section};
}

}  // namespace strata::bench
