// Programs under test, as processes: started, read from, killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace strata::fault {

// A running program whose standard output the test reads; its standard error goes to a file. A
// program that still runs at the end is killed; it also dies with the test.
class ChildProcess {
 public:
  // `arguments[0]` is the program's path. Aborts the test if it cannot be started.
  ChildProcess(const std::vector<std::string>& arguments, const std::string& error_file);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The next line of its output, without the end; nothing if it closes its output or says nothing
  // for that long.
  std::optional<std::string> ReadLine(std::chrono::milliseconds patience);
  // All that is left of its output, up to its end.
  std::string ReadAll();
  // Reads no more of it, as whoever has seen enough.
  void StopReading();

  pid_t pid() const { return pid_; }

  // Does nothing to a program that was already waited for.
  void Signal(int signal);
  // Waits for its end. The exit status, or 128 and the signal that ended it.
  int Wait();

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  std::string unread_;
  std::optional<int> status_;
};

// A program that ran to its end.
struct Finished {
  int status = 0;
  std::string output;
};
Finished RunToEnd(const std::vector<std::string>& arguments, const std::string& error_file);

// The text of a file, such as what a program left in its error file; empty if there is none.
std::string ReadFile(const std::string& path);

}  // namespace strata::fault
