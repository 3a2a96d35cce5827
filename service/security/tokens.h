// The tokens file: who may call by presenting which secret.
//
//   line  := [NAME " sha256:" HEX [" expires=" RFC3339]] ["#" anything]
//
// NAME has 1 to 128 bytes of a-z A-Z 0-9 . _ - and @; HEX is the SHA-256 of the token's text. A
// token is 256 random bits, so it needs neither salt nor slow hash.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/base/clock.h"

namespace strata::security {

struct Token {
  std::string name;
  std::optional<UnixMicros> expires;  // from then on it is wrong
};

class Tokens {
 public:
  static constexpr size_t kBytesMax = size_t{1} << 20;

  // INVALID_FIELD, naming the line: another form, a name or a hash twice, a carriage return, more
  // bytes than kBytesMax. A token that has expired at `now` is refused alone: it must not keep the
  // others, or the removal of others, from being used, nor a server from starting.
  static absl::StatusOr<Tokens> Parse(std::string_view text, UnixMicros now);

  // What is known by the 32 bytes of the token's SHA-256, whether or not it expired; null: nothing.
  const Token* Find(std::string_view hash) const;
  size_t size() const { return by_hash_.size(); }

  // Those that had expired already, in the order of the file.
  struct Expired {
    int line = 0;  // from 1
    std::string name;
  };
  const std::vector<Expired>& expired() const { return expired_; }

 private:
  std::map<std::string, Token, std::less<>> by_hash_;
  std::vector<Expired> expired_;
};

// RFC 3339, with a zone. Nothing: it is no such time.
std::optional<UnixMicros> ParseExpiry(std::string_view text);

// "strata_" and 32 random bytes in base64url, without padding.
std::string MakeToken(Entropy& entropy);
// The line of the file for it. INVALID_FIELD: no such name may be.
absl::StatusOr<std::string> TokenLine(std::string_view name, std::string_view token,
                                      std::optional<UnixMicros> expires);

}  // namespace strata::security
