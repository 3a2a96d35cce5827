// How large answers may become.
#pragma once

#include <cstddef>

namespace strata::rpc {

// Clients refuse messages of more than 4 MiB, and the items of a page are not all of a message.
inline constexpr size_t kPageBytesMax = size_t{3} << 20;

// What a content takes in an answer at most: as JSON it may have twice its bytes.
constexpr size_t AnswerBytesOf(size_t content_bytes) { return 2 * content_bytes; }

// The answer to a write whose content is not large, or to whoever runs the server.
inline constexpr size_t kSmallAnswerBytes = size_t{16} << 10;

}  // namespace strata::rpc
