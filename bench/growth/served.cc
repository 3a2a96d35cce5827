#include "bench/growth/served.h"

#include "bench/load/prepare.h"
#include "bench/support/process.h"

namespace strata::bench {

Served::Served(const std::string& folder, const std::vector<std::string>& flags)
    : server_({.data = folder + "/data", .log = folder + ".log", .flags = flags}),
      channel_(Connect(server_.address())) {}

int64_t Served::resident_bytes() const { return ResidentBytes(pid()); }

Population Served::MakePopulation(const std::string& collection, const std::string& strategy,
                                  const Form& form) {
  CreateCollection(channel_, collection, strategy);
  Population population;
  population.collection = collection;
  population.form = form;
  return population;
}

Measurement Served::Run(Workload& workload, int in_flight, std::chrono::milliseconds duration) {
  LoopSettings loop;
  loop.in_flight = in_flight;
  loop.warm_up = duration / 4;
  loop.duration = duration;
  loop.server = pid();
  return RunLoop(channel_, workload, loop);
}

void Check(const Measurement& measurement, const std::string& where, FigureLines& lines) {
  if (measurement.failures == 0) return;
  lines.Wrong(where + ": " + std::to_string(measurement.failures) + " wrong answers to " +
              measurement.workload);
}

}  // namespace strata::bench
