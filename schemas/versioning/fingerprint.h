// Fingerprints of write requests: how a repeated request id is told from a reused one.
#pragma once

#include <string>
#include <string_view>

#include "schemas/document/content.h"
#include "schemas/document/patch.h"
#include "schemas/versioning/write_path.h"

namespace strata::versioning {

inline constexpr size_t kFingerprintSize = 8;

// The first 8 bytes of a SHA-256 over everything that decides what a write does: operation, names,
// change, precondition and the operation's own arguments in canonical form. Equal for a repeated
// call whatever the order in which a client's protobuf library writes maps; encodings and limits on
// attempts are no part of it. Empty for a request without id.
std::string Fingerprint(std::string_view operation, const WriteRequest& request,
                        std::string_view arguments);

// The canonical form of a patch as `arguments`.
std::string PatchArguments(const document::Patch& patch);

}  // namespace strata::versioning
