// MongoDB's query operators, evaluated the plain way on trees: what the product's answers are held
// against. Shares no code with it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace strata::fault {

// A JSON value. Numbers are doubles, as the real documents have small ones only.
struct Json {
  enum class Kind { kMissing, kNull, kNumber, kString, kObject, kArray, kBool };

  Kind kind = Kind::kMissing;
  double number = 0;
  bool boolean = false;
  std::string text;
  std::vector<std::pair<std::string, Json>> members;  // of an array: without names

  const Json* Member(const std::string& name) const;
  bool operator==(const Json&) const = default;
};

// Sorts the members of all objects inside by their bytes, as a google.protobuf.Struct gives them.
void SortMembers(Json& json);

// From BSON as libbson reads it; aborts at a type that JSON has not.
Json JsonOf(const std::string& bson);

std::string TextOf(const Json& json);

// Whether the document matches. Knows the operators that the trial asks: $eq $ne $gt $gte $lt $lte
// $in $nin $exists $type $size $all $elemMatch $regex (a literal, or "^" and a literal) $not $and
// $or $nor; aborts at any other.
bool PlainlyMatches(const Json& filter, const Json& document);

}  // namespace strata::fault
