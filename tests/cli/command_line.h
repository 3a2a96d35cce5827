// Runs command lines in the test's own process.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "clients/cli/commands.h"
#include "tests/cli/fake_server.h"

namespace strata::cli {

// What a command line left behind.
struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

// One fake server, to which every command line goes.
class CommandLine : public testing::Test {
 protected:
  Outcome Run(std::vector<std::string> arguments, const std::string& in = "",
              bool out_is_terminal = false) {
    arguments.insert(arguments.end(), {"--server", server_.address()});
    return RunBare(arguments, in, out_is_terminal);
  }

  static Outcome RunBare(const std::vector<std::string>& arguments, const std::string& in = "",
                         bool out_is_terminal = false) {
    std::istringstream input(in);
    std::ostringstream out;
    std::ostringstream err;
    Outcome outcome;
    outcome.status = RunStrata(
        arguments,
        {.in = input, .out = out, .err = err, .out_is_terminal = out_is_terminal, .color = false});
    outcome.out = out.str();
    outcome.err = err.str();
    return outcome;
  }

  FakeServer server_;
};

}  // namespace strata::cli
