// crowd [--seconds S] [--round S] [--calm] [--server FILE]: all kinds of callers of one real server
// at once, while it is stopped for longer than leases last, and killed, and started again. What
// each is promised holds all the time, and after each round, when all is quiet, for what is stored.
// Exit status 0: so it is. --calm: nothing is done to the server.
//
// STRATA_SEED repeats what each does, as far as threads do.
#include "tests/long/crowd.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <thread>
#include <utility>

#include "strata/v1/collection_service.grpc.pb.h"
#include "tests/fault/free_port.h"
#include "tests/fault/server_process.h"
#include "tests/support/places.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/temporary_directory.h"

namespace strata::fault {
namespace {

struct Settings {
  seconds time{60};
  seconds round{60};
  bool calm = false;
  std::string server = test_support::ServerProgram();
};

constexpr char kConductor[] = "conductor";
constexpr seconds kDrainPatience{90};
constexpr seconds kGrace{5};
constexpr seconds kEndPatience{kGrace.count() + 5};

// A server with one address and one folder in each of its lives.
class CrowdServer {
 public:
  CrowdServer(const std::string& folder, const std::string& tokens, const std::string& binary)
      : settings_{folder + "/data",
                  folder + "/log",
                  "127.0.0.1:" + FreePort(),
                  {"--tokens", tokens, "--grace", std::to_string(kGrace.count()),
                   "--in-flight-mib-max", "32"},
                  0,
                  binary} {
    Start();
  }

  const std::string& address() const { return settings_.listen; }
  void Start() { process_ = std::make_unique<ServerProcess>(settings_); }
  void Signal(int signal) { kill(process_->pid(), signal); }
  void Kill() { process_->Kill(); }
  // Whether it has ended within the patience; it stays to be waited for.
  bool EndsWithin(milliseconds patience) const {
    const auto end = Steady::now() + patience;
    do {
      siginfo_t info{};
      if (waitid(P_PID, static_cast<id_t>(process_->pid()), &info, WEXITED | WNOHANG | WNOWAIT) ==
              0 &&
          info.si_pid != 0) {
        return true;
      }
      std::this_thread::sleep_for(milliseconds(5));
    } while (Steady::now() < end);
    return false;
  }
  int Stop() { return process_->Stop(); }
  std::string LogEnd() const {
    const std::string log = ReadFile(settings_.log);
    constexpr size_t kTold = 3'000;
    return log.size() > kTold ? log.substr(log.size() - kTold) : log;
  }

 private:
  const ServerSettings settings_;
  std::unique_ptr<ServerProcess> process_;
};

class Conductor {
 public:
  explicit Conductor(const Settings& settings)
      : settings_(settings), seed_(test_support::TestSeed()) {
    tokens_ = directory_.Join("tokens");
    std::printf("STRATA_SEED=%llu\n", static_cast<unsigned long long>(seed_));
    std::fflush(stdout);
  }

  bool Run() {
    crowd_ = std::make_unique<Crowd>(seed_);
    MakeParts();
    MakeTokens();
    CrowdServer server(directory_.path(), tokens_, settings_.server);
    crowd_->SetAddress(server.address());
    Caller caller(*crowd_, kConductor);
    for (const auto& part : parts_) part->SetUp(caller);
    std::vector<std::thread> members;
    for (const auto& part : parts_) {
      for (auto& member : part->Members()) {
        crowd_->Join();
        members.emplace_back(std::move(member));
      }
    }
    const auto end = Steady::now() + settings_.time;
    do {
      Round(server, caller);
    } while (!crowd_->broken() && Steady::now() < end);
    crowd_->Enter(Phase::kOver);
    if (crowd_->broken()) server.Signal(SIGKILL);  // nobody waits for what does not come
    for (std::thread& member : members) member.join();
    std::printf("%s: %s\n", crowd_->broken() ? "FAILED" : "all held", crowd_->Counts().c_str());
    return !crowd_->broken();
  }

 private:
  void MakeParts() {
    parts_.push_back(MakeQueueCrowd(*crowd_));
    parts_.push_back(MakeQueueMakers(*crowd_));
    parts_.push_back(MakeFeedCrowd(*crowd_));
    parts_.push_back(MakeConsumerCrowd(*crowd_));
    parts_.push_back(MakeLeaseCrowd(*crowd_));
  }

  // Each caller is a principal, as each would have an address of its own elsewhere.
  void MakeTokens() {
    std::vector<std::string> callers = {kConductor};
    for (const auto& part : parts_) {
      for (std::string& name : part->callers()) callers.push_back(std::move(name));
    }
    std::ofstream file(tokens_);
    for (const std::string& caller : callers) {
      const Finished made =
          RunToEnd({settings_.server, "token", caller}, directory_.Join("token-log"));
      const size_t end = made.output.find('\n');
      if (made.status != 0 || end == std::string::npos) crowd_->Break("no token for " + caller);
      crowd_->SetToken(caller, made.output.substr(0, end));
      file << made.output.substr(end + 1);
    }
    file.close();
    chmod(tokens_.c_str(), 0600);
  }

  void Round(CrowdServer& server, Caller& caller) {
    crowd_->Enter(Phase::kWork);
    const auto end = Steady::now() + settings_.round;
    std::mt19937_64 random = crowd_->Random("nemesis-" + std::to_string(++round_));
    auto told = Steady::now();
    while (Steady::now() < end && !crowd_->broken()) {
      // Often enough in a short round, and in a long one with times of calm between.
      const auto spread = std::min<int64_t>(14'000, milliseconds(settings_.round).count() / 4);
      const milliseconds pause{2'000 +
                               static_cast<int64_t>(random() % static_cast<uint64_t>(spread))};
      const auto until = std::min(end, Steady::now() + pause);
      while (Steady::now() < until && !crowd_->broken()) {
        if (server.EndsWithin(milliseconds(100))) return BreakEnded(server);
        if (Steady::now() - told > std::chrono::minutes(1)) {
          told = Steady::now();
          std::printf("%s\n", crowd_->Counts().c_str());
          std::fflush(stdout);
        }
      }
      if (!settings_.calm && Steady::now() < end) Disturb(server, random);
    }
    if (!crowd_->broken()) Settle(server, caller);
    std::printf("round %lld: %s\n", static_cast<long long>(round_), crowd_->Counts().c_str());
    std::fflush(stdout);
  }

  void Disturb(CrowdServer& server, std::mt19937_64& random) {
    crowd_->Disturb(false);
    if (random() % 4 == 0) {
      if (server.EndsWithin(milliseconds(0))) return BreakEnded(server);
      server.Kill();
      server.Start();
      crowd_->Count("kills");
    } else {
      server.Signal(SIGSTOP);
      std::this_thread::sleep_for(milliseconds(300 + random() % 3'000));
      server.Signal(SIGCONT);
      crowd_->Count("stalls");
    }
    crowd_->Disturb(true);
  }

  void Settle(CrowdServer& server, Caller& caller) {
    crowd_->Enter(Phase::kDrain);
    const auto end = Steady::now() + kDrainPatience;
    std::string open;
    do {
      if (server.EndsWithin(milliseconds(200))) return BreakEnded(server);
      open.clear();
      for (const auto& part : parts_) {
        if (const std::string text = part->Open(caller); !text.empty()) open += "; " + text;
      }
    } while (!open.empty() && Steady::now() < end && !crowd_->broken());
    if (!open.empty()) return crowd_->Break("not drained: " + open.substr(2));
    crowd_->Enter(Phase::kQuiet);
    for (const auto& part : parts_) part->Check(caller);
    for (const char* const collection : {"pulse", "heavy", "orders", "fenced"}) {
      Verify(caller, collection);
    }
    if (crowd_->broken()) return;
    // With its streams open.
    const auto asked = Steady::now();
    crowd_->Disturb(false);
    server.Signal(SIGTERM);
    if (!server.EndsWithin(kEndPatience)) {
      return crowd_->Break("the server has not ended " + std::to_string(kEndPatience.count()) +
                           " s after SIGTERM");
    }
    const int status = server.Stop();
    if (status != 0) crowd_->Break("the server ended with " + std::to_string(status));
    crowd_->Measure("an end", std::chrono::duration_cast<milliseconds>(Steady::now() - asked));
    server.Start();
    crowd_->Disturb(true);
  }

  void BreakEnded(CrowdServer& server) {
    const int status = server.Stop();
    crowd_->Break("the server ended by itself, with " + std::to_string(status) +
                  "; its log: " + server.LogEnd());
  }

  void Verify(Caller& caller, const std::string& collection) {
    const auto collections = v1::CollectionService::NewStub(caller.channel());
    StreamContext context(caller);
    v1::VerifyRequest request;
    request.set_collection(collection);
    const auto stream = collections->Verify(*context, request);
    bool complete = false;
    for (v1::VerifyResponse response; stream->Read(&response);) {
      for (const v1::Finding& finding : response.findings()) {
        crowd_->Break("Verify of " + collection + ": " + finding.ShortDebugString());
      }
      complete = response.complete();
    }
    const grpc::Status status = stream->Finish();
    if (!status.ok() || !complete) {
      crowd_->Break("Verify of " + collection + " did not end: " + status.error_message());
    }
  }

  const Settings settings_;
  const uint64_t seed_;
  test_support::TemporaryDirectory directory_;
  std::string tokens_;
  std::unique_ptr<Crowd> crowd_;
  std::vector<std::unique_ptr<Part>> parts_;
  int64_t round_ = 0;
};

std::optional<Settings> Parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--calm") {
      settings.calm = true;
      continue;
    }
    if (i + 1 == argc) return std::nullopt;
    if (flag == "--server") {
      settings.server = argv[++i];
      continue;
    }
    const seconds value(std::atoll(argv[++i]));
    if (value <= seconds(0)) return std::nullopt;
    if (flag == "--seconds") {
      settings.time = value;
    } else if (flag == "--round") {
      settings.round = value;
    } else {
      return std::nullopt;
    }
  }
  return settings;
}

}  // namespace
}  // namespace strata::fault

int main(int argc, char** argv) {
  const auto settings = strata::fault::Parse(argc, argv);
  if (!settings) {
    std::cerr << "usage: crowd [--seconds S] [--round S] [--calm] [--server FILE]\n";
    return 2;
  }
  return strata::fault::Conductor(*settings).Run() ? 0 : 1;
}
