// When two BSON values say the same although their bytes differ.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace strata::document {

// Member order and the width of whole numbers aside, as SameMeaning of two contents.
bool SameMeaning(uint8_t type_a, std::string_view a, uint8_t type_b, std::string_view b);

// Appends bytes that are equal for two values exactly if an array of a patch takes them for equal:
// as SameMeaning, and numbers by their value whatever their type, as MongoDB's $addToSet and
// $pullAll (decimal128 aside, which equals itself only).
void AppendComparable(uint8_t type, std::string_view value, std::string& out);

}  // namespace strata::document
