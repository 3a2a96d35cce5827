// MongoDB's query filters on documents: what matches what, and what is refused.
#include "schemas/document/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/document/compare.h"
#include "schemas/document/path.h"
#include "tests/document/documents.h"
#include "tests/support/cpu_time.h"

namespace strata::document {
namespace {

constexpr std::string_view kReadByTheParser[] = {"regex", "options", "type"};

void ReplaceAll(std::string_view what, std::string_view with, std::string& text) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.replace(at, what.size(), with);
  }
}

// A filter's BSON. libbson's parser reads some operators as parts of old Extended JSON, so it gets
// them under other names.
Content FilterDoc(std::string_view json) {
  std::string text(json);
  for (const std::string_view name : kReadByTheParser) {
    ReplaceAll("\"$" + std::string(name) + "\"", "\"%" + std::string(name) + "\"", text);
  }
  std::string bytes = Bson(text);
  for (const std::string_view name : kReadByTheParser) {
    ReplaceAll("%" + std::string(name) + std::string(1, '\0'),
               "$" + std::string(name) + std::string(1, '\0'), bytes);
  }
  return Content::FromTrusted(std::move(bytes));
}

bool Matches(const Content& filter, const Content& document) {
  const absl::StatusOr<Filter> compiled = Filter::Compile(filter);
  EXPECT_TRUE(compiled.ok()) << Json(filter) << ": " << compiled.status();
  return compiled.ok() && compiled->Matches(document);
}

bool Matches(std::string_view filter, std::string_view document) {
  return Matches(FilterDoc(filter), Doc(document));
}

struct Case {
  const char* rule;
  const char* filter;
  const char* document;
  bool matches;
};

constexpr bool kYes = true;
constexpr bool kNo = false;

const Case kEquality[] = {
    {"the empty filter matches everything", R"({})", R"({"a": 1})", kYes},
    {"… even nothing", R"({})", R"({})", kYes},
    {"a bare value is equality", R"({"a": 1})", R"({"a": 1})", kYes},
    {"another value is not equal", R"({"a": 1})", R"({"a": 2})", kNo},
    {"a missing member has no value", R"({"a": 1})", R"({"b": 1})", kNo},
    {"$eq says the same", R"({"a": {"$eq": 1}})", R"({"a": 1})", kYes},
    {"all members of the filter have to match", R"({"a": 1, "b": 2})", R"({"a": 1, "b": 2})", kYes},
    {"one that does not is enough", R"({"a": 1, "b": 2})", R"({"a": 1, "b": 3})", kNo},
    {"int32 equals int64", R"({"a": {"$numberLong": "5"}})", R"({"a": 5})", kYes},
    {"int32 equals double", R"({"a": 5.0})", R"({"a": 5})", kYes},
    {"double equals decimal", R"({"a": 2.5})", R"({"a": {"$numberDecimal": "2.5"}})", kYes},
    {"trailing zeros of a decimal do not count", R"({"a": {"$numberDecimal": "2.50"}})",
     R"({"a": {"$numberDecimal": "2.5"}})", kYes},
    {"a tenth as double is no decimal tenth", R"({"a": 0.1})",
     R"({"a": {"$numberDecimal": "0.1"}})", kNo},
    {"the exact decimal of a double equals it", R"({"a": 0.125})",
     R"({"a": {"$numberDecimal": "0.125"}})", kYes},
    {"int64 2^53+1 is not double 2^53", R"({"a": {"$numberLong": "9007199254740993"}})",
     R"({"a": 9007199254740992.0})", kNo},
    {"int64 2^53 is double 2^53", R"({"a": {"$numberLong": "9007199254740992"}})",
     R"({"a": 9007199254740992.0})", kYes},
    {"decimal equals a large int64", R"({"a": {"$numberDecimal": "9223372036854775807"}})",
     R"({"a": {"$numberLong": "9223372036854775807"}})", kYes},
    {"decimal 2^53+1 is not double 2^53", R"({"a": {"$numberDecimal": "9007199254740993"}})",
     R"({"a": 9007199254740992.0})", kNo},
    {"-0.0 equals 0", R"({"a": 0})", R"({"a": -0.0})", kYes},
    {"decimal zero has no exponent", R"({"a": 0})", R"({"a": {"$numberDecimal": "0E+10"}})", kYes},
    {"true is not 1", R"({"a": 1})", R"({"a": true})", kNo},
    {"text is not a number", R"({"a": "1"})", R"({"a": 1})", kNo},
    {"strings are case-sensitive", R"({"a": "x"})", R"({"a": "X"})", kNo},
    {"a prefix is not equal", R"({"a": "ab"})", R"({"a": "abc"})", kNo},
    {"strings of bytes that differ only later", R"({"a": "aé"})", R"({"a": "aè"})", kNo},
    {"zero bytes are text", R"({"a": "x\u0000y"})", R"({"a": "x\u0000z"})", kNo},
    {"objects are equal member by member", R"({"a": {"x": 1, "y": 2}})",
     R"({"a": {"x": 1, "y": 2}})", kYes},
    {"object member order counts", R"({"a": {"x": 1, "y": 2}})", R"({"a": {"y": 2, "x": 1}})", kNo},
    {"a part of an object is not equal", R"({"a": {"x": 1}})", R"({"a": {"x": 1, "y": 2}})", kNo},
    {"numbers inside objects compare by value", R"({"a": {"x": 1.0}})", R"({"a": {"x": 1}})", kYes},
    {"the empty object is a value", R"({"a": {}})", R"({"a": {}})", kYes},
    {"… and is not any object", R"({"a": {}})", R"({"a": {"x": 1}})", kNo},
    {"$eq takes an object whatever its names", R"({"a": {"$eq": {"$gt": 1}}})",
     R"({"a": {"$gt": 1}})", kYes},
    {"a reference is a value", R"({"a": {"$ref": "c", "$id": 1}})",
     R"({"a": {"$ref": "c", "$id": 1}})", kYes},
    {"ObjectIds by their bytes", R"({"a": {"$oid": "0123456789abcdef01234567"}})",
     R"({"a": {"$oid": "0123456789abcdef01234567"}})", kYes},
    {"other ObjectIds are other", R"({"a": {"$oid": "0123456789abcdef01234567"}})",
     R"({"a": {"$oid": "0123456789abcdef01234568"}})", kNo},
    {"the subtype of a binary counts", R"({"a": {"$binary": {"base64": "AQI=", "subType": "00"}}})",
     R"({"a": {"$binary": {"base64": "AQI=", "subType": "80"}}})", kNo},
    {"equal binaries", R"({"a": {"$binary": {"base64": "AQI=", "subType": "00"}}})",
     R"({"a": {"$binary": {"base64": "AQI=", "subType": "00"}}})", kYes},
    {"a date is not its number", R"({"a": 5})", R"({"a": {"$date": {"$numberLong": "5"}}})", kNo},
    {"a date is not a timestamp", R"({"a": {"$timestamp": {"t": 0, "i": 5}}})",
     R"({"a": {"$date": {"$numberLong": "5"}}})", kNo},
    {"minKey equals itself", R"({"a": {"$minKey": 1}})", R"({"a": {"$minKey": 1}})", kYes},
    {"minKey equals nothing else", R"({"a": {"$minKey": 1}})", R"({"a": 1})", kNo},
};

const Case kNullAndMissing[] = {
    {"null matches null", R"({"a": null})", R"({"a": null})", kYes},
    {"null matches what is missing", R"({"a": null})", R"({"b": 1})", kYes},
    {"null does not match a value", R"({"a": null})", R"({"a": 0})", kNo},
    {"null does not match an empty array", R"({"a": null})", R"({"a": []})", kNo},
    {"null matches an array with null", R"({"a": null})", R"({"a": [1, null]})", kYes},
    {"null below a missing parent", R"({"a.b": null})", R"({})", kYes},
    {"null below a scalar", R"({"a.b": null})", R"({"a": 4})", kYes},
    {"null below null", R"({"a.b": null})", R"({"a": null})", kYes},
    {"null below an empty object", R"({"a.b": null})", R"({"a": {}})", kYes},
    {"null below an empty array finds nothing", R"({"a.b": null})", R"({"a": []})", kNo},
    {"null below an array of scalars finds nothing", R"({"a.b": null})", R"({"a": [1, "x"]})", kNo},
    {"null in one object of an array that lacks it", R"({"a.b": null})",
     R"({"a": [{"b": 1}, {"c": 2}]})", kYes},
    {"null where all objects of an array have it", R"({"a.b": null})",
     R"({"a": [{"b": 1}, {"b": 2}]})", kNo},
    {"null below an array in an array finds nothing", R"({"a.b": null})", R"({"a": [[{}]]})", kNo},
    {"$ne null asks for a value", R"({"a": {"$ne": null}})", R"({"b": 1})", kNo},
    {"$ne null with a value", R"({"a": {"$ne": null}})", R"({"a": 1})", kYes},
    {"$gte null matches null", R"({"a": {"$gte": null}})", R"({"a": null})", kYes},
    {"$gte null matches what is missing", R"({"a": {"$gte": null}})", R"({})", kYes},
    {"$lte null matches what is missing", R"({"a": {"$lte": null}})", R"({})", kYes},
    {"$gt null matches nothing", R"({"a": {"$gt": null}})", R"({"a": null})", kNo},
    {"$gt null does not match numbers", R"({"a": {"$gt": null}})", R"({"a": 5})", kNo},
    {"$gt null does not match what is missing", R"({"a": {"$gt": null}})", R"({})", kNo},
    {"$lt null matches nothing", R"({"a": {"$lt": null}})", R"({})", kNo},
    {"$exists true with a value", R"({"a": {"$exists": true}})", R"({"a": 1})", kYes},
    {"$exists true with null", R"({"a": {"$exists": true}})", R"({"a": null})", kYes},
    {"$exists true without", R"({"a": {"$exists": true}})", R"({"b": 1})", kNo},
    {"$exists true with an empty array", R"({"a": {"$exists": true}})", R"({"a": []})", kYes},
    {"$exists false without", R"({"a": {"$exists": false}})", R"({})", kYes},
    {"$exists false with null", R"({"a": {"$exists": false}})", R"({"a": null})", kNo},
    {"$exists 0 is false", R"({"a": {"$exists": 0}})", R"({"a": 1})", kNo},
    {"$exists with text is true", R"({"a": {"$exists": "no"}})", R"({"a": 1})", kYes},
    {"$exists null is false", R"({"a": {"$exists": null}})", R"({})", kYes},
    {"$exists in some object of an array", R"({"a.b": {"$exists": true}})",
     R"({"a": [{"c": 1}, {"b": 1}]})", kYes},
    {"$exists false is the negation of that", R"({"a.b": {"$exists": false}})",
     R"({"a": [{"c": 1}, {"b": 1}]})", kNo},
    {"$exists false below an empty array", R"({"a.b": {"$exists": false}})", R"({"a": []})", kYes},
};

const Case kOrder[] = {
    {"$gt a number", R"({"a": {"$gt": 5}})", R"({"a": 6})", kYes},
    {"$gt is strict", R"({"a": {"$gt": 5}})", R"({"a": 5})", kNo},
    {"$gte is not", R"({"a": {"$gte": 5}})", R"({"a": 5})", kYes},
    {"$lt a number", R"({"a": {"$lt": 5}})", R"({"a": 4.99})", kYes},
    {"$lte a number", R"({"a": {"$lte": 5}})", R"({"a": 5.01})", kNo},
    {"two bounds", R"({"a": {"$gt": 1, "$lt": 3}})", R"({"a": 2})", kYes},
    {"outside two bounds", R"({"a": {"$gt": 1, "$lt": 3}})", R"({"a": 3})", kNo},
    {"$gt keeps to its type: text", R"({"a": {"$gt": 5}})", R"({"a": "6"})", kNo},
    {"$gt keeps to its type: bool", R"({"a": {"$gt": 0}})", R"({"a": true})", kNo},
    {"$lt keeps to its type: null", R"({"a": {"$lt": 5}})", R"({"a": null})", kNo},
    {"$lt does not match what is missing", R"({"a": {"$lt": 5}})", R"({})", kNo},
    {"2^53+1 is greater than double 2^53", R"({"a": {"$gt": 9007199254740992.0}})",
     R"({"a": {"$numberLong": "9007199254740993"}})", kYes},
    {"int64 max is less than double 2^63", R"({"a": {"$lt": 9223372036854775808.0}})",
     R"({"a": {"$numberLong": "9223372036854775807"}})", kYes},
    {"int64 min is double -2^63", R"({"a": {"$gte": -9223372036854775808.0}})",
     R"({"a": {"$numberLong": "-9223372036854775808"}})", kYes},
    {"a decimal just above a double", R"({"a": {"$gt": 0.1}})",
     R"({"a": {"$numberDecimal": "0.1000000000000000055511151231257828"}})", kYes},
    {"a decimal just below a double", R"({"a": {"$lt": 0.1}})",
     R"({"a": {"$numberDecimal": "0.1000000000000000055511151231257827"}})", kYes},
    {"decimals beyond every double", R"({"a": {"$gt": 1.7e308}})",
     R"({"a": {"$numberDecimal": "1E+6000"}})", kYes},
    {"decimals below every double", R"({"a": {"$lt": 5e-324}})",
     R"({"a": {"$numberDecimal": "1E-6000"}})", kYes},
    {"negative decimals turn around", R"({"a": {"$lt": {"$numberDecimal": "-2.5"}}})",
     R"({"a": {"$numberDecimal": "-2.51"}})", kYes},
    {"negative before positive", R"({"a": {"$lt": {"$numberDecimal": "0.001"}}})", R"({"a": -5})",
     kYes},
    {"a negative fraction is below its whole part", R"({"a": {"$lt": -2}})", R"({"a": -2.5})",
     kYes},
    {"strings by their bytes", R"({"a": {"$gt": "abc"}})", R"({"a": "abd"})", kYes},
    {"a prefix comes first", R"({"a": {"$gt": "ab"}})", R"({"a": "abc"})", kYes},
    {"upper case comes first", R"({"a": {"$lt": "a"}})", R"({"a": "Z"})", kYes},
    {"bytes past ASCII come last", R"({"a": {"$gt": "z"}})", R"({"a": "é"})", kYes},
    {"false before true", R"({"a": {"$lt": true}})", R"({"a": false})", kYes},
    {"dates before 1970 come first", R"({"a": {"$lt": {"$date": {"$numberLong": "0"}}}})",
     R"({"a": {"$date": {"$numberLong": "-1"}}})", kYes},
    {"timestamps by seconds first", R"({"a": {"$gt": {"$timestamp": {"t": 1, "i": 9}}}})",
     R"({"a": {"$timestamp": {"t": 2, "i": 1}}})", kYes},
    {"timestamps have no sign", R"({"a": {"$gt": {"$timestamp": {"t": 1, "i": 0}}}})",
     R"({"a": {"$timestamp": {"t": 4294967295, "i": 0}}})", kYes},
    {"ObjectIds by their bytes", R"({"a": {"$lt": {"$oid": "f00000000000000000000000"}}})",
     R"({"a": {"$oid": "0fffffffffffffffffffffff"}})", kYes},
    {"the shorter binary is less",
     R"({"a": {"$lt": {"$binary": {"base64": "AAA=", "subType": "00"}}}})",
     R"({"a": {"$binary": {"base64": "/w==", "subType": "80"}}})", kYes},
    {"then the subtype", R"({"a": {"$gt": {"$binary": {"base64": "/w==", "subType": "00"}}}})",
     R"({"a": {"$binary": {"base64": "AA==", "subType": "80"}}})", kYes},
    {"objects by the first member that differs", R"({"a": {"$gt": {"x": 1, "y": 9}}})",
     R"({"a": {"x": 2}})", kYes},
    {"the type of a member comes before its name", R"({"a": {"$gt": {"z": 1}}})",
     R"({"a": {"a": "text"}})", kYes},
    {"the name comes before the value", R"({"a": {"$lt": {"y": 1}}})", R"({"a": {"x": 9}})", kYes},
    {"the object that ends first is less", R"({"a": {"$gt": {"x": 1}}})",
     R"({"a": {"x": 1, "a": null}})", kYes},
    {"the empty object is the least", R"({"a": {"$gt": {}}})", R"({"a": {"x": null}})", kYes},
    {"arrays element by element", R"({"a": {"$gt": [1, 2]}})", R"({"a": [1, 3]})", kYes},
    {"the array that ends first is less", R"({"a": {"$lt": [1, 2]}})", R"({"a": [1]})", kYes},
    {"types inside arrays are ordered", R"({"a": {"$gt": [5]}})", R"({"a": ["x"]})", kYes},
    {"$gte minKey matches everything", R"({"a": {"$gte": {"$minKey": 1}}})", R"({"a": "x"})", kYes},
    {"… and what is missing", R"({"a": {"$gt": {"$minKey": 1}}})", R"({})", kYes},
    {"minKey is not greater than itself", R"({"a": {"$gt": {"$minKey": 1}}})",
     R"({"a": {"$minKey": 1}})", kNo},
    {"nothing is less than minKey", R"({"a": {"$lt": {"$minKey": 1}}})", R"({"a": 1})", kNo},
    {"everything is less than maxKey", R"({"a": {"$lt": {"$maxKey": 1}}})", R"({"a": null})", kYes},
    {"… but itself", R"({"a": {"$lt": {"$maxKey": 1}}})", R"({"a": {"$maxKey": 1}})", kNo},
    {"nothing is greater than maxKey", R"({"a": {"$gt": {"$maxKey": 1}}})", R"({"a": 1})", kNo},
    {"minKey is no number", R"({"a": {"$lt": 5}})", R"({"a": {"$minKey": 1}})", kNo},
};

const Case kArrays[] = {
    {"a value matches an element", R"({"a": 2})", R"({"a": [1, 2]})", kYes},
    {"no element is equal", R"({"a": 3})", R"({"a": [1, 2]})", kNo},
    {"an array matches as a whole", R"({"a": [1, 2]})", R"({"a": [1, 2]})", kYes},
    {"element order counts", R"({"a": [1, 2]})", R"({"a": [2, 1]})", kNo},
    {"an array matches as an element", R"({"a": [1, 2]})", R"({"a": [0, [1, 2]]})", kYes},
    {"a value is not sought two arrays deep", R"({"a": 1})", R"({"a": [[1]]})", kNo},
    {"an object matches as an element", R"({"a": {"b": 1}})", R"({"a": [{"b": 2}, {"b": 1}]})",
     kYes},
    {"two bounds may hold for two elements", R"({"a": {"$gt": 5, "$lt": 3}})", R"({"a": [1, 9]})",
     kYes},
    {"$ne holds for no element that is equal", R"({"a": {"$ne": 2}})", R"({"a": [1, 2]})", kNo},
    {"$ne without an equal element", R"({"a": {"$ne": 3}})", R"({"a": [1, 2]})", kYes},
    {"$ne matches what is missing", R"({"a": {"$ne": 3}})", R"({})", kYes},
    {"$ne with a whole array", R"({"a": {"$ne": [1, 2]}})", R"({"a": [1, 2]})", kNo},
    {"a path goes into each object of an array", R"({"a.b": 2})", R"({"a": [{"b": 1}, {"b": 2}]})",
     kYes},
    {"… and the array at its end", R"({"a.b": 3})", R"({"a": [{"b": [1]}, {"b": [2, 3]}]})", kYes},
    {"arrays at two levels", R"({"a.b.c": 2})", R"({"a": [{"b": [{"c": 1}, {"c": 2}]}]})", kYes},
    {"but not into arrays inside arrays", R"({"a.b": 1})", R"({"a": [[{"b": 1}]]})", kNo},
    {"two paths may match two objects", R"({"a.x": 1, "a.y": 2})",
     R"({"a": [{"x": 1, "y": 0}, {"x": 0, "y": 2}]})", kYes},
    {"an index names an element", R"({"a.1": 2})", R"({"a": [1, 2]})", kYes},
    {"another element does not count", R"({"a.0": 2})", R"({"a": [1, 2]})", kNo},
    {"an index past the end finds nothing", R"({"a.5": null})", R"({"a": [1]})", kNo},
    {"digits name a member of an object", R"({"a.0": 2})", R"({"a": {"0": 2}})", kYes},
    {"digits name a member of objects in an array", R"({"a.7": 2})", R"({"a": [{"7": 2}]})", kYes},
    {"an index and then a member", R"({"a.1.b": 5})", R"({"a": [{"b": 4}, {"b": 5}]})", kYes},
    {"… of that element only", R"({"a.0.b": 5})", R"({"a": [{"b": 4}, {"b": 5}]})", kNo},
    {"an index goes into an inner array", R"({"a.0.b": 5})", R"({"a": [[{"b": 5}]]})", kYes},
    {"two indices", R"({"a.1.0": 7})", R"({"a": [[5], [7, 8]]})", kYes},
    {"an element named by index is not searched", R"({"a.0": 7})", R"({"a": [[7]]})", kNo},
    {"… but compared as a whole", R"({"a.0": [7]})", R"({"a": [[7]]})", kYes},
    {"a leading zero is no index", R"({"a.00": 1})", R"({"a": [1]})", kNo},
    {"$lt with an array compares whole arrays", R"({"a": {"$lt": [5]}})", R"({"a": 4})", kNo},
};

const Case kLists[] = {
    {"$in has the value", R"({"a": {"$in": [1, 2]}})", R"({"a": 2})", kYes},
    {"$in does not have it", R"({"a": {"$in": [1, 2]}})", R"({"a": 3})", kNo},
    {"$in of nothing", R"({"a": {"$in": []}})", R"({"a": 3})", kNo},
    {"$in with some element", R"({"a": {"$in": [1, 2]}})", R"({"a": [5, 2]})", kYes},
    {"$in with null and a missing member", R"({"a": {"$in": [1, null]}})", R"({})", kYes},
    {"$in without null and a missing member", R"({"a": {"$in": [1]}})", R"({})", kNo},
    {"$in with a whole array", R"({"a": {"$in": [[1, 2]]}})", R"({"a": [1, 2]})", kYes},
    {"$in of mixed types", R"({"a": {"$in": ["x", 1, {"b": 1}, true]}})", R"({"a": {"b": 1}})",
     kYes},
    {"$in compares numbers by value", R"({"a": {"$in": [1.0, 2.0]}})", R"({"a": 2})", kYes},
    {"$in with a pattern",
     R"({"a": {"$in": [{"$regularExpression": {"pattern": "^b", "options": ""}}]}})",
     R"({"a": "box"})", kYes},
    {"$in with a pattern that finds nothing",
     R"({"a": {"$in": [1, {"$regularExpression": {"pattern": "^b", "options": ""}}]}})",
     R"({"a": "abc"})", kNo},
    {"$in with a pattern and the same regex stored",
     R"({"a": {"$in": [{"$regularExpression": {"pattern": "^b", "options": "i"}}]}})",
     R"({"a": {"$regularExpression": {"pattern": "^b", "options": "i"}}})", kYes},
    {"$nin is the negation", R"({"a": {"$nin": [1, 2]}})", R"({"a": 3})", kYes},
    {"$nin with some element", R"({"a": {"$nin": [1, 2]}})", R"({"a": [5, 2]})", kNo},
    {"$nin matches what is missing", R"({"a": {"$nin": [1, 2]}})", R"({})", kYes},
    {"$nin with null and a missing member", R"({"a": {"$nin": [null]}})", R"({})", kNo},
    {"$nin of nothing", R"({"a": {"$nin": []}})", R"({"a": 3})", kYes},
    {"$all has all", R"({"a": {"$all": [1, 2]}})", R"({"a": [2, 3, 1]})", kYes},
    {"$all lacks one", R"({"a": {"$all": [1, 2]}})", R"({"a": [1, 3]})", kNo},
    {"$all of one value and no array", R"({"a": {"$all": [1]}})", R"({"a": 1})", kYes},
    {"$all of two values and no array", R"({"a": {"$all": [1, 2]}})", R"({"a": 1})", kNo},
    {"$all of nothing matches nothing", R"({"a": {"$all": []}})", R"({"a": []})", kNo},
    {"$all with the whole array", R"({"a": {"$all": [[1, 2]]}})", R"({"a": [1, 2]})", kYes},
    {"$all with an inner array", R"({"a": {"$all": [[1, 2]]}})", R"({"a": [[1, 2], 3]})", kYes},
    {"$all with null and a missing member", R"({"a": {"$all": [null]}})", R"({})", kYes},
    {"$all with a pattern",
     R"({"a": {"$all": ["x", {"$regularExpression": {"pattern": "^b", "options": ""}}]}})",
     R"({"a": ["bc", "x"]})", kYes},
    {"$all with $elemMatch",
     R"({"a": {"$all": [{"$elemMatch": {"x": 1}}, {"$elemMatch": {"x": 2}}]}})",
     R"({"a": [{"x": 2}, {"x": 1}]})", kYes},
    {"$all with an $elemMatch that fails",
     R"({"a": {"$all": [{"$elemMatch": {"x": 1}}, {"$elemMatch": {"x": 3}}]}})",
     R"({"a": [{"x": 2}, {"x": 1}]})", kNo},
    {"$all through objects of an array", R"({"a.b": {"$all": [1, 2]}})",
     R"({"a": [{"b": 1}, {"b": 2}]})", kYes},
};

const Case kElemMatch[] = {
    {"one element meets both bounds", R"({"a": {"$elemMatch": {"$gt": 2, "$lt": 5}}})",
     R"({"a": [1, 3, 9]})", kYes},
    {"no element meets both", R"({"a": {"$elemMatch": {"$gt": 2, "$lt": 5}}})", R"({"a": [1, 9]})",
     kNo},
    {"no array, no match", R"({"a": {"$elemMatch": {"$gt": 2}}})", R"({"a": 3})", kNo},
    {"one object meets both", R"({"a": {"$elemMatch": {"x": 1, "y": {"$gt": 1}}}})",
     R"({"a": [{"x": 1, "y": 1}, {"x": 1, "y": 2}]})", kYes},
    {"two objects do not", R"({"a": {"$elemMatch": {"x": 1, "y": 2}}})",
     R"({"a": [{"x": 1, "y": 0}, {"x": 0, "y": 2}]})", kNo},
    {"an object that is not in an array", R"({"a": {"$elemMatch": {"x": 1}}})",
     R"({"a": {"x": 1}})", kNo},
    {"scalars are no objects", R"({"a": {"$elemMatch": {"x": null}}})", R"({"a": [1, 2]})", kNo},
    {"an empty object lacks the member", R"({"a": {"$elemMatch": {"x": null}}})", R"({"a": [{}]})",
     kYes},
    {"no conditions match any object", R"({"a": {"$elemMatch": {}}})", R"({"a": [1, {}]})", kYes},
    {"… but no scalar", R"({"a": {"$elemMatch": {}}})", R"({"a": [1]})", kNo},
    {"inner arrays are objects of indices", R"({"a": {"$elemMatch": {"0": 5}}})", R"({"a": [[5]]})",
     kYes},
    {"values are not sought in inner arrays", R"({"a": {"$elemMatch": {"$gt": 1}}})",
     R"({"a": [[5]]})", kNo},
    {"$elemMatch in $elemMatch seeks there", R"({"a": {"$elemMatch": {"$elemMatch": {"$gt": 1}}}})",
     R"({"a": [[0], [5]]})", kYes},
    {"null is an element", R"({"a": {"$elemMatch": {"$eq": null}}})", R"({"a": [1, null]})", kYes},
    {"$ne holds for some element", R"({"a": {"$elemMatch": {"$ne": 1}}})", R"({"a": [1, 2]})",
     kYes},
    {"$not holds for some element", R"({"a": {"$elemMatch": {"$not": {"$gt": 3}}}})",
     R"({"a": [5, 1]})", kYes},
    {"$in of an element", R"({"a": {"$elemMatch": {"$in": [3], "$exists": true}}})",
     R"({"a": [5, 3]})", kYes},
    {"$size of an element", R"({"a": {"$elemMatch": {"$size": 2}}})", R"({"a": [1, [1, 2]]})",
     kYes},
    {"$or of objects", R"({"a": {"$elemMatch": {"$or": [{"x": 1}, {"y": 1}]}}})",
     R"({"a": [{"x": 0}, {"y": 1}]})", kYes},
    {"at the end of a path", R"({"a.b": {"$elemMatch": {"$gt": 4}}})",
     R"({"a": [{"b": [1]}, {"b": [5]}]})", kYes},
    {"of an element named by index", R"({"a.0": {"$elemMatch": {"$gt": 4}}})", R"({"a": [[5]]})",
     kYes},
    {"negated, it matches what is no array", R"({"a": {"$not": {"$elemMatch": {"$gt": 4}}}})",
     R"({"a": 5})", kYes},
    {"the parts of references are members", R"({"a": {"$elemMatch": {"$ref": "c", "$id": 2}}})",
     R"({"a": [{"$ref": "c", "$id": 1}, {"$ref": "c", "$id": 2}]})", kYes},
    {"an empty array has no element", R"({"a": {"$elemMatch": {"$exists": true}}})", R"({"a": []})",
     kNo},
};

const Case kTypesAndSizes[] = {
    {"$size of an array", R"({"a": {"$size": 2}})", R"({"a": [1, 2]})", kYes},
    {"another size", R"({"a": {"$size": 2}})", R"({"a": [1, 2, 3]})", kNo},
    {"$size of no array", R"({"a": {"$size": 1}})", R"({"a": "x"})", kNo},
    {"$size of an empty array", R"({"a": {"$size": 0}})", R"({"a": []})", kYes},
    {"$size of what is missing", R"({"a": {"$size": 0}})", R"({})", kNo},
    {"$size does not ask elements", R"({"a": {"$size": 2}})", R"({"a": [[1, 2]]})", kNo},
    {"$size as a whole double", R"({"a": {"$size": 2.0}})", R"({"a": [1, 2]})", kYes},
    {"$size as a decimal", R"({"a": {"$size": {"$numberDecimal": "2.0"}}})", R"({"a": [1, 2]})",
     kYes},
    {"$type by name", R"({"a": {"$type": "string"}})", R"({"a": "x"})", kYes},
    {"another type", R"({"a": {"$type": "string"}})", R"({"a": 1})", kNo},
    {"$type by number", R"({"a": {"$type": 2}})", R"({"a": "x"})", kYes},
    {"$type of what is missing", R"({"a": {"$type": "null"}})", R"({})", kNo},
    {"$type null", R"({"a": {"$type": 10}})", R"({"a": null})", kYes},
    {"int is not long", R"({"a": {"$type": "int"}})", R"({"a": {"$numberLong": "1"}})", kNo},
    {"number is long", R"({"a": {"$type": "number"}})", R"({"a": {"$numberLong": "1"}})", kYes},
    {"number is decimal", R"({"a": {"$type": "number"}})", R"({"a": {"$numberDecimal": "1"}})",
     kYes},
    {"number is not text", R"({"a": {"$type": "number"}})", R"({"a": "1"})", kNo},
    {"one of several types", R"({"a": {"$type": ["string", 8]}})", R"({"a": true})", kYes},
    {"$type asks elements", R"({"a": {"$type": "string"}})", R"({"a": [1, "x"]})", kYes},
    {"$type array is the array itself", R"({"a": {"$type": "array"}})", R"({"a": []})", kYes},
    {"$type object is not an array", R"({"a": {"$type": "object"}})", R"({"a": [1]})", kNo},
    {"$type minKey", R"({"a": {"$type": -1}})", R"({"a": {"$minKey": 1}})", kYes},
    {"$type maxKey", R"({"a": {"$type": "maxKey"}})", R"({"a": {"$maxKey": 1}})", kYes},
    {"$type minKey is not maxKey", R"({"a": {"$type": "minKey"}})", R"({"a": {"$maxKey": 1}})",
     kNo},
    {"a deprecated type is in no document", R"({"a": {"$type": "symbol"}})", R"({"a": "x"})", kNo},
};

const Case kLogic[] = {
    {"$and of both", R"({"$and": [{"a": 1}, {"b": 2}]})", R"({"a": 1, "b": 2})", kYes},
    {"$and lacks one", R"({"$and": [{"a": 1}, {"b": 2}]})", R"({"a": 1})", kNo},
    {"$and asks one member twice", R"({"$and": [{"a": 1}, {"a": 2}]})", R"({"a": [1, 2]})", kYes},
    {"$or of either", R"({"$or": [{"a": 1}, {"b": 2}]})", R"({"b": 2})", kYes},
    {"$or of neither", R"({"$or": [{"a": 1}, {"b": 2}]})", R"({"b": 1})", kNo},
    {"$or beside a member", R"({"c": 1, "$or": [{"a": 1}, {"b": 2}]})", R"({"b": 2})", kNo},
    {"$or with an empty filter", R"({"$or": [{"a": 1}, {}]})", R"({})", kYes},
    {"$nor of neither", R"({"$nor": [{"a": 1}, {"b": 2}]})", R"({"b": 1})", kYes},
    {"$nor of one", R"({"$nor": [{"a": 1}, {"b": 2}]})", R"({"a": 1})", kNo},
    {"nested", R"({"$or": [{"$and": [{"a": 1}, {"$nor": [{"b": 1}]}]}]})", R"({"a": 1, "b": 2})",
     kYes},
    {"an object in $or means all its members", R"({"$or": [{"a": 1, "b": 1}]})", R"({"a": 1})",
     kNo},
    {"$not of a bound", R"({"a": {"$not": {"$gt": 5}}})", R"({"a": 5})", kYes},
    {"$not matches other types", R"({"a": {"$not": {"$gt": 5}}})", R"({"a": "x"})", kYes},
    {"$not matches what is missing", R"({"a": {"$not": {"$gt": 5}}})", R"({})", kYes},
    {"$not asks all elements", R"({"a": {"$not": {"$gt": 5}}})", R"({"a": [1, 6]})", kNo},
    {"$not of two bounds", R"({"a": {"$not": {"$gt": 1, "$lt": 5}}})", R"({"a": 7})", kYes},
    {"$not of a regex",
     R"({"a": {"$not": {"$regularExpression": {"pattern": "b", "options": ""}}}})",
     R"({"a": "abc"})", kNo},
    {"$not of $regex", R"({"a": {"$not": {"$regex": "^b"}}})", R"({"a": "abc"})", kYes},
    {"$not of $not", R"({"a": {"$not": {"$not": {"$eq": 1}}}})", R"({"a": 1})", kYes},
    {"$not beside a bound", R"({"a": {"$gt": 1, "$not": {"$eq": 5}}})", R"({"a": 5})", kNo},
};

const Case kRegexes[] = {
    {"found anywhere", R"({"a": {"$regex": "b+"}})", R"({"a": "abbc"})", kYes},
    {"not found", R"({"a": {"$regex": "x"}})", R"({"a": "abc"})", kNo},
    {"anchored", R"({"a": {"$regex": "^b"}})", R"({"a": "abc"})", kNo},
    {"case counts", R"({"a": {"$regex": "ABC"}})", R"({"a": "abc"})", kNo},
    {"i ignores case", R"({"a": {"$regex": "ABC", "$options": "i"}})", R"({"a": "abc"})", kYes},
    {"options may come first", R"({"a": {"$options": "i", "$regex": "ABC"}})", R"({"a": "abc"})",
     kYes},
    {"m makes ^ match at lines", R"({"a": {"$regex": "^b", "$options": "m"}})", R"({"a": "a\nb"})",
     kYes},
    {"without m it does not", R"({"a": {"$regex": "^b"}})", R"({"a": "a\nb"})", kNo},
    {"s lets . match newlines", R"({"a": {"$regex": "a.b", "$options": "s"}})", R"({"a": "a\nb"})",
     kYes},
    {"without s it does not", R"({"a": {"$regex": "a.b"}})", R"({"a": "a\nb"})", kNo},
    {"options together", R"({"a": {"$regex": "^B.C", "$options": "ims"}})", R"({"a": "a\nb\nc"})",
     kYes},
    {"flags inside the pattern", R"({"a": {"$regex": "(?i)ABC"}})", R"({"a": "abc"})", kYes},
    {". is a character, not a byte", R"({"a": {"$regex": "^.$"}})", R"({"a": "é"})", kYes},
    {"elements are asked", R"({"a": {"$regex": "b"}})", R"({"a": [1, "abc"]})", kYes},
    {"numbers have no text", R"({"a": {"$regex": "1"}})", R"({"a": 1})", kNo},
    {"what is missing has none", R"({"a": {"$regex": ""}})", R"({})", kNo},
    {"the empty pattern is found in any text", R"({"a": {"$regex": ""}})", R"({"a": ""})", kYes},
    {"a bare regex is a pattern",
     R"({"a": {"$regularExpression": {"pattern": "^A", "options": "i"}}})", R"({"a": "abc"})",
     kYes},
    {"a bare regex equals the same one stored",
     R"({"a": {"$regularExpression": {"pattern": "^A", "options": "i"}}})",
     R"({"a": {"$regularExpression": {"pattern": "^A", "options": "i"}}})", kYes},
    {"… but not with other options",
     R"({"a": {"$regularExpression": {"pattern": "^A", "options": ""}}})",
     R"({"a": {"$regularExpression": {"pattern": "^A", "options": "i"}}})", kNo},
    {"$eq with a regex is no pattern",
     R"({"a": {"$eq": {"$regularExpression": {"pattern": "b", "options": ""}}}})",
     R"({"a": "abc"})", kNo},
    {"$eq with a regex compares",
     R"({"a": {"$eq": {"$regularExpression": {"pattern": "b", "options": ""}}}})",
     R"({"a": {"$regularExpression": {"pattern": "b", "options": ""}}})", kYes},
    {"$regex takes a regex",
     R"({"a": {"$regex": {"$regularExpression": {"pattern": "^A", "options": "i"}}}})",
     R"({"a": "abc"})", kYes},
    {"… and options beside it",
     R"({"a": {"$regex": {"$regularExpression": {"pattern": "^A", "options": ""}}, "$options": "i"}})",
     R"({"a": "abc"})", kYes},
    {"beside another condition", R"({"a": {"$regex": "b", "$ne": "abc"}})", R"({"a": "abc"})", kNo},
    {"in $elemMatch", R"({"a": {"$elemMatch": {"$regex": "b", "$ne": "abc"}}})",
     R"({"a": ["abc", "xbx"]})", kYes},
};

const Case kPointers[] = {
    {"a pointer names a member", R"({"/a": 1})", R"({"a": 1})", kYes},
    {"a pointer goes deeper", R"({"/a/b": 1})", R"({"a": {"b": 1}})", kYes},
    {"dots are letters in a pointer", R"({"/a.b": 1})", R"({"a.b": 1})", kYes},
    {"… and no steps", R"({"/a.b": 1})", R"({"a": {"b": 1}})", kNo},
    {"dots are steps in a path", R"({"a.b": 1})", R"({"a.b": 1})", kNo},
    {"~1 is a slash", R"({"/a~1b": 1})", R"({"a/b": 1})", kYes},
    {"~0 is a tilde", R"({"/a~0b": 1})", R"({"a~b": 1})", kYes},
    {"an empty name", R"({"/": 1})", R"({"": 1})", kYes},
    {"a name with a dollar", R"({"/$gt": 1})", R"({"$gt": 1})", kYes},
    {"a dollar inside a path", R"({"a.$id": 1})", R"({"a": {"$ref": "c", "$id": 1}})", kYes},
    {"a pointer goes into objects of arrays too", R"({"/a/b.c": 1})", R"({"a": [{"b.c": 1}]})",
     kYes},
    {"a pointer has indices", R"({"/a/1": 2})", R"({"a": [1, 2]})", kYes},
    {"a dash is no index", R"({"/a/-": 2})", R"({"a": [1, 2]})", kNo},
    {"a pointer in $elemMatch starts at the element", R"({"a": {"$elemMatch": {"/b.c": 1}}})",
     R"({"a": [{"b.c": 1}]})", kYes},
    {"a slash later is a letter", R"({"a/b": 1})", R"({"a/b": 1})", kYes},
};

template <size_t N>
size_t Check(const Case (&cases)[N]) {
  for (const Case& each : cases) {
    EXPECT_EQ(Matches(each.filter, each.document), each.matches)
        << each.rule << ": " << each.filter << " on " << each.document;
  }
  return N;
}

TEST(Filter, MatchesAsMongoDbDoes) {
  const size_t count = Check(kEquality) + Check(kNullAndMissing) + Check(kOrder) + Check(kArrays) +
                       Check(kLists) + Check(kElemMatch) + Check(kTypesAndSizes) + Check(kLogic) +
                       Check(kRegexes) + Check(kPointers);
  std::printf("%zu cases\n", count);
  RecordProperty("cases", static_cast<int>(count));
  EXPECT_GE(count, 170u);
}

struct Refused {
  const char* filter;
  const char* path;
  const char* problem;
};

const Refused kRefused[] = {
    {R"({"a": {"$near": 1}})", "/a/$near", "is no operator: $near"},
    {R"({"$where": "x"})", "/$where", "is no operator: $where"},
    {R"({"$expr": {"$gt": [1, 2]}})", "/$expr", "is no operator: $expr"},
    {R"({"$ref": "c"})", "/$ref", "is no operator: $ref"},
    {R"({"a": {"$elemMatch": {"b": {"$mod": [2, 0]}}}})", "/a/$elemMatch/b/$mod",
     "is no operator: $mod"},
    {R"({"$gt": 5})", "/$gt", "stands where a member name is expected"},
    {R"({"$not": {"a": 1}})", "/$not", "stands where a member name is expected"},
    {R"({"a": {"$or": [{"$gt": 1}, {"$lt": 0}]}})", "/a/$or", "stands under a member name"},
    {R"({"a": {"$gt": 1, "b": 2}})", "/a/b", "is a member beside operators"},
    {R"({"a": {"b": 2, "$gt": 1}})", "/a/$gt", "is an operator after a member that is none"},
    {R"({"a..b": 1})", "/a..b", "is a path with an empty segment"},
    {R"({"": 1})", "/", "is a path with an empty segment"},
    {R"({".a": 1})", "/.a", "is a path with an empty segment"},
    {R"({"a.": 1})", "/a.", "is a path with an empty segment"},
    {R"({".": 1})", "/.", "is a path with an empty segment"},
    {R"({"/a~2": 1})", "/~1a~02", "is no JSON Pointer, although it begins with \"/\""},
    {R"({"$and": []})", "/$and", "is not an array of at least one object"},
    {R"({"$or": {"a": 1}})", "/$or", "is not an array of at least one object"},
    {R"({"$nor": [{"a": 1}, 5]})", "/$nor/1", "is not an object"},
    {R"({"$and": [{"$or": [{"a": {"$x": 1}}]}]})", "/$and/0/$or/0/a/$x", "is no operator: $x"},
    {R"({"a": {"$in": 5}})", "/a/$in", "is not an array"},
    {R"({"a": {"$nin": {"b": 1}}})", "/a/$nin", "is not an array"},
    {R"({"a": {"$in": [1, {"$gt": 5}]}})", "/a/$in/1",
     "is an object of operators in a list of values"},
    {R"({"a": {"$all": 5}})", "/a/$all", "is not an array"},
    {R"({"a": {"$all": [1, {"$gt": 5}]}})", "/a/$all/1",
     "is an object of operators other than $elemMatch"},
    {R"({"a": {"$all": [1, {"$elemMatch": {"b": 1}}]}})", "/a/$all/1",
     "mixes $elemMatch with values"},
    {R"({"a": {"$all": [{"$elemMatch": {"b": 1}}, 1]}})", "/a/$all/1",
     "mixes $elemMatch with values"},
    {R"({"a": {"$all": [{"$elemMatch": {"b": 1}, "$gt": 1}]}})", "/a/$all/0/$gt",
     "stands beside $elemMatch in $all"},
    {R"({"a": {"$elemMatch": 5}})", "/a/$elemMatch", "is not an object"},
    {R"({"a": {"$elemMatch": [{"b": 1}]}})", "/a/$elemMatch", "is not an object"},
    {R"({"a": {"$elemMatch": {"$gt": 1, "b": 1}}})", "/a/$elemMatch/b",
     "is a member beside operators"},
    {R"({"a": {"$elemMatch": {"b": 1, "$gt": 1}}})", "/a/$elemMatch/$gt",
     "stands where a member name is expected"},
    {R"({"a": {"$size": -1}})", "/a/$size", "is not a whole number from 0 on"},
    {R"({"a": {"$size": 1.5}})", "/a/$size", "is not a whole number from 0 on"},
    {R"({"a": {"$size": "1"}})", "/a/$size", "is not a whole number from 0 on"},
    {R"({"a": {"$size": {"$gt": 1}}})", "/a/$size", "is not a whole number from 0 on"},
    {R"({"a": {"$size": {"$numberDecimal": "1E+30"}}})", "/a/$size",
     "is not a whole number from 0 on"},
    {R"({"a": {"$type": "text"}})", "/a/$type", "is no name of a BSON type"},
    {R"({"a": {"$type": 0}})", "/a/$type", "is no number of a BSON type"},
    {R"({"a": {"$type": 20}})", "/a/$type", "is no number of a BSON type"},
    {R"({"a": {"$type": 255}})", "/a/$type", "is no number of a BSON type"},
    {R"({"a": {"$type": 2.5}})", "/a/$type", "is no number of a BSON type"},
    {R"({"a": {"$type": []}})", "/a/$type", "lists no type"},
    {R"({"a": {"$type": ["string", true]}})", "/a/$type/1",
     "is neither the name nor the number of a BSON type"},
    {R"({"a": {"$not": 5}})", "/a/$not",
     "is neither an object of operators nor a regular expression"},
    {R"({"a": {"$not": {}}})", "/a/$not",
     "is neither an object of operators nor a regular expression"},
    {R"({"a": {"$not": {"b": 1}}})", "/a/$not",
     "is neither an object of operators nor a regular expression"},
    {R"({"a": {"$ne": {"$regularExpression": {"pattern": "b", "options": ""}}}})", "/a/$ne",
     "compares with a regular expression"},
    {R"({"a": {"$gt": {"$regularExpression": {"pattern": "b", "options": ""}}}})", "/a/$gt",
     "compares with a regular expression"},
    {R"({"a": {"$regex": 5}})", "/a/$regex", "is neither a string nor a regular expression"},
    {R"({"a": {"$regex": "("}})", "/a/$regex",
     "has a pattern that has a parenthesis without its other half"},
    {R"({"a": {"$regex": "[a"}})", "/a/$regex", "has a pattern that has a \"[\" without its \"]\""},
    {R"({"a": {"$regex": "(a)\\1"}})", "/a/$regex",
     "has a pattern that has the escape \"\\1\", which the syntax here does not have"},
    {R"x({"a": {"$regex": "a(?=b)"}})x", "/a/$regex",
     "has a pattern that uses \"(?=\", which the syntax here does not have"},
    {R"({"a": {"$regex": "(?!b)a"}})", "/a/$regex",
     "has a pattern that uses \"(?!\", which the syntax here does not have"},
    {R"({"a": {"$regex": "a\u0000b"}})", "/a/$regex", "has a pattern with a zero byte"},
    {R"({"a": {"$regex": "a", "$options": "x"}})", "/a/$regex",
     "has options other than i, m and s"},
    {R"({"a": {"$regularExpression": {"pattern": "b", "options": "x"}}})", "/a",
     "has options other than i, m and s"},
    {R"({"a": {"$in": ["b", {"$regularExpression": {"pattern": "*", "options": ""}}]}})",
     "/a/$in/1", "has a pattern that does not compile at \"*\""},
    {R"({"a": {"$options": "i"}})", "/a/$options", "stands without $regex"},
    {R"({"a": {"$regex": "a", "$options": 1}})", "/a/$options", "is not a string"},
    {R"({"a": {"$regex": {"$regularExpression": {"pattern": "b", "options": "i"}}, "$options": "m"}})",
     "/a/$regex", "has options of its own beside $options"},
};

void ExpectRefused(const Content& filter, std::string_view path, std::string_view problem) {
  const absl::Status status = Filter::Compile(filter).status();
  ExpectError(status, ErrorReason::kInvalidFilter, path);
  EXPECT_EQ(MetadataOf(status, "problem").value_or("none"), problem) << status;
  // A problem, and what to do about it.
  EXPECT_NE(status.message().find("; "), std::string::npos) << status;
}

TEST(Filter, RefusesWhatItDoesNotUnderstandAndSaysWhere) {
  for (const Refused& each : kRefused) {
    SCOPED_TRACE(each.filter);
    ExpectRefused(FilterDoc(each.filter), each.path, each.problem);
  }
  std::printf("%zu refused\n", std::size(kRefused));
}

TEST(Filter, AnUnknownOperatorsErrorListsWhatThereIs) {
  const absl::Status status = Filter::Compile(FilterDoc(R"({"a": {"$nearby": 1}})")).status();
  for (const char* name :
       {"$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$and", "$or", "$nor", "$exists",
        "$type", "$size", "$regex", "$options", "$elemMatch", "$all", "$not"}) {
    EXPECT_NE(status.message().find(name), std::string::npos) << name;
  }
}

// `text` repeated, with `between` between.
std::string Repeat(std::string_view text, size_t count, std::string_view between = "") {
  std::string all;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) all += between;
    all += text;
  }
  return all;
}

void ExpectLimit(const std::string& within, const std::string& beyond, int64_t limit) {
  EXPECT_TRUE(Filter::Compile(FilterDoc(within)).ok())
      << Filter::Compile(FilterDoc(within)).status();
  const absl::Status status = Filter::Compile(FilterDoc(beyond)).status();
  EXPECT_EQ(ReasonOf(status), ErrorReason::kInvalidFilter) << status;
  EXPECT_EQ(MetadataOf(status, "limit"), std::to_string(limit)) << status;
}

TEST(Filter, KeepsItsLimits) {
  const auto text = [](size_t size) { return R"({"a": ")" + std::string(size, 'x') + "\"}"; };
  const size_t frame = Bson(text(0)).size();
  ExpectLimit(text(Filter::kBytesMax - frame), text(Filter::kBytesMax - frame + 1),
              Filter::kBytesMax);

  const auto values = [](size_t count) {
    return R"({"a": {"$in": [)" + Repeat("1", count, ",") + "]}}";
  };
  ExpectLimit(values(1000), values(1001), 1000);
  const auto all = [](size_t count) {
    return R"({"a": {"$all": [)" + Repeat("1", count, ",") + "]}}";
  };
  ExpectLimit(all(1000), all(1001), 1000);
  const auto ors = [](size_t count) {
    return R"({"$or": [)" + Repeat(R"({"a": 1})", count, ",") + "]}";
  };
  ExpectLimit(ors(1000), ors(1001), 1000);
  const auto nothings = [](size_t count) {
    return R"({"$or": [)" + Repeat("{}", count, ",") + "]}";
  };
  ExpectLimit(nothings(1000), nothings(1001), 1000);
  const auto together = [&](size_t count) {
    return R"({"b": 1, "c": {"$gt": 1, "$lt": 5}, "a": {"$nin": [)" + Repeat("1", count, ",") +
           "]}}";
  };
  ExpectLimit(together(997), together(998), 1000);

  const auto ands = [](size_t depth) {
    return Repeat(R"({"$and": [)", depth) + R"({"a": 1})" + Repeat("]}", depth);
  };
  ExpectLimit(ands(16), ands(17), 16);
  const auto nots = [](size_t depth) {
    return R"({"a": )" + Repeat(R"({"$not": )", depth) + R"({"$gt": 1})" + Repeat("}", depth) + "}";
  };
  ExpectLimit(nots(16), nots(17), 16);
  const auto elements = [](size_t depth) {
    return Repeat(R"({"a": {"$elemMatch": )", depth) + R"({"a": 1})" + Repeat("}}", depth);
  };
  ExpectLimit(elements(16), elements(17), 16);

  const auto dotted = [](size_t count) { return "{\"" + Repeat("a", count, ".") + "\": 1}"; };
  ExpectLimit(dotted(64), dotted(65), 64);
  const auto pointer = [](size_t count) { return "{\"" + Repeat("/a", count) + "\": 1}"; };
  ExpectLimit(pointer(64), pointer(65), 64);
}

TEST(Filter, KeepsItsLimitsOfRegularExpressions) {
  const auto pattern = [](const std::string& text) {
    return R"({"a": {"$regex": ")" + text + "\"}}";
  };
  ExpectLimit(pattern(Repeat("x", 1024)), pattern(Repeat("x", 1025)), 1024);
  const auto patterns = [](size_t count) {
    return R"({"a": {"$in": [)" +
           Repeat(R"({"$regularExpression": {"pattern": "x", "options": ""}})", count, ",") + "]}}";
  };
  ExpectLimit(patterns(100), patterns(101), 100);
  const auto large = [](size_t count) {
    return R"({"a": {"$all": [)" +
           Repeat(R"({"$regularExpression": {"pattern": "[ab]{900}", "options": ""}})", count,
                  ",") +
           "]}}";
  };
  ExpectLimit(large(2), large(3), 2000);
  ExpectRefused(FilterDoc(pattern("(\\\\pL{100}){10}")), "/a/$regex",
                "has a pattern that is too large once its repetitions are written out");
  ExpectRefused(FilterDoc(pattern("a{1001}")), "/a/$regex",
                "has a pattern that repeats more often than 1000 times: \"{1001}\"");
}

TEST(Filter, KeepsItsBytesAndIsSharedByCopies) {
  const Content content = FilterDoc(R"({"a": {"$regex": "b"}})");
  const absl::StatusOr<Filter> filter = Filter::Compile(content);
  ASSERT_TRUE(filter.ok());
  EXPECT_EQ(filter->bytes(), content.bytes());
  EXPECT_FALSE(filter->empty());
  Filter copy = *filter;
  EXPECT_TRUE(copy.Matches(Doc(R"({"a": "abc"})")));
  EXPECT_EQ(copy.bytes().data(), filter->bytes().data());
  EXPECT_TRUE(Filter::Compile(Content())->empty());
}

// An element of an array may be reached as the object in it and as the element of its index: 924
// ways lead to the innermost array. The time is not far from what one way takes.
TEST(Filter, EntersNestedArraysOnce) {
  std::string inner = Bson("{\"0\": [" + Repeat("1", 15'000, ",") + "]}");
  for (int i = 0; i < 11; ++i) {
    const std::string array = Around(kBsonObject, inner, "0");
    inner = Around(kBsonArray, array, "0");
  }
  const Content document = Content::FromTrusted(inner);
  std::string filter = "{\"$and\": [";
  for (int i = 0; i < 300; ++i) {
    filter += "{\"" + Repeat("0", 18, ".") + "\": {\"$ne\": " + std::to_string(i + 2) + "}},";
  }
  filter.back() = ']';
  const auto start = test_support::ThreadCpuTime();
  EXPECT_TRUE(Matches(FilterDoc(filter + "}"), document));
  EXPECT_LT(test_support::ThreadCpuTime() - start, std::chrono::seconds(10));
}

TEST(Filter, FindsAmongManyValuesInManyElements) {
  std::string values;
  for (int i = 0; i < 999; ++i) values += std::to_string(2 * i) + ",";
  std::string elements;
  for (int i = 0; i < 50'000; ++i) elements += (i > 0 ? "," : "") + std::to_string(2 * i + 1);
  const std::string filter = R"({"a": {"$in": [)" + values + "49999.0]}}";
  EXPECT_TRUE(Matches(FilterDoc(filter), Doc("{\"a\": [" + elements + "]}")));
}

// Numbers of all types in their order; those of one row are equal.
TEST(Compare, NumbersByTheirExactValue) {
  const std::vector<std::vector<const char*>> rows = {
      {R"({"$numberDecimal": "-Infinity"})", R"({"$numberDouble": "-Infinity"})"},
      {R"({"$numberDecimal": "-9.999999999999999999999999999999999E+6144"})"},
      {"-1.7976931348623157e308"},
      {R"({"$numberDecimal": "-9223372036854775809"})"},
      {R"({"$numberLong": "-9223372036854775808"})", "-9223372036854775808.0",
       R"({"$numberDecimal": "-9223372036854775808"})"},
      {R"({"$numberLong": "-9223372036854775807"})"},
      {"-2.5", R"({"$numberDecimal": "-25E-1"})"},
      {"-2", "-2.0"},
      {R"({"$numberDecimal": "-1E-6176"})"},
      {"0", "0.0", "-0.0", R"({"$numberLong": "0"})", R"({"$numberDecimal": "0"})",
       R"({"$numberDecimal": "-0E+6111"})"},
      {R"({"$numberDecimal": "1E-6176"})"},
      {R"({"$numberDecimal": "4.940656458412465441765687928682213E-324"})"},
      {"4.9406564584124654e-324"},
      {R"({"$numberDecimal": "4.940656458412465441765687928682214E-324"})"},
      {R"({"$numberDecimal": "0.1"})"},
      {"0.1"},
      {R"({"$numberDecimal": "0.1000000000000000055511151231257828"})"},
      {"0.5", R"({"$numberDecimal": "0.5000000000000000000000000000000000"})"},
      {"1", R"({"$numberDecimal": "1.000"})"},
      {"9007199254740991.0"},
      {"9007199254740992.0", R"({"$numberLong": "9007199254740992"})"},
      {R"({"$numberLong": "9007199254740993"})", R"({"$numberDecimal": "9007199254740993"})"},
      {"9007199254740994.0"},
      {R"({"$numberLong": "9223372036854775807"})"},
      {"9223372036854775808.0", R"({"$numberDecimal": "9223372036854775808"})"},
      {R"({"$numberDecimal": "9999999999999999999999999999999999"})"},
      {R"({"$numberDecimal": "1E+34"})", R"({"$numberDecimal": "10.00E+33"})"},
      {R"({"$numberDecimal": "1.797693134862315708145274237317043E+308"})"},
      {"1.7976931348623157e308"},
      {R"({"$numberDecimal": "1.797693134862315708145274237317044E+308"})"},
      {R"({"$numberDecimal": "Infinity"})"},
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < rows.size(); ++j) {
      for (const char* left : rows[i]) {
        for (const char* right : rows[j]) {
          const Value a = Val(left);
          const Value b = Val(right);
          const int order = Compare(a.type, a.bytes, b.type, b.bytes);
          EXPECT_EQ((order > 0) - (order < 0), (i > j) - (i < j)) << left << " and " << right;
        }
      }
    }
  }
}

// The digits of a double that has few of them, and the same with one digit more.
TEST(Compare, DoublesWithTheirOwnDigits) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 1000; ++round) {
    const int twos = static_cast<int>(random() % 24);
    const double number = std::ldexp(static_cast<double>(random() >> 8), -twos);
    char digits[64];
    std::snprintf(digits, sizeof(digits), "%.24f", number);
    Value value{kBsonDouble, {}};
    AppendNumber(number, value.bytes);
    const auto decimal = [&](std::string text) {
      return Val(R"({"$numberDecimal": ")" + std::move(text) + "\"}");
    };
    const Value same = decimal(digits);
    const Value more = decimal(std::string(digits) + "1");
    EXPECT_EQ(Compare(value.type, value.bytes, same.type, same.bytes), 0) << digits;
    EXPECT_LT(Compare(value.type, value.bytes, more.type, more.bytes), 0) << digits;
    EXPECT_GT(Compare(more.type, more.bytes, value.type, value.bytes), 0) << digits;
  }
}

int Order(const Value& a, const Value& b) {
  const int order = Compare(a.type, a.bytes, b.type, b.bytes);
  return (order > 0) - (order < 0);
}

TEST(Compare, IsAnOrderOfAllValues) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  RandomDocuments random(seed);
  std::vector<Value> values;
  for (int i = 0; i < 150; ++i) values.push_back(random.MakeValue(3));
  std::sort(values.begin(), values.end(),
            [](const Value& a, const Value& b) { return Order(a, b) < 0; });
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = 0; j < values.size(); ++j) {
      EXPECT_EQ(Order(values[i], values[j]), -Order(values[j], values[i]));
      if (i < j) {
        EXPECT_LE(Order(values[i], values[j]), 0) << Json(values[i]) << " and " << Json(values[j]);
      }
    }
  }
}

// What a path leads to, gathered in a list; a missing member has the type 0. It enters whatever can
// be entered, as often as there are ways to it.
class NaivePath {
 public:
  NaivePath(std::vector<std::string> path, const Content& document) : path_(std::move(path)) {
    InObject(document.bytes(), 0);
  }

  std::vector<Value> found;
  std::vector<Value> whole;  // without the elements of an array at the end

 private:
  void InObject(std::string_view object, size_t next) {
    Member member;
    for (MemberReader reader(object); reader.Next(member);) {
      if (member.name == path_[next]) return At(member, next + 1);
    }
    found.push_back({0, ""});
  }

  void At(const Member& member, size_t next) {
    if (next == path_.size()) {
      if (member.type == kBsonArray) {
        Member element;
        for (MemberReader reader(member.value); reader.Next(element);) AddTo(found, element);
      }
      return Add(member);
    }
    if (member.type == kBsonObject) return InObject(member.value, next);
    if (member.type == kBsonArray) return InArray(member.value, next);
    found.push_back({0, ""});
  }

  void InArray(std::string_view array, size_t next) {
    Member member;
    for (MemberReader reader(array); reader.Next(member);) {
      if (member.type == kBsonObject) InObject(member.value, next);
      if (member.name != path_[next]) continue;
      if (next + 1 == path_.size()) {
        Add(member);
      } else if (member.type == kBsonObject) {
        InObject(member.value, next + 1);
      } else if (member.type == kBsonArray) {
        InArray(member.value, next + 1);
      }
    }
  }

  void Add(const Member& member) {
    AddTo(found, member);
    AddTo(whole, member);
  }

  static void AddTo(std::vector<Value>& values, const Member& member) {
    values.push_back({member.type, std::string(member.value)});
  }

  std::vector<std::string> path_;
};

// One condition on one path, with the values given.
Content Condition(const std::string& path, std::string_view name, const Value& operand) {
  return Content::FromTrusted(Around(kBsonObject, Around(operand.type, operand.bytes, name), path));
}

Value ArrayOf(const std::vector<Value>& values) {
  std::string array;
  const size_t start = BeginDocument(array);
  IndexName index;
  for (const Value& value : values) {
    AppendMember(value.type, index.text(), value.bytes, array);
    index.Next();
  }
  EndDocument(start, array);
  return {kBsonArray, array};
}

Content Combined(std::string_view name, const std::vector<Content>& filters) {
  std::vector<Value> values;
  for (const Content& filter : filters) {
    values.push_back({kBsonObject, std::string(filter.bytes())});
  }
  return Content::FromTrusted(Around(kBsonArray, ArrayOf(values).bytes, name));
}

bool Negated(const std::string& path, const Content& condition, const Content& document) {
  Member operators;
  MemberReader reader(condition.bytes());
  EXPECT_TRUE(reader.Next(operators));
  return Matches(Condition(path, "$not", {kBsonObject, std::string(operators.value)}), document);
}

bool NaiveMeets(std::string_view name, const Value& value, const Value& operand) {
  const bool null = operand.type == kBsonNull;
  if (value.type == 0) return null && (name == "$eq" || name == "$gte" || name == "$lte");
  if (BracketOf(value.type) != BracketOf(operand.type)) return false;
  const int order = Order(value, operand);
  if (name == "$eq") return order == 0;
  if (name == "$gt") return order > 0;
  if (name == "$gte") return order >= 0;
  return name == "$lt" ? order < 0 : order <= 0;
}

TEST(Filter, AgreesWithANaiveEvaluation) {
  const uint32_t seed = std::random_device()();
  std::printf("seed %u\n", seed);
  SCOPED_TRACE(seed);
  RandomDocuments random(seed);
  const std::string names[] = {"a", "b", "0", "7", "y", "z", "c/d", "1"};
  size_t matched = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    const Content document = random.Make();
    std::vector<std::string> segments;
    for (size_t i = 0; i <= random.Below(4); ++i) segments.push_back(names[random.Below(8)]);
    std::string path = segments[0];
    for (size_t i = 1; i < segments.size(); ++i) path += "." + segments[i];
    std::string pointer;
    for (const std::string& segment : segments) AppendSegment(segment, pointer);

    const NaivePath naive(segments, document);
    const std::vector<Value>& found = naive.found;
    std::vector<Value> operands;
    for (int i = 0; i < 3; ++i) {
      Value operand = random.MakeValue(4);
      // Something that is there makes for more matches.
      if (!found.empty() && random.Below(2) == 0) operand = found[random.Below(found.size())];
      if (operand.type != 0) operands.push_back(std::move(operand));
    }
    if (operands.empty()) operands.push_back(Val("null"));

    const auto any = [&](auto meets) { return std::any_of(found.begin(), found.end(), meets); };
    for (const std::string_view name : {"$eq", "$gt", "$gte", "$lt", "$lte"}) {
      const Content filter = Condition(path, name, operands[0]);
      const bool expected =
          any([&](const Value& value) { return NaiveMeets(name, value, operands[0]); });
      matched += expected ? 1 : 0;
      EXPECT_EQ(Matches(filter, document), expected) << Json(filter) << " on " << Json(document);
      EXPECT_EQ(Matches(Condition(pointer, name, operands[0]), document), expected)
          << Json(filter) << " on " << Json(document);
      EXPECT_EQ(Negated(path, filter, document), !expected)
          << Json(filter) << " on " << Json(document);
      EXPECT_EQ(Matches(Combined("$nor", {filter}), document), !expected);
    }
    EXPECT_EQ(Matches(Condition(path, "$ne", operands[0]), document),
              !Matches(Condition(path, "$eq", operands[0]), document));
    const bool exists = any([](const Value& value) { return value.type != 0; });
    EXPECT_EQ(Matches(Condition(path, "$exists", Val("true")), document), exists);
    EXPECT_EQ(Matches(Condition(path, "$exists", Val("false")), document), !exists);

    const std::string type = std::to_string(operands[0].type);
    EXPECT_EQ(Matches(Condition(path, "$type", Val(type)), document),
              any([&](const Value& value) { return value.type == operands[0].type; }));
    bool element_equals = false;
    for (const Value& array : naive.whole) {
      if (array.type != kBsonArray) continue;
      size_t elements = 0;
      Member element;
      for (MemberReader reader(array.bytes); reader.Next(element); ++elements) {
        const Value value{element.type, std::string(element.value)};
        element_equals = element_equals || NaiveMeets("$eq", value, operands[0]);
      }
      EXPECT_TRUE(Matches(Condition(path, "$size", Val(std::to_string(elements))), document));
    }
    const std::string equals = Around(operands[0].type, operands[0].bytes, "$eq");
    EXPECT_EQ(Matches(Condition(path, "$elemMatch", {kBsonObject, equals}), document),
              element_equals)
        << path << " " << Json(operands[0]) << " on " << Json(document);

    std::vector<Content> each;
    bool literal = true;  // no object that $in would take for operators
    for (const Value& operand : operands) {
      each.push_back(Condition(path, "$eq", operand));
      literal = literal && operand.type != kBsonObject;
    }
    if (!literal) continue;
    const Value list = ArrayOf(operands);
    const bool some = Matches(Combined("$or", each), document);
    const bool every = Matches(Combined("$and", each), document);
    EXPECT_EQ(Matches(Condition(path, "$in", list), document), some)
        << path << " " << Json(list) << " on " << Json(document);
    EXPECT_EQ(Matches(Condition(path, "$nin", list), document), !some);
    EXPECT_EQ(Matches(Combined("$nor", each), document), !some);
    EXPECT_EQ(Matches(Condition(path, "$all", list), document), every);
  }
  EXPECT_GT(matched, size_t{kRounds} / 10) << "documents and filters have too little in common";
}

// How often an evaluation asks whether to stop, if it is told so at the `stop_at`-th time; nothing
// more is asked then.
struct Asked {
  int asks = 0;
  std::optional<bool> matches;
};
Asked AskedUntil(int stop_at, const Content& filter, const Content& document) {
  Asked asked;
  const absl::StatusOr<bool> matches = Filter::Compile(filter)->Matches(document, [&] {
    EXPECT_LE(asked.asks, stop_at) << "asked again after it said stop";
    return ++asked.asks >= stop_at;
  });
  if (matches.ok()) {
    asked.matches = *matches;
  } else {
    EXPECT_EQ(ReasonOf(matches.status()), ErrorReason::kCancelled);
  }
  return asked;
}

std::string Repeated(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += (i > 0 ? ", " : "") + text;
  return all;
}

TEST(FilterStops, BetweenConditions) {
  const Content document = Doc(R"({"a": "some text"})");
  const std::string pattern = R"({"a": {"$regex": "no such"}})";
  for (const char* const operation : {"$or", "$nor"}) {
    const Content filter =
        FilterDoc("{\"" + std::string(operation) + "\": [" + Repeated(50, pattern) + "]}");
    const Asked whole = AskedUntil(1'000'000, filter, document);
    EXPECT_TRUE(whole.matches.has_value());
    EXPECT_GE(whole.asks, 100) << "before each condition and each search";
    for (const int stop_at : {1, 2, 33, 100}) {
      const Asked asked = AskedUntil(stop_at, filter, document);
      EXPECT_FALSE(asked.matches.has_value());
      EXPECT_EQ(asked.asks, stop_at);
    }
  }
}

TEST(FilterStops, BetweenElements) {
  const Content document = Doc("{\"a\": [" + Repeated(10'000, "1") + "]}");
  const Content filter = FilterDoc(R"({"a": 2})");
  const Asked whole = AskedUntil(1'000'000, filter, document);
  EXPECT_EQ(whole.matches, false);
  EXPECT_GE(whole.asks, 100);
  const Asked stopped = AskedUntil(5, filter, document);
  EXPECT_FALSE(stopped.matches.has_value());
  EXPECT_EQ(stopped.asks, 5);
}

TEST(FilterStops, InsideElements) {
  const Content document =
      Doc("{\"a\": [" + Repeated(1000, R"({"b": [1, 2, {"c": "text"}]})") + "]}");
  const Content filter = FilterDoc(
      R"({"a": {"$elemMatch": {"b": {"$elemMatch": {"c": {"$not": {"$regex": "e"}}}}}}})");
  const Asked whole = AskedUntil(1'000'000, filter, document);
  EXPECT_TRUE(whole.matches.has_value());
  EXPECT_FALSE(AskedUntil(7, filter, document).matches.has_value());
}

TEST(FilterStops, BeforeASearchThatCannotBeStopped) {
  const Filter filter = *Filter::Compile(FilterDoc(R"({"a": {"$regex": "a[ab]{950}[ab]{950}c"}})"));
  const auto refused =
      filter.Matches(Doc("{\"a\": \"" + std::string(1 << 20, 'a') + "\"}"), nullptr);
  EXPECT_EQ(ReasonOf(refused.status()), ErrorReason::kInvalidFilter);
  EXPECT_EQ(MetadataOf(refused.status(), "limit"), std::to_string(Filter::kSearchWorkMax));
  EXPECT_THAT(std::string(refused.status().message()), testing::HasSubstr("1048576 bytes"));
  EXPECT_FALSE(*filter.Matches(Doc("{\"a\": \"" + std::string(1 << 10, 'a') + "\"}"), nullptr));
}

TEST(FilterStops, WhatItMayCostIsKnownBeforehand) {
  const auto work = [](std::string_view filter, size_t bytes) {
    return Filter::Compile(FilterDoc(filter))->WorkBytes(bytes);
  };
  EXPECT_LE(work(R"({"a": 1})", 1000), 3000u);
  EXPECT_GE(work(R"({"a": 1, "b": 2, "c": {"$in": [1, 2]}})", 1000), 3000u);
  EXPECT_GE(work(R"({"a": {"$regex": "a[ab]{300}c"}})", 60'000), 300u * 60'000);
  EXPECT_GE(work(R"({"$nor": [{"a": {"$not": {"$regex": "a[ab]{300}c"}}}]})", 1), 300u);
}

TEST(FilterStops, NotWhereNobodyAsksItTo) {
  const Content document = Doc(R"({"a": "some text"})");
  EXPECT_TRUE(
      *Filter::Compile(FilterDoc(R"({"a": {"$regex": "some"}})"))->Matches(document, nullptr));
}

}  // namespace
}  // namespace strata::document
