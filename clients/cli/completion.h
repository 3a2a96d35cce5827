// What a shell offers for the word that is being typed. The shells ask the program itself, which
// looks at its own commands and options, so what is offered never is another version's.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace strata::cli {

// As the first argument: the others are the words of a command line, the last one being typed.
// Prints what Complete answers. For the shells alone, so no help shows it.
inline constexpr std::string_view kCompleteCommand = "__complete";

// A word that may stand there, and what it means.
struct Candidate {
  std::string word;
  std::string meaning;  // may be empty
};

struct Completion {
  std::vector<Candidate> candidates;
  bool files = false;  // names of files may stand there
};

// `words` without the program's name; the last one, which may be empty, is being typed. Bash takes
// "--strategy=del" apart into three words; so it may stand here too.
Completion Complete(const CLI::App& app, std::vector<std::string> words);

// A candidate a line, with a tab before its meaning; the line ":files" for files.
void PrintCompletion(const Completion& completion, std::ostream& out);

// For "bash", "zsh" and "fish": what makes the shell ask. Empty: no such shell is known.
std::string_view CompletionScript(std::string_view shell);

}  // namespace strata::cli
