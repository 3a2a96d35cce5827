// Starts the program with a pipe to read where it serves; what it says of its troubles goes to a
// file without a name, because a pipe that nobody reads would stop it.
#include "strata/client/testing.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace strata::client::testing {
namespace {

constexpr std::string_view kOpening = "stratad: serving strata.v1 on ";
constexpr std::chrono::minutes kPatience{1};

// A file that is gone when it is closed.
int NamelessFile() {
  const char* const folder = std::getenv("TMPDIR");
  std::string name = std::string(folder == nullptr ? "/tmp" : folder) + "/stratad-XXXXXX";
  const int file = mkostemp(name.data(), O_CLOEXEC);
  if (file >= 0) unlink(name.c_str());
  return file;
}

std::string TextOf(int file) {
  std::string text(4096, '\0');
  const ssize_t count = pread(file, text.data(), text.size(), 0);
  text.resize(count < 0 ? 0 : static_cast<size_t>(count));
  return text;
}

// A line without its end; nothing: none came in time.
std::optional<std::string> ReadLine(int pipe) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::string line;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd wait = {pipe, POLLIN, 0};
    if (left.count() <= 0) return {};
    const int ready = poll(&wait, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return {};
    char c = 0;
    if (read(pipe, &c, 1) != 1) return {};
    if (c == '\n') return line;
    line += c;
  }
}

}  // namespace

class Server::Body {
 public:
  Body(pid_t pid, int output, int errors) : pid_(pid), output_(output), errors_(errors) {}
  ~Body() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(output_);
    close(errors_);
  }
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  absl::Status AwaitService() {
    const std::optional<std::string> line = ReadLine(output_);
    if (!line.has_value() || !line->starts_with(kOpening)) {
      return absl::UnavailableError("stratad does not serve: " + line.value_or("") +
                                    TextOf(errors_));
    }
    target_ = line->substr(kOpening.size());
    target_.erase(std::min(target_.find(' '), target_.size()));
    return absl::OkStatus();
  }

  const std::string& target() const { return target_; }

 private:
  const pid_t pid_;
  const int output_;
  const int errors_;
  std::string target_;
};

absl::StatusOr<Server> Server::Start(const ServerOptions& options) {
  std::string program = options.program;
  if (const char* const named = std::getenv("STRATAD"); program.empty() && named != nullptr) {
    program = named;
  }
  if (program.empty()) program = "stratad";
  std::vector<std::string> arguments = {program, "--engine", "memory", "--listen", "127.0.0.1:0"};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  int ends[2];
  const int errors = NamelessFile();
  if (errors < 0) return absl::UnavailableError("cannot make a temporary file");
  if (pipe2(ends, O_CLOEXEC) != 0) {
    close(errors);
    return absl::UnavailableError("cannot make a pipe");
  }
  // Between fork and exec only what is safe in a program with threads.
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    close(errors);
    return absl::UnavailableError("cannot start a process");
  }
  auto body = std::make_unique<Body>(pid, ends[0], errors);
  if (absl::Status status = body->AwaitService(); !status.ok()) {
    int ended = 0;
    if (waitpid(pid, &ended, WNOHANG) == pid && WIFEXITED(ended) && WEXITSTATUS(ended) == 127) {
      return absl::NotFoundError("there is no program " + program + "; STRATAD names it");
    }
    return status;
  }
  return Server(std::move(body));
}

Server::Server(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Server::Server(Server&&) noexcept = default;
Server& Server::operator=(Server&&) noexcept = default;
Server::~Server() = default;
const std::string& Server::target() const { return body_->target(); }

}  // namespace strata::client::testing
