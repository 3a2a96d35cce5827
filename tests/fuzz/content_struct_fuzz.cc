// What a client sends as google.protobuf.Struct, on the wire: whatever is accepted is a document,
// and its JSON is a fixpoint.
#include <string>

#include "schemas/document/content.h"
#include "schemas/document/struct_codec.h"
#include "tests/fuzz/input.h"

namespace strata::fuzz {
namespace {

using document::Content;
using document::Limits;

// Bytes as they are, or a document's Struct, perhaps damaged.
std::string WireFrom(Input& input) {
  if (input.Below(2) == 0) return input.Rest();
  std::string wire;
  document::AppendStruct(input.Document(), wire);
  for (size_t i = input.Below(4); i > 0 && !wire.empty() && !input.done(); --i) {
    const size_t at = input.Take<uint16_t>() % wire.size();
    wire[at] = static_cast<char>(input.Byte());
  }
  return wire;
}

std::string Wire(const Content& content) {
  std::string wire;
  document::AppendStruct(content, wire);
  Require(wire.size() == document::StructSize(content), "the Struct's size is exact");
  return wire;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const std::string wire = WireFrom(input);
  // The same bytes as the other messages: each reader must stand them.
  if (const auto value = document::ValueFromProto(wire, Limits{}); value.ok()) {
    std::string again;
    document::AppendValue(*value, again);
    const auto second = document::ValueFromProto(again, Limits{});
    Require(second.ok(), "a value that was read can be written and read again");
  }
  if (const auto array = document::ArrayFromListValue(wire, Limits{}); array.ok()) {
    std::string again;
    document::AppendValue(*array, again);
    Require(document::ValueFromProto(again, Limits{}).ok(), "an array that was read is a value");
  }

  const auto content = document::ContentFromStruct(wire, Limits{});
  if (!content.ok()) return 0;
  Require(Content::FromBson(std::string(content->bytes()), Limits{}).ok(),
          "what is accepted as JSON is accepted as BSON");
  const std::string first = Wire(*content);
  const auto read = document::ContentFromStruct(first, Limits{});
  Require(read.ok() && SameMeaning(*content, *read), "the way round says the same");
  Require(Wire(*read) == first, "JSON of JSON is the same to the byte");
  const auto again = document::ContentFromStruct(first, Limits{});
  Require(again.ok() && *again == *read, "the same bytes are the same document");
  return 0;
}

}  // namespace strata::fuzz
