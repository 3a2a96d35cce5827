// Servers that differ in what they ask for run beside each other and are measured in turns, because
// the machine is shared and what it gives changes from minute to minute.
#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "bench/access/measure.h"
#include "bench/load/prepare.h"
#include "bench/load/workloads.h"
#include "bench/support/process.h"

namespace strata::bench {
namespace {

constexpr size_t kDocuments = 10'000;
constexpr int kInFlight = 64;
constexpr std::chrono::milliseconds kWarmUp{500};
constexpr std::chrono::seconds kQuietMax{10};

// A server, and what has been measured on it.
class Subject {
 public:
  Subject(const Secrets& secrets, const Asked& asked, const std::string& folder)
      : server_(secrets, asked, folder),
        authorization_(server_.AuthorizationOf(kOwner)),
        channel_(server_.Connect()) {
    CreateCollection(channel_, "books", "deltas", authorization_);
    population_.collection = "books";
    population_.versions.resize(kDocuments);
    Prepare(channel_, *Fill(population_), authorization_);
    AwaitQuiet(server_.pid(), kQuietMax);
  }

  void Run(std::chrono::milliseconds duration, uint64_t seed) {
    LoopSettings loop;
    loop.in_flight = kInFlight;
    loop.warm_up = std::min(kWarmUp, duration);
    loop.duration = duration;
    loop.server = server_.pid();
    loop.authorization = authorization_;
    rounds_.push_back(RunLoop(channel_, *GetAtRandom(population_, seed), loop));
    rounds_.back().system = "strata, " + server_.asked().name;
  }

  const std::vector<Measurement>& rounds() const { return rounds_; }

 private:
  const SecuredServer server_;
  const std::string authorization_;
  const std::shared_ptr<grpc::Channel> channel_;
  Population population_;
  std::vector<Measurement> rounds_;
};

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// The round whose server CPU is in the middle.
size_t MiddleOf(const std::vector<Measurement>& rounds) {
  std::vector<size_t> order(rounds.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return rounds[a].server_cpu_us() < rounds[b].server_cpu_us();
  });
  return order[order.size() / 2];
}

void WriteRounds(const Subject& subject, const Subject& open, FigureLines& lines) {
  const std::vector<Measurement>& rounds = subject.rounds();
  const Parameters parameters = ParametersOf(rounds[0]);
  Write(parameters, rounds, MiddleOf(rounds), lines);
  for (const Measurement& round : rounds) {
    if (round.failures > 0 || round.calls == 0) lines.Wrong("a Get of the cost was not answered");
  }
  if (&subject == &open) return;
  std::vector<double> above;
  for (size_t i = 0; i < rounds.size(); ++i) {
    above.push_back(rounds[i].server_cpu_us() - open.rounds()[i].server_cpu_us());
  }
  const auto [low, high] = std::minmax_element(above.begin(), above.end());
  lines.Number("server_cpu_above_open", parameters, MedianOf(above), Unit::kMicroseconds,
               Spread{*low, *high, static_cast<int>(above.size())});
}

}  // namespace

void MeasureCost(const AccessSettings& settings, const Secrets& secrets, FigureLines& lines) {
  const std::vector<Asked> all = {
      {.name = "nothing asked"},
      {.name = "token and policy", .tokens = true, .policy = true},
      {.name = "TLS", .tls = true},
      {.name = "mutual TLS and policy", .tls = true, .client_certificates = true, .policy = true}};
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const Asked& asked : all) {
    const std::string folder = settings.folder + "/cost-" + std::to_string(subjects.size());
    subjects.push_back(std::make_unique<Subject>(secrets, asked, folder));
  }
  const std::chrono::milliseconds duration(static_cast<int64_t>(settings.seconds * 1000));
  for (size_t round = 0; round < static_cast<size_t>(settings.rounds); ++round) {
    // Each begins once, so that none always comes after the same one.
    for (size_t i = 0; i < subjects.size(); ++i) {
      subjects[(round + i) % subjects.size()]->Run(duration, round + 1);
    }
  }
  for (const auto& subject : subjects) WriteRounds(*subject, *subjects[0], lines);
}

}  // namespace strata::bench
