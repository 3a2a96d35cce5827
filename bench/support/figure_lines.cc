#include "bench/support/figure_lines.h"

#include <bson/bson.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace strata::bench {
namespace {

constexpr std::array<std::string_view, 5> kUnitNames = {"us", "bytes", "per_second", "count",
                                                        "ratio"};

std::string Quoted(std::string_view text) {
  char* const escaped = bson_utf8_escape_for_json(text.data(), static_cast<ssize_t>(text.size()));
  if (escaped == nullptr) return "\"(not UTF-8)\"";
  const std::string quoted = absl::StrCat("\"", escaped, "\"");
  bson_free(escaped);
  return quoted;
}

// As many digits as tell bytes of a terabyte apart, and no more noise than that.
std::string JsonNumber(double value) { return absl::StrFormat("%.12g", value); }

std::unique_ptr<FILE, int (*)(FILE*)> Open(const std::string& path) {
  if (!path.empty()) {
    FILE* const file = std::fopen(path.c_str(), "ae");
    if (file == nullptr) throw std::runtime_error("cannot write " + path);
    return {file, std::fclose};
  }
  if (isatty(STDOUT_FILENO) == 0) return {stdout, std::fflush};
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = "'" + (program.parent_path() / "strata_render").string() + "'";
  FILE* const pipe = popen(command.c_str(), "we");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  return {pipe, pclose};
}

}  // namespace

std::string_view UnitName(Unit unit) { return kUnitNames[static_cast<size_t>(unit)]; }

std::optional<Unit> ParseUnit(std::string_view name) {
  for (size_t i = 0; i < kUnitNames.size(); ++i) {
    if (kUnitNames[i] == name) return static_cast<Unit>(i);
  }
  return std::nullopt;
}

Parameter::Parameter(std::string_view name, std::string_view value)
    : json_(absl::StrCat(Quoted(name), ": ", Quoted(value))) {}

Parameter::Parameter(std::string_view name, int64_t value)
    : json_(absl::StrCat(Quoted(name), ": ", value)) {}

FigureLines::FigureLines(std::string program, const std::string& path)
    : program_(std::move(program)), out_(Open(path)) {}

void FigureLines::Number(std::string_view figure, const Parameters& parameters, double value,
                         Unit unit, const std::optional<Spread>& spread) {
  std::string rest = absl::StrCat("\"value\": ", JsonNumber(value), ", \"unit\": \"",
                                  std::string(UnitName(unit)), "\"");
  if (spread) {
    absl::StrAppend(&rest, ", \"low\": ", JsonNumber(spread->low),
                    ", \"high\": ", JsonNumber(spread->high), ", \"rounds\": ", spread->rounds);
  }
  Write(figure, parameters, rest);
}

void FigureLines::Text(std::string_view figure, const Parameters& parameters,
                       std::string_view text) {
  Write(figure, parameters, "\"text\": " + Quoted(text));
}

void FigureLines::Wrong(std::string_view what) {
  // Each is another: none replaces one before, of another run in the same file either.
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Text("wrong", {{"number", ++wrong_}, {"at_ns", std::chrono::nanoseconds(now).count()}}, what);
}

void FigureLines::Write(std::string_view figure, const Parameters& parameters,
                        const std::string& rest) {
  const auto json = [](std::string* out, const Parameter& one) { out->append(one.json()); };
  const std::string line = absl::StrCat("{\"program\": ", Quoted(program_),
                                        ", \"figure\": ", Quoted(figure), ", \"parameters\": {",
                                        absl::StrJoin(parameters, ", ", json), "}, ", rest, "}\n");
  if (std::fputs(line.c_str(), out_.get()) < 0 || std::fflush(out_.get()) != 0) {
    throw std::runtime_error("cannot write figures: " + std::generic_category().message(errno));
  }
}

}  // namespace strata::bench
