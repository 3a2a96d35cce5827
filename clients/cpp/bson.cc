// Value to BSON bytes and back. The writer goes down with the path in hand, because a refusal that
// does not say where is of no use in a large document.
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "clients/cpp/error_status.h"
#include "clients/cpp/text_rules.h"
#include "strata/client/error.h"
#include "strata/client/value.h"

namespace strata::client {
namespace {

constexpr size_t kDepthMax = 24;
constexpr size_t kReadDepthMax = 100;
constexpr size_t kDocumentBytesMax = size_t{2} << 20;
constexpr size_t kLengthBytes = 4;

enum Tag : uint8_t {
  kDouble = 0x01,
  kString = 0x02,
  kObject = 0x03,
  kArray = 0x04,
  kBinary = 0x05,
  kObjectId = 0x07,
  kBool = 0x08,
  kDate = 0x09,
  kNull = 0x0A,
  kRegex = 0x0B,
  kInt32 = 0x10,
  kTimestamp = 0x11,
  kInt64 = 0x12,
  kDecimal = 0x13,
  kMaxKey = 0x7F,
  kMinKey = 0xFF,
};

// BSON is little-endian, as are the machines that this runs on.
static_assert(std::endian::native == std::endian::little);

template <typename Number>
void AppendNumber(Number number, std::string& out) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  absl::Status Document(const Object& object) {
    if (path_.size() >= kDepthMax) return TooDeep();
    const size_t begin = Begin();
    for (const auto& [name, value] : object) {
      path_.push_back({&name, 0});
      if (name.find('\0') != std::string::npos) return Refuse("has a zero byte in its name");
      if (!IsValidUtf8(name)) return Refuse("has a name that is not UTF-8");
      if (absl::Status status = Element(name, value); !status.ok()) return status;
      path_.pop_back();
    }
    return End(begin);
  }

 private:
  struct Segment {
    const std::string* name = nullptr;  // null: an index
    size_t index = 0;
  };

  absl::Status Elements(const Array& array) {
    if (path_.size() >= kDepthMax) return TooDeep();
    const size_t begin = Begin();
    for (size_t i = 0; i < array.size(); ++i) {
      path_.push_back({nullptr, i});
      if (absl::Status status = Element(std::to_string(i), array[i]); !status.ok()) return status;
      path_.pop_back();
    }
    return End(begin);
  }

  size_t Begin() {
    out_.append(kLengthBytes, '\0');
    return out_.size() - kLengthBytes;
  }

  absl::Status End(size_t begin) {
    out_ += '\0';
    const auto length = static_cast<uint32_t>(out_.size() - begin);
    std::memcpy(&out_[begin], &length, sizeof length);
    return absl::OkStatus();
  }

  void Head(Tag tag, std::string_view name) {
    out_ += static_cast<char>(tag);
    out_.append(name).push_back('\0');
  }

  absl::Status Text(const std::string& text) {
    if (!IsValidUtf8(text)) return Refuse("is not UTF-8");
    AppendNumber(static_cast<int32_t>(text.size() + 1), out_);
    out_.append(text).push_back('\0');
    return absl::OkStatus();
  }

  absl::Status Element(std::string_view name, const Value& value) {
    // Looked at here too, so that a string of gigabytes is not copied first.
    if (out_.size() > kDocumentBytesMax) return TooLarge();
    switch (value.type()) {
      case Value::Type::kNull:
        Head(kNull, name);
        return absl::OkStatus();
      case Value::Type::kBool:
        Head(kBool, name);
        out_ += *value.As<bool>() ? '\1' : '\0';
        return absl::OkStatus();
      case Value::Type::kInt32:
        Head(kInt32, name);
        AppendNumber(*value.As<int32_t>(), out_);
        return absl::OkStatus();
      case Value::Type::kInt64:
        Head(kInt64, name);
        AppendNumber(*value.As<int64_t>(), out_);
        return absl::OkStatus();
      case Value::Type::kDouble:
        if (std::isnan(*value.As<double>())) return Refuse("is NaN");
        if (std::isinf(*value.As<double>())) return Refuse("is infinity");
        Head(kDouble, name);
        AppendNumber(*value.As<double>(), out_);
        return absl::OkStatus();
      case Value::Type::kString:
        if (value.As<std::string>()->size() > kDocumentBytesMax) return TooLarge();
        Head(kString, name);
        return Text(*value.As<std::string>());
      case Value::Type::kArray:
        Head(kArray, name);
        return Elements(*value.As<Array>());
      case Value::Type::kObject:
        Head(kObject, name);
        return Document(*value.As<Object>());
      default:
        return Rare(name, value);
    }
  }

  // The types that JSON has not.
  absl::Status Rare(std::string_view name, const Value& value) {
    if (const auto* binary = value.As<Binary>()) {
      if (binary->bytes.size() > kDocumentBytesMax) return TooLarge();
      Head(kBinary, name);
      AppendNumber(static_cast<int32_t>(binary->bytes.size()), out_);
      out_ += static_cast<char>(binary->subtype);
      out_ += binary->bytes;
    } else if (const auto* date = value.As<Date>()) {
      Head(kDate, name);
      AppendNumber(date->milliseconds, out_);
    } else if (const auto* decimal = value.As<Decimal128>()) {
      if (!decimal->is_finite()) return Refuse("is NaN or infinity");
      Head(kDecimal, name);
      AppendNumber(decimal->low, out_);
      AppendNumber(decimal->high, out_);
    } else if (const auto* id = value.As<ObjectId>()) {
      Head(kObjectId, name);
      out_.append(reinterpret_cast<const char*>(id->bytes.data()), id->bytes.size());
    } else if (const auto* regex = value.As<Regex>()) {
      Head(kRegex, name);
      for (const std::string* part : {&regex->pattern, &regex->options}) {
        if (part->find('\0') != std::string::npos) return Refuse("has a zero byte");
        if (!IsValidUtf8(*part)) return Refuse("is not UTF-8");
        out_.append(*part).push_back('\0');
      }
    } else if (const auto* timestamp = value.As<Timestamp>()) {
      Head(kTimestamp, name);
      AppendNumber(timestamp->increment, out_);
      AppendNumber(timestamp->seconds, out_);
    } else {
      Head(value.type() == Value::Type::kMinKey ? kMinKey : kMaxKey, name);
    }
    return absl::OkStatus();
  }

  std::string Path() const {
    std::string pointer;
    for (const Segment& segment : path_) {
      AppendSegment(segment.name == nullptr ? std::to_string(segment.index) : *segment.name,
                    pointer);
    }
    return pointer;
  }

  absl::Status Refuse(const std::string& problem) const { return RefusedContent(Path(), problem); }
  absl::Status TooDeep() const { return Refuse("lies deeper than 24 levels"); }
  absl::Status TooLarge() const { return TooLargeContent(Path()); }

  std::string& out_;
  std::vector<Segment> path_;
};

absl::Status Damaged(const char* problem) {
  return absl::InvalidArgumentError(std::string("damaged BSON: ") + problem);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  absl::StatusOr<Value> Whole() {
    Object object;
    absl::Status status = Document([&](std::string_view name, Value value) {
      object.Append(std::string(name), std::move(value));
      return true;
    });
    if (!status.ok()) return status;
    if (!rest_.empty()) return Damaged("bytes follow its end");
    return Value(std::move(object));
  }

 private:
  template <typename Number>
  bool Take(Number& number) {
    if (rest_.size() < sizeof number) return false;
    std::memcpy(&number, rest_.data(), sizeof number);
    rest_.remove_prefix(sizeof number);
    return true;
  }

  bool TakeBytes(size_t count, std::string_view& bytes) {
    if (rest_.size() < count) return false;
    bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }

  // Up to a zero byte.
  bool TakeName(std::string_view& name) {
    const size_t end = rest_.find('\0');
    if (end == std::string_view::npos) return false;
    name = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return true;
  }

  // `add` takes the members, and answers whether the name may stand there.
  template <typename Add>
  absl::Status Document(const Add& add) {
    if (++depth_ > kReadDepthMax) return Damaged("it has more than 100 levels");
    const size_t before = rest_.size();
    int32_t length = 0;
    if (!Take(length)) return Damaged("it ends too early");
    if (length < 5 || static_cast<size_t>(length) > before) return Damaged("a length is wrong");
    const size_t left_behind = before - static_cast<size_t>(length);
    while (true) {
      uint8_t tag = 0;
      if (!Take(tag)) return Damaged("it ends too early");
      if (tag == 0) break;
      std::string_view name;
      if (!TakeName(name)) return Damaged("a name has no end");
      Value value;
      if (absl::Status status = Element(tag, value); !status.ok()) return status;
      if (!add(name, std::move(value))) return Damaged("an array's members are not in order");
    }
    --depth_;
    if (rest_.size() != left_behind) return Damaged("a length is wrong");
    return absl::OkStatus();
  }

  absl::Status Element(uint8_t tag, Value& value) {
    switch (tag) {
      case kObject: {
        Object object;
        absl::Status status = Document([&](std::string_view name, Value member) {
          object.Append(std::string(name), std::move(member));
          return true;
        });
        value = std::move(object);
        return status;
      }
      case kArray: {
        Array array;
        absl::Status status = Document([&](std::string_view name, Value element) {
          if (name != std::to_string(array.size())) return false;
          array.push_back(std::move(element));
          return true;
        });
        value = std::move(array);
        return status;
      }
      case kNull:
        return absl::OkStatus();
      case kMinKey:
        value = MinKey();
        return absl::OkStatus();
      case kMaxKey:
        value = MaxKey();
        return absl::OkStatus();
      default:
        return Scalar(tag, value) ? absl::OkStatus() : Damaged("a value ends early or has no type");
    }
  }

  template <typename Number>
  bool TakeNumber(Value& value) {
    Number number{};
    const bool there = Take(number);
    value = number;
    return there;
  }

  bool Scalar(uint8_t tag, Value& value) {
    switch (tag) {
      case kDouble:
        return TakeNumber<double>(value);
      case kInt32:
        return TakeNumber<int32_t>(value);
      case kInt64:
        return TakeNumber<int64_t>(value);
      case kDate: {
        Date date;
        const bool there = Take(date.milliseconds);
        value = date;
        return there;
      }
      case kTimestamp: {
        Timestamp timestamp;
        const bool there = Take(timestamp.increment) && Take(timestamp.seconds);
        value = timestamp;
        return there;
      }
      case kDecimal: {
        Decimal128 decimal;
        const bool there = Take(decimal.low) && Take(decimal.high);
        value = decimal;
        return there;
      }
      case kBool: {
        uint8_t byte = 0;
        const bool there = Take(byte) && byte <= 1;
        value = byte == 1;
        return there;
      }
      default:
        return Bytes(tag, value);
    }
  }

  bool Bytes(uint8_t tag, Value& value) {
    std::string_view bytes;
    if (tag == kString) {
      int32_t length = 0;
      if (!Take(length) || length < 1 || !TakeBytes(static_cast<size_t>(length), bytes)) {
        return false;
      }
      if (bytes.back() != '\0') return false;
      bytes.remove_suffix(1);
      value = bytes;
      return true;
    }
    if (tag == kBinary) {
      int32_t length = 0;
      Binary binary;
      if (!Take(length) || length < 0 || !Take(binary.subtype)) return false;
      if (!TakeBytes(static_cast<size_t>(length), bytes)) return false;
      binary.bytes = bytes;
      value = std::move(binary);
      return true;
    }
    if (tag == kObjectId) {
      ObjectId id;
      if (!TakeBytes(id.bytes.size(), bytes)) return false;
      std::memcpy(id.bytes.data(), bytes.data(), bytes.size());
      value = id;
      return true;
    }
    std::string_view options;
    if (tag != kRegex || !TakeName(bytes) || !TakeName(options)) return false;
    value = Regex{.pattern = std::string(bytes), .options = std::string(options)};
    return true;
  }

  std::string_view rest_;
  size_t depth_ = 0;
};

}  // namespace

absl::StatusOr<std::string> ToBson(const Value& value) {
  const auto* object = value.As<Object>();
  if (object == nullptr) return RefusedContent("", "is no object");
  std::string bson;
  Writer writer(bson);
  if (absl::Status status = writer.Document(*object); !status.ok()) return status;
  if (bson.size() > kDocumentBytesMax) return TooLargeContent("");
  return bson;
}

absl::StatusOr<Value> FromBson(std::string_view bson) { return Reader(bson).Whole(); }

}  // namespace strata::client
