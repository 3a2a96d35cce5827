// The scripts hand on the words of the command line and offer what comes back; all else is here,
// where it can be tested.
#include "clients/cli/completion.h"

#include <algorithm>

#include "clients/cli/arguments.h"
#include "clients/cli/command_tree.h"
#include "google/protobuf/descriptor.h"

namespace strata::cli {
namespace {

constexpr std::string_view kFilesLine = ":files";

constexpr char kBash[] = R"(# bash completion for strata
_strata() {
  local line IFS=$'\n'
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      compopt -o default -o filenames 2>/dev/null
      continue
    fi
    COMPREPLY+=("${line%%$'\t'*}")
  done < <(${COMP_WORDS[0]/#\~/$HOME} __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _strata strata
)";

constexpr char kZsh[] = R"(#compdef strata
_strata() {
  local line files=0
  local -a described
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      files=1
      continue
    fi
    described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done < <(${words[1]/#\~/$HOME} __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)
  (( ${#described} )) && _describe -t commands strata described
  (( files )) && _files
  return 0
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _strata "$@"
else
  compdef _strata strata
fi
)";

constexpr char kFish[] = R"(# fish completion for strata
function __strata_complete
    set -l typed (commandline -ct)
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    for line in ($program __complete $words "$typed" 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path "$typed"
        else
            printf '%s\n' $line
        end
    end
end
complete -c strata -f -a '(__strata_complete)'
)";

std::vector<std::string> KindNames() {
  std::vector<std::string> names;
  const google::protobuf::EnumDescriptor& kinds = *v1::VersionKind_descriptor();
  for (int i = 1; i < kinds.value_count(); ++i) {
    names.push_back(KindName(static_cast<v1::VersionKind>(kinds.value(i)->number())));
  }
  return names;
}

std::vector<std::string> StrategyNames() {
  std::vector<std::string> names;
  const google::protobuf::EnumDescriptor& strategies = *v1::Strategy_descriptor();
  for (int i = 1; i < strategies.value_count(); ++i) {
    names.push_back(StrategyName(static_cast<v1::Strategy>(strategies.value(i)->number())));
  }
  return names;
}

// "WHAT:{fail,skip,append}" of an option that takes one of a few words.
std::vector<std::string> WordsInBraces(const std::string& type) {
  std::vector<std::string> words;
  const size_t open = type.find(":{");
  if (open == std::string::npos || !type.ends_with('}')) return words;
  std::string word;
  for (const char c : type.substr(open + 2)) {
    if (c != ',' && c != '}') {
      word += c;
    } else {
      words.push_back(std::exchange(word, ""));
    }
  }
  return words;
}

bool IsNameOfFile(const std::string& name) { return name == "FILE"; }

void Offer(const std::vector<std::string>& words, std::string_view typed, Completion& completion) {
  for (const std::string& word : words) {
    if (word.starts_with(typed)) completion.candidates.push_back({word, ""});
  }
}

void OfferValue(const CLI::Option& option, const std::string& typed, Completion& completion) {
  const std::string name = ValueName(option);
  completion.files = IsNameOfFile(name);
  Offer(WordsInBraces(option.get_type_name()), typed, completion);
  if (name == "KIND") Offer(KindNames(), typed, completion);
  if (name == "STRATEGY") Offer(StrategyNames(), typed, completion);
}

void OfferOptions(const CLI::App& command, const std::string& typed, Completion& completion) {
  for (const CLI::App* at = &command; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* const option : OptionsOf(*at)) {
      for (const std::string& name : NamesOf(*option)) {
        // An option that stands above means the one below.
        const bool hidden = FindOption(command, name) != option;
        const bool fits = name.starts_with("--") && name.starts_with(typed);
        if (fits && !hidden) completion.candidates.push_back({name, option->get_description()});
      }
    }
  }
}

void OfferPositional(const Place& place, const std::string& typed, Completion& completion) {
  const std::vector<const CLI::Option*> positionals = PositionalsOf(*place.command);
  if (positionals.empty()) return;
  const CLI::Option& option = *positionals[std::min(place.positionals, positionals.size() - 1)];
  completion.files = IsNameOfFile(option.get_name(true)) || typed.starts_with('@');
  Offer(WordsInBraces(option.get_type_name()), typed, completion);
}

// Joins what bash took apart: "--strategy", "=", "del" means what "--strategy" "del" does.
void DropEqualsSigns(std::vector<std::string>& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] != "=" || !words[i - 1].starts_with("--")) continue;
    if (i + 1 < words.size()) {
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      words[i] = "";
    }
  }
}

}  // namespace

Completion Complete(const CLI::App& app, std::vector<std::string> words) {
  DropEqualsSigns(words);
  const std::string typed = words.empty() ? "" : words.back();
  if (!words.empty()) words.pop_back();
  const Place place = PlaceBehind(app, words);
  Completion completion;
  if (place.option != nullptr) {
    OfferValue(*place.option, typed, completion);
    return completion;
  }
  if (!place.only_positionals && typed.starts_with('-')) {
    OfferOptions(*place.command, typed, completion);
    return completion;
  }
  if (!place.only_positionals && place.positionals == 0) {
    for (const CLI::App* const command : SubcommandsOf(*place.command)) {
      if (!command->get_name().starts_with(typed)) continue;
      completion.candidates.push_back({command->get_name(), command->get_description()});
    }
  }
  OfferPositional(place, typed, completion);
  return completion;
}

void PrintCompletion(const Completion& completion, std::ostream& out) {
  for (const Candidate& candidate : completion.candidates) {
    out << candidate.word;
    if (!candidate.meaning.empty()) out << '\t' << candidate.meaning;
    out << '\n';
  }
  if (completion.files) out << kFilesLine << '\n';
}

std::string_view CompletionScript(std::string_view shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  if (shell == "fish") return kFish;
  return "";
}

}  // namespace strata::cli
