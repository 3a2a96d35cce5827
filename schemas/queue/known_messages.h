// The messages of a queue that this process wrote or read last. Internal to this folder.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "schemas/queue/message.h"
#include "schemas/store/record.h"

namespace strata::queue {

// Saves reading a message at each of its steps. What others have written meanwhile is found out by
// the guards, and then forgotten here. Bounded, and with all of a process together: past kAllMax
// each keeps kFew at most. Not thread-safe.
class KnownMessages {
 public:
  static constexpr size_t kBytesMax = size_t{2} << 20;
  static constexpr size_t kAllMax = size_t{64} << 20;
  static constexpr size_t kFew = size_t{64} << 10;

  // `all`: the bytes of all of the process.
  explicit KnownMessages(std::atomic<size_t>& all) : all_(all) {}
  ~KnownMessages() { all_ -= bytes_; }
  KnownMessages(const KnownMessages&) = delete;
  KnownMessages& operator=(const KnownMessages&) = delete;

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
    all_ += bytes;
    while (bytes_ > (all_ > kAllMax ? kFew : kBytesMax)) Forget(order_.front().id);
  }

  void Forget(MessageId id) {
    const auto found = known_.find(id);
    if (found == known_.end()) return;
    bytes_ -= found->second->bytes;
    all_ -= found->second->bytes;
    order_.erase(found->second);
    known_.erase(found);
  }

  void Clear() {
    all_ -= std::exchange(bytes_, 0);
    order_.clear();
    known_.clear();
  }

 private:
  // About what one takes besides its contents.
  static constexpr size_t kEntryBytes = 512;
  struct Entry {
    MessageId id;
    size_t bytes = 0;
    Known known;
  };
  std::atomic<size_t>& all_;
  size_t bytes_ = 0;
  std::list<Entry> order_;  // the oldest first
  absl::flat_hash_map<MessageId, std::list<Entry>::iterator> known_;
};

}  // namespace strata::queue
