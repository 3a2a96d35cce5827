// What a stream of Consume delivers, from who reads it to who works on it.
#pragma once

#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "strata/v1/feed_service.pb.h"

namespace strata::cli {

// Thread-safe.
class Deliveries {
 public:
  struct Place {
    int64_t position = 0;
    int32_t index = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Taken {
    int32_t partition = 0;
    v1::Delivery delivery;
    Place place() const { return {delivery.event().position(), delivery.event().index()}; }
  };

  // Takes a message in, in the order of their coming.
  void Add(v1::ConsumeResponse& response);
  // The stream is over; what it delivered comes again with the next one.
  void End();
  // A stream begins.
  void Begin();

  // Up to `most` deliveries, which are the caller's to work on: of one partition after the other in
  // turns, so that none waits for all that there is of another, and in order of each. Waits for the
  // first. None: there will be no more.
  std::vector<Taken> Await(size_t most);
  // Whether the partition is still what it was when that was delivered; if not, whatever has become
  // of it concerns nobody.
  bool Holds(const Taken& taken);
  // The event failed, and comes again. What has been delivered behind it counts for nothing, also
  // what is still to arrive: that all comes again behind the event or, if it was parked, behind the
  // word that it is done with. Replays stand by themselves. REQUIRES: it is no replay.
  void Fail(const Taken& taken);

  // No more are wanted, of any stream.
  void Stop();
  bool stopped();
  // Waits for End. False: it has not come by then.
  bool AwaitEnd(std::chrono::seconds patience);

 private:
  void AddOne(Taken taken);
  bool HoldsLocked(const Taken& taken) const;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<int32_t, std::deque<Taken>> queues_;  // by partition; none is empty
  int32_t last_ = -1;                            // the partition that had its turn
  std::map<int32_t, int64_t> tokens_;            // of the partitions that are this consumer's
  std::map<int32_t, Place> failed_;  // by partition: the event that failed and has not come again
  bool over_ = false;
  bool stopped_ = false;
};

}  // namespace strata::cli
