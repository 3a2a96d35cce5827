#include "schemas/transaction/attempt.h"

#include <charconv>
#include <cstddef>
#include <system_error>

#include "absl/strings/escaping.h"
#include "schemas/base/sha256.h"

namespace strata::transaction {
namespace {

// Where the digits at the end begin.
size_t DigitsOf(std::string_view id) { return id.find_last_not_of("0123456789") + 1; }

}  // namespace

bool EndsInNumber(std::string_view id) {
  const size_t digits = DigitsOf(id);
  return digits > 0 && digits < id.size() && id[digits - 1] == '/';
}

std::string IdOf(std::string_view id, std::string_view principal) {
  if (principal.empty()) return std::string(id);
  constexpr size_t kDigestBytes = 8;
  const Hash digest = Sha256().Update(principal).Finish();
  Attempt attempt = Attempt::Of(id);
  attempt.first_id += '@';
  attempt.first_id += absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), kDigestBytes));
  return attempt.id();
}

Attempt Attempt::Of(std::string_view id) {
  Attempt whole{std::string(id), 1};
  if (!EndsInNumber(id)) return whole;
  const size_t digits = DigitsOf(id);
  Attempt attempt{std::string(id.substr(0, digits - 1)), 0};
  const auto read = std::from_chars(id.data() + digits, id.data() + id.size(), attempt.number);
  if (read.ec != std::errc()) return whole;
  // One that is spelled otherwise is none.
  return attempt.number > 1 && attempt.id() == id ? attempt : whole;
}

}  // namespace strata::transaction
