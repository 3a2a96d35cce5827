// When two BSON values say the same although their bytes differ.
#pragma once

#include <cstdint>
#include <string_view>

#include "schemas/document/bson_view.h"

namespace strata::document {

// Member order and the width of whole numbers aside, as SameMeaning of two contents.
bool SameMeaning(uint8_t type_a, std::string_view a, uint8_t type_b, std::string_view b);

// The same value with the members of all its objects sorted by name, so that Compare finds two
// values equal that differ in member order only.
Value WithSortedMembers(uint8_t type, std::string_view value);

}  // namespace strata::document
