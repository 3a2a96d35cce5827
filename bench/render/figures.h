// The figures that measuring programs gave, read from their lines (bench/README.md).
#pragma once

#include <istream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "bench/support/figure_lines.h"

namespace strata::bench {

// Names and values of parameters; numbers as text.
using Where = std::map<std::string, std::string>;

// `more` besides; where both name a parameter, as `more` has it.
Where Both(const Where& where, const Where& more);

struct Figure {
  std::string program;
  std::string name;
  Where parameters;
  std::optional<double> value;  // else it is a text
  Unit unit = Unit::kCount;
  std::string text;
  std::optional<Spread> spread;

  std::string ParameterOr(const std::string& parameter, const std::string& otherwise) const;
};

class Figures {
 public:
  // Adds what `in` has, a line each. A later line replaces an earlier one of the same program,
  // figure and parameters. INVALID_ARGUMENT "file:7: why" if a line is malformed; `file` is said in
  // errors.
  absl::Status Read(std::istream& in, std::string_view file);

  // In the order of the lines.
  const std::vector<Figure>& all() const { return all_; }

  // The figure with these parameters and no others, whoever measured it; null if nobody did.
  const Figure* Find(const std::string& name, const Where& parameters) const;
  // Its value; nothing if it was not measured or is a text.
  std::optional<double> Value(const std::string& name, const Where& parameters) const;

  // All values of a parameter, in the order of the lines, of figures of that name.
  std::vector<std::string> ValuesOf(const std::string& parameter, const std::string& figure) const;

 private:
  std::vector<Figure> all_;
  // In all_, by name, parameters and program.
  std::map<std::tuple<std::string, Where, std::string>, size_t> places_;
};

}  // namespace strata::bench
