// What flags are set to: by the file of --config, the environment and the command line, each of
// which overrides those before it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace strata::app {

class FlagSources {
 public:
  // What one source says of a flag.
  struct Given {
    std::string where;  // "stratad.conf:3", "STRATA_DATA", "--data"
    std::vector<std::string> texts;

    // "stratad.conf:3: ", before a message that names the flag; nothing for the command line.
    std::string place() const { return where.starts_with("--") ? "" : where + ": "; }
  };

  // Reads all sources, checks everything that they say, also what another one overrides, and leaves
  // in the targets of the app's flags what counts. `config_file` is empty for none. A variable is
  // STRATA_ and the flag's name; an empty one says nothing. INVALID_FIELD, beginning with where the
  // mistake stands. REQUIRES: the app has parsed the command line.
  absl::Status Apply(CLI::App& app, const std::string& config_file);

  // All that was said of a flag; the last counts. Empty: it has its default.
  const std::vector<Given>& Of(CLI::Option* flag) { return given_[flag]; }

 private:
  absl::Status ReadFile(const std::string& path);
  absl::Status ReadEnvironment();
  absl::Status Add(const std::string& name, const std::string& text, Given given,
                   std::map<CLI::Option*, std::string>& said);
  absl::Status SetTargets();

  std::map<std::string, CLI::Option*> flags_;  // by each of their names, without dashes
  std::map<CLI::Option*, std::vector<Given>> given_;
};

}  // namespace strata::app
