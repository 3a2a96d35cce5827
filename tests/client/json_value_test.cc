// What travels as JSON comes back as what it was.
#include "clients/cpp/json_value.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/client/random_value.h"

namespace strata::client {
namespace {

// As JSON has it: the members of objects sorted.
Value Sorted(const Value& value) {
  if (const auto* array = value.As<Array>()) {
    Array sorted;
    for (const Value& element : *array) sorted.push_back(Sorted(element));
    return sorted;
  }
  if (const auto* object = value.As<Object>()) {
    std::map<std::string, Value> members;
    for (const Member& member : *object) members[member.name] = Sorted(member.value);
    Object sorted;
    for (const auto& [name, member] : members) sorted.Append(name, member);
    return sorted;
  }
  return value;
}

TEST(JsonValue, ComesBackAsWhatItWas) {
  std::mt19937_64 random(19);
  for (int i = 0; i < 3000; ++i) {
    const Value value = RandomObject(random, 4);
    google::protobuf::Struct json;
    ASSERT_TRUE(ToJson(value, json).ok());
    const auto read = FromJson(json);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == Sorted(value)) << json.DebugString();
  }
}

TEST(JsonValue, OldBinariesKeepTheirBytes) {
  const Value value = Object{{"b", Binary{.bytes = std::string("\3\0\0\0abc", 7), .subtype = 2}}};
  google::protobuf::Struct json;
  ASSERT_TRUE(ToJson(value, json).ok());
  EXPECT_EQ(FromJson(json).value_or(Value()), value);
}

TEST(JsonValue, RefusesWhatIsNoNumberAndWrappersThatAreNone) {
  google::protobuf::Value json;
  EXPECT_FALSE(ToJson(std::numeric_limits<double>::quiet_NaN(), "/a", json).ok());
  google::protobuf::Struct wrapper;
  (*wrapper.mutable_fields())["$numberLong"].set_string_value("x");
  EXPECT_FALSE(FromJson(wrapper).ok());
  (*wrapper.mutable_fields())["other"].set_string_value("x");
  EXPECT_TRUE(FromJson(wrapper).ok());
}

}  // namespace
}  // namespace strata::client
