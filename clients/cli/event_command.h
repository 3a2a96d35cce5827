// A command of the user's own, run once for an event.
#pragma once

#include <sys/types.h>

#include <functional>
#include <mutex>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace strata::cli {

// As much of a text as a reason may have that the server keeps, whole characters.
std::string AsReason(const std::string& text);

// Runs in a process group of its own, so that Ctrl-C at a terminal leaves it alone. Thread-safe:
// several may run side by side.
class EventCommand {
 public:
  // `arguments`: the program, found as a shell finds it, and what it is given. What it says on
  // standard error goes to `err`; its standard output is the tool's.
  EventCommand(std::vector<std::string> arguments, std::ostream& err)
      : arguments_(std::move(arguments)), err_(err) {}

  struct Ended {
    bool well = false;      // with exit status 0
    std::string how;        // otherwise: "exit status 3", "killed by signal 9"
    std::string last_line;  // otherwise: what it said last on standard error; may be empty

    // Why, in so far as it said so.
    const std::string& reason() const { return last_line.empty() ? how : last_line; }
  };
  // Runs it to its end with `input` on standard input and `variables` in its environment, besides
  // what is there. NOT_FOUND or INTERNAL if it cannot be started.
  absl::StatusOr<Ended> Run(const std::string& input,
                            const std::vector<std::pair<std::string, std::string>>& variables);

  // Held while something is written to `err`.
  std::mutex& err_mutex() { return err_mutex_; }

  // Asks those that run to end.
  void Terminate();
  // Ends those that run, whatever they would rather do.
  void Kill();

 private:
  void Signal(int signal);

  const std::vector<std::string> arguments_;
  std::mutex err_mutex_;
  std::ostream& err_;
  std::mutex mutex_;  // guards what follows
  std::set<pid_t> running_;
};

}  // namespace strata::cli
