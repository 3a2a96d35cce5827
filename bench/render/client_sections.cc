// What strata_client_load measured: the client library for C++ beside the generated stub.
#include "bench/render/sections.h"
#include "bench/render/views.h"

namespace strata::bench {

std::vector<Section> ClientSections(const Figures& figures) {
  Section section;
  section.title = "The client library for C++";
  section.words =
      "Calls by the library and by the generated stub that it stands on, in turns; the ratio is "
      "the "
      "library's part of the stub's.";
  const std::optional<Table> table = MakeTable(
      figures,
      {.keys = {{"client", "client"}, {"workload", "workload"}, {"in_flight", "in flight"}},
       .columns = {
           {.heading = "us/call", .figure = "time_per_call", .shown = Shown::kMicroseconds},
           {.heading = "of the stub's", .figure = "time_ratio"},
           {.heading = "client us/call", .figure = "client_cpu", .shown = Shown::kMicroseconds},
           {.heading = "of the stub's", .figure = "client_cpu_ratio"}}});
  if (!table) return {};
  section.tables.push_back(*table);
  return {section};
}

}  // namespace strata::bench
