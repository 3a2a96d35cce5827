#include "service/http/connect_protocol.h"

#include <google/rpc/status.pb.h>

#include <algorithm>
#include <charconv>

#include "absl/strings/escaping.h"
#include "schemas/base/error.h"
#include "schemas/base/strings.h"

namespace strata::http {
namespace {

constexpr size_t kTimeoutDigitsMax = 10;

struct Code {
  std::string_view name;
  int http_status;
};

// By the number of grpc::StatusCode.
constexpr Code kCodes[] = {
    {"ok", 200},
    {"canceled", 499},
    {"unknown", 500},
    {"invalid_argument", 400},
    {"deadline_exceeded", 504},
    {"not_found", 404},
    {"already_exists", 409},
    {"permission_denied", 403},
    {"resource_exhausted", 429},
    {"failed_precondition", 400},
    {"aborted", 409},
    {"out_of_range", 400},
    {"unimplemented", 501},
    {"internal", 500},
    {"unavailable", 503},
    {"data_loss", 500},
    {"unauthenticated", 401},
};

const Code& CodeOf(grpc::StatusCode code) {
  const auto index = static_cast<size_t>(code);
  return kCodes[index < std::size(kCodes) ? index : 2];
}

// Connect leaves the padding out.
std::string Base64(const std::string& bytes) {
  std::string text = absl::Base64Escape(bytes);
  while (text.ends_with('=')) text.pop_back();
  return text;
}

void AppendDetail(const google::protobuf::Any& detail, const JsonCodec& codec, std::string& json) {
  const std::string name = detail.type_url().substr(detail.type_url().rfind('/') + 1);
  json += R"({"type":)";
  AppendJsonText(name, json);
  json += R"(,"value":")" + Base64(detail.value()) + '"';
  const auto* const type =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(name);
  if (type != nullptr) {
    // For people, and for those who have no such type.
    const absl::StatusOr<std::string> debug = codec.ToJson(*type, detail.value());
    if (debug.ok()) json += R"(,"debug":)" + *debug;
  }
  json += '}';
}

}  // namespace

std::string Envelope(uint8_t flags, std::string_view message) {
  const auto size = static_cast<uint32_t>(message.size());
  std::string envelope;
  envelope.reserve(kEnvelopeHeadBytes + message.size());
  envelope += static_cast<char>(flags);
  for (int shift = 24; shift >= 0; shift -= 8) envelope += static_cast<char>(size >> shift);
  envelope += message;
  return envelope;
}

absl::StatusOr<std::string> OnlyMessage(std::string body) {
  const auto refuse = [](const std::string& problem) {
    return Error(ErrorReason::kInvalidMessage, "the body " + problem);
  };
  if (body.size() < kEnvelopeHeadBytes) {
    return refuse("has no message: send one, after a byte of flags and four of its length");
  }
  uint32_t size = 0;
  for (size_t i = 1; i < kEnvelopeHeadBytes; ++i) {
    size = size << 8 | static_cast<unsigned char>(body[i]);
  }
  if (static_cast<uint8_t>(body[0]) == kCompressedFlag) {
    return refuse("has a compressed message; send it as it is");
  }
  if (body[0] != 0) {
    return refuse(
        "does not begin with a byte of flags that is 0; four of the message's length "
        "and the message follow it");
  }
  if (size != body.size() - kEnvelopeHeadBytes) {
    return refuse("has " + std::to_string(body.size() - kEnvelopeHeadBytes) +
                  " bytes after a length of " + std::to_string(size) + "; send one message, whole");
  }
  return body.substr(kEnvelopeHeadBytes);
}

std::string_view CodeName(grpc::StatusCode code) { return CodeOf(code).name; }

int HttpStatusOf(grpc::StatusCode code) { return CodeOf(code).http_status; }

std::string ErrorJson(const grpc::Status& status, const JsonCodec& codec) {
  std::string json = R"({"code":)";
  AppendJsonText(CodeName(status.error_code()), json);
  json += R"(,"message":)";
  AppendJsonText(status.error_message(), json);
  json += R"(,"details":[)";
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) {
    for (int i = 0; i < details.details_size(); ++i) {
      if (i > 0) json += ',';
      AppendDetail(details.details(i), codec, json);
    }
  }
  return json + "]}";
}

std::string ErrorJson(std::string_view code, std::string_view message) {
  std::string json = R"({"code":)";
  AppendJsonText(code, json);
  json += R"(,"message":)";
  AppendJsonText(message, json);
  return json + R"(,"details":[]})";
}

std::string EndOfStreamJson(const grpc::Status& status, const JsonCodec& codec) {
  if (status.ok()) return "{}";
  return R"({"error":)" + ErrorJson(status, codec) + "}";
}

std::optional<int64_t> ParseTimeoutMillis(std::string_view text) {
  int64_t millis = 0;
  const bool digits =
      !text.empty() && text.size() <= kTimeoutDigitsMax &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return std::nullopt;
  std::from_chars(text.data(), text.data() + text.size(), millis);
  return millis;
}

}  // namespace strata::http
