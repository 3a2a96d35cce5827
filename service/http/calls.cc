#include "service/http/calls.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "service/http/socket.h"
#include "service/server/status_mapping.h"
#include "service/server/stream_call.h"
#include "service/server/unary_call.h"

namespace strata::http {
namespace {

// Between two looks at whether the caller is still there.
constexpr std::chrono::milliseconds kLookInterval{500};

grpc::Status TooLate() { return {grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"}; }
grpc::Status GivenUp() { return {grpc::StatusCode::CANCELLED, "the caller gave up"}; }

grpc::ByteBuffer ToBuffer(std::string_view bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToText(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) return text;
  text.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

// Goes with whoever leaves it last: its thread or its handler.
class HttpUnaryCall final : public server::UnaryCall {
 public:
  HttpUnaryCall(std::shared_ptr<server::LoopState> state, const server::Endpoint& endpoint,
                std::string_view request)
      : UnaryCall(std::move(state), endpoint) {
    request_bytes_ = ToBuffer(request);
  }

  // The call may be gone then.
  grpc::Status Run(server::Arrival arrival, const IsGone& is_gone, std::string& response) {
    Arrive(std::move(arrival));
    state().Add(*this);
    Handle();
    grpc::Status status = Await(is_gone);
    state().Remove(*this);
    if (status.ok()) response = ToText(response_bytes_);
    Leave();
    Unref();
    return status;
  }

 private:
  grpc::Status Await(const IsGone& is_gone) {
    while (!AwaitAnswer(std::min(Clock::now() + kLookInterval, deadline()))) {
      const Time now = Clock::now();
      if (now >= expiry()) {
        Expire();
      } else if (now >= deadline()) {
        if (Abandon()) return TooLate();
      } else if (is_gone() && Abandon()) {
        return GivenUp();
      }
    }
    return *answer_;
  }

  bool AwaitAnswer(Time until) {
    std::unique_lock lock(mutex_);
    return came_.wait_until(lock, until, [this] { return answer_.has_value(); });
  }

  void Send(const absl::Status& status, const grpc::ByteBuffer& response) override {
    const std::lock_guard lock(mutex_);
    response_bytes_ = response;
    answer_ = server::ToGrpc(status);
    came_.notify_one();
  }
  void Cancel() override { Abandon(); }

  std::mutex mutex_;  // guards what follows
  std::condition_variable came_;
  std::optional<grpc::Status> answer_;
  grpc::ByteBuffer response_bytes_;
};

// What the stream asks for is done by the connection's thread, one thing after the other.
class HttpStreamCall final : public server::StreamCall {
 public:
  HttpStreamCall(std::shared_ptr<server::LoopState> state, const server::Endpoint& endpoint,
                 std::string_view request, const Take& take)
      : StreamCall(std::move(state), endpoint), request_(request), take_(take) {}

  grpc::Status Run(server::Arrival arrival, const IsGone& is_gone) {
    const Clock::time_point deadline = arrival.deadline;
    Arrive(std::move(arrival));
    Begin();
    while (!over_) {
      const auto event =
          NextEvent(std::min(Clock::now() + kLookInterval, left_ ? kNever : deadline));
      const Clock::time_point now = Clock::now();
      if (now >= deadline) Leave(TooLate());
      if (event != nullptr) {
        event();
      } else if (is_gone()) {
        Leave(GivenUp());
      } else {
        // An event queue that has nothing else to do does not look.
        state().admission.room_line().OfferAll();
      }
      Look(now);
    }
    return status_;
  }

 private:
  using Event = std::function<void()>;
  static constexpr Clock::time_point kNever = Clock::time_point::max();

  // On any thread.
  void Post(Event event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    posted_.notify_one();
  }
  // Null: none came by then.
  Event NextEvent(Clock::time_point until) {
    std::unique_lock lock(mutex_);
    if (!posted_.wait_until(lock, until, [this] { return !events_.empty(); })) return nullptr;
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

  // One message, and their end.
  void Read(grpc::ByteBuffer& message) override {
    const bool first = !std::exchange(read_, true);
    if (first) message = ToBuffer(request_);
    Post([this, first] { OnRead(first); });
  }
  void Write(const grpc::ByteBuffer& message) override {
    Post([this, &message] {
      const bool taken = !left_ && take_(ToText(message));
      OnWritten(taken);
      if (!taken) Leave(GivenUp());
    });
  }
  void WriteEnd(const absl::Status& status) override {
    Post([this, status] {
      OnFinished(true);
      Leave(server::ToGrpc(status));
    });
  }
  void Cancel() override {
    Post([this] { Leave(GivenUp()); });
  }
  void AskForLastRead() override {
    Post([this] { OnLastRead(true); });
  }
  void Wake() override {
    Post([this] { OnRoom(true); });
  }
  void EndTransport() override {
    Post([this] { over_ = true; });
  }

  // How the call ends for its caller; only the first counts.
  void Leave(const grpc::Status& status) {
    if (std::exchange(left_, true)) return;
    status_ = status;
    OnDone(true);
  }

  const std::string_view request_;
  const Take& take_;
  bool read_ = false;  // the request; with the stream's lock held

  // Of the connection's thread.
  grpc::Status status_;
  bool left_ = false;
  bool over_ = false;

  std::mutex mutex_;  // guards what follows
  std::condition_variable posted_;
  std::deque<Event> events_;
};

}  // namespace

grpc::Status CallUnary(const std::shared_ptr<server::LoopState>& state,
                       const server::Endpoint& endpoint, server::Arrival arrival,
                       std::string_view request, const IsGone& is_gone, std::string& response) {
  if (arrival.deadline <= Clock::now()) return TooLate();
  auto* const call = new HttpUnaryCall(state, endpoint, request);  // owns itself
  return call->Run(std::move(arrival), is_gone, response);
}

grpc::Status CallStream(const std::shared_ptr<server::LoopState>& state,
                        const server::Endpoint& endpoint, server::Arrival arrival,
                        std::string_view request, const IsGone& is_gone, const Take& take) {
  if (arrival.deadline <= Clock::now()) return TooLate();
  return HttpStreamCall(state, endpoint, request, take).Run(std::move(arrival), is_gone);
}

}  // namespace strata::http
