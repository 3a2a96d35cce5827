// Documents for tests: from JSON as people write it, and at random.
#pragma once

#include <bson/bson.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/content.h"

namespace strata::document {

// BSON bytes of Extended JSON, members in the order of the text.
inline std::string Bson(std::string_view json) {
  bson_error_t error;
  bson_t* const bson = bson_new_from_json(reinterpret_cast<const uint8_t*>(json.data()),
                                          static_cast<ssize_t>(json.size()), &error);
  EXPECT_NE(bson, nullptr) << json << ": " << error.message;
  if (bson == nullptr) return std::string(kEmptyDocument);
  std::string bytes(reinterpret_cast<const char*>(bson_get_data(bson)), bson->len);
  bson_destroy(bson);
  return bytes;
}

inline Content Doc(std::string_view json) { return Content::FromTrusted(Bson(json)); }

// The value of a JSON text that may be any value.
inline Value Val(std::string_view json) {
  const std::string document = Bson("{\"v\":" + std::string(json) + "}");
  MemberReader reader(document);
  Member member;
  EXPECT_TRUE(reader.Next(member));
  return Value{member.type, std::string(member.value)};
}

inline std::string Json(std::string_view bytes) {
  bson_t bson;
  if (!bson_init_static(&bson, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size())) {
    return "not BSON";
  }
  char* const text = bson_as_canonical_extended_json(&bson, nullptr);
  std::string json(text);
  bson_free(text);
  return json;
}
inline std::string Json(const Content& content) { return Json(content.bytes()); }
inline std::string Json(const Value& value) {
  std::string document;
  const size_t start = BeginDocument(document);
  AppendMember(value.type, "v", value.bytes, document);
  EndDocument(start, document);
  return Json(document);
}

// One member around a value, whatever its bytes.
inline std::string Around(uint8_t type, std::string_view value, std::string_view name = "a") {
  std::string document;
  const size_t start = BeginDocument(document);
  AppendMember(type, name, value, document);
  EndDocument(start, document);
  return document;
}

// `levels` levels: {"a": {"a": … {}}}, the root being the first.
inline std::string Nest(int levels) {
  std::string document(kEmptyDocument);
  for (int i = 1; i < levels; ++i) document = Around(kBsonObject, document);
  return document;
}

inline void ExpectError(const absl::Status& status, ErrorReason reason, std::string_view path) {
  EXPECT_EQ(ReasonOf(status), reason) << status;
  EXPECT_EQ(MetadataOf(status, "path").value_or("none"), path) << status;
}

// Random documents that share much with each other, from a seed.
class RandomDocuments {
 public:
  explicit RandomDocuments(uint32_t seed) : random_(seed) {}

  size_t Below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }

  Content Make() { return Content::FromTrusted(MakeDocument(false, 1)); }

  // A few changes, anywhere: members and elements added, removed, replaced, moved, changed inside.
  Content Change(const Content& content) {
    std::string bytes(content.bytes());
    for (size_t i = 0; i <= Below(3); ++i) bytes = Changed(bytes, false, 1);
    return Content::FromTrusted(std::move(bytes));
  }

  Value MakeValue(int depth) {
    switch (Below(depth >= 5 ? 10 : 13)) {
      case 0:
        return Val("null");
      case 1:
        return Val(Below(2) == 0 ? "true" : "false");
      case 2:
        return Number<int32_t>(kBsonInt32, static_cast<int32_t>(Below(5)));
      case 3:
        return Number<int64_t>(kBsonInt64, static_cast<int64_t>(Below(5)) << Below(60));
      case 4:
        return Number<double>(kBsonDouble, static_cast<double>(Below(100)) / 4 - 3);
      case 5:
        return Number<int64_t>(kBsonDate, static_cast<int64_t>(Below(4)) * 9'999'999'999 - 5);
      case 6:
        return Val(R"({"$oid": "0123456789abcdef01234567"})");
      case 7:
        return Val(R"({"$binary": {"base64": "AQIDBA==", "subType": "04"}})");
      case 8:
        return Val(R"({"$numberDecimal": "12.50"})");
      case 9:
        return Val(Below(2) == 0 ? "\"\"" : "\"some text, some \\u00fcml\\u00e4uts\"");
      case 10:
        return Value{kBsonArray, MakeDocument(true, depth + 1)};
      default:
        return Value{kBsonObject, MakeDocument(false, depth + 1)};
    }
  }

 private:
  struct Owned {
    std::string name;
    Value value;
  };

  template <typename N>
  static Value Number(uint8_t type, N number) {
    Value value{type, {}};
    AppendNumber(number, value.bytes);
    return value;
  }

  std::string MakeName() {
    static constexpr std::string_view kNames[] = {"",    "a",    "b", "c/d", "~e",   "f~1",
                                                  "0",   "7",    "+", "ü/~", "$ref", "a.b",
                                                  "=/x", "*0:0", "y", "z"};
    return std::string(kNames[Below(std::size(kNames))]);
  }

  std::string MakeDocument(bool is_array, int depth) {
    std::vector<Owned> members;
    for (size_t i = Below(8); i > 0; --i) members.push_back({MakeName(), MakeValue(depth)});
    return Write(members, is_array);
  }

  static std::string Write(const std::vector<Owned>& members, bool is_array) {
    std::string document;
    std::vector<std::string_view> names;
    IndexName index;
    const size_t start = BeginDocument(document);
    for (const Owned& member : members) {
      if (!is_array) {
        if (std::find(names.begin(), names.end(), member.name) != names.end()) continue;
        names.push_back(member.name);
      }
      AppendMember(member.value.type, is_array ? index.text() : member.name, member.value.bytes,
                   document);
      index.Next();
    }
    EndDocument(start, document);
    return document;
  }

  std::string Changed(std::string_view document, bool is_array, int depth) {
    std::vector<Owned> members;
    Member member;
    for (MemberReader reader(document); reader.Next(member);) {
      members.push_back({std::string(member.name), {member.type, std::string(member.value)}});
    }
    const size_t at = Below(members.size() + 1);
    const size_t other = Below(members.size() + 1);
    if (at == members.size() || Below(6) == 0) {
      members.insert(members.begin() + static_cast<ptrdiff_t>(other),
                     {MakeName(), MakeValue(depth)});
    } else if (IsContainer(members[at].value.type) && Below(4) != 0) {
      Value& value = members[at].value;
      value.bytes = Changed(value.bytes, value.type == kBsonArray, depth + 1);
    } else if (Below(3) == 0) {
      members.erase(members.begin() + static_cast<ptrdiff_t>(at));
    } else if (Below(3) == 0) {
      std::shuffle(members.begin(), members.end(), random_);
    } else if (other < members.size() && Below(2) == 0) {
      std::swap(members[at], members[other]);
    } else {
      members[at].value = MakeValue(depth);
    }
    return Write(members, is_array);
  }

  std::mt19937 random_;
};

}  // namespace strata::document
