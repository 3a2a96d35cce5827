// Page tokens: made ones read back, and all others are refused, also those of another request.
#include <string>

#include "schemas/base/error.h"
#include "service/rpc/page_token.h"
#include "tests/fuzz/input.h"

namespace strata::fuzz {
namespace {

void RequireRefused(const absl::StatusOr<std::string>& read, std::string_view what) {
  Require(!read.ok() && ReasonOf(read.status()) == ErrorReason::kInvalidPageToken, what);
}

// Whatever is accepted is what would be made: a stranger's token may be a made one by chance.
void CheckHostile(std::string_view method, std::string_view scope, std::string_view token) {
  const auto read = rpc::ReadPageToken(method, scope, token);
  if (!read.ok()) return RequireRefused(read, "a damaged token is an invalid one");
  Require(rpc::MakePageToken(method, scope, *read) == token, "a place has one token");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const std::string method = input.Name();
  const std::string scope = input.Raw(input.Below(40));
  const std::string place = input.Raw(input.Below(40));
  const std::string token = rpc::MakePageToken(method, scope, place);
  const auto read = rpc::ReadPageToken(method, scope, token);
  Require(read.ok() && *read == place, "a token reads back");

  // Of other requests: the parts of the binding are framed, so none can stand in for its neighbour.
  RequireRefused(rpc::ReadPageToken(method, scope + '\0', token), "a longer scope is another");
  RequireRefused(rpc::ReadPageToken(method + "x", scope, token), "a longer method is another");
  const std::string other = input.Raw(input.Below(40));
  if (other != scope) {
    RequireRefused(rpc::ReadPageToken(method, other, token), "a token belongs to its scope");
  }
  if (!other.empty()) {
    RequireRefused(rpc::ReadPageToken(other + method, scope, token), "… and to its method");
  }

  std::string damaged = token;
  const size_t at = input.Take<uint16_t>() % damaged.size();
  damaged[at] = static_cast<char>(input.Byte());
  if (damaged != token) {
    RequireRefused(rpc::ReadPageToken(method, scope, damaged), "a damaged token is refused");
  }
  for (const char* more : {"=", " ", "A", "\n"}) {
    RequireRefused(rpc::ReadPageToken(method, scope, token + more), "a longer token is refused");
  }
  RequireRefused(rpc::ReadPageToken(method, scope, token.substr(0, at)), "a cut one is refused");

  std::string number;
  const auto wanted = input.Take<int64_t>();
  rpc::AppendPlaceNumber(wanted, number);
  std::string_view left = number;
  Require(rpc::TakePlaceNumber(left) == wanted && left.empty(), "a number in a place reads back");
  CheckHostile(method, scope, input.Rest());
  return 0;
}

}  // namespace strata::fuzz
