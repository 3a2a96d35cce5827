// Whether a port for people that nobody uses costs calls by gRPC anything: W1 to W3 beside a server
// without one, in turns.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/http/http_server.h"
#include "bench/http/measure.h"
#include "bench/support/rounds.h"

namespace strata::bench {
namespace {

struct Case {
  std::string workload;
  int in_flight = 64;
  std::function<std::unique_ptr<Workload>(HttpServer& server, uint64_t seed)> make;
  std::vector<Measurement> on{};
  std::vector<Measurement> off{};
};

std::vector<Case> Cases() {
  return {{.workload = "W1 update",
           .make = [](HttpServer& one,
                      uint64_t seed) { return UpdateAtRandom(one.Documents({}), seed); }},
          {.workload = "W2 hot document",
           .in_flight = 16,
           .make =
               [](HttpServer& one, uint64_t seed) {
                 return UpdateHot(one.Documents({}).collection, "hot-" + std::to_string(seed));
               }},
          {.workload = "W3 get", .make = [](HttpServer& one, uint64_t seed) {
             return GetAtRandom(one.Documents({}), seed);
           }}};
}

}  // namespace

void MeasureIdlePort(const HttpLoadSettings& settings, FigureLines& lines) {
  HttpServer with_port(settings, "port-on", PortForPeople::kOn);
  HttpServer without(settings, "port-off", PortForPeople::kOff);
  std::vector<Case> cases = Cases();
  for (int round = 0; round < settings.rounds; ++round) {
    const auto run = [&](HttpServer& server, const Case& one) {
      return server.Run(*one.make(server, static_cast<uint64_t>(round)), one.in_flight, lines);
    };
    for (Case& one : cases) {
      // Nobody always comes first.
      if (round % 2 == 0) one.on.push_back(run(with_port, one));
      one.off.push_back(run(without, one));
      if (round % 2 == 1) one.on.push_back(run(with_port, one));
    }
  }
  for (const Case& one : cases) {
    const std::string on = one.workload + ", port for people idle";
    const std::string off = one.workload + ", no port for people";
    WriteCalls(on, one.on, lines);
    WriteCalls(off, one.off, lines);
    WriteRatios(on, one.on, off, one.off, lines);
  }
}

}  // namespace strata::bench
