// A call as its handler sees it: a request, somewhere to put the response, and the answer, which
// may be given now or later, on any thread. No handler sees gRPC.
#pragma once

#include <google/protobuf/arena.h>
#include <google/protobuf/message_lite.h>

#include <atomic>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "schemas/base/waiter.h"
#include "service/server/call_info.h"

namespace strata::server {

// One unary call. Thread-safe but for the messages, which belong to whoever handles the call.
class Call : public Waiter {
 public:
  using Time = CallInfo::Time;

  const CallInfo& info() const { return info_; }
  Time deadline() const { return info_.deadline; }
  // Nobody waits for the answer any more: a long walk may stop. The deadline passed, or the caller
  // gave up, which only scans and calls that wait are told of (Method).
  bool closed() const { return closed_.load(std::memory_order_relaxed); }
  // Keeps room for an answer of so many bytes, where Method::answer_bytes are not enough, as is
  // known only when the answer is; OVERLOADED: there is none. Before anything is done that an
  // answer must tell of. One call at a time.
  virtual absl::Status Reserve(size_t bytes) const = 0;
  bool gone() const final { return closed(); }
  const void* line() const final { return info_.caller.get(); }
  // Whether the handler may take long where it was called: it is the caller's turn.
  bool at_length() const { return at_length_; }

 protected:
  Call() = default;
  virtual ~Call() = default;

  // Sends the answer; the response counts only if the status is OK. At most one of several answers
  // is sent.
  virtual void Answer(const absl::Status& status) = 0;
  // The last handle is gone.
  virtual void Release() = 0;

  CallInfo info_;
  std::atomic<bool> closed_ = false;
  bool at_length_ = false;
  // Both on an arena that is gone with the last handle.
  google::protobuf::MessageLite* request_ = nullptr;
  google::protobuf::MessageLite* response_ = nullptr;

 private:
  friend class CallHandle;
  std::atomic<int> handles_ = 0;
};

// Keeps a call and its messages alive. A call whose last handle goes without an answer is answered
// INTERNAL. Cheap to copy.
class CallHandle {
 public:
  explicit CallHandle(Call& call) : call_(&call) { Acquire(); }
  CallHandle(const CallHandle& other) : call_(other.call_) { Acquire(); }
  CallHandle(CallHandle&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
  CallHandle& operator=(CallHandle other) {
    std::swap(call_, other.call_);
    return *this;
  }
  ~CallHandle() {
    if (call_ != nullptr && call_->handles_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      call_->Release();
    }
  }

  const Call& call() const { return *call_; }
  const google::protobuf::MessageLite& request() const { return *call_->request_; }
  google::protobuf::MessageLite& response() const { return *call_->response_; }
  void Answer(const absl::Status& status) const { call_->Answer(status); }

 private:
  void Acquire() {
    if (call_ != nullptr) call_->handles_.fetch_add(1, std::memory_order_relaxed);
  }

  Call* call_;
};

// The answer to one call, given later: fill `response()`, then `Ok()`; or `Fail(status)`.
template <typename Response>
class Reply {
 public:
  explicit Reply(CallHandle call) : call_(std::move(call)) {}

  const Call& call() const { return call_.call(); }
  Response& response() const { return static_cast<Response&>(call_.response()); }
  void Ok() const { call_.Answer(absl::OkStatus()); }
  // REQUIRES: `status` is not OK.
  void Fail(const absl::Status& status) const { call_.Answer(status); }

  // Answers with what `work`, which takes long and fills the response, returns when it is the
  // caller's turn: OVERLOADED if that never comes. What it works with lives as long as the reply.
  template <typename Work>
  void Later(Work work) const {
    const absl::Status taken = call().Defer([reply = *this, work = std::move(work)] {
      if (reply.call().closed()) return;
      reply.call_.Answer(work());
    });
    if (!taken.ok()) Fail(taken);
  }

 private:
  CallHandle call_;
};

// A call with messages in both directions. Thread-safe.
class Stream {
 public:
  virtual ~Stream() = default;

  const CallInfo& info() const { return info_; }

  // Sends a message after those before; dropped once the stream is closed. Whoever has much to
  // send waits for StreamHandler::OnSent in between: what a slow caller has not taken is kept here.
  virtual void Send(const google::protobuf::MessageLite& message) = 0;
  // How many of the messages sent have not left yet.
  virtual size_t waiting() const = 0;
  // Before a large message is made: whether its caller's share of the memory has room for
  // `bytes`, which are its from now on. If not, StreamHandler::OnRoom follows once there may be; so
  // what a caller does not read is not made.
  virtual bool TakeRoom(size_t bytes) = 0;
  // So much of the room that was taken is still needed for what is not sent yet; 0: none.
  virtual void KeepRoom(size_t bytes) = 0;
  // Ends the stream after what was sent. Only the first counts.
  virtual void Finish(const absl::Status& status) = 0;

 protected:
  CallInfo info_;
};

// Handles one stream: called for one thing after the other, never from within Send or Finish. On
// the event loop or, as its Method::Kind says, on the executor; made on the event loop.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  // The stream takes in a message only while fewer than so many wait for an answer, that is, for
  // something sent to have left; so a caller that does not read is not read either. Always the
  // same.
  virtual int64_t unanswered_max() const { return 1; }
  // Whether each message is answered by one. If not, a message counts as answered once the handler
  // has taken it in, and no more are taken in while unanswered_max of those sent have not left.
  // Always the same.
  virtual bool answers_each() const { return true; }
  // Whether the end of the messages has to be told from that of their caller: then OnLastMessage
  // comes a moment later, and not to one whose caller is found to be gone. Always the same.
  virtual bool tells_last_from_gone() const { return false; }
  // The largest message, in bytes, where that is less than any request may have. Always the same.
  virtual size_t message_bytes_max() const { return std::numeric_limits<size_t>::max(); }
  // A message of the type that the method's row makes, until this returns.
  virtual void OnMessage(const google::protobuf::MessageLite& message) = 0;
  // A message is too large or none of its type (INVALID_MESSAGE), there is no room for it
  // (OVERLOADED, QUOTA_EXCEEDED), or it asks for what its caller may not do, and it is gone.
  // Whether the handler answers it with the refusal and goes on; otherwise the stream ends so.
  virtual bool OnRefused(const absl::Status& /*refusal*/) { return false; }
  // The caller sends no more.
  virtual void OnLastMessage() = 0;
  // All that was sent has left for the caller, as far as it lets it.
  virtual void OnSent() {}
  // There may be the room that Stream::TakeRoom did not find.
  virtual void OnRoom() {}
  // The stream is over, for whatever reason. The handler is destroyed next; the stream may not be
  // used any more.
  virtual void OnClosed() = 0;
};

// One whose messages are requests of a certain type.
template <typename Request>
class HandlerOf : public StreamHandler {
 public:
  virtual void OnRequest(const Request& request) = 0;
  void OnMessage(const google::protobuf::MessageLite& message) final {
    OnRequest(static_cast<const Request&>(message));
  }
};

}  // namespace strata::server
