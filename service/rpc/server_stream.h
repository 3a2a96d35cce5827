// A stream of messages that answer one request, as its handler sees it.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

#include "absl/status/status.h"
#include "schemas/base/error.h"
#include "service/rpc/context.h"
#include "service/rpc/message_in_making.h"

namespace strata::rpc {

// A handler derives from it. Begin and OnReady are called for one thing after the other, as
// StreamHandler says; what is protected may be called on any thread.
template <typename Request, typename Message>
class ServerStream : public HandlerOf<Request> {
 public:
  explicit ServerStream(Stream& stream) : stream_(stream) {}

  int64_t unanswered_max() const final { return 2; }  // the request and its end, or one too many

  void OnRequest(const Request& request) final {
    if (begun_) return Finish(Error(ErrorReason::kInvalidMessage, "a second message came"));
    begun_ = true;
    if (absl::Status refused = Begin(request); !refused.ok()) Finish(refused);
  }
  void OnLastMessage() final {
    if (!begun_) return Finish(Error(ErrorReason::kInvalidMessage, "no message came"));
    if (!finished_) OnReady();
  }
  void OnSent() final {
    if (!finished_) OnReady();
  }
  void OnRoom() final {
    if (!finished_) OnReady();
  }
  void OnClosed() override {}

 protected:
  // How many messages a slow caller may leave waiting here.
  static constexpr size_t kWaitingMax = 4;

  // Takes the request in, or says how the stream ends.
  virtual absl::Status Begin(const Request& request) = 0;
  // There is room: the caller has sent all that it had to, or all that was sent to it has left, or
  // there may be what TakeRoom did not find. Not called after Finish.
  virtual void OnReady() = 0;

  // Whether there was room for the message; if not, OnReady follows. In OnReady there is room.
  bool Send(const Message& message) {
    const std::lock_guard lock(sending_);
    if (stream_.waiting() >= kWaitingMax) return false;
    stream_.Send(message);
    return true;
  }
  // As Stream, for a message in making.
  bool TakeRoom() { return stream_.TakeRoom(kMessageRoomBytes); }
  void ReturnRoom() { stream_.KeepRoom(0); }
  // Ends the stream after what was sent. Only the first counts.
  void Finish(const absl::Status& status) {
    finished_ = true;
    stream_.Finish(status);
  }
  const server::CallInfo& info() const { return stream_.info(); }

 private:
  Stream& stream_;
  bool begun_ = false;
  std::atomic<bool> finished_ = false;
  std::mutex sending_;  // so that senders look and send one after the other
};

}  // namespace strata::rpc
