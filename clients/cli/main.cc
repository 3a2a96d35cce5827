// `strata`: looks where it runs and hands the command line on.
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "clients/cli/commands.h"

namespace {

// Of a pipe or a terminal; nobody goes away from a file.
bool ReaderIsGone() {
  pollfd output{STDOUT_FILENO, 0, 0};
  return poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const char* no_color = std::getenv("NO_COLOR");
  const bool out_is_terminal = isatty(STDOUT_FILENO) == 1;
  const bool may_color = no_color == nullptr || *no_color == '\0';
  return strata::cli::RunStrata(std::vector<std::string>(argv + 1, argv + argc),
                                {.in = std::cin,
                                 .out = std::cout,
                                 .err = std::cerr,
                                 .out_is_terminal = out_is_terminal,
                                 .err_is_terminal = isatty(STDERR_FILENO) == 1,
                                 .color = out_is_terminal && may_color,
                                 .reader_is_gone = ReaderIsGone});
}
