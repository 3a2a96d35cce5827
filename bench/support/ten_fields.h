// The document of the load workloads: ten fields in some 300 bytes of BSON, or more on request.
#pragma once

#include <cstdint>
#include <string>

namespace strata::bench {

// As BSON. Documents of another `number` or `version` differ in three fields, as updates of a
// profile do; `bytes` (at least 300) is reached with a longer text field.
std::string TenFields(int64_t number, int64_t version, size_t bytes = 300);

// The same document as JSON text.
std::string TenFieldsJson(int64_t number, int64_t version, size_t bytes = 300);

}  // namespace strata::bench
