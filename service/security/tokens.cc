#include "service/security/tokens.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "schemas/base/error.h"
#include "schemas/base/hex.h"
#include "schemas/base/sha256.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"

namespace strata::security {
namespace {

constexpr size_t kNameBytesMax = 128;
constexpr size_t kTokenBytes = 32;
constexpr std::string_view kHashWord = "sha256:";
constexpr std::string_view kExpiresWord = "expires=";

// Nothing of the line is quoted: what stands in the wrong place may be the secret itself.
absl::Status LineError(int line, std::string_view problem) {
  const std::string place = "line " + std::to_string(line);
  return Error(ErrorReason::kInvalidField, place + ": " + std::string(problem))
      .With("field", place);
}

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kNameBytesMax &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  std::string_view("._-@").find(c) != std::string_view::npos;
         });
}

constexpr std::string_view kNameRule = "has 1 to 128 bytes of a-z A-Z 0-9 . _ - and @";

std::optional<std::string> HashFromHex(std::string_view text) {
  if (!text.starts_with(kHashWord)) return std::nullopt;
  text.remove_prefix(kHashWord.size());
  if (text.size() != 2 * sizeof(Hash)) return std::nullopt;
  return BytesOfHex(text);
}

struct Entry {
  std::string hash;
  Token token;
};

absl::StatusOr<Entry> ParseLine(const std::vector<std::string>& words, int line) {
  Entry entry;
  if (!IsName(words[0])) {
    return LineError(line, "its first word is no name, which " + std::string(kNameRule));
  }
  entry.token.name = words[0];
  const auto hash = words.size() > 1 ? HashFromHex(words[1]) : std::nullopt;
  if (!hash) return LineError(line, "after the name stands no sha256: with 64 hexadecimal digits");
  entry.hash = *hash;
  if (words.size() == 2) return entry;
  if (words.size() > 3 || !words[2].starts_with(kExpiresWord)) {
    return LineError(line, "after the hash stands something else than one expires=TIME");
  }
  entry.token.expires = ParseExpiry(std::string_view(words[2]).substr(kExpiresWord.size()));
  if (!entry.token.expires) {
    return LineError(line, "expires is no time with a zone, such as 2027-01-31T00:00:00Z");
  }
  return entry;
}

}  // namespace

std::optional<UnixMicros> ParseExpiry(std::string_view text) {
  absl::Time time;
  // Abseil also takes its words for infinite times.
  const bool is_digit = !text.empty() && absl::ascii_isdigit(static_cast<unsigned char>(text[0]));
  if (!is_digit || !absl::ParseTime(absl::RFC3339_full, ToAbsl(text), &time, nullptr)) {
    return std::nullopt;
  }
  return absl::ToUnixMicros(time);
}

absl::StatusOr<Tokens> Tokens::Parse(std::string_view text, UnixMicros now) {
  if (text.size() > kBytesMax) {
    return Error(ErrorReason::kInvalidField, "tokens: the file has " + std::to_string(text.size()) +
                                                 " bytes, at most " + std::to_string(kBytesMax) +
                                                 " are allowed")
        .With("field", "tokens")
        .With("limit", static_cast<int64_t>(kBytesMax));
  }
  Tokens tokens;
  std::map<std::string, int> line_of_name;
  std::map<std::string, int> line_of_hash;
  int number = 0;
  for (const absl::string_view whole : absl::StrSplit(ToAbsl(text), '\n')) {
    ++number;
    if (whole.find('\r') != absl::string_view::npos) {
      return LineError(number, "has a carriage return; lines end in a line feed alone");
    }
    const std::vector<std::string> words =
        absl::StrSplit(whole.substr(0, whole.find('#')), absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.empty()) continue;
    ASSIGN_OR_RETURN(Entry entry, ParseLine(words, number));
    const auto [name, new_name] = line_of_name.try_emplace(entry.token.name, number);
    if (!new_name) {
      return LineError(number, "its name stands in line " + std::to_string(name->second) + " too");
    }
    const auto [hash, new_hash] = line_of_hash.try_emplace(entry.hash, number);
    if (!new_hash) {
      return LineError(number, "its hash stands in line " + std::to_string(hash->second) + " too");
    }
    if (entry.token.expires && *entry.token.expires <= now) {
      tokens.expired_.push_back({number, entry.token.name});
    }
    tokens.by_hash_.emplace(std::move(entry.hash), std::move(entry.token));
  }
  return tokens;
}

const Token* Tokens::Find(std::string_view hash) const {
  const auto found = by_hash_.find(hash);
  return found == by_hash_.end() ? nullptr : &found->second;
}

std::string MakeToken(Entropy& entropy) {
  return "strata_" + absl::WebSafeBase64Escape(entropy.Bytes(kTokenBytes));
}

absl::StatusOr<std::string> TokenLine(std::string_view name, std::string_view token,
                                      std::optional<UnixMicros> expires) {
  if (!IsName(name)) {
    return Error(ErrorReason::kInvalidField, "name: not a name, which " + std::string(kNameRule))
        .With("field", "name");
  }
  const Hash hash = Sha256().Update(token).Finish();
  std::string line(name);
  line += ' ';
  line += kHashWord;
  line += absl::BytesToHexString(ToAbsl(HashBytes(hash)));
  if (expires) {
    line += ' ';
    line += kExpiresWord;
    line += absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", absl::FromUnixMicros(*expires),
                             absl::UTCTimeZone());
  }
  return line;
}

}  // namespace strata::security
