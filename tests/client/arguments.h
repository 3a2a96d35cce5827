// The arguments of a case's operation. Whoever reads them takes them by name; what nobody took is a
// fault of the case or of the runner.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/time/time.h"
#include "clients/cpp/fields.h"
#include "strata/client/value.h"
#include "tests/client/described.h"

namespace strata::client {

class Arguments {
 public:
  explicit Arguments(Value values) : values_(std::move(values)) {}

  bool Has(const std::string& name) const { return !values_[name].is_null(); }
  // The argument itself; null if it is not given.
  const Value& Take(const std::string& name) {
    taken_.insert(name);
    return std::as_const(values_)[name];
  }
  template <typename T>
  T Get(const std::string& name) {
    T value{};
    if (Has(name)) Read(Take(name), value);
    return value;
  }
  // Options, by the names of their members.
  template <typename T>
  T Options() {
    T options;
    Visitor visitor{*this};
    Fields(visitor, options);
    return options;
  }

  // The names that nobody took.
  std::string Untaken() const;
  // Whether this language can write all of them: it has no cycles and functions among values, and
  // no integers beyond int64.
  bool possible() const { return IsPossible(values_); }

  void Read(const Value& value, std::string& text);
  void Read(const Value& value, bool& flag);
  void Read(const Value& value, int32_t& number);
  void Read(const Value& value, int64_t& number);
  void Read(const Value& value, absl::Time& time);
  void Read(const Value& value, absl::Duration& duration);
  // {"$special": …} and {"$bson_hex": …} are what they stand for.
  void Read(const Value& value, Value& content);
  void Read(const Value& value, std::map<std::string, std::string>& entries);
  template <typename T>
  void Read(const Value& value, std::optional<T>& optional) {
    if (!value.is_null()) Read(value, optional.emplace());
  }
  template <typename T>
  void Read(const Value& value, std::vector<T>& elements) {
    if (const auto* array = value.As<Array>()) {
      for (const Value& element : *array) Read(element, elements.emplace_back());
    }
  }
  template <typename T>
  requires std::is_enum_v<T>
  void Read(const Value& value, T& enumerator) {
    enumerator = static_cast<T>(EnumNumber(EnumOf<T>(), value));
  }
  template <typename T>
  requires std::is_class_v<T>
  void Read(const Value& value, T& structure) {
    Arguments inner(value);
    structure = inner.Options<T>();
  }
  void Read(const Value& value, Operation& operation);

 private:
  struct Visitor {
    Arguments& arguments;
    template <typename T>
    void operator()(const char* name, T& member) {
      if (arguments.Has(name)) arguments.Read(arguments.Take(name), member);
    }
  };

  static bool IsPossible(const Value& value);
  static int EnumNumber(const google::protobuf::EnumDescriptor& descriptor, const Value& value);

  Value values_;
  std::set<std::string> taken_;
};

}  // namespace strata::client
