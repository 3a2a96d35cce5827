// strata_load: the load generator. Starts a server in a temporary folder, or takes one that runs
// (--target), prepares documents, and runs workloads against it, the empty call before each. Gives
// its figures as lines of JSON (bench/README.md).
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "bench/load/closed_loop.h"
#include "bench/load/disk.h"
#include "bench/load/prepare.h"
#include "bench/load/transactions.h"
#include "bench/load/workloads.h"
#include "bench/support/figure_lines.h"
#include "bench/support/host.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"
#include "strata/v1/collection_service.grpc.pb.h"
#include "tests/fault/server_process.h"
#include "tests/support/temporary_directory.h"

namespace strata::bench {
namespace {

constexpr char kTwoPhase[] = "T1-two-phase";
// One update in flight while so many calls of the workload that is named behind it are.
constexpr std::string_view kBeside = "beside-";
constexpr uint64_t kSeedApart = 1000;
constexpr int kDocumentsMax = 20;  // of one transaction

// One row of the result.
struct Case {
  std::string workload = "W1";
  std::string strategy = "deltas";
  Form form{};
  int in_flight = 64;
  int64_t depth = 100;          // W4, W5
  std::string in_turns_with{};  // a workload that a goal holds this one against
};

struct Settings {
  std::string target;
  pid_t target_process = 0;
  std::string baseline;  // a server program
  std::string folder;
  std::vector<std::string> server_flags;
  client::CredentialFiles credential_files;
  std::string json;
  int64_t documents = 10'000;
  double seconds = 2;
  double warm_up = 0.5;
  int rounds = 3;
  uint64_t seed = 1;
  std::vector<Case> cases;
};

std::chrono::milliseconds Millis(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

// The server under load and what has been prepared on it.
class Trial {
 public:
  // `binary`: another server program; empty: the one that was built with this, or the target.
  explicit Trial(const Settings& settings, const std::string& binary = "");
  ~Trial();

  // Writes the median of the rounds by their share of the empty call's calls/s, which moves less
  // than either on a machine that is shared. How many answers were wrong.
  int64_t Run(const Case& one, FigureLines& lines);
  // One of several rounds, the first of which is 0 and begins when the server is quiet.
  Measurement RunTurn(const Case& one, int round);

 private:
  const std::string& Collection(const std::string& strategy, const Form& form,
                                const std::string& use = "");
  Population& Filled(const std::string& strategy, const Form& form);
  // Documents that no other workload touches.
  Population& Apart(const std::string& strategy, const Form& form);
  Population& Accounts(const std::string& strategy, const Form& form);
  template <typename Filling>
  Population& Prepared(const std::string& use, const std::string& strategy, const Form& form,
                       Filling filling);
  std::string Deep(const std::string& collection, const Form& form, int64_t depth);
  // Of what runs beside something else: that.
  std::unique_ptr<Workload> Make(const Case& one, uint64_t seed);
  std::unique_ptr<Workload> MakeTransactions(const Case& one, uint64_t seed);
  Measurement RunEmptyCalls(int in_flight);
  Measurement RunRound(const Case& one, Workload& workload, const Measurement& empty);
  // One call in flight, on a connection of its own, while `others` are.
  Measurement RunBeside(Workload& others, const LoopSettings& loop, const Case& one, uint64_t seed);

  const Settings& settings_;
  fault::ChildProcess empty_server_;
  std::unique_ptr<fault::ServerProcess> server_;
  pid_t process_ = 0;
  std::shared_ptr<grpc::Channel> empty_channel_;
  client::Credentials credentials_;
  std::shared_ptr<grpc::Channel> channel_;
  const std::string run_ =
      std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
  std::map<std::string, std::string> collections_;
  std::map<std::string, Population> populations_;
  std::map<std::string, std::string> deep_;
  int hot_documents_ = 0;
};

client::Credentials MustRead(const client::CredentialFiles& files, const std::string& server) {
  absl::StatusOr<client::Credentials> credentials = client::ReadCredentials(files, server);
  if (!credentials.ok()) throw std::runtime_error(std::string(credentials.status().message()));
  return *std::move(credentials);
}

Trial::Trial(const Settings& settings, const std::string& binary)
    : settings_(settings), empty_server_({EMPTY_SERVER_BINARY}, settings.folder + "/empty.log") {
  const std::optional<std::string> address = empty_server_.ReadLine(std::chrono::seconds(10));
  if (!address) throw std::runtime_error("the empty server does not serve");
  empty_channel_ = Connect(*address);
  if (settings.target.empty() || !binary.empty()) {
    const std::string name = binary.empty() ? "/data" : "/baseline";
    server_ = std::make_unique<fault::ServerProcess>(
        fault::ServerSettings{.data = settings.folder + name,
                              .log = settings.folder + name + ".log",
                              .flags = settings.server_flags,
                              .binary = binary});
    process_ = server_->pid();
  } else {
    process_ = settings.target_process;
  }
  const std::string server = server_ == nullptr ? settings.target : server_->address();
  credentials_ = MustRead(settings.credential_files, server);
  channel_ = Connect(server, credentials_);
}

// A server of ours goes with its folder; on another's nothing may stay behind.
Trial::~Trial() {
  if (server_ != nullptr) return;
  const auto stub = v1::CollectionService::NewStub(channel_);
  for (const auto& [key, name] : collections_) {
    v1::DeleteCollectionRequest request;
    request.set_name(name);
    request.set_force(true);
    v1::DeleteCollectionResponse response;
    grpc::ClientContext context;
    if (!credentials_.token.empty()) {
      context.AddMetadata("authorization", credentials_.authorization());
    }
    const grpc::Status status = stub->DeleteCollection(&context, request, &response);
    if (!status.ok()) std::cerr << name << " is left: " << status.error_message() << "\n";
  }
}

std::string KeyOf(const std::string& strategy, const Form& form) {
  return strategy + (form.json ? "-json-" : "-bson-") + std::to_string(form.bytes);
}

const std::string& Trial::Collection(const std::string& strategy, const Form& form,
                                     const std::string& use) {
  const std::string key = use + KeyOf(strategy, form);
  std::string& name = collections_[key];
  if (!name.empty()) return name;
  name = "bench-" + run_ + "-" + key;
  CreateCollection(channel_, name, strategy, credentials_.authorization());
  return name;
}

template <typename Filling>
Population& Trial::Prepared(const std::string& use, const std::string& strategy, const Form& form,
                            Filling filling) {
  Population& population = populations_[use + KeyOf(strategy, form)];
  if (population.versions.empty()) {
    population.collection = Collection(strategy, form, use);
    population.form = form;
    population.versions.resize(static_cast<size_t>(settings_.documents));
    Prepare(channel_, *filling(population), credentials_.authorization());
  }
  return population;
}

Population& Trial::Filled(const std::string& strategy, const Form& form) {
  return Prepared("", strategy, form, [](Population& population) { return Fill(population); });
}

Population& Trial::Apart(const std::string& strategy, const Form& form) {
  return Prepared("apart-", strategy, form,
                  [](Population& population) { return Fill(population); });
}

Population& Trial::Accounts(const std::string& strategy, const Form& form) {
  return Prepared("accounts-", strategy, form, OpenAccounts);
}

std::string Trial::Deep(const std::string& collection, const Form& form, int64_t depth) {
  std::string& id = deep_[collection + "/" + std::to_string(depth)];
  if (id.empty()) {
    id = "deep-" + std::to_string(depth);
    Prepare(channel_, *Deepen(collection, id, form, depth), credentials_.authorization());
  }
  return id;
}

std::unique_ptr<Workload> Trial::Make(const Case& one, uint64_t seed) {
  if (one.workload.starts_with(kBeside)) {
    Apart(one.strategy, one.form);
    Case others = one;
    others.workload.erase(0, kBeside.size());
    return Make(others, seed);
  }
  const std::string hot = "hot-" + std::to_string(hot_documents_);
  if (one.workload.starts_with("T")) return MakeTransactions(one, seed);
  if (one.workload == "W1") return UpdateAtRandom(Filled(one.strategy, one.form), seed);
  if (one.workload == "W3") return GetAtRandom(Filled(one.strategy, one.form), seed);
  const std::string& collection = Collection(one.strategy, one.form);
  if (one.workload == "W2" || one.workload == "W2-cas") {
    ++hot_documents_;
    return one.workload == "W2" ? UpdateHot(collection, hot)
                                : UpdateHotCompareAndSwap(collection, hot);
  }
  const std::string id = Deep(collection, one.form, one.depth);
  if (one.workload == "W4") return GetOldVersion(collection, id, one.form, one.depth, seed);
  return NewestTen(collection, id, one.form, one.depth);
}

std::unique_ptr<Workload> Trial::MakeTransactions(const Case& one, uint64_t seed) {
  if (settings_.documents < int64_t{2} * kDocumentsMax * one.in_flight) {
    throw std::runtime_error(one.workload + ": too few documents for so many calls in flight");
  }
  if (one.workload == "T3") return UpdateTwenty(Filled(one.strategy, one.form), seed);
  if (one.workload == "T4") return ReadTen(Filled(one.strategy, one.form), seed);
  return Transfer(
      Accounts(one.strategy, one.form),
      {.hot = one.workload == "T2", .two_phase = one.workload == kTwoPhase, .seed = seed});
}

constexpr std::chrono::seconds kQuietMax{10};
// Rounds in turns for each of the others.
constexpr int kTurns = 4;
constexpr int kBaselineTurns = 3;

// That nothing was answered is a failure, too.
int64_t FailuresOf(const Measurement& measured) {
  return measured.calls_per_second() > 0 ? measured.failures
                                         : std::max<int64_t>(measured.failures, 1);
}

Measurement Trial::RunEmptyCalls(int in_flight) {
  LoopSettings loop;
  loop.in_flight = in_flight;
  loop.warm_up = Millis(settings_.warm_up / 2);
  loop.duration = Millis(settings_.seconds / 2);
  loop.server = empty_server_.pid();
  return RunLoop(empty_channel_, *EmptyCalls(), loop);
}

Measurement Trial::RunRound(const Case& one, Workload& workload, const Measurement& empty) {
  LoopSettings loop;
  loop.in_flight = one.in_flight;
  loop.warm_up = Millis(settings_.warm_up);
  loop.duration = Millis(settings_.seconds);
  loop.server = process_;
  loop.authorization = credentials_.authorization();
  Measurement measured = one.workload.starts_with(kBeside)
                             ? RunBeside(workload, loop, one, settings_.seed + kSeedApart)
                             : RunLoop(channel_, workload, loop);
  measured.system = "strata " + one.strategy;
  measured.workload += one.form.json ? ", JSON" : ", BSON";
  if (one.form.bytes != 300) measured.workload += " of " + std::to_string(one.form.bytes) + " B";
  measured.empty_calls_per_second = empty.calls_per_second();
  measured.empty_server_cpu_us = empty.server_cpu_us();
  measured.empty_latency_p50_us = empty.latency_us(0.5);
  return measured;
}

// The server's CPU is that of both, so it says nothing of either. A quantile of one call in flight
// needs the longer time.
Measurement Trial::RunBeside(Workload& others, const LoopSettings& loop, const Case& one,
                             uint64_t seed) {
  LoopSettings many = loop;
  many.duration *= 2;
  LoopSettings single = many;
  single.in_flight = 1;
  const std::unique_ptr<Workload> updates = UpdateAtRandom(Apart(one.strategy, one.form), seed);
  Measurement beside;
  std::thread thread([&] { beside = RunLoop(channel_, others, many); });
  const std::string server = server_ == nullptr ? settings_.target : server_->address();
  Measurement measured = RunLoop(Connect(server, credentials_), *updates, single);
  thread.join();
  measured.workload += " beside " + beside.workload;
  measured.in_flight = one.in_flight;
  measured.server_cpu = {};
  measured.client_cpu = {};
  measured.failures += FailuresOf(beside);
  return measured;
}

int64_t Trial::Run(const Case& one, FigureLines& lines) {
  std::vector<Measurement> rounds;
  int64_t failures = 0;
  for (int round = 0; round < settings_.rounds; ++round) {
    const std::unique_ptr<Workload> workload =
        Make(one, settings_.seed + static_cast<uint64_t>(round));
    // The first round does not pay for what was prepared, or for the workload before.
    if (round == 0) AwaitQuiet(process_, kQuietMax);
    const Measurement empty = RunEmptyCalls(one.in_flight);
    rounds.push_back(RunRound(one, *workload, empty));
    failures += FailuresOf(empty) + FailuresOf(rounds.back());
  }
  std::sort(rounds.begin(), rounds.end(), [](const Measurement& a, const Measurement& b) {
    return a.share_of_empty_calls() < b.share_of_empty_calls();
  });
  const size_t middle = rounds.size() / 2;
  rounds[middle].failures = failures;
  Write(ParametersOf(rounds[middle]), rounds, middle, lines);
  return failures;
}

Measurement Trial::RunTurn(const Case& one, int round) {
  const std::unique_ptr<Workload> workload =
      Make(one, settings_.seed + static_cast<uint64_t>(round));
  if (round == 0) AwaitQuiet(process_, kQuietMax);
  return RunRound(one, *workload, {});
}

// What runs in turns, and on which server.
struct Turn {
  Trial& trial;
  Case one;
  std::string name{};  // added to the workload's
};

// Writes the ratios of the first to the second: what a machine that is shared gives in one second,
// it gives neither in the next minute. How many answers were wrong.
int64_t RunInTurns(const Turn& of, const Turn& to, int rounds, FigureLines& lines) {
  std::vector<Measurement> measured;
  std::vector<Measurement> to_measured;
  int64_t failures = 0;
  const auto run = [&](const Turn& turn, int round, std::vector<Measurement>& all) {
    all.push_back(turn.trial.RunTurn(turn.one, round));
    all.back().workload += turn.name;
    failures += FailuresOf(all.back());
  };
  for (int round = 0; round < rounds; ++round) {
    run(to, round, to_measured);
    run(of, round, measured);
  }
  WriteRatios(measured.front().workload, measured, to_measured.front().workload, to_measured,
              lines);
  return failures;
}

// Each goal's workload on the default strategy.
std::vector<Case> GoalCases() {
  const Form json{.json = true};
  std::vector<Case> cases = {
      {.workload = "W3"},
      {.workload = "W3", .form = json},
      {.workload = "W3", .form = {.json = true, .bytes = 2048}},
  };
  for (const int in_flight : {64, 16, 1}) cases.push_back({.in_flight = in_flight});
  cases.push_back({.workload = "W2", .in_flight = 16});
  cases.push_back({.workload = "W2-cas", .in_flight = 16});
  for (const char* workload : {"W4", "W5"}) {
    for (const int64_t depth : {100, 10'000}) {
      cases.push_back({.workload = workload, .depth = depth});
    }
  }
  for (const char* workload : {"T1", "T2", "T3", "T4", "beside-W1", "beside-T2"}) {
    cases.push_back({.workload = workload});
  }
  cases.push_back({.workload = "T1", .in_turns_with = "W1"});
  cases.push_back({.workload = "T4", .in_turns_with = "W3"});
  cases.push_back({.workload = "beside-T2", .in_turns_with = "beside-W1"});
  cases.push_back({.workload = kTwoPhase, .in_flight = 1});
  return cases;
}

struct Choice {
  bool goals = false;
  std::vector<std::string> workloads = {"W1", "W2", "W3", "W4", "W5"};
  std::vector<std::string> strategies = {"deltas"};
  std::vector<std::string> encodings = {"bson"};
  std::vector<int> in_flight = {64};
  std::vector<int64_t> depths = {100};
  size_t bytes = 300;
};

// All that was chosen with all else that was chosen.
std::vector<Case> ChosenCases(const Choice& choice) {
  std::vector<Case> cases;
  for (const std::string& strategy : choice.strategies) {
    for (const std::string& encoding : choice.encodings) {
      for (const std::string& workload : choice.workloads) {
        for (const int in_flight : choice.in_flight) {
          const bool deep = workload == "W4" || workload == "W5";
          for (const int64_t depth : deep ? choice.depths : std::vector<int64_t>{1}) {
            cases.push_back({workload,
                             strategy,
                             {.json = encoding == "json", .bytes = choice.bytes},
                             in_flight,
                             depth});
          }
        }
      }
    }
  }
  return cases;
}

int Run(const Settings& settings) {
  FigureLines lines("strata_load", settings.json);
  lines.Text("measured_on", {}, DescribeHost());
  const Measurement disk = MeasureDisk(settings.folder);
  Write(ParametersOf(disk), disk, lines);
  Trial trial(settings);
  int64_t failures = 0;
  if (!settings.baseline.empty()) {
    Trial baseline(settings, settings.baseline);
    for (const Case& one :
         {Case{}, Case{.workload = "W2", .in_flight = 16}, Case{.workload = "W3"}}) {
      failures += RunInTurns({trial, one}, {baseline, one, ", the baseline"},
                             kBaselineTurns * settings.rounds, lines);
      std::cerr << "." << std::flush;
    }
  }
  for (const Case& one : settings.cases) {
    if (one.in_turns_with.empty()) {
      failures += trial.Run(one, lines);
    } else {
      Case other = one;
      other.workload = one.in_turns_with;
      failures += RunInTurns({trial, one}, {trial, other}, kTurns * settings.rounds, lines);
    }
    std::cerr << "." << std::flush;
  }
  std::cerr << "\n";
  return failures == 0 ? 0 : 1;
}

void AddChoices(Choice& choice, CLI::App& app) {
  app.add_flag("--goals", choice.goals,
               "the workloads of the goals; the choices below are ignored");
  app.add_option("--workload", choice.workloads,
                 "W1 update, W2 hot document, W2-cas (the client's own compare-and-swap), W3 get, "
                 "W4 old version, W5 newest ten; T1 transfer, T2 with one account always the same, "
                 "T3 twenty updates, T4 read of ten, T1-two-phase; beside-W1 and beside-T2: one "
                 "update in flight beside so many of those")
      ->check(CLI::IsMember({"W1", "W2", "W2-cas", "W3", "W4", "W5", "T1", "T2", "T3", "T4",
                             kTwoPhase, "beside-W1", "beside-T2"}));
  app.add_option("--strategy", choice.strategies)->check([](const std::string& name) {
    return IsStrategy(name) ? "" : "no strategy " + name;
  });
  app.add_option("--encoding", choice.encodings)->check(CLI::IsMember({"bson", "json"}));
  app.add_option("--in-flight", choice.in_flight)->check(CLI::Range(1, 10'000));
  app.add_option("--depth", choice.depths, "versions of the document of W4 and W5")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  app.add_option("--bytes", choice.bytes, "size of a document")->check(CLI::Range(300, 1'000'000));
}

void AddSettings(Settings& settings, CLI::App& app) {
  app.add_option("--target", settings.target,
                 "HOST:PORT of a server that runs; without it, one is started in a temporary "
                 "folder. Its collections are deleted again");
  app.add_option(
         "--baseline", settings.baseline,
         "another stratad, such as one from before a change, that W1 to W3 are held against "
         "in turns")
      ->check(CLI::ExistingFile);
  app.add_option("--pid", settings.target_process, "its process, for its CPU time");
  app.add_option("--server-flag", settings.server_flags, "passed on to the server that is started");
  app.add_option("--tls-ca", settings.credential_files.tls_ca,
                 "as of strata: speak TLS with the server");
  app.add_option("--tls-certificate", settings.credential_files.tls_certificate);
  app.add_option("--tls-key", settings.credential_files.tls_key);
  app.add_option("--token-file", settings.credential_files.token_file,
                 "as of strata: the token to be presented");
  app.add_option("--documents", settings.documents)->check(CLI::Range(100, 10'000'000));
  app.add_option("--seconds", settings.seconds, "of each round")->check(CLI::Range(0.1, 600.0));
  app.add_option("--warm-up", settings.warm_up, "seconds before each")
      ->check(CLI::Range(0.0, 60.0));
  app.add_option("--rounds", settings.rounds, "the median counts")->check(CLI::Range(1, 100));
  app.add_option("--seed", settings.seed);
  app.add_option("--json", settings.json,
                 "file that figures are appended to, instead of standard output");
}

int Main(int argc, char** argv) {
  Settings settings;
  Choice choice;
  CLI::App app{
      "strata_load: runs workloads against a Strata server, with a fixed number of calls in\n"
      "flight on one connection, beside the empty call of the same minute. Figures are lines of\n"
      "JSON, which strata_render makes tables of; at a terminal, tables at once"};
  AddSettings(settings, app);
  AddChoices(choice, app);
  for (CLI::Option* option : app.get_options()) option->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  settings.cases = choice.goals ? GoalCases() : ChosenCases(choice);
  const test_support::TemporaryDirectory folder;
  settings.folder = folder.path().string();
  try {
    return Run(settings);
  } catch (const std::runtime_error& error) {
    std::cerr << "strata_load: " << error.what() << std::endl;
    return 1;
  }
}

}  // namespace
}  // namespace strata::bench

int main(int argc, char** argv) {
  // As the servers do: what the client costs is taken from them.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return strata::bench::Main(argc, argv);
}
