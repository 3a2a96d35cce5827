// The longest increasing subsequence: what stays in place when a sequence is rearranged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace strata::document {

// For each number whether it belongs to one longest increasing subsequence; O(n log n). The numbers
// are all different.
inline std::vector<bool> LongestIncreasing(const std::vector<size_t>& numbers) {
  std::vector<bool> chosen(numbers.size());
  if (std::is_sorted(numbers.begin(), numbers.end())) {
    chosen.assign(numbers.size(), true);
    return chosen;
  }
  constexpr size_t kNone = static_cast<size_t>(-1);
  std::vector<size_t> tails;  // tails[n]: where the best subsequence of length n + 1 ends
  std::vector<size_t> before(numbers.size(), kNone);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto tail =
        std::lower_bound(tails.begin(), tails.end(), numbers[i],
                         [&](size_t j, size_t number) { return numbers[j] < number; });
    if (tail != tails.begin()) before[i] = *(tail - 1);
    if (tail == tails.end()) {
      tails.push_back(i);
    } else {
      *tail = i;
    }
  }
  for (size_t i = tails.empty() ? kNone : tails.back(); i != kNone; i = before[i]) chosen[i] = true;
  return chosen;
}

}  // namespace strata::document
