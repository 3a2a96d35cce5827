// A closed loop: a fixed number of calls in flight, each answer followed by the next request. One
// connection, one completion queue, one thread and no messages but bytes, because a client built
// otherwise is what would be measured.
#pragma once

#include <grpcpp/channel.h>
#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bench/support/measurement.h"
#include "clients/cpp/credentials.h"

namespace strata::bench {

// What is asked, and whether it is answered right. Called by one thread.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::string name() const = 0;
  // "/package.Service/Method".
  virtual std::string method() const = 0;
  // The next request of a slot: one of the calls in flight, counted from 0. False: there is none
  // left.
  virtual bool Next(int slot, std::string& request) = 0;
  // Where not all calls are of one method: that of the request that Next gave last.
  virtual const std::string* next_method() const { return nullptr; }

  enum class Outcome {
    kRight,
    kOnTheWay,  // right; what counts, and since when, is the slot's next answer that is kRight
    kLostRace,
    kWrong
  };
  static Outcome RightIf(bool right) { return right ? Outcome::kRight : Outcome::kWrong; }
  // What the answer to the slot's last request was worth. A lost race counts as an attempt, and the
  // slot goes on.
  virtual Outcome Answered(int slot, std::string_view response) = 0;
  // The same for a call that was refused. A lost race is one that the caller tries again.
  virtual Outcome Refused(int /*slot*/, std::string_view /*message*/) { return Outcome::kWrong; }
  // A slot that had no request and has one now; asked after each answer until there is none.
  virtual std::optional<int> Woken() { return std::nullopt; }
  // Of all calls so far; 0: not counted.
  virtual int64_t attempts() const { return 0; }
  // Adds what else it knows of the calls so far.
  virtual void Tell(Measurement& /*measurement*/) const {}
};

struct LoopSettings {
  int in_flight = 64;
  std::chrono::milliseconds warm_up{500};
  std::chrono::milliseconds duration{2000};
  int64_t calls_max = 0;  // 0: until the time is over; else there is no warm-up and no time
  pid_t server = 0;       // whose CPU is counted; 0: nobody's
  // Goes with each call as the header of that name; empty: none. (Not by an interceptor of the
  // channel, which would cost the client more.)
  std::string authorization{};
};

// A connection shared with nobody. Of the credentials, the token is not presented by it.
std::shared_ptr<grpc::Channel> Connect(const std::string& address,
                                       const client::Credentials& credentials = {});

// Prints the first failure, if there are any, on standard error.
Measurement RunLoop(const std::shared_ptr<grpc::Channel>& channel, Workload& workload,
                    const LoopSettings& settings);

}  // namespace strata::bench
