// Whether JSON says what a message means, where protobuf's reader would guess.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string_view>

#include "absl/status/status.h"

namespace strata::security {

// OK: it is JSON by the letter, and each member is there once, is one of the message's by its proto
// name and has a value of its type. INVALID_FIELD, metadata `field` naming the member
// ("grants[2].role"; of the text as a whole: empty). Protobuf takes trailing commas, members named
// twice, null for anything and one value for a list of it, and each of these hides a mistake.
absl::Status CheckJsonShape(std::string_view json, const google::protobuf::Descriptor& message);

}  // namespace strata::security
