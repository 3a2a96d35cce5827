// The event loop: the only code that sees gRPC's asynchronous API.
//
//   arrival   a call registered ahead is matched; another is registered in its place
//   admit     Admission decides whether it is handled: who calls, and whether there is room
//   decode    the request's bytes become a message of the wire view, on the call's own arena
//   authorize by what the request says: whether its caller may do that
//   handle    on the loop's thread or, in the caller's turn, on the executor (see Method::Kind)
//   answer    serialised and sent by the thread that has it, such as the one that committed
//   end       gRPC reports the answer as sent and the call as done
//
// A stream's messages go the same way, one by one. Refused without handling: what Admission
// refuses, bytes that are no message or more than one may have (INVALID_MESSAGE), methods that do
// not exist (UNKNOWN_METHOD). A call that is not answered by the server's own deadline is answered
// DEADLINE_EXCEEDED; what its handler says later is dropped. One whose answer does not leave is
// cancelled a little later.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/base/executor.h"
#include "schemas/store/cooperative.h"
#include "service/observability/call_observer.h"
#include "service/server/listener.h"
#include "service/server/method.h"

namespace grpc {
class ServerCredentials;
}  // namespace grpc

namespace strata::server {

class LoopState;

struct LoopOptions {
  ListenerOptions listener{.listen = "127.0.0.1:50051"};
  int threads = 1;                             // completion queues, one thread each
  size_t request_bytes_max = size_t{4} << 20;  // or one message of a stream
  size_t metadata_bytes_max = size_t{8} << 10;
  int streams_per_connection_max = 100;
  // Requests being handled and answers being sent, of all calls together.
  size_t bytes_in_flight_max = size_t{256} << 20;
  std::chrono::milliseconds unary_deadline{30'000};
  // How long beyond that an answer may take to leave, and how long a stream's message: then the
  // call is cancelled.
  std::chrono::milliseconds late_answer_max{5'000};
  std::chrono::milliseconds stream_message_max{60'000};
  std::chrono::seconds keepalive_time{60};
  std::chrono::seconds keepalive_timeout{20};
  // Then a connection takes no new calls, give or take a tenth. A stream that is so old, or up to a
  // tenth older, is ended with DRAINING: it may go on over another one. 0: no end.
  std::chrono::seconds connection_age_max{0};
  std::chrono::seconds connection_idle_max{900};
  std::chrono::seconds handshake_timeout{5};  // up to a connection's first HTTP/2 settings

  // Null: traffic is not encrypted, and nobody is vouched for.
  std::shared_ptr<grpc::ServerCredentials> credentials;
};

// What the loop works with. All outlive it.
struct LoopParts {
  // Runs what it is given until the loop is shut down. Callers take turns on it (turns.h).
  Executor& executor;
  // Who may do what.
  security::Access& access;
  // The loop's threads commit with it, between what else they do. Null: the engine commits alone.
  store::CooperativeCommitter* committer = nullptr;
  std::vector<observability::CallObserver*> observers;
  // Handles calls where the engine's reads block, apart from those that visit many records. Null:
  // they do not block, and the loop's threads handle calls.
  Executor* readers = nullptr;
  int executor_threads = 1;  // that `executor` has
};

// Starts serving when it is made; serves until it is destroyed.
class ServerLoop {
 public:
  // STORE_UNAVAILABLE, naming the address, if it cannot be listened on. What the methods are bound
  // to outlives the loop.
  static absl::StatusOr<std::unique_ptr<ServerLoop>> Start(const LoopOptions& options,
                                                           std::vector<Method> methods,
                                                           const LoopParts& parts);
  // As Shutdown without grace.
  virtual ~ServerLoop() = default;

  // The port that is listened on.
  virtual int port() const = 0;

  // From now on new calls are refused. Waits at most `grace` for those in progress, then ends all
  // of them with UNAVAILABLE: DRAINING, or OUTCOME_UNKNOWN where something may have been written;
  // and all streams with DRAINING. Whatever works for calls finds them closed. Stops listening.
  // When it returns, no handler is called any more and late answers are dropped. Once.
  //
  // `before_cutting` is called when all that is left has been told to end, before connections are
  // cut: what the process has of other ports ends there.
  virtual void Shutdown(std::chrono::milliseconds grace,
                        const std::function<void()>& before_cutting = nullptr) = 0;

  // For another port of the process, whose calls are admitted, counted, handled and logged as any
  // others (unary_call.h, stream_call.h). They are over when `before_cutting` returns.
  virtual const std::shared_ptr<LoopState>& calls() const = 0;

 protected:
  ServerLoop() = default;
};

}  // namespace strata::server
