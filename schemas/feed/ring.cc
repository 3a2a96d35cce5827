#include "schemas/feed/ring.h"

#include <algorithm>
#include <utility>

namespace strata::feed {

void Ring::Reset(store::CommitPosition position) {
  commits_.clear();
  entries_ = 0;
  bytes_ = 0;
  begin_ = position;
  end_ = position;
}

void Ring::Append(CommitPtr commit) {
  size_t bytes = sizeof(Commit);
  for (const Entry& entry : commit->entries) bytes += entry.bytes();
  end_ = commit->position;
  entries_ += commit->entries.size();
  bytes_ += bytes;
  commits_.push_back({std::move(commit), bytes});
  while (entries_ > limits_.entries_max || bytes_ > limits_.bytes_max) DropOldest();
}

void Ring::DropOldest() {
  const Held& oldest = commits_.front();
  begin_ = oldest.commit->position;
  entries_ -= oldest.commit->entries.size();
  bytes_ -= oldest.bytes;
  commits_.pop_front();
}

std::optional<std::vector<CommitPtr>> Ring::Behind(store::CommitPosition position,
                                                   size_t entries_max) const {
  if (position < begin_) return std::nullopt;
  auto next = std::upper_bound(
      commits_.begin(), commits_.end(), position,
      [](store::CommitPosition at, const Held& held) { return at < held.commit->position; });
  std::vector<CommitPtr> commits;
  for (size_t entries = 0; next != commits_.end() && entries < entries_max; ++next) {
    entries += next->commit->entries.size();
    commits.push_back(next->commit);
  }
  return commits;
}

}  // namespace strata::feed
