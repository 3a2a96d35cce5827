// JSON to messages: what the check lets pass, protobuf's reader takes or refuses within a time that
// grows with the text alone, and makes of it no less than the check has counted.
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/field_mask.pb.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <chrono>
#include <string>

#include "schemas/json/message_json.h"
#include "tests/fuzz/input.h"

namespace strata::fuzz {
namespace {

using std::chrono::microseconds;

// Under the sanitizers a byte takes less than a microsecond; a machine that stalls has its time.
constexpr microseconds kPerByte{100};
constexpr microseconds kMoment{2'000'000};

constexpr std::string_view kPieces[] = {"{",
                                        "}",
                                        "[",
                                        "]",
                                        ",",
                                        ":",
                                        "\"",
                                        "\"a\":",
                                        "\"name\": \"b\"",
                                        "\"options\": {",
                                        "\"messageType\": [{",
                                        "\"message_type\": [",
                                        "1e3",
                                        "-0",
                                        "null",
                                        "true",
                                        "\\u0061",
                                        "\\ud83d\\ude00",
                                        "a(",
                                        "a,b.c",
                                        "[[[[[[[[",
                                        "]]]]]]]]",
                                        "{\"a\":{\"a\":",
                                        "}}"};

std::string TextFrom(Input& input) {
  if (input.Below(4) == 0) return input.Rest();
  std::string text;
  while (!input.done()) {
    const size_t piece = input.Below(std::size(kPieces) + 1);
    if (piece == std::size(kPieces)) {
      text += static_cast<char>(input.Byte());
      continue;
    }
    for (size_t times = input.Chance(8) ? input.Byte() : 1; times > 0; --times)
      text += kPieces[piece];
  }
  return text;
}

void Check(const std::string& text, google::protobuf::Message& message) {
  const auto start = std::chrono::steady_clock::now();
  const auto least = json::CheckMessageJson(text, *message.GetDescriptor());
  const bool read = least.ok() && google::protobuf::util::JsonStringToMessage(text, &message).ok();
  Require(std::chrono::steady_clock::now() - start < kMoment + kPerByte * text.size(),
          "a text takes a time that grows with its length");
  // Fields with their usual values are left out, which free JSON has none of.
  if (read && message.GetDescriptor()->full_name() == "google.protobuf.Struct") {
    Require(*least <= message.ByteSizeLong(), "a message has what was counted");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const size_t which = input.Below(3);
  const std::string text = TextFrom(input);
  google::protobuf::Struct free;
  google::protobuf::FileDescriptorProto file;
  google::protobuf::FieldMask mask;
  google::protobuf::Message* const messages[] = {&free, &file, &mask};
  Check(text, *messages[which]);
  return 0;
}

}  // namespace strata::fuzz
