#include "schemas/transaction/attempt.h"

#include <charconv>
#include <cstddef>
#include <system_error>

namespace strata::transaction {
namespace {

// Where the digits at the end begin.
size_t DigitsOf(std::string_view id) { return id.find_last_not_of("0123456789") + 1; }

}  // namespace

bool EndsInNumber(std::string_view id) {
  const size_t digits = DigitsOf(id);
  return digits > 0 && digits < id.size() && id[digits - 1] == '/';
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
