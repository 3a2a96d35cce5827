// Values of documents: BSON's types as C++ values. A Value that was read and is written again has
// the same bytes.
#pragma once

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace strata::client {

// Bytes, with BSON's subtype. Subtype 2 keeps the length that it begins with, as it stands in BSON.
struct Binary {
  std::string bytes = {};
  uint8_t subtype = 0;
  friend bool operator==(const Binary&, const Binary&) = default;
};

// 16 bytes, as binary of subtype 4. The text is 8-4-4-4-12 hexadecimal digits.
absl::StatusOr<Binary> UuidFromText(std::string_view text);
// A random one.
Binary NewUuid();
// Empty if `binary` is no UUID.
std::string UuidText(const Binary& binary);

// A point in time to the millisecond, UTC.
struct Date {
  int64_t milliseconds = 0;  // since 1970-01-01T00:00Z

  // Rounded down.
  static Date FromTime(absl::Time time) { return {absl::ToUnixMillis(time)}; }
  absl::Time time() const { return absl::FromUnixMillis(milliseconds); }
  friend auto operator<=>(const Date&, const Date&) = default;
};

// MongoDB's internal time: seconds and a counter. Use Date for times.
struct Timestamp {
  uint32_t seconds = 0;
  uint32_t increment = 0;
  friend auto operator<=>(const Timestamp&, const Timestamp&) = default;
};

struct ObjectId {
  std::array<uint8_t, 12> bytes = {};

  static absl::StatusOr<ObjectId> FromText(std::string_view hexadecimal);
  std::string text() const;
  friend auto operator<=>(const ObjectId&, const ObjectId&) = default;
};

// IEEE 754 decimal128 in its binary form: 34 decimal digits, exact. 1.0 and 1.00 are two of them.
struct Decimal128 {
  uint64_t low = 0;
  uint64_t high = 0x3040'0000'0000'0000;  // zero

  // "1.10", "-3E+5". INVALID_ARGUMENT: no number, or 34 digits do not hold it exactly.
  static absl::StatusOr<Decimal128> FromText(std::string_view text);
  std::string text() const;
  bool is_finite() const { return (high & 0x7800'0000'0000'0000) != 0x7800'0000'0000'0000; }
  // The same bits, not the same number.
  friend bool operator==(const Decimal128&, const Decimal128&) = default;
};

struct Regex {
  std::string pattern = {};
  std::string options = {};
  friend bool operator==(const Regex&, const Regex&) = default;
};

struct MinKey {
  friend bool operator==(const MinKey&, const MinKey&) = default;
};
struct MaxKey {
  friend bool operator==(const MaxKey&, const MaxKey&) = default;
};

class Value;
struct Member;

using Array = std::vector<Value>;

// Members in the order in which they were put in. Looking one up takes time in their number.
class Object {
 public:
  Object();
  Object(std::initializer_list<Member> members);
  Object(const Object& other);
  Object(Object&& other) noexcept;
  Object& operator=(const Object& other);
  Object& operator=(Object&& other) noexcept;
  ~Object();

  // Null: there is none.
  const Value* Find(std::string_view name) const;
  Value* Find(std::string_view name);
  // The member, appended as null if there was none.
  Value& operator[](std::string_view name);
  // Appends without looking if there is one of that name.
  void Append(std::string name, Value value);
  // Whether there was one.
  bool Erase(std::string_view name);

  size_t size() const;
  bool empty() const { return size() == 0; }
  const Member* begin() const;
  const Member* end() const;
  Member* begin();
  Member* end();

  friend bool operator==(const Object& a, const Object& b);

 private:
  std::vector<Member> members_;
};

// One value. Whole numbers of up to 32 bits become int32 and others int64: 3 is an int32, and
// int64_t{3} an int64. An unsigned number of 64 bits does not compile, as BSON has none.
class Value {
 public:
  enum class Type {
    kNull,
    kBool,
    kInt32,
    kInt64,
    kDouble,
    kString,
    kBinary,
    kDate,
    kDecimal128,
    kObjectId,
    kRegex,
    kTimestamp,
    kMinKey,
    kMaxKey,
    kArray,
    kObject,
  };

  Value() = default;
  Value(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): values are written as they are
  template <typename T>
  requires std::integral<T> &&(std::signed_integral<T> || sizeof(T) < 8)
      Value(T number) {  // NOLINT(google-explicit-constructor)
    if constexpr (std::same_as<T, bool>) {
      body_ = number;
    } else if constexpr (sizeof(T) < 4 || (std::signed_integral<T> && sizeof(T) == 4)) {
      body_ = static_cast<int32_t>(number);
    } else {
      body_ = static_cast<int64_t>(number);
    }
  }
  template <typename T>
  requires std::unsigned_integral<T> &&(sizeof(T) == 8) Value(T number) = delete;  // NOLINT
  Value(double number) : body_(number) {}                                          // NOLINT
  Value(const char* text) : body_(std::string(text)) {}                            // NOLINT
  Value(std::string_view text) : body_(std::string(text)) {}                       // NOLINT
  Value(std::string text) : body_(std::move(text)) {}                              // NOLINT
  Value(Binary binary) : body_(std::move(binary)) {}                               // NOLINT
  Value(Date date) : body_(date) {}                                                // NOLINT
  Value(Decimal128 decimal) : body_(decimal) {}                                    // NOLINT
  Value(ObjectId id) : body_(id) {}                                                // NOLINT
  Value(Regex regex) : body_(std::move(regex)) {}                                  // NOLINT
  Value(Timestamp timestamp) : body_(timestamp) {}                                 // NOLINT
  Value(MinKey key) : body_(key) {}                                                // NOLINT
  Value(MaxKey key) : body_(key) {}                                                // NOLINT
  Value(Array array) : body_(std::move(array)) {}                                  // NOLINT
  Value(Object object) : body_(std::move(object)) {}                               // NOLINT

  Type type() const { return static_cast<Type>(body_.index()); }
  bool is_null() const { return type() == Type::kNull; }

  // The value if it is a T, one of the types above (bool, int32_t, int64_t, double, std::string,
  // Binary, …); null otherwise.
  template <typename T>
  const T* As() const {
    return std::get_if<T>(&body_);
  }
  template <typename T>
  T* As() {
    return std::get_if<T>(&body_);
  }
  // Of an int32 or an int64.
  std::optional<int64_t> AsInteger() const;
  // Of any number but a decimal128; an int64 is rounded to the nearest double.
  std::optional<double> AsDouble() const;

  // A member of an object; the null value where there is none, or where this is no object.
  const Value& operator[](std::string_view name) const;
  // A member of an object, made if there is none. Any other value becomes an object.
  Value& operator[](std::string_view name);
  // The value that a JSON Pointer such as "/authors/0" names; null pointer if there is none.
  const Value* At(std::string_view pointer) const;

  // The same type and bits, members in the same order.
  friend bool operator==(const Value&, const Value&) = default;

 private:
  // In the order of Type.
  std::variant<std::monostate, bool, int32_t, int64_t, double, std::string, Binary, Date,
               Decimal128, ObjectId, Regex, Timestamp, MinKey, MaxKey, Array, Object>
      body_;
};

struct Member {
  std::string name = {};
  Value value = {};
  friend bool operator==(const Member&, const Member&) = default;
};

// Writes an object as one BSON document. INVALID_ARGUMENT / INVALID_CONTENT, with metadata "path"
// (a JSON Pointer) and "problem", for values that the server would refuse: NaN and infinity,
// strings and names that are not UTF-8, names with a zero byte, more than 24 levels, more than 2
// MiB, and a value that is no object.
absl::StatusOr<std::string> ToBson(const Value& object);

// Reads one BSON document. INVALID_ARGUMENT if it is damaged, holds a type that Value does not
// have, or more than 100 levels.
absl::StatusOr<Value> FromBson(std::string_view bson);

}  // namespace strata::client
