// What a stream of Consume has delivered, and which of it still counts.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>

#include "strata/v1/feed_service.pb.h"

namespace strata::client {

// What was delivered of a partition counts as long as the partition is this consumer's, and nothing
// before it failed; the server's rules for that stand at ConsumeRequest in the protos. Not
// thread-safe.
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
    int64_t term = 0;  // of its partition: another one begins whenever an event fails
    Place place() const { return {delivery.event().position(), delivery.event().index()}; }
  };

  // Takes a message in, in the order of their coming.
  void Add(v1::ConsumeResponse& response);
  // A stream begins; what the one before delivered comes again.
  void Begin();

  bool empty() const { return queues_.empty(); }
  // The next delivery, which is the caller's to work on: of one partition after the other in turns,
  // so that none waits for all that there is of another, and in order of each. REQUIRES: not empty.
  Taken Next();
  // Whether a delivery with this lease token and this term still counts: its partition is what it
  // was then, and nothing before it has failed since, which concerns no replay. If not, whatever
  // has become of it concerns nobody: an Ack of it would end the stream.
  bool Holds(int32_t partition, int64_t token, int64_t term, bool replay) const;
  // The event failed, and comes again. Later deliveries become void, also those still to arrive:
  // they come again after the event or, if it was parked, after its acknowledgement. Replays are
  // independent. REQUIRES: it is no replay.
  void Fail(int32_t partition, Place place);

 private:
  void AddOne(Taken taken);

  std::map<int32_t, std::deque<Taken>> queues_;  // by partition; none is empty
  int32_t last_ = -1;                            // the partition that had its turn
  std::map<int32_t, int64_t> tokens_;            // of the partitions that are this consumer's
  std::map<int32_t, int64_t> terms_;             // by partition: how many events of it have failed
  std::map<int32_t, Place> failed_;  // by partition: the event that failed and has not come again
};

}  // namespace strata::client
