// What values can do, decimal numbers as text, where servers are, and errors as statuses.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <type_traits>

#include "clients/cpp/error_status.h"
#include "clients/cpp/target.h"
#include "strata/client/error.h"
#include "strata/client/value.h"

namespace strata::client {
namespace {

TEST(Value, KnowsItsType) {
  EXPECT_EQ(Value(3).type(), Value::Type::kInt32);
  EXPECT_EQ(Value(int64_t{3}).type(), Value::Type::kInt64);
  EXPECT_EQ(Value(uint32_t{3}).type(), Value::Type::kInt64);
  EXPECT_EQ(Value('a').type(), Value::Type::kInt32);
  EXPECT_EQ(Value(true).type(), Value::Type::kBool);
  EXPECT_EQ(Value(1.0).type(), Value::Type::kDouble);
  EXPECT_EQ(Value("a").type(), Value::Type::kString);
  EXPECT_EQ(Value(Object{{"a", Array{1, "b"}}}).type(), Value::Type::kObject);
  EXPECT_EQ(Value().type(), Value::Type::kNull);
  // BSON has no unsigned numbers of 64 bits, and a pointer is no bool.
  EXPECT_FALSE((std::is_constructible_v<Value, uint64_t>));
  EXPECT_FALSE((std::is_constructible_v<Value, int*>));
}

TEST(Value, MembersKeepTheirOrder) {
  Value value;
  value["z"] = 1;
  value["a"] = 2;
  value["z"] = 3;
  EXPECT_EQ(value, Value(Object{{"z", 3}, {"a", 2}}));
  EXPECT_FALSE(value == Value(Object{{"a", 2}, {"z", 3}}));
  EXPECT_TRUE(value.As<Object>()->Erase("z"));
  EXPECT_FALSE(value.As<Object>()->Erase("z"));
  const Value& constant = value;
  EXPECT_TRUE(constant["nothing"]["further"].is_null());
  EXPECT_EQ(*constant["a"].AsInteger(), 2);
  EXPECT_EQ(constant.As<std::string>(), nullptr);
}

TEST(Value, AreFoundByPointers) {
  const Value value = Object{{"a/b", Array{1, Object{{"~", 7}}}}, {"", "empty"}};
  EXPECT_EQ(*value.At("/a~1b/1/~0"), Value(7));
  EXPECT_EQ(*value.At("/"), Value("empty"));
  EXPECT_EQ(value.At(""), &value);
  for (const char* nothing : {"/a", "/a~1b/2", "/a~1b/01", "/a~1b/-", "a", "/a~1b/0/x"}) {
    EXPECT_EQ(value.At(nothing), nullptr) << nothing;
  }
}

TEST(Value, UuidsAreRandomAndHaveATextForm) {
  std::set<std::string> texts;
  for (int i = 0; i < 1000; ++i) {
    const Binary uuid = NewUuid();
    const std::string text = UuidText(uuid);
    EXPECT_TRUE(texts.insert(text).second);
    const auto read = UuidFromText(text);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, uuid);
    EXPECT_EQ(text[14], '4');
  }
  EXPECT_FALSE(UuidFromText("0123").ok());
  EXPECT_FALSE(UuidFromText("0123456789abcdef0123456789abcdef0123").ok());
}

TEST(Decimal128, IsReadAndWrittenAsText) {
  // What is written for each text, as the decimal128 specification of BSON has it.
  const std::pair<const char*, const char*> cases[] = {
      {"0", "0"},
      {"-0", "-0"},
      {"1.10", "1.10"},
      {"100", "100"},
      {"1E+2", "1E+2"},
      {"1e2", "1E+2"},
      {"0.001234", "0.001234"},
      {"0.00000012", "1.2E-7"},
      {"-12345678901234567890123456789012.34", "-12345678901234567890123456789012.34"},
      {"9999999999999999999999999999999999", "9999999999999999999999999999999999"},
      {"1E6144", "1.000000000000000000000000000000000E+6144"},
      {"1E-6176", "1E-6176"},
      {"10000000000000000000000000000000000", "1.000000000000000000000000000000000E+34"},
      {"0E-8000", "0E-6176"},
      {".5", "0.5"},
      {"000.50", "0.50"},
  };
  for (const auto& [text, expected] : cases) {
    const auto decimal = Decimal128::FromText(text);
    ASSERT_TRUE(decimal.ok()) << text << ": " << decimal.status();
    EXPECT_EQ(decimal->text(), expected);
    EXPECT_EQ(Decimal128::FromText(decimal->text()).value_or(Decimal128()), *decimal);
  }
  for (const char* wrong :
       {"", "-", ".", "1.2.3", "1e", "1e+", "e5", "NaN", "Infinity", "1 ", "0x1",
        "12345678901234567890123456789012345", "1E6145", "1E-6177", "1E99999999999"}) {
    EXPECT_FALSE(Decimal128::FromText(wrong).ok()) << wrong;
  }
}

TEST(Target, IsReadAsAPersonWritesIt) {
  EXPECT_EQ(TargetOf("host").value_or(""), "host:50051");
  EXPECT_EQ(TargetOf("host:1").value_or(""), "host:1");
  EXPECT_EQ(TargetOf("[::1]").value_or(""), "[::1]:50051");
  EXPECT_EQ(TargetOf("[::1]:7").value_or(""), "[::1]:7");
  EXPECT_EQ(TargetOf("unix:/run/strata").value_or(""), "unix:/run/strata");
  for (const char* wrong : {"", ":1", "host:", "host:0", "host:65536", "host:x", "http://host:1",
                            "host/path", "::1", "[::1", "[::1]x", "[]:1", "a b"}) {
    EXPECT_FALSE(TargetOf(wrong).ok()) << wrong;
  }
  EXPECT_NE(TargetOf("https://host").status().message().find("https://"), std::string::npos);
}

TEST(Errors, SurviveAsStatuses) {
  Error error;
  error.reason_name = "VERSION_CONFLICT";
  error.code = absl::StatusCode::kAborted;
  error.message = "version is 4, not 3";
  error.metadata = {{"expected", "3"}, {"actual", "4"}, {"a&b=%41\n", "é&=%\x01"}};
  error.retry_delay = absl::Milliseconds(70);
  error.outcome_unknown = true;
  error.request_id = "r1";
  const Error read = ErrorOf(StatusOf(error));
  EXPECT_EQ(read.reason, Reason::kVersionConflict);
  EXPECT_EQ(read.metadata, error.metadata);
  EXPECT_EQ(read.retry_delay, error.retry_delay);
  EXPECT_TRUE(read.outcome_unknown);
  EXPECT_EQ(read.request_id, "r1");
  error.metadata = {{"expected", "3"}, {"actual", "4"}};
  EXPECT_EQ(ErrorOf(StatusOf(error)).ToString(),
            "VERSION_CONFLICT: version is 4, not 3 (actual=4 expected=3)");
  error.reason_name = "OF_THE_FUTURE";
  EXPECT_EQ(ErrorOf(StatusOf(error)).reason, Reason::kNone);
  EXPECT_EQ(ErrorOf(StatusOf(error)).reason_name, "OF_THE_FUTURE");
  EXPECT_EQ(ReasonOf(absl::OkStatus()), Reason::kNone);
  EXPECT_EQ(ErrorOf(absl::UnavailableError("x")).ToString(), "UNAVAILABLE: x");
}

}  // namespace
}  // namespace strata::client
