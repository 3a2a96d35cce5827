// What a client and everything that it hands out share: the connection, and how calls are made.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/attempts.h"
#include "clients/cpp/connection.h"
#include "strata/client/client.h"

namespace strata::client {

// Thread-safe.
class Core {
 public:
  static absl::StatusOr<std::shared_ptr<Core>> Make(const ClientOptions& options);
  Core(Connection connection, const ClientOptions& options);
  // Cancels the asynchronous calls that are under way, and waits for their ends.
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  Connection& connection() { return connection_; }
  const std::string& actor() const { return actor_; }
  int64_t retry_ms() const { return retry_ms_; }
  // A connection stands, or has stood.
  void Connected() { connected_.store(true, std::memory_order_relaxed); }
  // When to make the next attempt, now that one failed; unset: there is none. A server that never
  // was there is waited for less than one that restarts.
  std::optional<Attempts::Clock::time_point> AfterFailure(Attempts& attempts, Refusal refusal);
  // Of one attempt that waits at the server for so long.
  std::chrono::system_clock::time_point Deadline(absl::Duration wait) const {
    return std::chrono::system_clock::now() + timeout_ + absl::ToChronoMilliseconds(wait);
  }

  // One call of `method`, such as &v1::DocumentService::Stub::Get, as often as it has to be made.
  template <typename Stub, typename Request, typename Response>
  absl::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response,
                    absl::Duration wait = absl::ZeroDuration()) {
    Attempts attempts(KindOf<Request>());
    while (true) {
      grpc::ClientContext context;
      context.set_deadline(Deadline(wait));
      const grpc::Status status =
          (StubOf(static_cast<Stub*>(nullptr)).*method)(&context, request, response);
      if (status.ok()) {
        Connected();
        return absl::OkStatus();
      }
      const auto next = AfterFailure(attempts, RefusalOf(status));
      if (!next.has_value()) return attempts.status(RequestIdOf(request));
      std::this_thread::sleep_until(*next);
    }
  }

  // The same without waiting, with `prepare` such as &v1::DocumentService::Stub::PrepareAsyncGet.
  // `convert` makes the result of the request, of how the call ended, and of the response.
  template <typename Result, typename Stub, typename Request, typename Response>
  std::future<absl::StatusOr<Result>> CallAsync(
      std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> (Stub::*prepare)(
          grpc::ClientContext*, const Request&, grpc::CompletionQueue*),
      Request request, absl::StatusOr<Result> (*convert)(const Request&, absl::Status, Response&)) {
    auto* const call =
        new AsyncCall<Result, Stub, Request, Response>(*this, prepare, std::move(request), convert);
    std::future<absl::StatusOr<Result>> future = call->future();
    Add(call);
    call->Begin();
    return future;
  }

 private:
  // What a tag of the queue points to.
  class Pending {
   public:
    virtual ~Pending() = default;
    virtual void Proceed(bool ok) = 0;
    // REQUIRES: the mutex is held.
    virtual void Cancel() = 0;
  };

  template <typename Result, typename Stub, typename Request, typename Response>
  class AsyncCall;

  template <typename Request>
  static std::string RequestIdOf(const Request& request) {
    if constexpr (requires { request.request_id(); }) {
      return request.request_id();
    } else {
      return "";
    }
  }

  void Add(Pending* call);
  // The call is over; wakes the destructor with the last one.
  void Remove(Pending* call);
  void RunQueue();

  v1::DocumentService::Stub& StubOf(v1::DocumentService::Stub*) { return *connection_.documents; }
  v1::CollectionService::Stub& StubOf(v1::CollectionService::Stub*) {
    return *connection_.collections;
  }
  v1::EnrollmentService::Stub& StubOf(v1::EnrollmentService::Stub*) {
    return *connection_.enrollments;
  }
  v1::TransactionService::Stub& StubOf(v1::TransactionService::Stub*) {
    return *connection_.transactions;
  }
  v1::LeaseService::Stub& StubOf(v1::LeaseService::Stub*) { return *connection_.leases; }
  v1::FeedService::Stub& StubOf(v1::FeedService::Stub*) { return *connection_.feed; }
  v1::QueueService::Stub& StubOf(v1::QueueService::Stub*) { return *connection_.queues; }
  v1::ServerService::Stub& StubOf(v1::ServerService::Stub*) { return *connection_.servers; }

  Connection connection_;
  const std::string actor_;
  const std::chrono::milliseconds timeout_;
  const std::string target_;
  const int64_t retry_ms_;
  const int64_t connect_ms_;
  std::atomic<bool> connected_ = false;

  // One thread for all asynchronous calls, begun by the first.
  grpc::CompletionQueue queue_;
  std::mutex mutex_;  // guards what follows, and what Pending::Cancel looks at
  std::thread thread_;
  std::unordered_set<Pending*> pending_;
  std::condition_variable none_pending_;
  bool closing_ = false;
};

// Deletes itself when it is over.
template <typename Result, typename Stub, typename Request, typename Response>
class Core::AsyncCall : public Core::Pending {
 public:
  using Prepare = std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> (Stub::*)(
      grpc::ClientContext*, const Request&, grpc::CompletionQueue*);
  using Convert = absl::StatusOr<Result> (*)(const Request&, absl::Status, Response&);

  AsyncCall(Core& core, Prepare prepare, Request request, Convert convert)
      : core_(core),
        prepare_(prepare),
        request_(std::move(request)),
        convert_(convert),
        attempts_(KindOf<Request>()) {}

  std::future<absl::StatusOr<Result>> future() { return promise_.get_future(); }

  // What comes of it may end the call and delete it before this returns.
  void Begin() {
    {
      const std::lock_guard lock(core_.mutex_);
      waiting_ = false;
      context_.emplace();
      context_->set_deadline(core_.Deadline(absl::ZeroDuration()));
      if (core_.closing_) context_->TryCancel();
    }
    response_.Clear();
    reader_ =
        (core_.StubOf(static_cast<Stub*>(nullptr)).*prepare_)(&*context_, request_, &core_.queue_);
    reader_->StartCall();
    reader_->Finish(&response_, &status_, this);
  }

  // An answer came, or the pause is over.
  void Proceed(bool) override {
    if (waiting_) return Begin();
    if (status_.ok()) {
      core_.Connected();
      return End(absl::OkStatus());
    }
    const auto next = core_.AfterFailure(attempts_, RefusalOf(status_));
    if (!next.has_value() || !Wait(*next)) End(attempts_.status(RequestIdOf(request_)));
  }

  void Cancel() override {
    if (waiting_) {
      alarm_.Cancel();
    } else if (context_.has_value()) {
      context_->TryCancel();
    }
  }

 private:
  // False: not any more.
  bool Wait(Attempts::Clock::time_point until) {
    const std::lock_guard lock(core_.mutex_);
    if (core_.closing_) return false;
    waiting_ = true;
    const auto pause = std::chrono::duration_cast<std::chrono::system_clock::duration>(
        until - Attempts::Clock::now());
    alarm_.Set(&core_.queue_, std::chrono::system_clock::now() + pause, this);
    return true;
  }

  void End(absl::Status status) {
    promise_.set_value(convert_(request_, std::move(status), response_));
    core_.Remove(this);
    delete this;
  }

  Core& core_;
  const Prepare prepare_;
  const Request request_;
  const Convert convert_;
  Attempts attempts_;
  std::promise<absl::StatusOr<Result>> promise_;
  std::optional<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader_;
  Response response_;
  grpc::Status status_;
  grpc::Alarm alarm_;
  bool waiting_ = false;  // for the alarm
};

}  // namespace strata::client
