#include "service/rpc/page_token.h"

#include "absl/strings/escaping.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/document/hash.h"

namespace strata::rpc {
namespace {

constexpr char kTokenVersion = 1;
constexpr size_t kBindingBytes = 8;

std::string Binding(std::string_view method, std::string_view scope, std::string_view place) {
  const document::Hash hash = document::PartHasher().Add(method).Add(scope).Add(place).Finish();
  return std::string(document::HashBytes(hash).substr(0, kBindingBytes));
}

}  // namespace

std::string MakePageToken(std::string_view method, std::string_view scope, std::string_view place) {
  std::string bytes(1, kTokenVersion);
  bytes += Binding(method, scope, place);
  bytes += place;
  return absl::WebSafeBase64Escape(bytes);
}

absl::StatusOr<std::string> ReadPageToken(std::string_view method, std::string_view scope,
                                          std::string_view token, std::string_view field) {
  std::string bytes;
  // Unescaping forgives spaces and padding; a token is what was made, to the byte.
  if (!absl::WebSafeBase64Unescape(ToAbsl(token), &bytes) ||
      absl::WebSafeBase64Escape(bytes) != token || bytes.size() < 1 + kBindingBytes ||
      bytes[0] != kTokenVersion) {
    return InvalidPageToken("is damaged", field);
  }
  std::string place = bytes.substr(1 + kBindingBytes);
  if (bytes.substr(1, kBindingBytes) != Binding(method, scope, place)) {
    return InvalidPageToken("is damaged or belongs to another request", field);
  }
  return place;
}

void AppendPlaceNumber(int64_t number, std::string& place) {
  for (int shift = 56; shift >= 0; shift -= 8) {
    place += static_cast<char>(static_cast<uint64_t>(number) >> shift & 0xFF);
  }
}

std::optional<int64_t> TakePlaceNumber(std::string_view& place) {
  if (place.size() < 8) return std::nullopt;
  uint64_t number = 0;
  for (const char byte : place.substr(0, 8)) number = number << 8 | static_cast<uint8_t>(byte);
  place.remove_prefix(8);
  return static_cast<int64_t>(number);
}

std::string MakePageToken(std::string_view method, std::string_view scope, const IdPlace& place) {
  std::string bytes;
  AppendPlaceNumber(place.incarnation, bytes);
  return MakePageToken(method, scope, bytes + place.after_id);
}

absl::StatusOr<IdPlace> ReadIdPlace(std::string_view method, std::string_view scope,
                                    std::string_view token) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadPageToken(method, scope, token));
  std::string_view rest = bytes;
  const std::optional<int64_t> incarnation = TakePlaceNumber(rest);
  if (!incarnation || *incarnation < 1) return InvalidPageToken("names no document");
  return IdPlace{*incarnation, std::string(rest)};
}

absl::Status InvalidPageToken(std::string_view problem, std::string_view field) {
  const std::string name(field);
  return Error(ErrorReason::kInvalidPageToken,
               name + " " + std::string(problem) +
                   "; repeat the request that it was given to, or leave " + name +
                   " out to begin anew")
      .With("field", field);
}

}  // namespace strata::rpc
