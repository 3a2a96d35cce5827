// What JSON may say to protobuf's reader, by the messages that protobuf itself describes files
// with.
#include "schemas/json/message_json.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/field_mask.pb.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "schemas/base/error.h"
#include "schemas/base/strings.h"
#include "tests/support/status_matchers.h"

namespace strata::json {
namespace {

using google::protobuf::FieldMask;
using google::protobuf::FileDescriptorProto;
using google::protobuf::Struct;
using test_support::HasReason;
using test_support::IsOk;
using testing::HasSubstr;

absl::Status Refusal(std::string_view text, const google::protobuf::Descriptor& type,
                     const MessageLimits& limits = {}) {
  return CheckMessageJson(text, type, limits).status();
}

absl::Status OfFile(std::string_view text) {
  return Refusal(text, *FileDescriptorProto::descriptor());
}

void ExpectField(const absl::Status& status, const std::string& field, const std::string& words) {
  EXPECT_THAT(status, HasReason(ErrorReason::kInvalidField));
  EXPECT_EQ(MetadataOf(status, "field"), field);
  EXPECT_THAT(std::string(ToStd(status.message())), HasSubstr(words));
}

TEST(MessageJson, TakesAMessageInEitherSpelling) {
  EXPECT_THAT(OfFile(R"({"name": "a", "messageType": [{"name": "M", "nestedType": [{}, {}]}]})"),
              IsOk());
  EXPECT_THAT(OfFile(R"({"name": "a", "message_type": [{"name": "M", "nestedType": [{}]}]})"),
              IsOk());
  EXPECT_THAT(OfFile(R"({"nobody": {"knows": 1}})"),
              IsOk());  // which protobuf's reader refuses by name
}

TEST(MessageJson, NamesNoMemberTwice) {
  ExpectField(OfFile(R"({"name": "a", "name": "b"})"), "name", "twice");
  ExpectField(OfFile(R"({"name": "a", "n\u0061me": "b"})"), "name", "twice");
  ExpectField(OfFile(R"({"message_type": [{"name": "M"}, {"nestedType": [], "nested_type": []}]})"),
              "message_type[1].nested_type", "twice, as nested_type or nestedType");
  ExpectField(Refusal(R"({"a": {"b": [0, {"c": 1, "c": 2}]}})", *Struct::descriptor()), "a.b[1].c",
              "twice");
  EXPECT_THAT(Refusal(R"({"a_b": 1, "aB": 2})", *Struct::descriptor()),
              IsOk());  // two names of the caller's
  ExpectField(OfFile(R"({"nobody": 1, "nobody": 2})"), "nobody", "twice");
}

TEST(MessageJson, NamesTheFieldInAsManyBytesAsAreReadable) {
  const std::string name(10'000, 'x');
  const absl::Status status =
      Refusal("{\"" + name + "\": {\"a\": 1, \"a\": 1}}", *Struct::descriptor());
  EXPECT_LE(MetadataOf(status, "field")->size(), 200u);
}

TEST(MessageJson, IsJson) {
  EXPECT_THAT(OfFile("{]"), HasReason(ErrorReason::kInvalidMessage));
  EXPECT_THAT(OfFile(R"({"name": "\x41"})"), HasReason(ErrorReason::kInvalidMessage));
}

TEST(MessageJson, HasAFieldMaskThatIsAPlainList) {
  const auto& type = *FieldMask::descriptor();
  EXPECT_THAT(Refusal(R"("a,b.c")", type), IsOk());
  ExpectField(Refusal(R"("a(b(c")", type), "", "parenthesis");
  ExpectField(Refusal("\"" + std::string(5000, 'a') + "\"", type), "", "5000 bytes, at most 4096");
}

TEST(MessageJson, MayGrowToNoMoreThanAMessageMayHave) {
  const MessageLimits limits{.message_bytes_max = 1000};
  const auto numbers = [](int count) {
    std::string text = R"({"a": [0)";
    for (int i = 1; i < count; ++i) text += ",0";
    return text + "]}";
  };
  EXPECT_THAT(Refusal(numbers(80), *Struct::descriptor(), limits), IsOk());
  EXPECT_THAT(Refusal(numbers(100), *Struct::descriptor(), limits),
              HasReason(ErrorReason::kInvalidMessage));
}

// What it says is the least that a message has is no more than it has.
TEST(MessageJson, CountsNoMoreThanThereIs) {
  for (const std::string text :
       {R"({})", R"({"a": 1})", R"({"a": [1, "x", true, null, {}, [], {"b": {"c": "\u20ac"}}]})",
        R"({"": ""})"}) {
    Struct message;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(text, &message).ok());
    const auto least = CheckMessageJson(text, *Struct::descriptor());
    ASSERT_THAT(least.status(), IsOk());
    EXPECT_LE(*least, message.ByteSizeLong()) << text;
    EXPECT_GE(*least + 8, message.ByteSizeLong()) << text;
  }
}

// Four megabytes, whatever they say, take no more than a moment: the bound is a hundred times what
// it takes.
TEST(MessageJson, TakesNoTimeThatGrowsFasterThanTheText) {
  const std::string deep(size_t{4} << 20, '[');
  std::string names = "{";
  for (int i = 0; i < 300'000; ++i) names += "\"" + std::to_string(i) + "\":0,";
  std::string mask = "\"";
  for (int i = 0; i < 1'000'000; ++i) mask += "a(";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(Refusal(deep, *Struct::descriptor()).ok());
  EXPECT_FALSE(Refusal(names, *Struct::descriptor()).ok());
  EXPECT_FALSE(Refusal(mask + "\"", *FieldMask::descriptor()).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace strata::json
