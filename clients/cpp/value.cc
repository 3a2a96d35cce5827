// What values can do besides being kept; their bytes are the business of bson.cc.
#include "strata/client/value.h"

#include <sys/random.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace strata::client {
namespace {

constexpr std::string_view kHexadecimal = "0123456789abcdef";

int HexadecimalDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// False: something else than pairs of digits is in it.
bool ReadHexadecimal(std::string_view text, std::string& bytes) {
  if (text.size() % 2 != 0) return false;
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = HexadecimalDigit(text[i]);
    const int low = HexadecimalDigit(text[i + 1]);
    if (high < 0 || low < 0) return false;
    bytes += static_cast<char>(high << 4 | low);
  }
  return true;
}

void AppendHexadecimal(uint8_t byte, std::string& text) {
  text += kHexadecimal[byte >> 4];
  text += kHexadecimal[byte & 15];
}

constexpr size_t kUuidBytes = 16;
constexpr uint8_t kUuidSubtype = 4;

bool IsUuidDash(size_t at) { return at == 8 || at == 13 || at == 18 || at == 23; }

}  // namespace

absl::StatusOr<Binary> UuidFromText(std::string_view text) {
  std::string digits;
  bool good = text.size() == 36;
  for (size_t i = 0; good && i < text.size(); ++i) {
    if (IsUuidDash(i)) {
      good = text[i] == '-';
    } else {
      digits += text[i];
    }
  }
  Binary uuid{.bytes = {}, .subtype = kUuidSubtype};
  if (!good || !ReadHexadecimal(digits, uuid.bytes)) {
    return absl::InvalidArgumentError("'" + std::string(text) + "' is not a UUID");
  }
  return uuid;
}

// The system's randomness, each time: a generator of our own would be copied by fork, and two
// processes would take each other's request ids for their own.
Binary NewUuid() {
  Binary uuid{.bytes = std::string(kUuidBytes, '\0'), .subtype = kUuidSubtype};
  while (getrandom(uuid.bytes.data(), kUuidBytes, 0) != static_cast<ssize_t>(kUuidBytes)) {
    // Interrupted before there was any.
  }
  // RFC 4122: version 4, of its own variant.
  uuid.bytes[6] = static_cast<char>((uuid.bytes[6] & 0x0F) | 0x40);
  uuid.bytes[8] = static_cast<char>((uuid.bytes[8] & 0x3F) | 0x80);
  return uuid;
}

std::string UuidText(const Binary& binary) {
  std::string text;
  if (binary.subtype != kUuidSubtype || binary.bytes.size() != kUuidBytes) return text;
  for (const char byte : binary.bytes) {
    if (IsUuidDash(text.size())) text += '-';
    AppendHexadecimal(static_cast<uint8_t>(byte), text);
  }
  return text;
}

absl::StatusOr<ObjectId> ObjectId::FromText(std::string_view hexadecimal) {
  std::string bytes;
  ObjectId id;
  if (hexadecimal.size() != 2 * id.bytes.size() || !ReadHexadecimal(hexadecimal, bytes)) {
    return absl::InvalidArgumentError("'" + std::string(hexadecimal) + "' is not an ObjectId");
  }
  std::copy(bytes.begin(), bytes.end(), id.bytes.begin());
  return id;
}

std::string ObjectId::text() const {
  std::string text;
  for (const uint8_t byte : bytes) AppendHexadecimal(byte, text);
  return text;
}

Object::Object() = default;
Object::Object(std::initializer_list<Member> members) : members_(members) {}
Object::Object(const Object& other) = default;
Object::Object(Object&& other) noexcept = default;
Object& Object::operator=(const Object& other) = default;
Object& Object::operator=(Object&& other) noexcept = default;
Object::~Object() = default;

const Value* Object::Find(std::string_view name) const {
  const auto member = std::find_if(members_.begin(), members_.end(),
                                   [&](const Member& each) { return each.name == name; });
  return member == members_.end() ? nullptr : &member->value;
}

Value* Object::Find(std::string_view name) {
  return const_cast<Value*>(std::as_const(*this).Find(name));
}

Value& Object::operator[](std::string_view name) {
  if (Value* const value = Find(name)) return *value;
  members_.push_back({std::string(name), Value()});
  return members_.back().value;
}

void Object::Append(std::string name, Value value) {
  members_.push_back({std::move(name), std::move(value)});
}

bool Object::Erase(std::string_view name) {
  return std::erase_if(members_, [&](const Member& each) { return each.name == name; }) > 0;
}

size_t Object::size() const { return members_.size(); }
const Member* Object::begin() const { return members_.data(); }
const Member* Object::end() const { return members_.data() + members_.size(); }
Member* Object::begin() { return members_.data(); }
Member* Object::end() { return members_.data() + members_.size(); }

bool operator==(const Object& a, const Object& b) { return a.members_ == b.members_; }

std::optional<int64_t> Value::AsInteger() const {
  if (const auto* number = As<int32_t>()) return *number;
  if (const auto* number = As<int64_t>()) return *number;
  return std::nullopt;
}

std::optional<double> Value::AsDouble() const {
  if (const auto* number = As<double>()) return *number;
  if (const auto number = AsInteger()) return static_cast<double>(*number);
  return std::nullopt;
}

const Value& Value::operator[](std::string_view name) const {
  static const Value* const kNothing = new Value();
  const auto* object = As<Object>();
  const Value* const member = object == nullptr ? nullptr : object->Find(name);
  return member == nullptr ? *kNothing : *member;
}

Value& Value::operator[](std::string_view name) {
  if (As<Object>() == nullptr) *this = Object();
  return (*As<Object>())[name];
}

const Value* Value::At(std::string_view pointer) const {
  const Value* at = this;
  while (at != nullptr && !pointer.empty()) {
    if (pointer.front() != '/') return nullptr;
    pointer.remove_prefix(1);
    const std::string_view segment = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(segment.size());
    if (const auto* array = at->As<Array>()) {
      size_t index = 0;
      const char* const end = segment.data() + segment.size();
      const auto [rest, error] = std::from_chars(segment.data(), end, index);
      const bool canonical = segment.size() == 1 || !segment.starts_with('0');
      const bool number = error == std::errc() && rest == end && canonical;
      at = number && index < array->size() ? &(*array)[index] : nullptr;
      continue;
    }
    std::string name;
    for (size_t i = 0; i < segment.size(); ++i) {
      const bool escape = segment[i] == '~' && i + 1 < segment.size();
      name += !escape ? segment[i] : segment[i + 1] == '1' ? '/' : '~';
      if (escape) ++i;
    }
    const auto* object = at->As<Object>();
    at = object == nullptr ? nullptr : object->Find(name);
  }
  return at;
}

}  // namespace strata::client
