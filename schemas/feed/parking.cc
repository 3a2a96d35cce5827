#include "schemas/feed/parking.h"

#include <algorithm>
#include <utility>

namespace strata::feed {

void Parking::Add(const FollowerPtr& follower, const Bookmark& bookmark) {
  spots_[follower.get()] = {follower, bookmark};
  due_.emplace(bookmark.due, follower.get());
  const std::vector<std::string>& collections = follower->selection().collections;
  for (const std::string& collection : collections) {
    of_collections_[collection].insert(follower.get());
  }
  if (collections.empty()) of_all_.insert(follower.get());
}

bool Parking::Remove(const Follower& follower) {
  const auto spot = spots_.find(&follower);
  if (spot == spots_.end()) return false;
  if (quiet_.erase(&follower) == 0) due_.erase({spot->second.bookmark.due, &follower});
  spots_.erase(spot);
  of_all_.erase(&follower);
  for (const std::string& collection : follower.selection().collections) {
    const auto found = of_collections_.find(collection);
    found->second.erase(&follower);
    if (found->second.empty()) of_collections_.erase(found);
  }
  return true;
}

void Parking::Take(const Follower* follower, store::CommitPosition passed,
                   std::vector<Woken>& woken) {
  woken.push_back({spots_.at(follower).follower, passed});
  Remove(*follower);
}

std::vector<Woken> Parking::TakeFor(std::span<const CommitPtr> commits) {
  std::vector<Woken> woken;
  std::vector<const Follower*> wanting;
  for (const CommitPtr& commit : commits) {
    for (const Entry& entry : commit->entries) {
      if (spots_.empty()) return woken;
      wanting.clear();
      const auto ask = [&](const Follower* follower) {
        if (follower->selection().Wants(entry)) wanting.push_back(follower);
      };
      std::for_each(of_all_.begin(), of_all_.end(), ask);
      if (const auto found = of_collections_.find(entry.collection);
          found != of_collections_.end()) {
        std::for_each(found->second.begin(), found->second.end(), ask);
      }
      for (const Follower* follower : wanting) Take(follower, commit->position - 1, woken);
    }
  }
  return woken;
}

std::vector<Woken> Parking::TakeAll(store::CommitPosition passed) {
  std::vector<Woken> woken;
  for (const auto& [follower, spot] : spots_) woken.push_back({spot.follower, passed});
  *this = Parking();
  return woken;
}

std::vector<Woken> Parking::TakeDue(Time now, store::CommitPosition position) {
  std::vector<Woken> woken;
  while (!due_.empty() && due_.begin()->first <= now) {
    const Follower* const follower = due_.begin()->second;
    if (spots_.at(follower).bookmark.told < position) {
      Take(follower, position, woken);
    } else {
      due_.erase(due_.begin());
      quiet_.insert(follower);
    }
  }
  return woken;
}

void Parking::Moved() {
  for (const Follower* follower : quiet_) {
    due_.emplace(spots_.at(follower).bookmark.due, follower);
  }
  quiet_.clear();
}

std::optional<Parking::Time> Parking::NextDue() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

}  // namespace strata::feed
