#include "schemas/feed/assignment.h"

#include <map>
#include <string_view>

namespace strata::feed {

std::optional<Move> NextMove(const Assignment& seen, size_t choice) {
  std::map<std::string_view, size_t> counts;
  for (const std::string& member : seen.members) counts[member] = 0;
  size_t& mine = counts[seen.me];
  std::vector<int32_t> free;
  size_t leaving = 0;
  int32_t highest = -1;
  for (size_t i = 0; i < seen.holders.size(); ++i) {
    const std::string& holder = seen.holders[i];
    const auto partition = static_cast<int32_t>(i);
    if (holder.empty()) {
      const bool mine_still = i < seen.leaving.size() && seen.leaving[i];
      leaving += mine_still ? 1 : 0;
      if (!mine_still) free.push_back(partition);
      continue;
    }
    if (holder == seen.me) highest = partition;
    // One who is gone keeps its partitions until their leases expire.
    if (const auto found = counts.find(holder); found != counts.end()) ++found->second;
  }

  const size_t floor = seen.holders.size() / counts.size();
  const size_t rest = seen.holders.size() % counts.size();
  const size_t ceiling = floor + (rest > 0 ? 1 : 0);
  size_t with_more = 0;
  size_t lacking = 0;                     // of the floor, all together
  size_t coming = free.size() + leaving;  // what is free, or will be whatever I do
  for (const auto& [member, count] : counts) {
    if (count > floor) ++with_more;
    if (count < floor) lacking += floor - count;
    if (count > ceiling) coming += count - ceiling;
  }
  if (!free.empty()) {
    const bool one_more = mine == floor && with_more < rest && free.size() > lacking;
    if (mine < floor || one_more) return Move{Move::Kind::kTake, free[choice % free.size()]};
  }
  if (mine > ceiling || (mine > floor && lacking > coming)) {
    return Move{Move::Kind::kLetGo, highest};
  }
  return std::nullopt;
}

}  // namespace strata::feed
