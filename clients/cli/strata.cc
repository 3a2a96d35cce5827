// The application: global options, the list of commands, exit statuses.
#include <CLI/CLI.hpp>
#include <csignal>

#include "clients/cli/command_tree.h"
#include "clients/cli/commands.h"
#include "clients/cli/completion.h"
#include "clients/cpp/extended_json.h"
#include "clients/cpp/printable.h"

namespace strata::cli {
namespace {

constexpr char kProgramFooter[] =
    R"(Examples:
  strata create books moby '{"title": "Moby Dick", "stock": 3}' --reason catalogue
  strata update books moby --set /stock=2 --if-version 1 --reason sold
  strata get books moby --version 1
  strata history books moby --changes
  strata enroll 1 'CS 101' 1000
  strata import compat.ndjson.zst --strategy deltas

Content is JSON as an argument, in a file (@book.json) or on standard input (-). Types beyond
JSON are MongoDB Extended JSON v2: {"$numberLong": "5"}, {"$date": "2026-01-31T12:00:00Z"}.
The options above stand before or after the command; strata COMMAND --help has its own.
Exit status: 0; 1 the server refused (why, on standard error); 2 wrong usage; 130 Ctrl-C.)";

// Help that names what an option takes, and leaves out what its text says anyway.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(34); }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string value = option->get_positional() ? "" : ValueName(*option);
    return value.empty() ? "" : " " + value;
  }
};

// A name of a file that comes out empty, as of a variable that is not set, must not pass for none:
// the call would go without TLS, or without its token.
std::string NotEmpty(const std::string& text) { return text.empty() ? "it is empty" : ""; }

void AddCredentialOptions(CLI::App& app, client::CredentialFiles& files) {
  const auto add = [&](const char* name, const char* variable, std::string& value,
                       const std::string& text) {
    app.add_option(name, value, text + "; or " + variable)
        ->envname(variable)
        ->type_name("FILE")
        ->check(NotEmpty);
  };
  add("--tls-ca", "STRATA_TLS_CA", files.tls_ca,
      "Use TLS, with a server that these certificates vouch for (PEM), or those that this machine "
      "trusts: system");
  add("--tls-certificate", "STRATA_TLS_CERTIFICATE", files.tls_certificate,
      "Your own certificate, for a server that asks for one (PEM)");
  add("--tls-key", "STRATA_TLS_KEY", files.tls_key, "Its key (PEM)");
  add("--token-file", "STRATA_TOKEN_FILE", files.token_file,
      "Send the token in its first line, over TLS or on this machine; no other user may be able "
      "to read the file");
}

void AddGlobalOptions(CLI::App& app, Session& session) {
  app.add_option(
         "--server", session.server,
         "The server's HOST:PORT, or HOST for port 50051; STRATA_SERVER or 127.0.0.1 unless "
         "given")
      ->envname("STRATA_SERVER")
      ->type_name("ADDRESS");
  AddCredentialOptions(app, session.credential_files);
  app.add_option("--timeout", session.timeout,
                 "How long a call may take: 30s, 250ms, 2m; 30s unless given")
      ->type_name("TIME");
  app.add_flag(
      "--json", session.json,
      "Print answers for machines: one JSON object, or one a line, with the field names of "
      "the .proto files");
}

// A bare name or option that is misspelt, and what was meant; empty: nothing is.
std::string MisspeltText(const CLI::App& app, const std::vector<std::string>& arguments) {
  const Place place = PlaceBehind(app, arguments);
  const bool is_command = !place.unknown_command.empty();
  const std::string& word = is_command ? place.unknown_command : place.unknown_option;
  if (word.empty()) return "";
  std::vector<std::string> names;
  if (is_command) {
    for (const CLI::App* command : SubcommandsOf(*place.command)) {
      names.push_back(command->get_name());
    }
  }
  for (const CLI::App* at = place.command; !is_command && at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : OptionsOf(*at)) {
      const std::vector<std::string> its = NamesOf(*option);
      names.insert(names.end(), its.begin(), its.end());
    }
  }
  const std::string nearest = Nearest(word, names);
  const bool is_root = place.command->get_parent() == nullptr;
  return (is_root ? "there is no " : FullName(*place.command) + " has no ") +
         (is_command ? "command '" : "option '") + client::Printable(word) + "'" +
         (nearest.empty() ? "" : "; did you mean '" + nearest + "'?");
}

// What CLI11 says of an error, in other words where its own do not help.
std::string UsageText(const CLI::App& app, const CLI::ParseError& error,
                      const std::vector<std::string>& arguments) {
  const std::string text = error.what();
  const bool misplaced = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                         dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const std::string misspelt = misplaced ? MisspeltText(app, arguments) : "";
  if (!misspelt.empty()) return misspelt;
  if (text == "A subcommand is required") return "name a command";
  // The only values that are converted are numbers.
  constexpr std::string_view kConversion = "Could not convert: ";
  if (text.starts_with(kConversion)) {
    const std::string rest = text.substr(kConversion.size());
    const size_t equals = rest.find(" = ");
    if (equals != std::string::npos) {
      return rest.substr(0, equals) + ": '" + client::Printable(rest.substr(equals + 3)) +
             "' is not a number, or too large";
    }
  }
  return client::Printable(text);
}

int ReportParseError(Session& session, const CLI::App& app, const CLI::ParseError& error,
                     const std::vector<std::string>& arguments) {
  if (error.get_exit_code() == 0) {  // Help and version.
    app.exit(error, session.out(), session.err());
    return kExitOk;
  }
  session.Usage(UsageText(app, error, arguments));
  session.err() << "See " << FullName(*PlaceBehind(app, arguments).command) << " --help.\n";
  return kExitUsage;
}

// Neither the server nor a terminal could do anything with it.
std::string NotUtf8(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (!client::IsUtf8(argument)) return "not UTF-8: " + client::Printable(argument);
  }
  return "";
}

void AddCommands(CLI::App& app, Session& session) {
  app.set_version_flag("--version", "strata " STRATA_VERSION);
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(kProgramFooter);
  AddGlobalOptions(app, session);
  AddWriteCommands(app, session);
  AddEditCommand(app, session);
  AddReadCommands(app, session);
  AddHistoryCommands(app, session);
  AddCollectionCommands(app, session);
  AddEnrollmentCommands(app, session);
  AddTransactionCommands(app, session);
  AddLeaseCommands(app, session);
  AddQueueCommands(app, session);
  AddPushCommand(app, session);
  AddMessageCommands(app, session);
  AddWorkCommand(app, session);
  AddWatchCommand(app, session);
  AddSubscriptionCommands(app, session);
  AddConsumeCommand(app, session);
  AddApplyCommand(app, session);
  AddVerifyCommand(app, session);
  AddImportCommand(app, session);
  AddExportCommand(app, session);
  AddStatusCommand(app, session);
  AddShellCommands(app, session, STRATA_VERSION);
}

}  // namespace

int RunStrata(const std::vector<std::string>& arguments, Terminal terminal) {
  Session session(terminal);
  CLI::App app("Versioned documents: read, change, and look back.", "strata");
  AddCommands(app, session);
  if (!arguments.empty() && arguments[0] == kCompleteCommand) {
    PrintCompletion(Complete(app, {arguments.begin() + 1, arguments.end()}), session.out());
    return kExitOk;
  }
  if (const std::string wrong = NotUtf8(arguments); !wrong.empty()) return session.Usage(wrong);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    // CLI11 reports everything by exceptions, --help too.
    return ReportParseError(session, app, error, arguments);
  }
  const absl::Status prepared = session.Prepare();
  if (!prepared.ok()) return session.Usage(prepared);
  const int status = session.run();
  terminal.out.flush();
  if (terminal.out) return status;
  // A command that did not end by this at once, to leave things in order, does so now: quietly, as
  // any other whose reader goes away.
  if (terminal.reader_is_gone && terminal.reader_is_gone()) raise(SIGPIPE);
  return session.Fail("cannot write the answer");
}

}  // namespace strata::cli
