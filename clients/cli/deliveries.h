// What a stream of Consume delivers, from who reads it to who works on it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "clients/cpp/deliveries.h"
#include "strata/v1/feed_service.pb.h"

namespace strata::cli {

// Thread-safe.
class Deliveries {
 public:
  using Taken = client::Deliveries::Taken;

  // Takes a message in, in the order of their coming.
  void Add(v1::ConsumeResponse& response);
  // The stream is over; what it delivered comes again with the next one.
  void End();
  // A stream begins.
  void Begin();

  // Up to `most` deliveries, which are the caller's to work on, in the order of
  // client::Deliveries::Next. Waits for the first. None: there will be no more.
  std::vector<Taken> Await(size_t most);
  // As client::Deliveries.
  bool Holds(const Taken& taken);
  // As client::Deliveries, but nothing if the delivery does not count any more.
  void Fail(const Taken& taken);

  // No more are wanted, of any stream.
  void Stop();
  bool stopped();
  // Waits for End. False: it has not come by then.
  bool AwaitEnd(std::chrono::seconds patience);

 private:
  bool HoldsLocked(const Taken& taken) const {
    return deliveries_.Holds(taken.partition, taken.delivery.lease().token(), taken.term,
                             taken.delivery.replay());
  }

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  client::Deliveries deliveries_;
  bool over_ = false;
  bool stopped_ = false;
};

}  // namespace strata::cli
