// `strata`: looks where it runs and hands the command line on.
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "clients/cli/commands.h"

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
                                 .color = out_is_terminal && may_color});
}
