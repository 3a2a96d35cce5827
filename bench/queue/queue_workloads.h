// Workloads on queues. A message is the ten fields of a document in 300 bytes, as elsewhere.
#pragma once

#include <strata/v1/queue_service.pb.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "bench/load/closed_loop.h"
#include "bench/load/workloads.h"

namespace strata::bench {

inline constexpr char kPushCall[] = "/strata.v1.QueueService/Push";
inline constexpr char kReserveCall[] = "/strata.v1.QueueService/Reserve";
inline constexpr char kAcknowledgeCall[] = "/strata.v1.QueueService/Acknowledge";

inline constexpr int kBatch = 100;

// Whether it is one of the messages that these workloads push, handed out for the first time.
bool IsFresh(const v1::QueueMessage& message);

// Pushes so many messages a call.
std::unique_ptr<Workload> PushTo(const std::string& queue, int batch);

// Consumers, which reserve `batch` messages, whichever come, and acknowledge them, and as many
// producers behind them, of which one pushes `batch` for each time that a consumer has
// acknowledged: so about as many wait as before. A call is a consumer's round. The first slots are
// the consumers'.
class CycleWorkload : public Workload {
 public:
  // Messages so far.
  virtual int64_t pushed() const = 0;
  virtual int64_t acknowledged() const = 0;
};
struct CycleSettings {
  int consumers = 64;
  int batch = 1;
  int64_t missing = 0;               // messages that producers push besides, first of all
  int64_t messages_max = INT64_MAX;  // it ends when so many were acknowledged
};
// REQUIRES: at least `consumers` x `batch` messages wait.
std::unique_ptr<CycleWorkload> Cycle(const std::string& queue, const CycleSettings& settings);

// Reserves a hundred a call until there are `messages` tokens, and adds them to `tokens`.
std::unique_ptr<Workload> ReserveAll(const std::string& queue, int64_t messages,
                                     std::deque<std::string>& tokens);

// One Commit each: acknowledges the message of the first of `tokens` and takes that away, replaces
// a document at random under compare-and-swap, as W1 does, and pushes a message to `queue`. Ends
// when there are no tokens left.
std::unique_ptr<Workload> CommitAll(std::deque<std::string>& tokens, Population& population,
                                    const std::string& queue, uint64_t seed);

}  // namespace strata::bench
