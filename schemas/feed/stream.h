// Tells one consumer one thing after the other.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "schemas/feed/consumer.h"
#include "schemas/feed/consumer_workshop.h"

namespace strata::feed {

// The sink, with a turn for each caller that fills a message. A message given while another one is
// being given or filled comes after it; no caller waits. Thread-safe. Keep it in a shared_ptr.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(std::shared_ptr<ConsumerWorkshop> workshop, std::shared_ptr<ConsumerSink> sink)
      : workshop_(std::move(workshop)), sink_(std::move(sink)) {}

  bool closed() const;
  absl::Status Admit() { return sink_->Admit(); }

  // As Consumer::Ready.
  void Ready();
  // Not with a lock held, nor from a call of Consumer: the sink may be called at once.
  void Tell(std::function<void(ConsumerSink&)> what);
  // The last that is told.
  void Finish(const absl::Status& status);
  // Tells nothing more.
  void Close();

  // Whether `who` may fill a message now: whoever may, Adds what fits and then Sends. Otherwise it
  // is `who`'s turn, once that comes: `resume` is called on the executor, and Begin or Withdraw has
  // to follow, until when nobody else gets a turn.
  bool Begin(int32_t who, std::function<void()> resume);
  // REQUIRES: between Begin and Send.
  bool Add(int32_t partition, Delivery&& delivery) {
    return sink_->Add(partition, std::move(delivery));
  }
  void Send(int32_t partition);
  // Wants no turn any more.
  void Withdraw(int32_t who);

 private:
  struct Waiting {
    int32_t who = 0;
    std::function<void()> resume;
  };
  void Drain();
  void GiveTurn();

  const std::shared_ptr<ConsumerWorkshop> workshop_;
  const std::shared_ptr<ConsumerSink> sink_;

  mutable std::mutex mutex_;  // guards what follows
  bool closed_ = false;
  bool finished_ = false;  // nothing more is taken in
  bool busy_ = false;      // somebody tells something, or fills a message
  bool room_ = false;      // for a message
  std::deque<std::function<void(ConsumerSink&)>> told_;
  std::deque<Waiting> waiting_;
  std::optional<int32_t> turn_;  // whose it is
};

}  // namespace strata::feed
