// Attempts: a request in two phases makes one transaction after the other, until one does not lose
// its place. Internal to this folder, except IdOf.
#pragma once

#include <string>
#include <string_view>

namespace strata::transaction {

// One more than a request asks for at the most: that takes the place of the next one (Cancel).
inline constexpr int kAttemptNumberMax = 101;

struct Attempt {
  std::string first_id;
  int number = 1;

  // That of the transaction with that id.
  static Attempt Of(std::string_view id);

  std::string id() const {
    return number == 1 ? first_id : first_id + "/" + std::to_string(number);
  }
  Attempt Next() const { return {first_id, number + 1}; }
};

// The id of a transaction that a principal asked for under `id`, which may be that of an attempt:
// request ids of two principals are two. Without a principal the id itself.
std::string IdOf(std::string_view id, std::string_view principal);

// Whether the id ends as those of second and further attempts do.
bool EndsInNumber(std::string_view id);

}  // namespace strata::transaction
