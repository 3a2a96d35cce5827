// `strata`: looks where it runs and hands the command line on.
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "clients/cli/commands.h"

namespace {

// Of a pipe or a terminal; nobody goes away from a file.
bool ReaderIsGone() {
  pollfd output{STDOUT_FILENO, 0, 0};
  return poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const bool out_is_terminal = isatty(STDOUT_FILENO) == 1;
  // One that takes letters and nothing else: neither colours nor a line that is drawn anew.
  const std::string type = Variable("TERM");
  const bool is_dumb = type.empty() || type == "dumb";
  const bool may_color = Variable("NO_COLOR").empty() && !is_dumb;
  return strata::cli::RunStrata(std::vector<std::string>(argv + 1, argv + argc),
                                {.in = std::cin,
                                 .out = std::cout,
                                 .err = std::cerr,
                                 .out_is_terminal = out_is_terminal,
                                 .err_is_terminal = isatty(STDERR_FILENO) == 1 && !is_dumb,
                                 .color = out_is_terminal && may_color,
                                 .reader_is_gone = ReaderIsGone,
                                 .in_descriptor = STDIN_FILENO});
}
