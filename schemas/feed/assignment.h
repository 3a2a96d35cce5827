// Who gets which partition: each consumer decides for itself, by what it sees.
//
// With P partitions and n consumers each has floor(P/n) or one more, P mod n of them one more. A
// consumer takes a free partition while it has fewer than the floor, or the floor while fewer than
// P mod n have more and those that lack something leave one over; it lets its highest go while it
// has more than the ceiling, or more than the floor while what is free, or has to become so, is not
// enough for those that lack something. (With the ceiling alone as the rule, some may be left with
// none while others have two.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace strata::feed {

// What a consumer sees.
struct Assignment {
  std::string me;
  std::vector<std::string> members;  // those alive; with `me` or without it
  // Of each partition; empty: it is free, or one that I am letting go.
  std::vector<std::string> holders;
  std::vector<bool> leaving;  // mine, and on its way out: not for me to take again; empty: none
};

// What to do next.
struct Move {
  enum class Kind : uint8_t { kTake, kLetGo };
  Kind kind = Kind::kTake;
  int32_t partition = 0;

  friend bool operator==(const Move&, const Move&) = default;
};

// Nothing: all is as it should be, or for others to do. `choice`, any number, spreads who take at
// the same time over what is free.
std::optional<Move> NextMove(const Assignment& seen, size_t choice = 0);

}  // namespace strata::feed
