// The attacks, what they need, and how the figures name them.
#include <string>
#include <vector>

#include "bench/withstand/trial.h"

namespace strata::bench {
namespace {

using withstand::AttackCounts;
using withstand::Documents;

std::vector<Trial> WithstoodTrials() {
  return {
      {.name = "none", .attack = "none", .run = [](int, const std::stop_token&, AttackCounts&) {}},
      {.name = "lists",
       .attack = "8 Lists at a time, 100 regular expressions over 1,500 documents of 200 KB, "
                 "deadline 1 s",
       .honest = Honest::kLists,
       .prepare =
           [](const Documents& documents) { return documents.Fill("texts", 1'500, 200'000); },
       .run =
           [](int port, std::stop_token stop, AttackCounts& counts) {
             Repeat(port,
                    {.method = withstand::kListMethod,
                     .message = withstand::CostlyListMessage("texts"),
                     .metadata = {{"grpc-timeout", "1S"}},
                     .at_once = 8},
                    std::move(stop), counts);
           }},
      {.name = "updates",
       .attack = "4 callers' updates of 4 KB, 100 regular expressions over a document of 1 MB",
       .prepare = [](const Documents& documents) { return documents.Fill("large", 1, 1'000'000); },
       .run =
           [](int port, std::stop_token stop, AttackCounts& counts) {
             Repeat(port,
                    {.method = withstand::kUpdateMethod,
                     .message = withstand::CostlyUpdateMessage("large", "0"),
                     .callers = 4},
                    std::move(stop), counts);
           }}};
}

void AddUnresisted(int event_loops, std::vector<Trial>& trials) {
  for (const int64_t per_second : {20'000, 0}) {
    const std::string rate = per_second == 0 ? "as many as are read" : "20,000 a second";
    trials.push_back({.name = "reset",
                      .attack = "rapid reset on one connection, " + rate,
                      .event_loops = event_loops,
                      .run = [per_second](int port, std::stop_token stop, AttackCounts& counts) {
                        withstand::RapidReset(port, per_second, std::move(stop), counts);
                      }});
  }
  trials.push_back({.name = "streams",
                    .attack = "71,000 streams on one connection, metadata of 6.5 KB each",
                    .event_loops = event_loops,
                    .run = [](int port, std::stop_token stop, AttackCounts& counts) {
                      withstand::TooManyStreams(port, 71'000, std::move(stop), counts);
                    }});
  trials.push_back({.name = "header",
                    .attack = "headers of 30 MiB",
                    .event_loops = event_loops,
                    .run = [](int port, std::stop_token stop, AttackCounts& counts) {
                      withstand::HugeHeaders(port, size_t{30} << 20, std::move(stop), counts);
                    }});
  trials.push_back({.name = "settings",
                    .attack = "SETTINGS without end",
                    .event_loops = event_loops,
                    .run = withstand::SettingsFlood});
}

}  // namespace

std::vector<Trial> AllTrials() {
  std::vector<Trial> trials = WithstoodTrials();
  for (const int event_loops : {1, 2}) AddUnresisted(event_loops, trials);
  return trials;
}

}  // namespace strata::bench
