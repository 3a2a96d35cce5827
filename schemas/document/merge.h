// JSON Merge Patch (RFC 7396) on BSON bytes.
#pragma once

#include <string>
#include <string_view>

namespace strata::document {

// Appends the document `base` with `merge` merged into it: a null removes the member, objects
// merge, all else replaces. Members that stay keep their place, new ones go last.
void AppendMerged(std::string_view base, std::string_view merge, std::string& out);

}  // namespace strata::document
