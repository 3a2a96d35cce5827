#include "service/engines/engines.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"

namespace strata::engines {

#define ENGINE(name, describe) Engine describe(std::string_view);
#include "service/engines/engines.def"
#undef ENGINE

namespace {

const EngineOption* FindOption(const Engine& engine, std::string_view name) {
  const auto found = std::find_if(engine.options.begin(), engine.options.end(),
                                  [&](const EngineOption& option) { return option.name == name; });
  return found == engine.options.end() ? nullptr : &*found;
}

std::string ExpectedOf(const EngineOption& option, std::string_view value) {
  if (option.takes.empty()) return value == "true" || value == "false" ? "" : "true or false";
  return option.expected != nullptr ? option.expected(value) : "";
}

// The names of all engines for which `counts` holds.
template <typename Counts>
std::string Names(Counts counts) {
  std::string names;
  for (const Engine& engine : AllEngines()) {
    if (!counts(engine)) continue;
    if (!names.empty()) names += ", ";
    names += engine.name;
  }
  return names;
}

}  // namespace

std::string ExpectedNumber(std::string_view value, int64_t min, int64_t max) {
  int64_t number = 0;
  if (absl::SimpleAtoi(ToAbsl(value), &number) && number >= min && number <= max) return "";
  return "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
}

std::string ValueOf(const OptionValues& values, const EngineOption& option) {
  const auto given = values.find(option.name);
  return given != values.end() ? given->second : std::string(option.default_value);
}

int64_t NumberOf(const OptionValues& values, const EngineOption& option) {
  int64_t number = 0;
  (void)absl::SimpleAtoi(ValueOf(values, option), &number);
  return number;
}

const std::vector<Engine>& AllEngines() {
  static const auto* const all = new std::vector<Engine>{
#define ENGINE(name, describe) describe(name),
#include "service/engines/engines.def"
#undef ENGINE
  };
  return *all;
}

const Engine* FindEngine(std::string_view name) {
  for (const Engine& engine : AllEngines()) {
    if (engine.name == name) return &engine;
  }
  return nullptr;
}

absl::Status CheckOption(const Engine& engine, std::string_view option, std::string_view value) {
  std::string problem;
  if (const EngineOption* const own = FindOption(engine, option); own == nullptr) {
    problem = "engine " + std::string(engine.name) + " has no such option";
    const std::string owners =
        Names([&](const Engine& each) { return FindOption(each, option) != nullptr; });
    if (!owners.empty()) problem += "; it belongs to " + owners;
  } else {
    const std::string expected = ExpectedOf(*own, value);
    if (expected.empty()) return absl::OkStatus();
    problem = "has to be " + expected + ", not " + std::string(value);
  }
  return Error(ErrorReason::kInvalidField, "--" + std::string(option) + ": " + problem)
      .With("field", option);
}

absl::StatusOr<std::unique_ptr<store::Store>> OpenEngine(std::string_view name,
                                                         const OpenOptions& options) {
  const Engine* const engine = FindEngine(name);
  if (engine == nullptr) {
    return Error(ErrorReason::kInvalidField, "There is no such engine; there are: " +
                                                 Names([](const Engine&) { return true; }) + ".")
        .With("field", "engine");
  }
  for (const auto& [option, value] : options.values) {
    RETURN_IF_ERROR(CheckOption(*engine, option, value));
  }
  return engine->open(options);
}

}  // namespace strata::engines
