#include "clients/cli/event_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string_view>

#include "clients/cpp/printable.h"

extern char** environ;

namespace strata::cli {
namespace {

// Closes itself.
class File {
 public:
  File() = default;
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() { Close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int get() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  void Set(int descriptor) {
    Close();
    descriptor_ = descriptor;
  }
  void Close() {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = -1;
  }

 private:
  int descriptor_ = -1;
};

absl::Status SystemError(std::string_view what) {
  return absl::InternalError(std::string(what) + ": " + std::strerror(errno));
}

// A file in memory, at its beginning: whoever reads it may leave as much of it as it likes.
absl::Status WriteInput(const std::string& input, File& file) {
  file.Set(memfd_create("event", MFD_CLOEXEC));
  if (!file.open()) return SystemError("cannot make a file for the event");
  for (size_t written = 0; written < input.size();) {
    const ssize_t bytes = write(file.get(), input.data() + written, input.size() - written);
    if (bytes < 0) return SystemError("cannot write the event");
    written += static_cast<size_t>(bytes);
  }
  if (lseek(file.get(), 0, SEEK_SET) < 0) return SystemError("cannot write the event");
  return absl::OkStatus();
}

std::vector<std::string> EnvironmentWith(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> made;
  for (const auto& [name, value] : variables) made.push_back(name + "=" + value);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& variable : variables) replaced = replaced || variable.first == name;
    if (!replaced) made.emplace_back(text);
  }
  return made;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The signals that the tool waits for or ignores itself reach the command as they reach any other.
absl::StatusOr<pid_t> Spawn(std::vector<std::string> arguments,
                            std::vector<std::string> environment, int input, int errors) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  sigset_t ignored;
  sigemptyset(&ignored);
  sigaddset(&ignored, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &ignored);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t process = 0;
  const int error = posix_spawnp(&process, arguments[0].c_str(), &files, &attributes,
                                 Pointers(arguments).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error == 0) return process;
  return absl::NotFoundError("cannot run " + arguments[0] + ": " + std::strerror(error));
}

// The last line that has something in it, as it is told.
class LastLine {
 public:
  void Add(std::string_view text) {
    for (const char c : text) {
      if (c == '\n') {
        End();
      } else if (line_.size() < kBytesMax) {
        line_ += c;
      }
    }
  }
  std::string Take() {
    End();
    return last_;
  }

 private:
  static constexpr size_t kBytesMax = 4096;

  void End() {
    if (line_.find_first_not_of(" \t\r") != std::string::npos) last_ = line_;
    line_.clear();
  }

  std::string line_;
  std::string last_;
};

using Said = std::function<void(std::string_view text)>;

// Reads what there is; false: there is nothing more to come.
bool ReadSome(int descriptor, const Said& said) {
  char bytes[4096];
  for (;;) {
    const ssize_t count = read(descriptor, bytes, sizeof bytes);
    if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EINTR);
    const std::string_view text(bytes, static_cast<size_t>(count));
    said(text);
  }
}

// Until the process has ended: what it left behind may hold its standard error open for longer.
void Follow(pid_t process, int errors, const Said& said) {
  const File ended(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  pollfd watched[] = {{ended.get(), POLLIN, 0}, {errors, POLLIN, 0}};
  while ((watched[0].revents & POLLIN) == 0 && (watched[0].fd >= 0 || watched[1].fd >= 0)) {
    if (poll(watched, 2, -1) < 0 && errno != EINTR) break;
    if (watched[1].revents != 0 && !ReadSome(errors, said)) watched[1].fd = -1;
  }
  if (watched[1].fd >= 0) ReadSome(errors, said);
}

std::string HowItEnded(int status) {
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

std::string AsReason(const std::string& text) {
  constexpr size_t kReasonBytesMax = 1024;
  std::string reason = client::Printable(text);
  if (reason.size() <= kReasonBytesMax) return reason;
  size_t end = kReasonBytesMax;
  while (end > 0 && (static_cast<unsigned char>(reason[end]) & 0xC0) == 0x80) --end;
  return reason.substr(0, end);
}

absl::StatusOr<EventCommand::Ended> EventCommand::Run(
    const std::string& input, const std::vector<std::pair<std::string, std::string>>& variables) {
  File event;
  if (absl::Status written = WriteInput(input, event); !written.ok()) return written;
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return SystemError("cannot make a pipe");
  const File errors(pipe_ends[0]);
  File its_errors(pipe_ends[1]);
  fcntl(errors.get(), F_SETFL, O_NONBLOCK);
  absl::StatusOr<pid_t> process;
  {
    const std::lock_guard lock(mutex_);
    process = Spawn(arguments_, EnvironmentWith(variables), event.get(), its_errors.get());
    if (!process.ok()) return process.status();
    running_.insert(*process);
  }
  its_errors.Close();
  LastLine last;
  Follow(*process, errors.get(), [&](std::string_view text) {
    last.Add(text);
    const std::lock_guard lock(err_mutex_);
    err_ << text << std::flush;
  });
  const std::lock_guard lock(mutex_);
  int status = 0;
  while (waitpid(*process, &status, 0) < 0 && errno == EINTR) {
  }
  running_.erase(*process);
  Ended ended;
  ended.well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (ended.well) return ended;
  ended.how = HowItEnded(status);
  ended.last_line = last.Take();
  return ended;
}

void EventCommand::Terminate() { Signal(SIGTERM); }

void EventCommand::Kill() { Signal(SIGKILL); }

void EventCommand::Signal(int signal) {
  const std::lock_guard lock(mutex_);
  for (const pid_t process : running_) kill(-process, signal);
}

}  // namespace strata::cli
