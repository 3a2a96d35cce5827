// From BSON to the wire form of google.protobuf.Struct: sizes first, then one pass of writing.
#include <cmath>

#include "absl/container/inlined_vector.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/extended_json/wrapper.h"
#include "schemas/document/struct_codec.h"
#include "schemas/document/struct_wire.h"

namespace strata::document {
namespace {

// A value that is a plain JSON number, as AppendStruct writes it.
bool IsPlainNumber(uint8_t type, std::string_view value) {
  if (type == kBsonInt32) return true;
  if (type == kBsonInt64) return IsExactInDouble(LoadNumber<int64_t>(value));
  if (type != kBsonDouble) return false;
  const auto number = LoadNumber<double>(value);
  return number != std::floor(number);
}

double PlainNumber(uint8_t type, std::string_view value) {
  return type == kBsonDouble ? LoadNumber<double>(value)
                             : static_cast<double>(LoadInteger(type, value));
}

// Small messages, built from the inside out: only wrappers are written so, which are rare.
void AppendLengthField(uint8_t tag, std::string_view bytes, std::string& out) {
  out.push_back(static_cast<char>(tag));
  size_t length = bytes.size();
  for (; length >= 0x80; length >>= 7) out.push_back(static_cast<char>(length | 0x80));
  out.push_back(static_cast<char>(length));
  out += bytes;
}

std::string PartMessage(const WrapperSpelling::Part& part) {
  std::string value;
  if (part.number) {
    value.push_back(static_cast<char>(kNumberTag));
    AppendNumber(static_cast<double>(*part.number), value);
  } else {
    AppendLengthField(kTextTag, part.text, value);
  }
  return value;
}

void AppendEntry(std::string_view name, std::string_view value, std::string& out) {
  std::string entry;
  AppendLengthField(kNameTag, name, entry);
  AppendLengthField(kValueTag, value, entry);
  AppendLengthField(kFieldsTag, entry, out);
}

std::string ObjectMessage(std::string_view fields) {
  std::string message;
  AppendLengthField(kStructTag, fields, message);
  return message;
}

// The Value message of a type that JSON does not have.
std::string WrapperMessage(uint8_t type, std::string_view value) {
  const WrapperSpelling spelling = SpellWrapper(type, value);
  std::string fields;
  if (!spelling.is_object) {
    AppendEntry(spelling.name, PartMessage(spelling.parts[0]), fields);
    return ObjectMessage(fields);
  }
  for (size_t i = 0; i < spelling.part_count; ++i) {
    AppendEntry(spelling.parts[i].name, PartMessage(spelling.parts[i]), fields);
  }
  std::string outer;
  AppendEntry(spelling.name, ObjectMessage(fields), outer);
  return ObjectMessage(outer);
}

// Measures first, and notes the sizes of all objects, arrays and wrappers in the order in which
// writing meets them; then writes each byte once, in place.
class StructWriter {
 public:
  // The size of the Struct or ListValue, which is a document in BSON either way.
  size_t MeasureMembers(std::string_view document, bool is_array) {
    const size_t slot = sizes_.size();
    sizes_.push_back(0);
    size_t size = 0;
    Member member;
    for (MemberReader reader(document); reader.Next(member);) {
      const size_t value_field = LengthFieldSize(MeasureValue(member.type, member.value));
      size += is_array ? value_field
                       : LengthFieldSize(LengthFieldSize(member.name.size()) + value_field);
    }
    return sizes_[slot] = size;
  }

  // The size of the Value message.
  size_t MeasureValue(uint8_t type, std::string_view value) {
    switch (type) {
      case kBsonString:
        return LengthFieldSize(value.size() - 5);
      case kBsonBool:
      case kBsonNull:
        return 2;
      case kBsonObject:
      case kBsonArray:
        return LengthFieldSize(MeasureMembers(value, type == kBsonArray));
      default:
        if (IsPlainNumber(type, value)) return 1 + sizeof(double);
        const std::string wrapper = WrapperMessage(type, value);
        wrappers_ += wrapper;
        sizes_.push_back(wrapper.size());
        return wrapper.size();
    }
  }

  // REQUIRES: the same document was measured, and `at` has room for what that said.
  char* WriteDocument(std::string_view document, char* at) {
    at_ = at;
    WriteMembers(document, /*is_array=*/false);
    return at_;
  }
  char* WriteValue(uint8_t type, std::string_view value, char* at) {
    at_ = at;
    WriteValue(type, value);
    return at_;
  }

 private:
  void WriteMembers(std::string_view document, bool is_array) {
    ++next_size_;
    Member member;
    for (MemberReader reader(document); reader.Next(member);) {
      const size_t value_size = NextValueSize(member.type, member.value);
      if (is_array) {
        WriteLengthHead(kElementsTag, value_size);
      } else {
        WriteLengthHead(kFieldsTag,
                        LengthFieldSize(member.name.size()) + LengthFieldSize(value_size));
        WriteLengthHead(kNameTag, member.name.size());
        WriteBytes(member.name);
        WriteLengthHead(kValueTag, value_size);
      }
      WriteValue(member.type, member.value);
    }
  }

  // What MeasureValue said of the value that is written next.
  size_t NextValueSize(uint8_t type, std::string_view value) const {
    switch (type) {
      case kBsonString:
        return LengthFieldSize(value.size() - 5);
      case kBsonBool:
      case kBsonNull:
        return 2;
      case kBsonObject:
      case kBsonArray:
        return LengthFieldSize(sizes_[next_size_]);
      default:
        return IsPlainNumber(type, value) ? 1 + sizeof(double) : sizes_[next_size_];
    }
  }

  void WriteValue(uint8_t type, std::string_view value) {
    switch (type) {
      case kBsonString:
        WriteLengthHead(kTextTag, value.size() - 5);
        WriteBytes(StringText(value));
        break;
      case kBsonBool:
        WriteByte(kBoolTag);
        WriteByte(static_cast<uint8_t>(value[0]));
        break;
      case kBsonNull:
        WriteByte(kNullTag);
        WriteByte(0);
        break;
      case kBsonObject:
      case kBsonArray:
        WriteLengthHead(type == kBsonArray ? kListTag : kStructTag, sizes_[next_size_]);
        WriteMembers(value, type == kBsonArray);
        break;
      default:
        if (IsPlainNumber(type, value)) {
          const double number = PlainNumber(type, value);
          WriteByte(kNumberTag);
          std::memcpy(at_, &number, sizeof(number));
          at_ += sizeof(number);
        } else {
          const size_t size = sizes_[next_size_++];
          WriteBytes(std::string_view(wrappers_).substr(next_wrapper_, size));
          next_wrapper_ += size;
        }
    }
  }

  void WriteByte(uint8_t byte) { *at_++ = static_cast<char>(byte); }
  void WriteBytes(std::string_view bytes) {
    std::memcpy(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  void WriteLengthHead(uint8_t tag, size_t length) {
    WriteByte(tag);
    for (; length >= 0x80; length >>= 7) WriteByte(static_cast<uint8_t>(length | 0x80));
    WriteByte(static_cast<uint8_t>(length));
  }

  absl::InlinedVector<size_t, 64> sizes_;
  std::string wrappers_;
  size_t next_size_ = 0;
  size_t next_wrapper_ = 0;
  char* at_ = nullptr;
};

}  // namespace

void AppendStruct(const Content& content, std::string& out) {
  StructWriter writer;
  const size_t begin = out.size();
  out.resize(begin + writer.MeasureMembers(content.bytes(), /*is_array=*/false));
  writer.WriteDocument(content.bytes(), out.data() + begin);
}

size_t StructSize(const Content& content) {
  return StructWriter().MeasureMembers(content.bytes(), /*is_array=*/false);
}

size_t ValueSize(const Value& value) {
  return StructWriter().MeasureValue(value.type, value.bytes);
}

void AppendValue(const Value& value, std::string& out) {
  StructWriter writer;
  const size_t begin = out.size();
  out.resize(begin + writer.MeasureValue(value.type, value.bytes));
  writer.WriteValue(value.type, value.bytes, out.data() + begin);
}

}  // namespace strata::document
