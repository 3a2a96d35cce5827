// Words are taken as CLI11's parser takes them (options anywhere, also those of the commands above;
// required arguments before subcommands), so that what is told fits what is parsed.
#include "clients/cli/command_tree.h"

#include <algorithm>
#include <numeric>

namespace strata::cli {
namespace {

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

size_t RequiredPositionals(const CLI::App& command) {
  const std::vector<const CLI::Option*> all = PositionalsOf(command);
  return static_cast<size_t>(std::count_if(
      all.begin(), all.end(), [](const CLI::Option* option) { return option->get_required(); }));
}

void TakeOption(const std::string& word, Place& place) {
  const size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
  const CLI::Option* const option = FindOption(*place.command, word.substr(0, equals));
  if (option != nullptr && equals == std::string::npos && TakesValue(*option)) {
    place.option = option;
  } else if (option == nullptr && word.starts_with("--") && place.unknown_option.empty()) {
    place.unknown_option = word.substr(0, equals);
  }
}

void TakeWord(const std::string& word, Place& place) {
  const CLI::App& command = *place.command;
  if (place.option != nullptr) {
    place.option = nullptr;
  } else if (!place.only_positionals && word == "--") {
    place.only_positionals = true;
  } else if (!place.only_positionals && word.size() > 1 && word.starts_with('-')) {
    TakeOption(word, place);
  } else {
    if (!place.unknown_command.empty()) return;
    const std::vector<const CLI::App*> subcommands = SubcommandsOf(command);
    const auto named =
        std::find_if(subcommands.begin(), subcommands.end(),
                     [&](const CLI::App* subcommand) { return subcommand->get_name() == word; });
    const bool may_be_command =
        !place.only_positionals && place.positionals >= RequiredPositionals(command);
    if (may_be_command && named != subcommands.end()) {
      place.command = *named;
      place.positionals = 0;
      return;
    }
    const bool has_to_be = !subcommands.empty() && PositionalsOf(command).empty();
    if (has_to_be) place.unknown_command = word;
    ++place.positionals;
  }
}

// How many characters have to be put in, left out, replaced or swapped with the next.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before;
  std::vector<size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    std::vector<size_t> row(b.size() + 1, i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(last, std::move(row));
  }
  return last[b.size()];
}

}  // namespace

Place PlaceBehind(const CLI::App& app, const std::vector<std::string>& words) {
  Place place;
  place.command = &app;
  for (const std::string& word : words) TakeWord(word, place);
  return place;
}

std::vector<const CLI::App*> SubcommandsOf(const CLI::App& command) {
  return command.get_subcommands(
      [](const CLI::App* subcommand) { return !subcommand->get_group().empty(); });
}

std::vector<const CLI::Option*> OptionsOf(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) {
    return option->nonpositional() && !option->get_group().empty();
  });
}

std::vector<const CLI::Option*> PositionalsOf(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::string FullName(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return (parent == nullptr ? "" : FullName(*parent) + " ") + command.get_name();
}

std::vector<std::string> NamesOf(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::string ValueName(const CLI::Option& option) {
  if (!TakesValue(option)) return "";
  const std::string type = option.get_type_name();  // "N", or with what checks it: "TEXT:{a,b}".
  return type.substr(0, type.find(':'));
}

const CLI::Option* FindOption(const CLI::App& command, std::string_view name) {
  for (const CLI::App* at = &command; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* const option : OptionsOf(*at)) {
      const std::vector<std::string> names = NamesOf(*option);
      if (std::find(names.begin(), names.end(), name) != names.end()) return option;
    }
  }
  return nullptr;
}

std::string Nearest(std::string_view word, const std::vector<std::string>& names) {
  std::string nearest;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& name : names) {
    const bool begun = word.size() >= 3 && name.starts_with(word);
    const size_t distance = begun ? 0 : Distance(word, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace strata::cli
