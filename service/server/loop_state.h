// What all calls of one server share, whichever port they come through. Private to the ports.
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

#include "schemas/base/clock.h"
#include "service/server/admission.h"
#include "service/server/caller.h"
#include "service/server/method.h"
#include "service/server/server_loop.h"
#include "service/server/turns.h"

namespace strata::server {

class RawService;
class StreamCall;
class UnaryCall;

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
        callers(parts.access),
        introduction_key(Entropy::System().Bytes(32)) {}

  const LoopOptions options;
  const LoopParts parts;
  const std::shared_ptr<Turns> turns;
  std::vector<std::unique_ptr<Endpoint>> endpoints;  // the same from the start
  Admission admission;
  Callers callers;
  const std::string introduction_key;  // of the ports that the process has besides

  // Of the method "/strata.v1.DocumentService/Get"; null: it is not served.
  const Endpoint* Find(std::string_view path) const;

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

  // Calls that a handler works on or whose answer is being sent, streams aside.
  void UnaryBegins() { unary_in_progress_.fetch_add(1); }
  void UnaryEnds();
  // Until no unary call is in progress, at most so long.
  void AwaitUnaryCalls(std::chrono::milliseconds at_most);

  // The streams of all ports, and the unary calls of ports that have no event queue.
  void Add(StreamCall& stream);
  void Remove(StreamCall& stream);
  void Add(UnaryCall& call);
  void Remove(UnaryCall& call);
  // Ends them: the server ends.
  void EndCalls();
  bool has_streams() const { return streams_open_.load(std::memory_order_relaxed) > 0; }
  // Ends streams that are stuck or too old.
  void LookAtStreams(CallInfo::Time now);

  // An event queue waits here until its calls are over.
  std::mutex mutex;
  std::condition_variable changed;

 private:
  std::atomic<int64_t> unary_in_progress_ = 0;
  std::mutex calls_mutex_;  // guards the two lists
  std::list<StreamCall*> streams_;
  std::list<UnaryCall*> unary_;
  std::atomic<int64_t> streams_open_ = 0;
};

}  // namespace strata::server
