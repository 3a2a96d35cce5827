#include "service/app/flag_sources.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "service/app/config_file.h"

namespace strata::app {
namespace {

absl::Status Mistake(const std::string& where, const std::string& problem) {
  return Error(ErrorReason::kInvalidField, where + ": " + problem).With("field", where);
}

std::string VariableOf(const std::string& name) {
  std::string variable = "STRATA_" + name;
  std::transform(variable.begin(), variable.end(), variable.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return variable;
}

}  // namespace

absl::Status FlagSources::Apply(CLI::App& app, const std::string& config_file) {
  // --help, --version and --config are of the command line alone.
  for (CLI::Option* const flag : app.get_options()) {
    if (!flag->get_configurable()) continue;
    for (const std::string& name : flag->get_lnames()) flags_[name] = flag;
  }
  if (!config_file.empty()) RETURN_IF_ERROR(ReadFile(config_file));
  RETURN_IF_ERROR(ReadEnvironment());
  for (const auto& [name, flag] : flags_) {
    if (flag->count() == 0 || name != flag->get_single_name()) continue;
    given_[flag].push_back({"--" + name, flag->results()});
  }
  return SetTargets();
}

absl::Status FlagSources::ReadFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::vector<Setting> settings, ReadConfigFile(path));
  std::map<CLI::Option*, std::string> said;
  for (const Setting& setting : settings) {
    if (!flags_.contains(setting.name)) {
      return Mistake(setting.where, "there is no flag " + setting.name);
    }
    RETURN_IF_ERROR(Add(setting.name, setting.value, {setting.where, {}}, said));
  }
  return absl::OkStatus();
}

absl::Status FlagSources::ReadEnvironment() {
  std::map<CLI::Option*, std::string> said;
  for (const auto& [name, flag] : flags_) {
    const std::string variable = VariableOf(name);
    const char* const text = std::getenv(variable.c_str());
    if (text == nullptr || *text == '\0') continue;
    RETURN_IF_ERROR(Add(name, text, {variable, {}}, said));
  }
  return absl::OkStatus();
}

// `said`: which flags this source has spoken of before, and where.
absl::Status FlagSources::Add(const std::string& name, const std::string& text, Given given,
                              std::map<CLI::Option*, std::string>& said) {
  CLI::Option* const flag = flags_.at(name);
  const auto [before, first] = said.try_emplace(flag, given.where);
  if (!first) return Mistake(given.where, name + " is set by " + before->second + " already");
  const bool is_switch = flag->get_expected_min() == 0;
  given.texts = {is_switch ? flag->get_flag_value(name, text) : text};
  given_[flag].push_back(std::move(given));
  return absl::OkStatus();
}

absl::Status FlagSources::SetTargets() {
  for (const auto& [flag, all] : given_) {
    for (const Given& given : all) {
      flag->clear();
      flag->add_result(given.texts);
      try {
        flag->run_callback();
      } catch (const CLI::ParseError& error) {
        return Mistake(given.where, error.what());
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace strata::app
