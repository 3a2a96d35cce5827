// The messages of a queue that this process wrote or read last. Internal to this folder.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "schemas/queue/message.h"
#include "schemas/store/record.h"

namespace strata::queue {

// Saves reading a message at each of its steps. What others have written meanwhile is found out by
// the guards, and then forgotten here. Bounded; not thread-safe.
class KnownMessages {
 public:
  explicit KnownMessages(size_t bytes_max = size_t{2} << 20) : bytes_max_(bytes_max) {}

  struct Known {
    Message message;
    store::Stamp stamp = 0;
  };
  const Known* Find(const MessageId& id) const {
    const auto found = known_.find(id);
    return found == known_.end() ? nullptr : &found->second->known;
  }

  // What lies beside is not kept.
  void Learn(const MessageId& id, Message message, store::Stamp stamp) {
    Forget(id);
    if (message.payload_base) message.payload = {};
    const size_t bytes = kEntryBytes + message.payload.size() + message.headers.size();
    order_.push_back({id, bytes, {std::move(message), stamp}});
    known_[id] = std::prev(order_.end());
    bytes_ += bytes;
    while (bytes_ > bytes_max_) Forget(order_.front().id);
  }

  void Forget(MessageId id) {
    const auto found = known_.find(id);
    if (found == known_.end()) return;
    bytes_ -= found->second->bytes;
    order_.erase(found->second);
    known_.erase(found);
  }

 private:
  // About what one takes besides its contents.
  static constexpr size_t kEntryBytes = 512;
  struct Entry {
    MessageId id;
    size_t bytes = 0;
    Known known;
  };
  const size_t bytes_max_;
  size_t bytes_ = 0;
  std::list<Entry> order_;  // the oldest first
  absl::flat_hash_map<MessageId, std::list<Entry>::iterator> known_;
};

}  // namespace strata::queue
