// What strata_queue_load measured, and strata_peers at the same.
#include <string>
#include <vector>

#include "bench/render/sections.h"
#include "bench/render/views.h"

namespace strata::bench {
namespace {

std::optional<Table> Messages(const Figures& figures) {
  return MakeTable(
      figures,
      {.keys = {{"queue", "queue"}, {"system", "system"}},
       .columns = {
           {"messages/s", "messages_per_second"},
           {.heading = "server us/message", .figure = "server_cpu", .shown = Shown::kMicroseconds},
           {.heading = "client us/message", .figure = "client_cpu", .shown = Shown::kMicroseconds},
           {.heading = "p50 ms", .figure = "latency_p50", .shown = Shown::kMilliseconds},
           {.heading = "p99 ms", .figure = "latency_p99", .shown = Shown::kMilliseconds},
           {"operations/commit", "operations_per_commit"},
           {"races lost", "races_lost"},
           {"disk", "disk"},
           {"memory", "resident_memory"},
           {"memory more", "memory_above"},
           {.heading = "serving ms", .figure = "serving", .shown = Shown::kMilliseconds}}});
}

}  // namespace

std::vector<Section> QueueSections(const Figures& figures) {
  std::optional<Table> table = Messages(figures);
  if (!table) return {};
  return {{.title = "Queues",
           .words =
               "Over loopback, client and servers on one machine, messages of 300 bytes, durable. "
               "Of what goes from push to acknowledgement, p50 and p99 are of the whole way; of "
               "batches, of a call.",
           .plots = {},
           .tables = {*std::move(table)},
           .notes = {}}};
}

}  // namespace strata::bench
