// What all calls of one server share, over all its ports. Private to the ports.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "service/server/admission.h"
#include "service/server/caller.h"
#include "service/server/method.h"
#include "service/server/server_loop.h"
#include "service/server/turns.h"

namespace strata::server {

class RawService;

// A call of any port, which the server looks at and ends.
class LiveCall {
 public:
  // The server ends.
  virtual void Drain() = 0;
  // Ends it if it is stuck or too old.
  virtual void Look(CallInfo::Time /*now*/) {}

 protected:
  ~LiveCall() = default;
};

// A method and where gRPC finds it.
struct Endpoint {
  Method method;
  std::string path;
  std::string log_name;  // the path without its first slash
  RawService* service = nullptr;
  int index = 0;
};

// Calls keep it alive. Thread-safe.
class LoopState {
 public:
  LoopState(const LoopOptions& loop_options, const LoopParts& loop_parts)
      : options(loop_options),
        parts(loop_parts),
        turns(std::make_shared<Turns>(parts.executor, parts.executor_threads)),
        admission(loop_options.request_bytes_max, loop_options.bytes_in_flight_max, parts.access),
        callers(parts.access) {}

  const LoopOptions options;
  const LoopParts parts;
  const std::shared_ptr<Turns> turns;
  std::vector<std::unique_ptr<Endpoint>> endpoints;  // the same from the start
  Admission admission;
  Callers callers;

  // Whom the credentials stand for, for threads that have no CallersSeen.
  Recognized Recognize(std::string_view peer, const security::Credentials& credentials);

  // What handles the method unless it waits for its caller's turn; null: the port's own threads.
  Executor* HandledOn(const Method& method) const {
    return method.operational ? nullptr : parts.readers;
  }

  // Passes the end of a call to the observers.
  void Report(const observability::CallEnd& end) const {
    for (observability::CallObserver* const observer : parts.observers) observer->OnEnd(end);
  }

  // When a stream that came at `arrival` is to end. Streams that began at the same time, as after
  // a restart, end at different times.
  CallInfo::Time OldAt(CallInfo::Time arrival) const;

  // The unary calls that a handler works on or whose answer is being sent.
  void UnaryBegins() { unary_in_progress_.fetch_add(1); }
  void UnaryEnds();
  // Until none is in progress.
  void AwaitUnaryCalls(std::chrono::milliseconds at_most);

  // The streams of all ports, and the unary calls of a port that has no event queue.
  void Add(LiveCall& call);
  void Remove(LiveCall& call);
  int64_t live_calls() const { return live_count_.load(std::memory_order_relaxed); }
  // Ends all of them: the server ends.
  void EndCalls();
  // Ends those that are stuck or too old. Each second or so, while there are any.
  void LookAtCalls(CallInfo::Time now);

  // An event queue waits here until its calls are over.
  std::mutex mutex;
  std::condition_variable changed;

 private:
  std::atomic<int64_t> unary_in_progress_ = 0;
  std::mutex live_mutex_;  // guards the list
  std::list<LiveCall*> live_;
  std::atomic<int64_t> live_count_ = 0;
  std::mutex seen_mutex_;  // guards what follows
  CallersSeen seen_{callers};
};

}  // namespace strata::server
