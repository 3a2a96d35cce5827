// The place of a verification as bytes, for its resume token (page_token.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "schemas/versioning/verify.h"

namespace strata::rpc {

std::string EncodeVerifyPlace(const versioning::VerifyPlace& place);

// Nothing for bytes that no place becomes.
std::optional<versioning::VerifyPlace> DecodeVerifyPlace(std::string_view bytes);

}  // namespace strata::rpc
