#include "service/app/flags.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "schemas/base/clock.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/versioning/strategy.h"
#include "service/app/flag_sources.h"
#include "service/engines/engines.h"
#include "service/security/tokens.h"

namespace strata::app {
namespace {

// One line a flag: its name and what it takes, what it does, its default. Ranges and choices are
// said in words or by the error that they make.
class Help : public CLI::Formatter {
 public:
  Help() { column_width(34); }
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string type = option->get_type_name();
    for (const char* const check : {":{", ":INT", ":UINT"}) type = type.substr(0, type.find(check));
    return type.empty() ? "" : " " + type;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string value = option->get_default_str();
    return option->get_description() + (value.empty() ? "" : " [" + value + "]");
  }
};

// Flags as they are written; Flags holds what they mean.
struct FlagTexts {
  std::string log_level = "info";
  std::string log_format = "text";
  int64_t grace_seconds = 10;
  int64_t transaction_timeout_seconds = 300;
  std::string hold_transactions_after;  // empty: nothing is held
  int64_t keepalive_seconds = 60;
  int64_t connection_age_seconds = 1800;
  int64_t deadline_seconds = 30;
  std::string ledger_retention;  // empty: for ever
  int64_t in_flight_mib = 256;
  int event_loops = 0;  // 0: as EventLoopsFor says
};

// The flags that are options of engines, by name.
using EngineFlags = std::map<std::string, CLI::Option*>;

template <typename Target>
CLI::Option* Add(CLI::App& app, const std::string& group, const std::string& flag, Target& target,
                 const std::string& what) {
  CLI::Option* option = nullptr;
  if constexpr (std::is_same_v<Target, bool>) {
    option = app.add_flag("--" + flag, target, what);
  } else {
    option = app.add_option("--" + flag, target, what)->capture_default_str();
  }
  return option->group(group);
}

std::vector<std::string> EngineNames() {
  std::vector<std::string> names;
  for (const engines::Engine& engine : engines::AllEngines()) names.emplace_back(engine.name);
  return names;
}

std::vector<std::string> StrategyNames() {
  std::vector<std::string> names;
  for (const auto& entry : versioning::AllStrategies()) names.emplace_back(entry.name);
  return names;
}

std::string Joined(const std::vector<std::string>& names) { return CLI::detail::join(names, ", "); }

void AddStorage(CLI::App& app, ServerOptions& server) {
  const std::string group = "Storage";
  Add(app, group, "data", server.data, "directory of the data; created if missing")
      ->type_name("DIR")
      ->check([](const std::string& data) { return data.empty() ? "is empty" : std::string(); });
  Add(app, group, "engine", server.engine,
      "the engine that stores the data: " + Joined(EngineNames()))
      ->type_name("NAME")
      ->check(CLI::IsMember(EngineNames()));
  Add(app, group, "single-record", server.single_record,
      "for tests and demonstrations: use the engine only for\nwrites of single records, and "
      "keep no ledger; on data of its own");
}

// One flag for each name, whichever engines have such an option. What is given is kept as text, for
// the engine that is chosen.
EngineFlags AddEngineOptions(CLI::App& app) {
  EngineFlags flags;
  for (const engines::Engine& engine : engines::AllEngines()) {
    for (const engines::EngineOption& option : engine.options) {
      CLI::Option*& flag = flags[std::string(option.name)];
      if (flag != nullptr) {
        flag->group(flag->get_group() + ", " + std::string(engine.name));
        continue;
      }
      const std::string name = "--" + std::string(option.name);
      flag = option.takes.empty() ? app.add_flag(name) : app.add_option(name);
      flag->description(std::string(option.words))
          ->type_name(std::string(option.takes))
          ->default_str(std::string(option.default_value))
          ->group("Engine " + std::string(engine.name));
    }
  }
  return flags;
}

// "90d", "12h", "1h30m"; nothing if it is none of a minute to a hundred years.
std::optional<std::chrono::seconds> ParseRetention(const std::string& text) {
  constexpr absl::Duration kDay = absl::Hours(24);
  absl::Duration parsed;
  int64_t days = 0;
  if (text.ends_with('d') && absl::SimpleAtoi(text.substr(0, text.size() - 1), &days)) {
    parsed = days * kDay;
  } else if (!absl::ParseDuration(text, &parsed)) {
    return std::nullopt;
  }
  if (parsed < absl::Minutes(1) || parsed > 36'500 * kDay) return std::nullopt;
  return absl::ToChronoSeconds(parsed);
}

void AddDocuments(CLI::App& app, FlagTexts& texts, ServerOptions& server) {
  const std::string group = "Documents";
  Add(app, group, "default-strategy", server.default_strategy,
      "strategy of collections that name none:\n" + Joined(StrategyNames()))
      ->type_name("NAME")
      ->check(CLI::IsMember(StrategyNames()));
  app.add_flag("--create-collections,!--no-create-collections", server.create_collections,
               "a write to an unknown collection creates it")
      ->group(group)
      ->default_str("true");
  Add(app, group, "collections-max", server.collections_max,
      "maximum number of collections (COLLECTION_LIMIT)")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000'000}));
  Add(app, group, "document-bytes-max", server.document_bytes_max, "largest document")
      ->type_name("BYTES")
      ->check(CLI::Range(size_t{1024}, document::Limits::kBytesCeiling));
  Add(app, group, "ledger-retention", texts.ledger_retention,
      "older entries are trimmed from the ledger, such as 90d or\n12h; unset: none")
      ->type_name("DURATION")
      ->check([](const std::string& text) -> std::string {
        if (ParseRetention(text)) return "";
        return text + " is not a duration from 1m to 36500d, such as 90d or 12h";
      });
}

// Where transactions in two phases can be held, by the names of steps.
const std::map<std::string, transaction::HoldAfter>& HoldSteps() {
  using transaction::HoldAfter;
  static const auto* const steps =
      new std::map<std::string, HoldAfter>{{"new", HoldAfter::kNew},
                                           {"pending", HoldAfter::kPending},
                                           {"first-slot", HoldAfter::kFirstSlot},
                                           {"applied", HoldAfter::kApplied}};
  return *steps;
}

void AddTransactions(CLI::App& app, FlagTexts& texts) {
  const std::string group = "Transactions";
  Add(app, group, "transaction-timeout", texts.transaction_timeout_seconds,
      "transactions in two phases that are new or pending for\nlonger are rolled back")
      ->type_name("SECONDS")
      ->check(CLI::Range(int64_t{1}, int64_t{86400}));
  Add(app, group, "hold-transactions-after", texts.hold_transactions_after,
      "for tests and demonstrations: stop each transaction in two\nphases after this step, and do "
      "nothing for it until the\nserver restarts: new, pending, first-slot or applied")
      ->type_name("STEP")
      ->check(CLI::IsMember({"new", "pending", "first-slot", "applied"}));
}

void AddNetwork(CLI::App& app, ServerOptions& server, FlagTexts& texts) {
  const std::string group = "Network";
  Add(app, group, "listen", server.loop.listener.listen,
      "address to serve on; port 0 picks a free one")
      ->type_name("HOST:PORT");
  Add(app, group, "insecure", server.insecure,
      "allow an address that other machines reach, although\ntraffic is not encrypted");
  Add(app, group, "event-loops", texts.event_loops,
      "event loops, one thread each (default: 2 where other\nmachines can connect without a "
      "certificate, else 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 64))
      ->default_str("");
  Add(app, group, "deadline", texts.deadline_seconds, "longest time of a call")
      ->type_name("SECONDS")
      ->check(CLI::Range(int64_t{1}, int64_t{3600}));
  Add(app, group, "grace", texts.grace_seconds, "time for calls in progress at SIGTERM")
      ->type_name("SECONDS")
      ->check(CLI::Range(int64_t{0}, int64_t{3600}));
  Add(app, group, "keepalive", texts.keepalive_seconds, "idle time before a client is pinged")
      ->type_name("SECONDS")
      ->check(CLI::Range(int64_t{1}, int64_t{86400}));
  Add(app, group, "connection-age-max", texts.connection_age_seconds,
      "clients reconnect after this time, so that balancers can\nmove them; 0: never")
      ->type_name("SECONDS")
      ->check(CLI::Range(int64_t{0}, int64_t{864000}));
  Add(app, group, "connections-max", server.loop.listener.connections_max,
      "open connections; further ones are reset. The limit is at\nmost half of the descriptors "
      "that the process may have")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  Add(app, group, "connections-per-address-max", server.loop.listener.connections_per_address_max,
      "open connections from one address; 0: no limit of its own")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000));
  Add(app, group, "in-flight-mib-max", texts.in_flight_mib,
      "requests and answers in memory; further calls are\nrefused as OVERLOADED")
      ->type_name("MIB")
      ->check(CLI::Range(int64_t{8}, int64_t{1} << 20));
  Add(app, group, "executor-threads", server.executor_threads,
      "threads for calls that visit many records or go through\nmuch content; callers "
      "share them fairly")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
}

void AddHttp(CLI::App& app, ServerOptions::Http& http) {
  const std::string group = "HTTP port";
  Add(app, group, "http-listen", http.listen,
      "address to serve pages and calls by HTTP on, to browsers\nand curl (default: none)")
      ->type_name("HOST:PORT")
      ->check(
          [](const std::string& listen) { return listen.empty() ? "is empty" : std::string(); });
  Add(app, group, "http-access", http.access,
      "read or all: the methods that callers may call there;\ntheir permissions count too")
      ->type_name("ACCESS")
      ->check(CLI::IsMember({"read", "all"}));
  app.add_option("--http-host", http.hosts,
                 "another host name of this port, or several, with commas\nbetween them")
      ->delimiter(',')
      ->type_name("NAME")
      ->group(group);
}

void AddSecurity(CLI::App& app, ServerOptions& server) {
  const std::string group = "Security";
  SecurityOptions& security = server.security;
  // A name that comes out empty, as of a variable that is not set, must not pass for none: the
  // server would be open.
  const auto add_file = [&](const std::string& flag, std::string& path, const std::string& what) {
    Add(app, group, flag, path, what)->type_name("FILE")->check([](const std::string& name) {
      return name.empty() ? "is empty" : std::string();
    });
  };
  add_file("tls-certificate", security.tls_certificate,
           "serve TLS 1.2 and 1.3 by this certificate, with those of\nthe authorities between it "
           "and the root, in PEM");
  add_file("tls-key", security.tls_key, "its private key, in PEM, without pass phrase");
  add_file("tls-client-ca", security.tls_client_ca,
           "ask clients for certificates of these authorities, in PEM");
  Add(app, group, "tls-client", security.tls_client,
      "required or optional: whether each client needs one\n(default: required)")
      ->type_name("NEED")
      ->check(CLI::IsMember({"required", "optional"}));
  add_file("tokens", security.tokens,
           "callers and their tokens, in lines made by\n'stratad token'; mode 0600 or 0400");
  add_file("policy", security.policy, "permissions and quotas of callers, as JSON");
  Add(app, group, "open", security.open,
      "with a certificate, instead of a policy: every caller may\ncall every method");
  app.add_flag("--reflection,!--no-reflection", server.reflection,
               "list the services and their messages to every caller")
      ->group(group)
      ->default_str("true");
}

void AddLog(CLI::App& app, FlagTexts& texts) {
  const std::string group = "Log (on stderr)";
  Add(app, group, "log-level", texts.log_level, "debug, info, warning, error or off")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}));
  Add(app, group, "log-format", texts.log_format, "text or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
}

// `stratad token NAME`: makes a token instead of serving.
struct TokenCommand {
  CLI::App* command = nullptr;
  std::string name;
  std::string expires;
};

void AddTokenCommand(CLI::App& app, TokenCommand& token) {
  token.command = app.add_subcommand("token", "make a token for a caller, and print it");
  token.command->add_option("NAME", token.name, "the caller's name; the caller is then user:NAME")
      ->required();
  token.command->add_option("--expires", token.expires, "when it ends (default: never)")
      ->type_name("RFC3339");
  token.command->footer(
      "The first line is the token, for the caller alone: it sends \"authorization: Bearer\n"
      "TOKEN\", and the server does not keep it. The second line goes into the server's file of\n"
      "tokens, which must have mode 0600 or 0400.");
}

Exit MakeToken(const TokenCommand& token) {
  const auto mistake = [](std::string_view problem) {
    return Exit{2, "stratad: " + std::string(problem) + "\n"};
  };
  std::optional<UnixMicros> expires;
  if (!token.expires.empty()) {
    expires = security::ParseExpiry(token.expires);
    if (!expires) return mistake("--expires: no time with a zone, such as 2027-01-31T00:00:00Z");
    if (*expires <= Clock::System().Now()) return mistake("--expires: that time has passed");
  }
  const std::string secret = security::MakeToken(Entropy::System());
  const auto line = security::TokenLine(token.name, secret, expires);
  if (!line.ok()) return mistake(ToStd(line.status().message()));
  return Exit{0, secret + "\n" + *line + "\n"};
}

void Interpret(const FlagTexts& texts, Flags& flags) {
  flags.log_level = *observability::ParseLogLevel(texts.log_level);
  flags.log_format = *observability::ParseLogFormat(texts.log_format);
  flags.server.loop.threads =
      texts.event_loops != 0 ? texts.event_loops : EventLoopsFor(flags.server);
  flags.server.grace = std::chrono::seconds(texts.grace_seconds);
  flags.server.transactions.timeout = std::chrono::seconds(texts.transaction_timeout_seconds);
  if (const auto step = HoldSteps().find(texts.hold_transactions_after);
      step != HoldSteps().end()) {
    flags.server.transactions.hold_after = step->second;
  }
  flags.server.ledger_retention = ParseRetention(texts.ledger_retention);
  flags.server.loop.unary_deadline = std::chrono::seconds(texts.deadline_seconds);
  flags.server.loop.keepalive_time = std::chrono::seconds(texts.keepalive_seconds);
  flags.server.loop.connection_age_max = std::chrono::seconds(texts.connection_age_seconds);
  flags.server.loop.bytes_in_flight_max = static_cast<size_t>(texts.in_flight_mib) << 20;
}

// The same with where the value stands, unless that is the command line.
absl::Status At(const FlagSources::Given& given, const absl::Status& mistake) {
  return Error(ErrorReason::kInvalidField, given.place() + std::string(ToStd(mistake.message())));
}

// Each option of an engine goes to the engine that is chosen, or is refused by name.
absl::Status CollectEngineOptions(const EngineFlags& flags, FlagSources& sources,
                                  ServerOptions& server) {
  const engines::Engine& engine = *engines::FindEngine(server.engine);
  for (const auto& [name, flag] : flags) {
    for (const FlagSources::Given& given : sources.Of(flag)) {
      const std::string& value = server.engine_options[name] = given.texts.back();
      const absl::Status checked = engines::CheckOption(engine, name, value);
      if (!checked.ok()) return At(given, checked);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadSources(CLI::App& app, const std::string& config_file,
                         const EngineFlags& engine_flags, const FlagTexts& texts, Flags& flags) {
  FlagSources sources;
  RETURN_IF_ERROR(sources.Apply(app, config_file));
  RETURN_IF_ERROR(CollectEngineOptions(engine_flags, sources, flags.server));
  Interpret(texts, flags);
  const absl::Status checked = CheckOptions(flags.server);
  if (checked.ok()) return checked;
  CLI::Option* const flag =
      app.get_option_no_throw("--" + MetadataOf(checked, "field").value_or(""));
  return sources.Of(flag).empty() ? checked : At(sources.Of(flag).back(), checked);
}

}  // namespace

std::variant<Flags, Exit> ParseFlags(int argc, const char* const* argv) {
  Flags flags;
  FlagTexts texts;
  std::string config_file;
  CLI::App app("stratad: the Strata server, versioned documents over gRPC (strata.v1).", "stratad");
  app.footer(
      "Each flag may also be set by the environment (STRATA_LOG_LEVEL=debug) or in the file of\n"
      "--config (log-level = \"debug\"); the command line wins, then the environment.\n\n"
      "The files of Security are reloaded when they have changed and are valid, and at SIGHUP; an\n"
      "invalid one changes nothing and is logged.\n\n"
      "Exit status: 0 after SIGTERM or SIGINT; 1 it cannot start, or got a second signal; 2 it "
      "does\n"
      "not understand a flag; 3 after SIGTERM or SIGINT, but storage had failed before: start it\n"
      "again, acknowledged writes are kept.");
  app.formatter(std::make_shared<Help>());
  app.add_option("--config", config_file, "file with flags, one NAME = VALUE a line")
      ->type_name("FILE")
      ->envname("STRATA_CONFIG")
      ->configurable(false);
  app.set_version_flag("--version", STRATA_VERSION);
  AddStorage(app, flags.server);
  const EngineFlags engine_flags = AddEngineOptions(app);
  AddDocuments(app, texts, flags.server);
  AddTransactions(app, texts);
  AddNetwork(app, flags.server, texts);
  AddHttp(app, flags.server.http);
  AddSecurity(app, flags.server);
  AddLog(app, texts);
  TokenCommand token;
  AddTokenCommand(app, token);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    const bool asked = error.get_exit_code() == 0;  // --help, --version
    app.exit(error, out, out);
    return Exit{asked ? 0 : 2, asked ? out.str() : "stratad: " + out.str()};
  }
  if (token.command->parsed()) return MakeToken(token);
  const absl::Status status = ReadSources(app, config_file, engine_flags, texts, flags);
  if (!status.ok()) {
    return Exit{2, "stratad: " + std::string(ToStd(status.message())) + "\n"};
  }
  return flags;
}

}  // namespace strata::app
