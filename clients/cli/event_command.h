// A command of the user's own, run once for an event.
#pragma once

#include <sys/types.h>

#include <functional>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace strata::cli {

// Runs one at a time, in a process group of its own, so that Ctrl-C at a terminal leaves it alone.
class EventCommand {
 public:
  // `arguments`: the program, found as a shell finds it, and what it is given. What it says on
  // standard error goes to `err`; its standard output is the tool's.
  EventCommand(std::vector<std::string> arguments, std::ostream& err)
      : arguments_(std::move(arguments)), err_(err) {}

  struct Ended {
    bool well = false;   // with exit status 0
    std::string reason;  // otherwise: the last line that it said on standard error, or how it ended
  };
  // Runs it to its end with `input` on standard input and `variables` in its environment, besides
  // what is there. NOT_FOUND or INTERNAL if it cannot be started.
  absl::StatusOr<Ended> Run(const std::string& input,
                            const std::vector<std::pair<std::string, std::string>>& variables);

  // Asks the one that runs, if any, to end. On any thread.
  void Terminate();
  // Ends the one that runs, whatever it would rather do. On any thread.
  void Kill();

 private:
  void Signal(int signal);

  const std::vector<std::string> arguments_;
  std::ostream& err_;
  std::mutex mutex_;  // guards what follows
  pid_t running_ = 0;
};

}  // namespace strata::cli
