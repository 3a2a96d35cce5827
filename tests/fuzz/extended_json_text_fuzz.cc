// JSON text, as people type it and files hold it: whatever the client reads is BSON that it can
// write and read again to the byte, and that the server reads alike as a Struct.
#include <string>

#include "clients/cpp/extended_json.h"
#include "schemas/document/content.h"
#include "schemas/document/struct_codec.h"
#include "tests/fuzz/input.h"

namespace strata::fuzz {
namespace {

using client::BsonFromJson;
using client::JsonFromBson;
using client::JsonStyle;
using document::Content;
using document::Limits;

// Bytes as they are, or a document's JSON, perhaps damaged.
std::string TextFrom(Input& input) {
  if (input.Below(2) == 0) return input.Rest();
  const JsonStyle style = input.Chance(2) ? JsonStyle::kExact : JsonStyle::kDoublesOnly;
  std::string text = JsonFromBson(input.Document().bytes(), style).value_or("");
  for (size_t i = input.Below(4); i > 0 && !text.empty() && !input.done(); --i) {
    const size_t at = input.Take<uint16_t>() % text.size();
    text[at] = static_cast<char>(input.Byte());
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const auto bson = BsonFromJson(TextFrom(input));
  if (!bson.ok()) return 0;
  const auto exact = JsonFromBson(*bson, JsonStyle::kExact);
  Require(exact.ok(), "what was read can be written");
  const auto again = BsonFromJson(*exact);
  Require(again.ok() && *again == *bson, "the exact style comes back to the byte");

  // Members named twice and the limits are the server's to judge.
  const auto content = Content::FromBson(*bson, Limits{});
  if (!content.ok()) return 0;
  std::string wire;
  document::AppendStruct(*content, wire);
  const auto shown = document::ContentFromStruct(wire, Limits{});
  Require(shown.ok() && SameMeaning(*content, *shown), "text and Struct mean the same");
  return 0;
}

}  // namespace strata::fuzz
