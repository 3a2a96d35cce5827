// Figures as lines of JSON, the one form in which measuring programs give what they measured
// (bench/README.md). bench/render makes tables and pages of them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::bench {

enum class Unit { kMicroseconds, kBytes, kPerSecond, kCount, kRatio };

// "us", "bytes", "per_second", "count", "ratio".
std::string_view UnitName(Unit unit);
std::optional<Unit> ParseUnit(std::string_view name);

// What a figure was measured on or with: {"in_flight", 64}.
class Parameter {
 public:
  Parameter(std::string_view name, std::string_view value);
  Parameter(std::string_view name, int64_t value);
  const std::string& json() const { return json_; }

 private:
  std::string json_;  // "\"in_flight\": 64"
};

using Parameters = std::vector<Parameter>;

// Between which values a figure moved in so many rounds.
struct Spread {
  double low = 0;
  double high = 0;
  int rounds = 1;
};

// Each line is written at once, so that a run that is cut short leaves what it has measured.
class FigureLines {
 public:
  // Appends to the file `path`. If that is empty: to standard output, or through strata_render,
  // which stands beside this program, where that is a terminal. Throws std::runtime_error if the
  // file cannot be opened; the functions below if it cannot be written.
  FigureLines(std::string program, const std::string& path);

  // REQUIRES: `value` is finite.
  void Number(std::string_view figure, const Parameters& parameters, double value, Unit unit,
              const std::optional<Spread>& spread = std::nullopt);
  void Text(std::string_view figure, const Parameters& parameters, std::string_view text);

  // Figure "wrong": an answer or an outcome that should not be. A run with any is worth nothing.
  void Wrong(std::string_view what);
  int64_t wrong() const { return wrong_; }

 private:
  void Write(std::string_view figure, const Parameters& parameters, const std::string& rest);

  const std::string program_;
  const std::unique_ptr<FILE, int (*)(FILE*)> out_;
  int64_t wrong_ = 0;
};

}  // namespace strata::bench
