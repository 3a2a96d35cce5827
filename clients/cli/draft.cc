#include "clients/cli/draft.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "clients/cli/line_stream.h"

extern char** environ;

namespace strata::cli {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Editor() {
  const std::string terminal = Variable("TERM");
  const bool has_cursor = !terminal.empty() && terminal != "dumb";
  for (const std::string& editor : {has_cursor ? Variable("VISUAL") : "", Variable("EDITOR")}) {
    if (!editor.empty()) return editor;
  }
  return "vi";
}

bool WriteAll(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::InternalError("cannot write " + path + ": " + std::strerror(error) +
                             "; TMPDIR may name another folder");
}

}  // namespace

absl::StatusOr<Draft> Draft::Write(const std::string& text) {
  constexpr std::string_view kSuffix = ".json";  // By which editors know how to colour it.
  const std::string folder = Variable("TMPDIR");
  std::string path =
      (folder.empty() ? "/tmp" : folder) + "/strata-edit-XXXXXX" + std::string(kSuffix);
  const int file = mkostemps(path.data(), static_cast<int>(kSuffix.size()), O_CLOEXEC);
  if (file < 0) return CannotWrite(path, errno);
  const bool written = WriteAll(file, text);
  const int error = errno;
  const bool closed = close(file) == 0;
  if (written && closed) {
    std::error_code relative;  // What is said of it has to hold in every folder.
    const std::string whole = std::filesystem::absolute(path, relative).string();
    return Draft(relative ? path : whole);
  }
  unlink(path.c_str());
  return CannotWrite(path, written ? errno : error);
}

// As std::system does it, but the signals that this program keeps to itself reach the editor.
EditorEnd Draft::Edit() const {
  std::string command = Editor() + " " + ShellWord(path_);
  char shell[] = "sh";
  char option[] = "-c";
  char* const arguments[] = {shell, option, command.data(), nullptr};
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigaddset(&signals, SIGPIPE);
  sigaddset(&signals, SIGQUIT);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  struct sigaction ignored = {};
  struct sigaction before = {};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGQUIT, &ignored, &before);
  pid_t process = 0;
  const int error = posix_spawn(&process, "/bin/sh", nullptr, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  int status = 0;
  if (error == 0) {
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
  }
  sigaction(SIGQUIT, &before, nullptr);
  if (error != 0) return {127};
  if (WIFSIGNALED(status)) return {128 + WTERMSIG(status)};
  return {WEXITSTATUS(status)};
}

absl::StatusOr<std::string> Draft::Read() const {
  std::ifstream file(path_, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) return absl::InternalError("cannot read " + path_);
  return std::string(WithoutByteOrderMark(text));
}

void Draft::Remove() const { unlink(path_.c_str()); }

std::string ShellWord(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace strata::cli
