// The attacks, what they need, and how the figures name them.
#include <string>
#include <vector>

#include "bench/withstand/trial.h"

namespace strata::bench {
namespace {

using withstand::AttackCounts;
using withstand::Documents;

Trial RapidResetOn(int event_loops) {
  return {.attack = "rapid reset on one connection",
          .event_loops = event_loops,
          .run = withstand::RapidReset};
}

}  // namespace

std::vector<Trial> WithstoodTrials() {
  return {
      {.attack = "none", .run = [](int, const std::stop_token&, AttackCounts&) {}},
      {.attack = "8 Lists at a time, 100 regular expressions over 1,500 documents of 200 KB, "
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
      {.attack = "4 callers' updates of 4 KB, 100 regular expressions over a document of 1 MB",
       .prepare = [](const Documents& documents) { return documents.Fill("large", 1, 1'000'000); },
       .run =
           [](int port, std::stop_token stop, AttackCounts& counts) {
             Repeat(port,
                    {.method = withstand::kUpdateMethod,
                     .message = withstand::CostlyUpdateMessage("large", "0"),
                     .callers = 4},
                    std::move(stop), counts);
           }},
      RapidResetOn(2)};
}

std::vector<Trial> UnresistedTrials() {
  std::vector<Trial> trials = {RapidResetOn(1)};
  for (const int event_loops : {1, 2}) {
    trials.push_back({.attack = "71,000 streams on one connection, metadata of 6.5 KB each",
                      .event_loops = event_loops,
                      .run = [](int port, std::stop_token stop, AttackCounts& counts) {
                        withstand::TooManyStreams(port, 71'000, std::move(stop), counts);
                      }});
    trials.push_back({.attack = "headers of 30 MiB",
                      .event_loops = event_loops,
                      .run = [](int port, std::stop_token stop, AttackCounts& counts) {
                        withstand::HugeHeaders(port, size_t{30} << 20, std::move(stop), counts);
                      }});
    trials.push_back({.attack = "SETTINGS without end",
                      .event_loops = event_loops,
                      .run = withstand::SettingsFlood});
  }
  return trials;
}

}  // namespace strata::bench
