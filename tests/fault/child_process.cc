// fork and exec: between them only what is safe in a program with threads.
#include "tests/fault/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

namespace strata::fault {
namespace {

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::abort();
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments,
                           const std::string& error_file) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const int errors =
      open(error_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);  // NOLINT
  int pipe_ends[2];
  if (errors < 0 || pipe2(pipe_ends, O_CLOEXEC) != 0) Die("pipe");
  pid_ = fork();
  if (pid_ < 0) Die("fork");
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(pipe_ends[1], STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(pipe_ends[1]);
  close(errors);
  output_ = pipe_ends[0];
}

ChildProcess::~ChildProcess() {
  Signal(SIGKILL);
  Wait();
  StopReading();
}

std::optional<std::string> ChildProcess::ReadLine(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (true) {
    const size_t end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd wait = {output_, POLLIN, 0};
    if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) <= 0) return {};
    char buffer[4096];
    const ssize_t count = read(output_, buffer, sizeof buffer);
    if (count <= 0) return {};
    unread_.append(buffer, static_cast<size_t>(count));
  }
}

std::string ChildProcess::ReadAll() {
  char buffer[4096];
  while (true) {
    const ssize_t count = read(output_, buffer, sizeof buffer);
    if (count <= 0) return std::exchange(unread_, "");
    unread_.append(buffer, static_cast<size_t>(count));
  }
}

void ChildProcess::StopReading() {
  if (output_ >= 0) close(output_);
  output_ = -1;
}

void ChildProcess::Signal(int signal) {
  if (!status_.has_value()) kill(pid_, signal);
}

int ChildProcess::Wait() {
  if (!status_.has_value()) {
    int status = 0;
    if (waitpid(pid_, &status, 0) != pid_) Die("waitpid");
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return *status_;
}

Finished RunToEnd(const std::vector<std::string>& arguments, const std::string& error_file) {
  ChildProcess process(arguments, error_file);
  std::string output = process.ReadAll();
  return {process.Wait(), std::move(output)};
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace strata::fault
