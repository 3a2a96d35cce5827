#include "bench/render/figures.h"

#include <bson/bson.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "schemas/base/status_macros.h"

namespace strata::bench {
namespace {

absl::Status Malformed(std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(why)));
}

absl::Status TakeText(const bson_iter_t& member, std::string& text) {
  const std::string name = bson_iter_key(&member);
  if (!BSON_ITER_HOLDS_UTF8(&member)) return Malformed(name + " is no text");
  uint32_t size = 0;
  const char* const bytes = bson_iter_utf8(&member, &size);
  text.assign(bytes, size);
  return text.empty() ? Malformed(name + " is empty") : absl::OkStatus();
}

absl::Status TakeNumber(const bson_iter_t& member, std::optional<double>& number) {
  const std::string name = bson_iter_key(&member);
  if (!BSON_ITER_HOLDS_NUMBER(&member)) return Malformed(name + " is no number");
  number = bson_iter_as_double(&member);
  return std::isfinite(*number) ? absl::OkStatus() : Malformed(name + " is not finite");
}

absl::Status TakeParameters(const bson_iter_t& member, Where& parameters) {
  bson_iter_t inner;
  if (!BSON_ITER_HOLDS_DOCUMENT(&member) || !bson_iter_recurse(&member, &inner)) {
    return Malformed("parameters is no object");
  }
  while (bson_iter_next(&inner)) {
    std::string value;
    if (BSON_ITER_HOLDS_INT(&inner)) {
      value = std::to_string(bson_iter_as_int64(&inner));
    } else if (BSON_ITER_HOLDS_UTF8(&inner)) {
      value = bson_iter_utf8(&inner, nullptr);
    } else {
      return Malformed(absl::StrCat("parameter ", bson_iter_key(&inner),
                                    " is neither a text nor a whole number"));
    }
    if (!parameters.emplace(bson_iter_key(&inner), value).second) {
      return Malformed(absl::StrCat("parameter ", bson_iter_key(&inner), " stands there twice"));
    }
  }
  return absl::OkStatus();
}

// What a line says, before it is known to make sense.
struct Members {
  Figure figure;
  std::string unit;
  std::optional<double> low;
  std::optional<double> high;
  std::optional<double> rounds;
};

absl::Status TakeMember(const bson_iter_t& member, Members& members) {
  const std::string_view name = bson_iter_key(&member);
  Figure& figure = members.figure;
  if (name == "program") return TakeText(member, figure.program);
  if (name == "figure") return TakeText(member, figure.name);
  if (name == "parameters") return TakeParameters(member, figure.parameters);
  if (name == "text") return TakeText(member, figure.text);
  if (name == "unit") return TakeText(member, members.unit);
  if (name == "value") return TakeNumber(member, figure.value);
  if (name == "low") return TakeNumber(member, members.low);
  if (name == "high") return TakeNumber(member, members.high);
  if (name == "rounds") return TakeNumber(member, members.rounds);
  return Malformed(absl::StrCat("there is no member ", std::string(name)));
}

absl::Status TakeSpread(const Members& members, Figure& figure) {
  if (!members.low && !members.high && !members.rounds) return absl::OkStatus();
  if (!members.low || !members.high || !members.rounds || !figure.value) {
    return Malformed("low, high and rounds stand together, beside a value");
  }
  figure.spread = {*members.low, *members.high, static_cast<int>(*members.rounds)};
  const bool ordered = *members.low <= *figure.value && *figure.value <= *members.high;
  return ordered ? absl::OkStatus() : Malformed("value is not between low and high");
}

absl::StatusOr<Figure> Judge(Members members) {
  Figure& figure = members.figure;
  if (figure.program.empty()) return Malformed("program is missing");
  if (figure.name.empty()) return Malformed("figure is missing");
  if (figure.value.has_value() != figure.text.empty()) {
    return Malformed("it needs either a value or a text");
  }
  if (figure.value.has_value() == members.unit.empty()) {
    return Malformed("a value needs a unit, and a text has none");
  }
  if (figure.value) {
    const std::optional<Unit> unit = ParseUnit(members.unit);
    if (!unit) return Malformed("there is no unit " + members.unit);
    figure.unit = *unit;
  }
  RETURN_IF_ERROR(TakeSpread(members, figure));
  return std::move(figure);
}

struct Reader {
  explicit Reader(std::string_view json) : reader(bson_json_data_reader_new(false, json.size())) {
    bson_json_data_reader_ingest(reader, reinterpret_cast<const uint8_t*>(json.data()),
                                 json.size());
  }
  ~Reader() {
    bson_json_reader_destroy(reader);
    bson_destroy(&object);
  }
  // 1: one more object; 0: there is no more; else it is no JSON.
  int Read() {
    bson_error_t error;
    return bson_json_reader_read(reader, &object, &error);
  }
  bson_json_reader_t* const reader;
  bson_t object = BSON_INITIALIZER;
};

absl::StatusOr<Figure> Parse(std::string_view line) {
  Reader reader(line);
  if (reader.Read() != 1) return Malformed("it is no JSON object");
  Members members;
  std::set<std::string> seen;
  bson_iter_t member;
  bson_iter_init(&member, &reader.object);
  while (bson_iter_next(&member)) {
    if (!seen.insert(bson_iter_key(&member)).second) {
      return Malformed(absl::StrCat(bson_iter_key(&member), " stands there twice"));
    }
    RETURN_IF_ERROR(TakeMember(member, members));
  }
  bson_reinit(&reader.object);
  if (reader.Read() != 0) return Malformed("something follows the JSON object");
  return Judge(std::move(members));
}

}  // namespace

Where Both(const Where& where, const Where& more) {
  Where both = more;
  both.insert(where.begin(), where.end());
  return both;
}

std::string Figure::ParameterOr(const std::string& parameter, const std::string& otherwise) const {
  const auto found = parameters.find(parameter);
  return found == parameters.end() ? otherwise : found->second;
}

absl::Status Figures::Read(std::istream& in, std::string_view file) {
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    absl::StatusOr<Figure> figure = Parse(line);
    if (!figure.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(file), ":", number, ": ", figure.status().message()));
    }
    const auto [place, added] =
        places_.emplace(std::tuple(figure->name, figure->parameters, figure->program), all_.size());
    if (added) {
      all_.push_back(*std::move(figure));
    } else {
      all_[place->second] = *std::move(figure);
    }
  }
  return absl::OkStatus();
}

const Figure* Figures::Find(const std::string& name, const Where& parameters) const {
  const auto found = places_.lower_bound({name, parameters, ""});
  if (found == places_.end()) return nullptr;
  const Figure& figure = all_[found->second];
  return figure.name == name && figure.parameters == parameters ? &figure : nullptr;
}

std::optional<double> Figures::Value(const std::string& name, const Where& parameters) const {
  const Figure* const figure = Find(name, parameters);
  return figure == nullptr ? std::nullopt : figure->value;
}

std::vector<std::string> Figures::ValuesOf(const std::string& parameter,
                                           const std::string& figure) const {
  std::vector<std::string> values;
  for (const Figure& one : all_) {
    const auto found = one.parameters.find(parameter);
    if (one.name != figure || found == one.parameters.end()) continue;
    if (std::find(values.begin(), values.end(), found->second) != values.end()) continue;
    values.push_back(found->second);
  }
  return values;
}

}  // namespace strata::bench
