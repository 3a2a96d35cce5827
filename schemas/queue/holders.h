// Which streams have which messages of a queue. Internal to this folder.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "schemas/base/clock.h"
#include "schemas/queue/message_id.h"
#include "schemas/store/record.h"

namespace strata::queue {

class Consumer;

using Steady = std::chrono::steady_clock::time_point;

struct Holder {
  std::weak_ptr<Consumer> consumer;
  int64_t delivery = 0;
  Steady until;                        // of the reservation
  store::CommitPosition position = 0;  // of the hand-out
};

// By message, and by when each is to be looked at: at the end of its reservation, unless that was
// put off. Not thread-safe.
class Holders {
 public:
  // Null: no stream has it.
  const Holder* Find(const MessageId& id) const {
    const auto found = holders_.find(id);
    return found == holders_.end() ? nullptr : &found->second.holder;
  }
  // Instead of who had it before.
  void Set(const MessageId& id, Holder holder) {
    Erase(id);
    const Steady look_at = holder.until;
    holders_[id] = {std::move(holder), look_at};
    by_look_.emplace(look_at, id);
  }
  // REQUIRES: Find(id).
  void Extend(const MessageId& id, Steady until) {
    holders_.at(id).holder.until = until;
    LookAt(id, until);
  }
  void LookAt(const MessageId& id, Steady time) {
    Entry& entry = holders_.at(id);
    by_look_.erase({entry.look_at, id});
    entry.look_at = time;
    by_look_.emplace(time, id);
  }
  void Erase(const MessageId& id) {
    const auto found = holders_.find(id);
    if (found == holders_.end()) return;
    by_look_.erase({found->second.look_at, id});
    holders_.erase(found);
  }

  // When the first of them is to be looked at; none: there are no holders.
  std::optional<Steady> NextLook() const {
    if (by_look_.empty()) return std::nullopt;
    return by_look_.begin()->first;
  }
  // Those whose time has come, `most` of them.
  std::vector<MessageId> ToLookAt(Steady now, size_t most) const {
    std::vector<MessageId> ids;
    for (const auto& [look_at, id] : by_look_) {
      if (look_at > now || ids.size() >= most) break;
      ids.push_back(id);
    }
    return ids;
  }

 private:
  struct Entry {
    Holder holder;
    Steady look_at;
  };
  absl::flat_hash_map<MessageId, Entry> holders_;
  std::set<std::pair<Steady, MessageId>> by_look_;
};

}  // namespace strata::queue
