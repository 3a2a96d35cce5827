// How events reach callers: what the streams of Watch and Consume have in common.
#pragma once

#include <google/protobuf/arena.h>
#include <strata/wire/v1/feed_service.pb.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "schemas/feed/event.h"
#include "service/rpc/convert.h"

namespace strata::rpc::feed_service {

// A stream as those see it who work for it and may outlive it.
template <typename T>
class Outlived {
 public:
  explicit Outlived(T& stream) : stream_(&stream) {}

  // Waits for whoever uses it, which never takes long.
  void Close() {
    closed_ = true;
    const std::lock_guard lock(mutex_);
    stream_ = nullptr;
  }
  bool closed() const { return closed_.load(std::memory_order_relaxed); }

  // Calls `use` with the stream, unless it is closed.
  template <typename Use>
  void IfOpen(const Use& use) {
    const std::lock_guard lock(mutex_);
    if (stream_ != nullptr) use(*stream_);
  }

 private:
  std::atomic<bool> closed_ = false;
  std::mutex mutex_;  // guards stream_, and is held while it is used
  T* stream_;         // null: it is closed
};

// Whether a caller may still have the events that it asked for: its stream is open for long, and
// what it may do can change meanwhile.
class EventAccess {
 public:
  // Events of `collections`, none: of all; of a subscription, if one is named.
  EventAccess(security::Access& access, const server::CallInfo& info,
              std::vector<std::string> collections,
              std::optional<std::string> subscription = std::nullopt)
      : access_(access),
        identity_(info.identity),
        peer_(info.peer),
        collections_(std::move(collections)),
        subscription_(std::move(subscription)) {}

  // CREDENTIALS_INVALID, PERMISSION_DENIED.
  absl::Status Check() const;

 private:
  security::Access& access_;
  const std::shared_ptr<const security::Identity> identity_;
  const std::string peer_;
  const std::vector<std::string> collections_;
  const std::optional<std::string> subscription_;
};

// What of an event a caller asked for.
class EventForm {
 public:
  // WatchRequest or ConsumeRequest.Open.
  template <typename Request>
  explicit EventForm(const Request& request)
      : encoding_(request.encoding()),
        include_content_(request.include_content()),
        include_changes_(request.include_changes()) {}

  // Contents and changes that would make it larger than a page are left out.
  void Fill(const feed::Event& event, wire::Event& filled) const;
  wire::Encoding encoding() const { return encoding_; }

 private:
  const wire::Encoding encoding_;
  const bool include_content_;
  const bool include_changes_;
};

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

}  // namespace strata::rpc::feed_service
