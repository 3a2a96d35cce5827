// The registry of engines: adapters of the store port, by name, each with the options that it has.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/store/store.h"

namespace strata::engines {

// An option of an engine. It becomes a flag of stratad like all others (so also a variable of the
// environment and a name in the configuration file), shown under the engine's name. Several engines
// may have an option of one name, which is one flag then.
struct EngineOption {
  std::string_view name;   // the flag's, without dashes: "block-cache-mib"
  std::string_view takes;  // what --help calls the value: "MIB"; empty: a switch, "true" or "false"
  std::string_view default_value;  // as it would be written
  std::string_view words;          // what it does, for --help
  // What a value has to be, if this one is not ("a whole number from 1 to 8"); else empty. Null: it
  // may be anything.
  std::string (*expected)(std::string_view value) = nullptr;
};

// For EngineOption::expected.
std::string ExpectedNumber(std::string_view value, int64_t min, int64_t max);
template <int64_t min, int64_t max>
std::string ExpectedNumber(std::string_view value) {
  return ExpectedNumber(value, min, max);
}

// The options that are given to an engine, by name, as they are written.
using OptionValues = std::map<std::string, std::string, std::less<>>;

// The value that is given, or the option's own. REQUIRES: it passes CheckOption.
std::string ValueOf(const OptionValues& values, const EngineOption& option);
int64_t NumberOf(const OptionValues& values, const EngineOption& option);

// Records of queues, schedules and messages say whose they are.
inline constexpr std::string_view kPrincipalsFeature = "principals";
// Records of messages, and the index of them, separate what is ready at once from what waits.
inline constexpr std::string_view kReadyAtOnceFeature = "ready_at_once";

struct OpenOptions {
  std::string directory;                  // where the engine keeps its files; ignored by memory
  const Clock* clock = &Clock::System();  // for the expiry of records; outlives the store
  OptionValues values{};                  // of the engine's own options
  // Forms of records that may be written; a directory with one is refused by builds without it.
  std::set<std::string, std::less<>> features{};
};

struct Engine {
  std::string_view name;
  std::span<const EngineOption> options;
  int format;  // the number of the layout that it keeps data in; 0: it keeps none
  absl::StatusOr<std::unique_ptr<store::Store>> (*open)(const OpenOptions& options);
};

// All engines, in the order of engines.def.
const std::vector<Engine>& AllEngines();

// Null for an unknown name.
const Engine* FindEngine(std::string_view name);

// INVALID_FIELD, naming the option as its flag, if the engine has none of that name or not with
// that value.
absl::Status CheckOption(const Engine& engine, std::string_view option, std::string_view value);

// INVALID_FIELD, naming the engines there are, for an unknown name; the same, naming the option,
// for one that the engine does not take; else as the engine's open: STORE_UNAVAILABLE (the
// directory cannot be made or is in use by another process), RECORD_CORRUPT.
absl::StatusOr<std::unique_ptr<store::Store>> OpenEngine(std::string_view name,
                                                         const OpenOptions& options);

}  // namespace strata::engines
