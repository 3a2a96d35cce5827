// The crowd of crowd.cc: what its members share.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clients/cpp/refusal.h"

namespace strata::fault {

using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// What a round goes through. In kDrain nothing new is begun, and what was begun is ended; in
// kQuiet nothing is done, but for streams that wait.
enum class Phase { kWork, kDrain, kQuiet, kOver };

// Thread-safe.
class Crowd {
 public:
  explicit Crowd(uint64_t seed) : seed_(seed) {}

  // Something does not hold. Printed at once.
  void Break(const std::string& what);
  bool broken() const { return broken_ > 0; }
  void Count(const std::string& what, int64_t by = 1);
  // The greatest of what was measured since the last look at the counts.
  void Measure(const std::string& what, milliseconds time);
  // All counts, in one line.
  std::string Counts();

  void Enter(Phase phase);
  // Waits while the phase is a later one than `last`; false: it is over.
  bool MayWork(Phase last);
  // Waits, but not beyond the phase.
  void Pause(Phase last, milliseconds time);
  // Whether all who asked MayWork wait for it, within the patience.
  bool AllIdle(milliseconds patience);
  // For members that ask.
  void Join() { ++members_; }

  // Nothing is done to the server, and was not for so long that all is as it should be again.
  bool calm() const { return Steady::now().time_since_epoch().count() > calm_at_; }
  // Since a time at which it was.
  bool CalmSince(Steady::time_point time) const {
    return calm() && time.time_since_epoch().count() > calm_at_;
  }
  void Disturb(bool ended);

  // Each caller's token, by name.
  void SetToken(const std::string& caller, std::string token) {
    tokens_[caller] = std::move(token);
  }
  const std::string& token(const std::string& caller) const { return tokens_.at(caller); }

  // Before there are callers.
  void SetAddress(std::string address) { address_ = std::move(address); }
  const std::string& address() const { return address_; }
  // The member's own, which the seed repeats.
  std::mt19937_64 Random(const std::string& member) const;

  // Contexts of streams, which end when it is over.
  void Add(grpc::ClientContext& context);
  void Remove(grpc::ClientContext& context);

 private:
  static constexpr milliseconds kRecovery{5'000};

  std::string address_;
  const uint64_t seed_;
  std::map<std::string, std::string> tokens_;  // before there are threads
  std::atomic<int> broken_ = 0;
  std::atomic<int> members_ = 0;
  std::atomic<Steady::rep> calm_at_ = 0;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Phase phase_ = Phase::kQuiet;
  int idle_ = 0;
  std::map<std::string, int64_t> counts_;
  std::map<std::string, int64_t> longest_;
  std::set<grpc::ClientContext*> streams_;
};

// One who calls the server: its own connection, and its own principal.
class Caller {
 public:
  Caller(Crowd& crowd, std::string name);

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  const std::string& name() const { return name_; }
  Crowd& crowd() const { return crowd_; }
  // What its calls say. Those of streams have no deadline.
  void Prepare(grpc::ClientContext& context) const;
  // That it was not refused for what others do.
  void Judge(const char* call, const grpc::Status& status) const;

  // One try of a call.
  template <typename Stub, typename Request, typename Response>
  grpc::Status Try(const char* what, Stub& stub,
                   grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                   const Request& request, Response& response) const {
    response.Clear();
    grpc::ClientContext context;
    Prepare(context);
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    const grpc::Status status = (stub.*method)(&context, request, &response);
    Judge(what, status);
    return status;
  }
  // Tries until it is answered; an answer that is no OK breaks the crowd, unless its reason is one
  // of these. Whether it is OK.
  template <typename Stub, typename Request, typename Response>
  bool Do(const char* what, Stub& stub,
          grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
          const Request& request, Response& response, std::set<std::string> reasons = {}) const {
    const Steady::time_point end = Steady::now() + 2 * kPatience;
    while (true) {
      const grpc::Status status = Try(what, stub, method, request, response);
      if (status.ok()) return true;
      const client::Refusal refusal = client::RefusalOf(status);
      if (refusal.IsRetryable() && Steady::now() < end) {
        std::this_thread::sleep_for(milliseconds(20));
        continue;
      }
      if (!reasons.contains(refusal.reason)) {
        crowd_.Break(name_ + ": " + what + ": " + refusal.ToString());
      }
      return false;
    }
  }

 private:
  static constexpr seconds kPatience{30};

  Crowd& crowd_;
  const std::string name_;
  const std::string authorization_;
  const std::shared_ptr<grpc::Channel> channel_;
};

// A stream's context, while it lives.
class StreamContext {
 public:
  explicit StreamContext(const Caller& caller) : crowd_(caller.crowd()) {
    caller.Prepare(context_);
    crowd_.Add(context_);
  }
  ~StreamContext() { crowd_.Remove(context_); }
  StreamContext(const StreamContext&) = delete;
  StreamContext& operator=(const StreamContext&) = delete;
  grpc::ClientContext* operator*() { return &context_; }
  void BreakOff() { context_.TryCancel(); }

 private:
  Crowd& crowd_;
  grpc::ClientContext context_;
};

// A part of the crowd, with members of one kind and what they know together.
class Part {
 public:
  virtual ~Part() = default;
  // The callers that it is to have.
  virtual std::vector<std::string> callers() const = 0;
  // Makes what its members need; the server serves.
  virtual void SetUp(Caller& caller) = 0;
  // Its members, each for a thread of its own.
  virtual std::vector<std::function<void()>> Members() = 0;
  // In kDrain: what is still to be ended, in words; empty: nothing.
  virtual std::string Open(Caller& caller) = 0;
  // In kQuiet: breaks the crowd by what does not hold, and forgets what was ended.
  virtual void Check(Caller& caller) = 0;
};

std::unique_ptr<Part> MakeQueueCrowd(Crowd& crowd);
std::unique_ptr<Part> MakeQueueMakers(Crowd& crowd);
std::unique_ptr<Part> MakeFeedCrowd(Crowd& crowd);
std::unique_ptr<Part> MakeConsumerCrowd(Crowd& crowd);
std::unique_ptr<Part> MakeLeaseCrowd(Crowd& crowd);

}  // namespace strata::fault
