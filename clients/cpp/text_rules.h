// Rules for the texts of documents, wherever they are written.
#pragma once

#include <string>
#include <string_view>

namespace strata::client {

// Whether it is UTF-8 as Unicode has it: no surrogates, no longer forms than need be.
bool IsValidUtf8(std::string_view text);

// Appends a member's name to a JSON Pointer.
void AppendSegment(std::string_view name, std::string& pointer);

}  // namespace strata::client
