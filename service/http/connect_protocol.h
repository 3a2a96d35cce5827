// What of Connect's protocol (https://connectrpc.com/docs/protocol) is spoken here: names,
// statuses, errors, and the envelopes of streams.
#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "service/http/json.h"

namespace strata::http {

// What comes before each message of a stream: flags, then its length in four bytes.
inline constexpr size_t kEnvelopeHeadBytes = 5;
inline constexpr uint8_t kCompressedFlag = 1;
inline constexpr uint8_t kEndOfStreamFlag = 2;

std::string Envelope(uint8_t flags, std::string_view message);
// The message of a body that holds one in its envelope. INVALID_MESSAGE: it does not.
absl::StatusOr<std::string> OnlyMessage(std::string body);

// "not_found".
std::string_view CodeName(grpc::StatusCode code);
// The status of HTTP by which a unary call is refused so.
int HttpStatusOf(grpc::StatusCode code);

// {"code": …, "message": …, "details": […]}, with what grpc-status-details-bin holds.
std::string ErrorJson(const grpc::Status& status, const JsonCodec& codec);
std::string ErrorJson(std::string_view code, std::string_view message);

// What ends a stream: {} or {"error": …}.
std::string EndOfStreamJson(const grpc::Status& status, const JsonCodec& codec);

// As Connect-Timeout-Ms says: up to ten digits; nothing for any other text.
std::optional<int64_t> ParseTimeoutMillis(std::string_view text);

}  // namespace strata::http
