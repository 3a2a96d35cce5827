#include "schemas/document/open_structs.h"

#include <optional>
#include <utility>

#include "schemas/base/utf8.h"
#include "schemas/document/struct_wire.h"

namespace strata::document {

bool OpenStructs::RefuseWire() {
  return walk_.Refuse("is not well-formed as google.protobuf.Struct",
                      "send what a protobuf library writes");
}

bool OpenStructs::Open(std::string_view wire, std::string_view& wrapper_name) {
  switch (entries_.Add(wire, wrapper_name)) {
    case StructFault::kNone:
      return true;
    case StructFault::kMalformed:
      return RefuseWire();
    case StructFault::kNameNotUtf8:
      return walk_.Refuse("has a member whose name is not UTF-8", "write names in UTF-8");
    case StructFault::kNameWithZero:
      return walk_.Refuse("has a member whose name contains a zero byte", "use a name without it");
  }
  return false;
}

bool OpenStructs::CloseWrapper(std::string_view wrapper_name, size_t entries_begin, Value& value) {
  std::optional<Value> read;
  std::optional<WrapperFault> fault;
  if (entries_.size() - entries_begin == 1) {
    WrapperArgument argument;
    if (!ReadArgument(entries_[entries_begin].value, argument)) return false;
    Close(entries_begin);
    read = ReadWrapper(wrapper_name, argument, fault);
  } else {
    fault.emplace(wrapper_name);
  }
  if (!read) return walk_.Refuse(fault->problem, fault->advice);
  value = *std::move(read);
  return true;
}

bool OpenStructs::ReadArgument(std::string_view wire, WrapperArgument& argument) {
  ParsedValue value;
  if (!ParseValue(wire, value)) return RefuseWire();
  argument.is_object = value.tag == kStructTag;
  if (!argument.is_object) return ReadPart({}, value, argument.scalar);
  const size_t entries_begin = entries_.size();
  std::string_view inner_wrapper;
  if (!Open(value.bytes, inner_wrapper)) return false;
  for (size_t i = entries_begin; i < entries_.size(); ++i, ++argument.part_count) {
    if (argument.part_count >= 2) continue;
    ParsedValue inner;
    if (!ParseValue(entries_[i].value, inner)) return RefuseWire();
    if (!ReadPart(entries_[i].name, inner, argument.parts[argument.part_count])) return false;
  }
  Close(entries_begin);
  return true;
}

bool OpenStructs::ReadPart(std::string_view name, const ParsedValue& value, WrapperPart& part) {
  part.name = name;
  if (value.tag == kTextTag) {
    if (!IsUtf8(value.bytes)) return walk_.Refuse("is not UTF-8", "write text in UTF-8");
    part.kind = WrapperPart::Kind::kString;
    part.text = value.bytes;
  } else if (value.tag == kNumberTag) {
    part.kind = WrapperPart::Kind::kNumber;
    part.number = value.number();
  }
  return true;
}

}  // namespace strata::document
