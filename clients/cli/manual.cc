// Texts of help stand in the manual as they are, without filling, for they are laid out by hand.
#include "clients/cli/manual.h"

#include <CLI/CLI.hpp>
#include <string_view>
#include <vector>

#include "clients/cli/command_tree.h"

namespace strata::cli {
namespace {

// What troff would take for its own: backslashes, hyphens that are minus signs, quotes and tildes
// that are to stay as they are typed, and dots and quotes at the beginning of a line.
std::string Escaped(std::string_view text) {
  std::string escaped;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) escaped += "\\&";
    at_start = c == '\n';
    switch (c) {
      case '\\':
        escaped += "\\e";
        break;
      case '-':
        escaped += "\\-";
        break;
      case '\'':
        escaped += "\\(aq";
        break;
      case '~':
        escaped += "\\(ti";
        break;
      case '^':
        escaped += "\\(ha";
        break;
      case '`':
        escaped += "\\(ga";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string AsArgument(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : Escaped(text)) quoted += c == '"' ? std::string("\\(dq") : std::string(1, c);
  return quoted + "\"";
}

void AppendAsItStands(std::string_view text, std::string& page) {
  if (text.empty()) return;
  page += ".PP\n.nf\n" + Escaped(text) + "\n.fi\n";
}

std::string Names(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : NamesOf(option)) {
    names += (names.empty() ? "\\fB" : ", \\fB") + Escaped(name) + "\\fR";
  }
  const std::string value = ValueName(option);
  return value.empty() ? names : names + " \\fI" + Escaped(value) + "\\fR";
}

void AppendOptions(const CLI::App& command, std::string& page) {
  const bool is_root = command.get_parent() == nullptr;
  for (const CLI::Option* const option : OptionsOf(command)) {
    // That every command has --help, the program's own says.
    if (!is_root && option == command.get_help_ptr()) continue;
    page += ".TP\n" + Names(*option) + "\n" + Escaped(option->get_description()) + "\n";
  }
}

std::string Synopsis(const CLI::App& command) {
  std::string line = "\\fB" + Escaped(FullName(command)) + "\\fR";
  for (const CLI::Option* const argument : PositionalsOf(command)) {
    const std::string name = "\\fI" + Escaped(argument->get_name(true)) + "\\fR";
    const std::string more = argument->get_items_expected_max() > 1 ? " .\\|.\\|." : "";
    line += argument->get_required() ? " " + name + more : " [" + name + more + "]";
  }
  return line + " [\\fIOPTIONS\\fR]\n";
}

void AppendCommand(const CLI::App& command, std::string& page) {
  page += ".SS " + AsArgument(FullName(command)) + "\n" + Synopsis(command) + ".PP\n" +
          Escaped(command.get_description()) + ".\n";
  for (const CLI::Option* const argument : PositionalsOf(command)) {
    page += ".TP\n\\fI" + Escaped(argument->get_name(true)) + "\\fR\n" +
            Escaped(argument->get_description()) + "\n";
  }
  AppendOptions(command, page);
  AppendAsItStands(command.get_footer(), page);
  for (const CLI::App* const subcommand : SubcommandsOf(command)) AppendCommand(*subcommand, page);
}

// Of the commands all variables are told once, though several take the same.
void AppendVariables(const CLI::App& command, std::string& told, std::string& page) {
  for (const CLI::Option* const option : OptionsOf(command)) {
    const std::string name = option->get_envname();
    if (name.empty() || told.find(" " + name + " ") != std::string::npos) continue;
    told += " " + name + " ";
    page += ".TP\n\\fB" + Escaped(name) + "\\fR\nStands for " + Names(*option) + ".\n";
  }
  for (const CLI::App* const subcommand : SubcommandsOf(command)) {
    AppendVariables(*subcommand, told, page);
  }
}

}  // namespace

std::string Manual(const CLI::App& app, const std::string& version) {
  std::string page = ".TH STRATA 1 \"\" " + AsArgument("strata " + version) +
                     " \"User Commands\"\n.nh\n.ad l\n.SH NAME\nstrata \\- " +
                     Escaped("read, change and look back at versioned documents") +
                     "\n.SH SYNOPSIS\n\\fBstrata\\fR [\\fIOPTIONS\\fR] \\fICOMMAND\\fR "
                     ".\\|.\\|.\n.SH DESCRIPTION\n" +
                     Escaped(app.get_description()) + "\n";
  AppendAsItStands(app.get_footer(), page);
  page += ".SH OPTIONS\nBefore or after the command.\n";
  AppendOptions(app, page);
  page += ".SH COMMANDS\n";
  for (const CLI::App* const command : SubcommandsOf(app)) AppendCommand(*command, page);
  page += ".SH ENVIRONMENT\n";
  std::string told;
  AppendVariables(app, told, page);
  page +=
      ".TP\n\\fBVISUAL\\fR, \\fBEDITOR\\fR\nThe editor of strata edit, with its arguments.\n"
      ".TP\n\\fBNO_COLOR\\fR\nSet to anything: no colours.\n";
  return page;
}

}  // namespace strata::cli
