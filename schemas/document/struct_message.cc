// The messages Value and Struct of google.protobuf, one at a time.
#include "schemas/document/struct_message.h"

#include <algorithm>

#include "schemas/base/utf8.h"
#include "schemas/document/extended_json/wrapper.h"

namespace strata::document {
namespace {

// Orders as the names' bytes do, which contain no zeros.
bool ByName(const StructEntry& a, const StructEntry& b) {
  return a.prefix != b.prefix ? a.prefix < b.prefix : a.name < b.name;
}

uint64_t NamePrefix(std::string_view name) {
  if (name.size() >= 8) return __builtin_bswap64(LoadNumber<uint64_t>(name));
  uint64_t prefix = 0;
  for (const char c : name) prefix = prefix << 8 | static_cast<uint8_t>(c);
  return name.empty() ? 0 : prefix << 8 * (8 - name.size());
}

// The form that nearly all entries have: name, then value, both lengths in one byte.
bool ReadShortEntry(std::string_view wire, StructEntry& entry) {
  if (wire.size() < 4 || wire.size() >= 0x80 || wire[0] != kNameTag) return false;
  const auto name_size = static_cast<uint8_t>(wire[1]);
  if (size_t{name_size} + 4 > wire.size() || wire[name_size + size_t{2}] != kValueTag) return false;
  entry.name = wire.substr(2, name_size);
  entry.value = wire.substr(name_size + size_t{4});
  return entry.value.size() == static_cast<uint8_t>(wire[name_size + size_t{3}]);
}

bool ReadAnyEntry(std::string_view wire, StructEntry& entry) {
  entry = StructEntry{};
  WireReader reader(wire);
  WireField field;
  bool has_value = false;
  while (reader.Next(field)) {
    if (field.tag == kNameTag) entry.name = field.bytes;
    if (field.tag != kValueTag) continue;
    // Protobuf would merge two; nothing that writes Structs relies on it.
    if (has_value) return false;
    has_value = true;
    entry.value = field.bytes;
  }
  return !reader.failed();
}

StructFault ReadEntry(std::string_view wire, StructEntry& entry) {
  if (!ReadShortEntry(wire, entry) && !ReadAnyEntry(wire, entry)) return StructFault::kMalformed;
  if (!IsUtf8(entry.name)) return StructFault::kNameNotUtf8;
  if (FindZero(entry.name.data(), entry.name.data() + entry.name.size()) != nullptr) {
    return StructFault::kNameWithZero;
  }
  entry.prefix = NamePrefix(entry.name);
  return StructFault::kNone;
}

}  // namespace

bool ParseAnyValue(std::string_view wire, ParsedValue& value) {
  value = ParsedValue{};
  WireReader reader(wire);
  WireField field;
  while (reader.Next(field)) {
    switch (field.tag) {
      case kStructTag:
      case kListTag:
        // Protobuf would merge two, as above.
        if (value.tag == field.tag) return false;
        [[fallthrough]];
      case kTextTag:
        value = {field.tag, 0, field.bytes};
        break;
      case kNullTag:
      case kNumberTag:
      case kBoolTag:
        value = {field.tag, field.number, {}};
        break;
      default:
        break;
    }
  }
  return !reader.failed();
}

StructFault StructEntries::Add(std::string_view struct_wire, std::string_view& wrapper_name) {
  const size_t begin = entries_.size();
  WireReader reader(struct_wire);
  WireField field;
  while (reader.Next(field)) {
    if (field.tag != kFieldsTag) continue;
    StructEntry entry;
    const StructFault fault = ReadEntry(field.bytes, entry);
    if (fault != StructFault::kNone) return fault;
    const bool dollar = !entry.name.empty() && entry.name[0] == '$';
    if (dollar && wrapper_name.empty() && IsWrapperName(entry.name)) wrapper_name = entry.name;
    entries_.push_back(entry);
  }
  if (reader.failed()) return StructFault::kMalformed;
  Sort(static_cast<ptrdiff_t>(begin));
  DropOverwritten(begin);
  return StructFault::kNone;
}

// Stable. Few entries are put in order by hand: std::stable_sort allocates.
void StructEntries::Sort(ptrdiff_t begin) {
  const auto first = entries_.begin() + begin;
  if (entries_.end() - first > 24) {
    if (!std::is_sorted(first, entries_.end(), ByName)) {
      std::stable_sort(first, entries_.end(), ByName);
    }
    return;
  }
  for (auto entry = first; entry != entries_.end(); ++entry) {
    const StructEntry moved = *entry;
    auto place = entry;
    for (; place != first && ByName(moved, *(place - 1)); --place) *place = *(place - 1);
    *place = moved;
  }
}

void StructEntries::DropOverwritten(size_t begin) {
  size_t kept = begin;
  for (size_t i = begin; i < entries_.size(); ++i) {
    if (i + 1 < entries_.size() && entries_[i + 1].name == entries_[i].name) continue;
    entries_[kept++] = entries_[i];
  }
  entries_.resize(kept);
}

}  // namespace strata::document
