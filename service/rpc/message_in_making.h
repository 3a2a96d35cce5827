// How much goes into one message of a stream.
#pragma once

#include <google/protobuf/arena.h>
#include <google/protobuf/repeated_field.h>

#include <cstddef>
#include <optional>

namespace strata::rpc {

// The room that is taken before one is made: that of its items as they come, or of one that is
// large.
inline constexpr size_t kMessageRoomBytes = size_t{1} << 20;

// A message of many items, as it is made. Not thread-safe.
template <typename Message>
class MessageInMaking {
 public:
  // Made when it is needed, so that whoever waits holds none.
  Message& message() {
    if (message_ == nullptr) {
      arena_.emplace();
      message_ = google::protobuf::Arena::CreateMessage<Message>(&*arena_);
    }
    return *message_;
  }

  // Whether the message has room for the last of its items; if not, it is taken out, and comes in
  // the next message. One that is too large for any is alone in its message.
  template <typename Item>
  bool Keep(google::protobuf::RepeatedPtrField<Item>& items) {
    const size_t item_bytes = items[items.size() - 1].ByteSizeLong();
    if (bytes_ > 0 && bytes_ + item_bytes > kBytesMax) {
      items.RemoveLast();
      return false;
    }
    bytes_ += item_bytes;
    return true;
  }

  // Begins the next one.
  void Clear() {
    message_ = nullptr;
    bytes_ = 0;
    arena_.reset();
  }

 private:
  static constexpr size_t kBytesMax = size_t{256} << 10;

  std::optional<google::protobuf::Arena> arena_;
  Message* message_ = nullptr;  // on the arena
  size_t bytes_ = 0;            // of its items
};

}  // namespace strata::rpc
