// What a client sends as BSON: whatever is accepted survives the way to JSON and back.
#include <string>

#include "schemas/document/content.h"
#include "schemas/document/struct_codec.h"
#include "tests/fuzz/input.h"

namespace strata::fuzz {
namespace {

using document::Content;
using document::Limits;

// A Struct is at most this many times as large as its BSON, as bson_check.cc takes for granted.
constexpr size_t kStructGrowthMax = 16;

std::string Wire(const Content& content) {
  std::string wire;
  document::AppendStruct(content, wire);
  Require(wire.size() == document::StructSize(content), "the Struct's size is exact");
  return wire;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const std::string bytes = input.Bytes();
  const auto content = Content::FromBson(bytes, Limits{});
  if (!content.ok()) return 0;
  Require(content->bytes() == bytes, "bytes are stored as they came");
  Require(document::CheckLimits(*content, Limits{}).ok(), "what was accepted stays acceptable");

  const std::string wire = Wire(*content);
  Require(wire.size() <= kStructGrowthMax * bytes.size(), "a Struct grows no further");
  const auto read = document::ContentFromStruct(wire, Limits{});
  Require(read.ok(), "what is accepted as BSON is accepted as JSON");
  Require(SameMeaning(*content, *read), "JSON says the same");

  // From here on members are sorted. Integers get as narrow as they can be by the second way round:
  // {"$numberLong": "5"} is read as an int64, and written as 5.
  const std::string second = Wire(*read);
  const auto again = document::ContentFromStruct(second, Limits{});
  Require(again.ok() && SameMeaning(*again, *read), "the second way round says the same");
  Require(Wire(*again) == second, "JSON of JSON is the same to the byte");
  return 0;
}

}  // namespace strata::fuzz
