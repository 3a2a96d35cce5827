// What strata_feed_load measured, and strata_peers at the same: followers and consumers.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/render/sections.h"
#include "bench/render/views.h"

namespace strata::bench {
namespace {

std::optional<Table> Events(const Figures& figures) {
  return MakeTable(
      figures,
      {.keys = {{"feed", "feed"}, {"system", "system"}},
       .columns = {
           {"events/s", "events_per_second"},
           {.heading = "server us/event", .figure = "server_cpu", .shown = Shown::kMicroseconds},
           {.heading = "behind ms", .figure = "behind", .shown = Shown::kMilliseconds},
           {.heading = "delivery p50 ms", .figure = "delivery_p50", .shown = Shown::kMilliseconds},
           {.heading = "p99 ms", .figure = "delivery_p99", .shown = Shown::kMilliseconds},
           {"commits/event", "commits_per_event"},
           {"of a core", "core_share"},
           {"memory each", "memory_each"},
           {"memory grew", "memory_growth"}}});
}

std::optional<Table> Growth(const Figures& figures) {
  std::vector<Column> columns;
  for (const std::string& entries : figures.ValuesOf("entries", "server_cpu")) {
    columns.push_back({.heading = absl::StrCat("server us, ", entries, " entries"),
                       .figure = "server_cpu",
                       .where = {{"entries", entries}},
                       .shown = Shown::kMicroseconds});
  }
  for (const std::string& entries : figures.ValuesOf("entries", "growth_ratio")) {
    columns.push_back({.heading = absl::StrCat(entries, " to 10^4"),
                       .figure = "growth_ratio",
                       .where = {{"entries", entries}}});
  }
  return MakeTable(figures,
                   {.keys = {{"growth", "a call or an event of"}}, .columns = std::move(columns)});
}

}  // namespace

std::vector<Section> FeedSections(const Figures& figures) {
  Section section;
  section.title = "Feed, leases and subscriptions";
  section.words =
      "Followers and writers over loopback, on one machine with the server. Behind: from the last "
      "answer to a writer until the last event was there; delivery: from sending an update until "
      "its event was.";
  for (const std::optional<Table>& table : {Events(figures), Growth(figures)}) {
    if (table) section.tables.push_back(*table);
  }
  if (section.tables.empty()) return {};
  return {section};
}

}  // namespace strata::bench
