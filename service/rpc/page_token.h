// Page tokens: where a walk goes on, bound to the request that began it.
//
//   token = base64url( version: 1 byte, 0x01
//                      binding: 8 bytes, the beginning of SHA-256 over the method's name,
//                               the request without page_size and page_token, and the place
//                      place:   what the method makes of it )
//
// The binding catches mistakes, not forgers: whoever can ask at all may ask for any place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "schemas/document/filter.h"

namespace strata::rpc {

// `scope` is the request's bytes without page_size and page_token.
std::string MakePageToken(std::string_view method, std::string_view scope, std::string_view place);

// The place in the token. INVALID_PAGE_TOKEN if it is damaged or was made for another request;
// `field` is the request's field that it came in.
absl::StatusOr<std::string> ReadPageToken(std::string_view method, std::string_view scope,
                                          std::string_view token,
                                          std::string_view field = "page_token");

// The bytes that stand for all of a request but its page. A filter counts as compiled: a client's
// library may write the members of a Struct in another order each time.
template <typename Request>
std::string PageScope(const Request& request,
                      const std::optional<document::Filter>& filter = std::nullopt) {
  Request scope = request;
  if constexpr (requires { scope.clear_page_size(); }) scope.clear_page_size();
  if constexpr (requires { scope.clear_page_token(); }) scope.clear_page_token();
  if constexpr (requires { scope.clear_resume_token(); }) scope.clear_resume_token();
  if constexpr (requires { scope.clear_filter(); }) scope.clear_filter();
  scope.DiscardUnknownFields();
  std::string bytes = scope.SerializeAsString();
  if (filter) bytes += filter->bytes();
  return bytes;
}

// Numbers in places: 8 bytes each, big-endian.
void AppendPlaceNumber(int64_t number, std::string& place);
// Takes one number from the front; nothing if there is none.
std::optional<int64_t> TakePlaceNumber(std::string_view& place);

// How far a walk over the documents of a collection has come. It means nothing in a successor.
struct IdPlace {
  int64_t incarnation = 0;  // of the collection
  std::string after_id;
};
std::string MakePageToken(std::string_view method, std::string_view scope, const IdPlace& place);
// As ReadPageToken.
absl::StatusOr<IdPlace> ReadIdPlace(std::string_view method, std::string_view scope,
                                    std::string_view token);

// INVALID_PAGE_TOKEN, for a place that makes no sense.
absl::Status InvalidPageToken(std::string_view problem, std::string_view field = "page_token");

}  // namespace strata::rpc
