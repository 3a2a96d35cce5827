// stratad: the server process.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "schemas/base/error.h"
#include "schemas/base/strings.h"
#include "service/app/flags.h"
#include "service/app/process.h"

namespace strata::app {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitMisunderstood = 2;
constexpr int kExitStorageFailed = 3;

// Until the process is told to end; meanwhile, `reload` is called when it is told to.
template <typename Reload>
void AwaitEnd(const sigset_t& signals, Reload reload) {
  while (true) {
    int number = 0;
    sigwait(&signals, &number);
    if (number != SIGHUP) return;
    reload();
  }
}

int Serve(const Flags& flags) {
  observability::ConfigureLog(flags.log_level, flags.log_format);
  RaiseDescriptorLimit();
  const sigset_t signals = BlockSignals();
  auto server = Server::Start(flags.server);
  if (!server.ok()) {
    std::fprintf(stderr, "stratad: %s\n", std::string(ToStd(server.status().message())).c_str());
    // Its files may have changed since they were looked at.
    const bool misunderstood = ReasonOf(server.status()) == ErrorReason::kInvalidField;
    return misunderstood ? kExitMisunderstood : kExitFailure;
  }
  const bool in_memory = flags.server.engine == "memory";
  std::printf("stratad: serving strata.v1 on %s (engine %s, data %s; %s)\n",
              (*server)->address().c_str(), EngineText(flags.server).c_str(),
              in_memory ? "in memory only" : flags.server.data.c_str(),
              SecurityText(flags.server.security).c_str());
  if (!(*server)->http_address().empty()) {
    std::printf("stratad: HTTP port at %s (access: %s)\n", (*server)->http_address().c_str(),
                flags.server.http.access.c_str());
  }
  std::fflush(stdout);
  AwaitEnd(signals, [&] { (*server)->Reload(); });
  // Whoever asks twice is in a hurry; nothing acknowledged is lost by that either.
  std::thread([signals] {
    AwaitEnd(signals, [] {});
    _exit(kExitFailure);
  }).detach();
  (*server)->Drain();
  if ((*server)->StorageFailed()) {
    observability::Log(observability::LogLevel::kError,
                       "storage had failed; it is left as it is, to be opened again");
    _exit(kExitStorageFailed);
  }
  (*server)->Shutdown();
  return 0;
}

}  // namespace
}  // namespace strata::app

int main(int argc, char** argv) {
  strata::app::OpenStandardDescriptors();
  const auto parsed = strata::app::ParseFlags(argc, argv);
  if (const auto* const exit = std::get_if<strata::app::Exit>(&parsed)) {
    std::fputs(exit->text.c_str(), exit->status == 0 ? stdout : stderr);
    return exit->status;
  }
  return strata::app::Serve(std::get<strata::app::Flags>(parsed));
}
