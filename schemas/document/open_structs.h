// The google.protobuf.Structs that a walk has open, and the Extended JSON wrappers among them.
#pragma once

#include <cstddef>
#include <string_view>

#include "schemas/document/bson_view.h"
#include "schemas/document/content_walk.h"
#include "schemas/document/extended_json/wrapper.h"
#include "schemas/document/struct_message.h"

namespace strata::document {

// Whatever is wrong is refused on the walk; a function then gives false.
class OpenStructs {
 public:
  // The walk outlives it.
  explicit OpenStructs(ContentWalk& walk) : walk_(walk) {}

  // The entries of all that are open, outermost first.
  size_t size() const { return entries_.size(); }
  const StructEntry& operator[](size_t i) const { return entries_[i]; }

  // Opens a Struct: its entries follow the others. `wrapper_name` becomes the first name that only
  // a wrapper may have.
  bool Open(std::string_view wire, std::string_view& wrapper_name);
  // Closes the Structs whose entries begin at `entries_begin`.
  void Close(size_t entries_begin) { entries_.Truncate(entries_begin); }
  // Closes the innermost one and reads it as the wrapper of that name.
  bool CloseWrapper(std::string_view wrapper_name, size_t entries_begin, Value& value);

  // For bytes that are no Struct, Value or ListValue.
  bool RefuseWire();

 private:
  bool ReadArgument(std::string_view wire, WrapperArgument& argument);
  bool ReadPart(std::string_view name, const ParsedValue& value, WrapperPart& part);

  ContentWalk& walk_;
  StructEntries entries_;
};

}  // namespace strata::document
