// One who consumes a subscription: what it says, and what it is told.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "schemas/feed/event.h"
#include "schemas/feed/subscription.h"
#include "schemas/lease/leases.h"

namespace strata::feed {

struct ConsumeQuery {
  std::string caller = {};  // by whom the feed's turns go round
  std::string subscription;
  std::string consumer;             // for people
  int32_t window = kWindowDefault;  // of each partition
  bool include_content = false;
  bool include_before = false;
  bool include_changes = false;
};

// The numbers are those of strata.v1.RevokeReason.
enum class RevokeReason : uint8_t { kBalance = 1, kAckTimeout = 2, kLeaseLost = 3 };

// An event for a consumer.
struct Delivery {
  Event event;
  int32_t attempt = 1;
  bool replay = false;
  lease::LeaseToken lease;
};

// Takes what one consumer is told. One call at a time, on any thread, with no lock held that a call
// of Consumer takes.
class ConsumerSink {
 public:
  virtual ~ConsumerSink() = default;

  // Nobody takes anything any more. Asked often, on any thread, at any time.
  virtual bool closed() const = 0;
  // Whether the consumer may still have what it asked for. Asked before anything is read for it, at
  // any time.
  virtual absl::Status Admit() = 0;

  virtual void Assigned(int32_t partition, store::Stamp token, const lease::Place& place) = 0;
  virtual void Revoked(int32_t partition, RevokeReason reason) = 0;
  // All up to the event at `place` is acknowledged, durably; or it is the one that failed, and its
  // document is parked.
  virtual void Acknowledged(int32_t partition, const lease::Place& place) = 0;
  // Whether there is room for a message of deliveries. If not, Consumer::Ready follows once there
  // may be. With a lock held that Ready takes.
  virtual bool TakeRoom() { return true; }
  // Adds to the partition's message to come, of which there is one at a time; false: the message is
  // full without it.
  virtual bool Add(int32_t partition, Delivery&& delivery) = 0;
  // Sends the message. Consumer::Ready follows when there is room for another one.
  virtual void SendDeliveries(int32_t partition) = 0;
  // Ends the stream.
  virtual void Finish(const absl::Status& status) = 0;
};

// An open stream. Thread-safe. When it is destroyed nothing more is told, but for a call under way,
// and its partitions are given back, in the background: with an attempt counted of what it had been
// delivered and had not acknowledged, unless Leave was called before.
class Consumer {
 public:
  virtual ~Consumer() = default;

  // What it consumes, as it was opened.
  virtual const Subscription& subscription() const = 0;

  // There is room for a message of deliveries. Once at the beginning, after each one, and as
  // ConsumerSink::TakeRoom says.
  virtual void Ready() = 0;
  // All up to the event is done. Quietly nothing for a partition that has been revoked;
  // INVALID_FIELD for one that never was this consumer's, and for an event that is not delivered to
  // it.
  virtual absl::Status Ack(int32_t partition, const lease::Place& place) = 0;
  // The event failed. As Ack; INVALID_FIELD too if one before it is not acknowledged.
  virtual absl::Status Nack(int32_t partition, const lease::Place& place, std::string_view reason,
                            bool park) = 0;
  // It is done, in order: everything is given back, what has been acknowledged is stored, then the
  // sink is finished with OK.
  virtual void Leave() = 0;
};

}  // namespace strata::feed
