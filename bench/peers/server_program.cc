#include "bench/peers/server_program.h"

#include <arpa/inet.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <thread>

#include "tests/fault/child_process.h"

namespace strata::bench {
namespace {

volatile std::sig_atomic_t interrupted = 0;

// A socket that holds a port until it is closed.
class HeldPort {
 public:
  HeldPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (bind(socket_, any, size) != 0 || getsockname(socket_, any, &size) != 0) {
      throw std::runtime_error("no port is free");
    }
    port_ = ntohs(address.sin_port);
  }
  ~HeldPort() { close(socket_); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;
  int port() const { return port_; }

 private:
  const int socket_;
  int port_ = 0;
};

}  // namespace

void TakeSignals() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  // Once is enough; whoever asks twice is in a hurry.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
}

bool Interrupted() { return interrupted != 0; }

std::string FindProgram(const std::string& name, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  throw std::runtime_error(name + " is not installed: service/install-packages bench");
}

std::vector<int> FreePorts(size_t count) {
  // All are held before the first is let go, else they would be the same one.
  const std::vector<HeldPort> held(count);
  std::vector<int> ports;
  for (const HeldPort& one : held) ports.push_back(one.port());
  return ports;
}

void AwaitServer(const std::string& name, const std::string& log, std::chrono::seconds patience,
                 const std::function<bool()>& serves) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!serves()) {
    if (Interrupted()) throw InterruptedError();
    if (std::chrono::steady_clock::now() >= deadline) {
      throw std::runtime_error(name + " does not serve:\n" + LastLines(log));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::string LastLines(const std::string& path) {
  constexpr size_t kBytes = 2000;
  const std::string text = fault::ReadFile(path);
  return text.size() <= kBytes ? text : text.substr(text.size() - kBytes);
}

std::string RandomPassword() {
  std::random_device random;
  std::string password;
  for (int i = 0; i < 4; ++i) password += std::to_string(random());
  return password;
}

void RequireDisk(const std::string& folder) {
  struct statfs system {};
  if (statfs(folder.c_str(), &system) == 0 && system.f_type == TMPFS_MAGIC) {
    throw std::runtime_error(folder + " is in memory: set TMPDIR to a folder on a disk");
  }
}

}  // namespace strata::bench
