// The command line of stratad.
#pragma once

#include <string>
#include <variant>

#include "service/app/server.h"
#include "service/observability/log.h"

namespace strata::app {

struct Flags {
  ServerOptions server;
  observability::LogLevel log_level = observability::LogLevel::kInfo;
  observability::LogFormat log_format = observability::LogFormat::kText;
};

// What to do instead of serving: print the text (on stdout if the status is 0, else on stderr) and
// exit.
struct Exit {
  int status = 0;
  std::string text;
};

// Reads the command line, the environment (STRATA_<FLAG>) and the file of --config, the first of
// these winning. Exit status 2 for whatever is wrong with any of them, naming where it stands.
std::variant<Flags, Exit> ParseFlags(int argc, const char* const* argv);

}  // namespace strata::app
