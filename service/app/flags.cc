#include "service/app/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <sstream>

#include "schemas/base/strings.h"
#include "schemas/versioning/strategy.h"
#include "service/engines/engines.h"

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
struct Texts {
  std::string log_level = "info";
  std::string log_format = "text";
  int64_t grace_seconds = 10;
  int64_t keepalive_seconds = 60;
  int64_t connection_age_seconds = 1800;
  int64_t deadline_seconds = 30;
  int64_t block_cache_mib = 256;
  int64_t in_flight_mib = 256;
};

template <typename Target>
CLI::Option* Add(CLI::App& app, const std::string& group, const std::string& flag, Target& target,
                 const std::string& what) {
  std::string variable = "STRATA_" + flag;
  std::transform(variable.begin(), variable.end(), variable.begin(), [](char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  CLI::Option* option = nullptr;
  if constexpr (std::is_same_v<Target, bool>) {
    option = app.add_flag("--" + flag, target, what);
  } else {
    option = app.add_option("--" + flag, target, what)->capture_default_str();
  }
  return option->group(group)->envname(variable);
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

void AddStorage(CLI::App& app, ServerOptions& server, Texts& texts) {
  const std::string group = "Storage";
  Add(app, group, "data", server.data, "directory of the data; made if missing")->type_name("DIR");
  Add(app, group, "engine", server.engine, "what stores the data: " + Joined(EngineNames()))
      ->type_name("NAME")
      ->check(CLI::IsMember(EngineNames()));
  Add(app, group, "block-cache-mib", texts.block_cache_mib,
      "memory for uncompressed blocks (rocksdb)")
      ->type_name("MIB")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
}

void AddDocuments(CLI::App& app, ServerOptions& server) {
  const std::string group = "Documents";
  Add(app, group, "default-strategy", server.default_strategy,
      "strategy of collections that name none:\n" + Joined(StrategyNames()))
      ->type_name("NAME")
      ->check(CLI::IsMember(StrategyNames()));
  app.add_flag("--create-collections,!--no-create-collections", server.create_collections,
               "a write to an unknown collection makes it")
      ->group(group)
      ->envname("STRATA_CREATE_COLLECTIONS")
      ->default_str("true");
  Add(app, group, "document-bytes-max", server.document_bytes_max, "largest document")
      ->type_name("BYTES")
      ->check(CLI::Range(size_t{1024}, document::Limits::kBytesCeiling));
}

void AddNetwork(CLI::App& app, ServerOptions& server, Texts& texts) {
  const std::string group = "Network";
  Add(app, group, "listen", server.loop.listen, "address to serve on; port 0 picks a free one")
      ->type_name("HOST:PORT");
  Add(app, group, "insecure", server.insecure,
      "allow an address that other machines reach, although\ntraffic is not encrypted");
  Add(app, group, "event-loops", server.loop.threads, "event loops, one thread each")
      ->type_name("N")
      ->check(CLI::Range(1, 64));
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
  Add(app, group, "in-flight-mib-max", texts.in_flight_mib,
      "requests and answers in memory; beyond, calls are\nrefused as OVERLOADED")
      ->type_name("MIB")
      ->check(CLI::Range(int64_t{8}, int64_t{1} << 20));
  Add(app, group, "executor-threads", server.executor_threads,
      "threads for calls that visit many records, and writes that go through much content")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
}

void AddLog(CLI::App& app, Texts& texts) {
  const std::string group = "Log (on stderr)";
  Add(app, group, "log-level", texts.log_level, "debug, info, warning, error or off")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}));
  Add(app, group, "log-format", texts.log_format, "text or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
}

void Interpret(const Texts& texts, Flags& flags) {
  flags.log_level = *observability::ParseLogLevel(texts.log_level);
  flags.log_format = *observability::ParseLogFormat(texts.log_format);
  flags.server.grace = std::chrono::seconds(texts.grace_seconds);
  flags.server.loop.unary_deadline = std::chrono::seconds(texts.deadline_seconds);
  flags.server.loop.keepalive_time = std::chrono::seconds(texts.keepalive_seconds);
  flags.server.loop.connection_age_max = std::chrono::seconds(texts.connection_age_seconds);
  flags.server.loop.bytes_in_flight_max = static_cast<size_t>(texts.in_flight_mib) << 20;
  flags.server.block_cache_bytes = static_cast<size_t>(texts.block_cache_mib) << 20;
}

}  // namespace

std::variant<Flags, Exit> ParseFlags(int argc, const char* const* argv) {
  Flags flags;
  Texts texts;
  CLI::App app("stratad: the Strata server, versioned documents over gRPC (strata.v1).", "stratad");
  app.footer(
      "Each flag may also be set in the file of --config (log-level = \"debug\") or by the\n"
      "environment (STRATA_LOG_LEVEL=debug); the command line wins, then the file.");
  app.formatter(std::make_shared<Help>());
  app.set_config("--config", "", "file with flags, one NAME = VALUE a line")->type_name("FILE");
  app.set_version_flag("--version", STRATA_VERSION);
  AddStorage(app, flags.server, texts);
  AddDocuments(app, flags.server);
  AddNetwork(app, flags.server, texts);
  AddLog(app, texts);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    const bool asked = error.get_exit_code() == 0;  // --help, --version
    app.exit(error, out, out);
    return Exit{asked ? 0 : 2, asked ? out.str() : "stratad: " + out.str()};
  }
  Interpret(texts, flags);
  if (const absl::Status status = CheckOptions(flags.server); !status.ok()) {
    return Exit{2, "stratad: " + std::string(ToStd(status.message())) + "\n"};
  }
  return flags;
}

}  // namespace strata::app
