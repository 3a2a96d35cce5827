#include "bench/http/http_server.h"

#include <charconv>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "bench/http/http_loop.h"
#include "bench/load/prepare.h"
#include "bench/support/process.h"
#include "tests/support/places.h"

namespace strata::bench {
namespace {

constexpr std::chrono::seconds kStartMax{60};
constexpr std::chrono::seconds kQuietMax{10};

std::vector<std::string> CommandLine(const std::string& data, PortForPeople port) {
  std::vector<std::string> line = {test_support::ServerProgram(), "--data", data, "--listen",
                                   "127.0.0.1:0"};
  if (port == PortForPeople::kOn) {
    line.insert(line.end(), {"--http-listen", "127.0.0.1:0"});
  }
  return line;
}

// What stands behind `opening` on the line that a server says next, up to `end`.
std::string NextAddress(fault::ChildProcess& process, std::string_view opening, char end,
                        const std::string& log) {
  const std::optional<std::string> line = process.ReadLine(kStartMax);
  if (!line || !line->starts_with(opening)) {
    throw std::runtime_error("the server does not serve; it said: " + line.value_or("nothing") +
                             "\n" + fault::ReadFile(log));
  }
  const std::string address = line->substr(opening.size());
  return address.substr(0, address.find(end));
}

int PortOf(const std::string& address) {
  const char* const end = address.data() + address.size();
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos ||
      std::from_chars(address.data() + colon + 1, end, port).ptr != end || port <= 0) {
    throw std::runtime_error("the server says an address without a port: " + address);
  }
  return port;
}

Measurement Checked(Measurement measured, FigureLines& lines) {
  measured.system = "strata";
  if (measured.failures > 0 || measured.calls == 0) {
    lines.Wrong(measured.workload + ": " + std::to_string(measured.failures) +
                " wrong answers, and " + std::to_string(measured.calls) + " right ones");
  }
  return measured;
}

}  // namespace

HttpServer::HttpServer(const HttpLoadSettings& settings, const std::string& name,
                       PortForPeople port)
    : settings_(settings),
      process_(CommandLine(settings.folder + "/" + name, port),
               settings.folder + "/" + name + ".log") {
  const std::string log = settings.folder + "/" + name + ".log";
  channel_ = Connect(NextAddress(process_, "stratad: serving strata.v1 on ", ' ', log));
  if (port == PortForPeople::kOn) {
    http_port_ = PortOf(NextAddress(process_, "stratad: HTTP port at http://", '/', log));
  }
}

Population& HttpServer::Documents(const Form& form) {
  const std::string name = (form.json ? "json-" : "bson-") + std::to_string(form.bytes);
  Population& population = populations_[name];
  if (population.versions.empty()) {
    CreateCollection(channel_, name, "deltas");
    population.collection = name;
    population.form = form;
    population.versions.resize(static_cast<size_t>(settings_.documents));
    Prepare(channel_, *Fill(population));
  }
  return population;
}

LoopSettings HttpServer::BeginRound(int in_flight) const {
  AwaitQuiet(process_.pid(), kQuietMax);
  LoopSettings loop;
  loop.in_flight = in_flight;
  loop.warm_up = settings_.duration / 4;
  loop.duration = settings_.duration;
  loop.server = process_.pid();
  return loop;
}

Measurement HttpServer::Run(Workload& workload, int in_flight, FigureLines& lines) {
  return Checked(RunLoop(channel_, workload, BeginRound(in_flight)), lines);
}

Measurement HttpServer::Run(JsonGets& gets, int in_flight, FigureLines& lines) {
  return Checked(RunHttpLoop(http_port_, gets, BeginRound(in_flight)), lines);
}

}  // namespace strata::bench
