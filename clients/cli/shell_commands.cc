// strata completion, man.
#include <memory>

#include "clients/cli/commands.h"
#include "clients/cli/completion.h"
#include "clients/cli/manual.h"
#include "clients/cli/options.h"

namespace strata::cli {
namespace {

void AddCompletion(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("completion", "Print a shell's completion script for strata");
  auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command.footer(
      "Examples:\n"
      "  source <(strata completion bash)     # in ~/.bashrc\n"
      "  strata completion zsh > \"${fpath[1]}/_strata\"\n"
      "  strata completion fish > ~/.config/fish/completions/strata.fish\n"
      "The shell asks strata itself for the possible words, so this never has to be done "
      "again.");
  command.callback([&session, shell] {
    session.run = [&session, shell] {
      session.out() << CompletionScript(*shell);
      return kExitOk;
    };
  });
}

void AddMan(CLI::App& app, Session& session, const std::string& version) {
  CLI::App& command = *app.add_subcommand("man", "Print the manual, for man to show");
  command.footer(
      "Example:\n"
      "  strata man | man -l -");
  command.callback([&app, &session, version] {
    session.run = [&app, &session, version] {
      session.out() << Manual(app, version);
      return kExitOk;
    };
  });
}

}  // namespace

void AddShellCommands(CLI::App& app, Session& session, const std::string& version) {
  AddCompletion(app, session);
  AddMan(app, session, version);
}

}  // namespace strata::cli
