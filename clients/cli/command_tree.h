// The commands and options as CLI11 has them, for those who do not parse but tell of them:
// completion, the manual, and what is said of a misspelt word.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace strata::cli {

// Where the words of a command line lead.
struct Place {
  const CLI::App* command = nullptr;    // the innermost that is named
  const CLI::Option* option = nullptr;  // takes the next word as its value; null: none does
  size_t positionals = 0;               // words that the command has taken as its arguments
  bool only_positionals = false;        // after --
  // The word where a command of another name had to stand; empty: none. `command` is the one above.
  std::string unknown_command;
  std::string unknown_option;  // the first one; empty: none
};
Place PlaceBehind(const CLI::App& app, const std::vector<std::string>& words);

// Those that help shows, in its order.
std::vector<const CLI::App*> SubcommandsOf(const CLI::App& command);
std::vector<const CLI::Option*> OptionsOf(const CLI::App& command);      // "--reason" and its like
std::vector<const CLI::Option*> PositionalsOf(const CLI::App& command);  // "COLLECTION"

// "strata queue create".
std::string FullName(const CLI::App& command);

// "-o", "--output".
std::vector<std::string> NamesOf(const CLI::Option& option);

// Of what it takes, as help says it: "TIME"; empty: it takes nothing.
std::string ValueName(const CLI::Option& option);

// The option of `command`, or of what stands above it, that is called `name` ("--reason"). Null:
// none is.
const CLI::Option* FindOption(const CLI::App& command, std::string_view name);

// The name that was probably meant by `word`; empty: none is near.
std::string Nearest(std::string_view word, const std::vector<std::string>& names);

}  // namespace strata::cli
