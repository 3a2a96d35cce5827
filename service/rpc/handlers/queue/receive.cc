#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "service/rpc/message_in_making.h"
#include "service/rpc/outlived.h"
#include "service/rpc/queue_messages.h"
#include "service/rpc/resources.h"

namespace strata::rpc::queue_service {
namespace {

using wire::ReceiveRequest;
using wire::ReceiveResponse;

// A message has tokens and a reason only.
constexpr size_t kMessageBytesMax = size_t{64} << 10;
// Messages sent that wait for the caller: past so many it is not listened to either.
constexpr int64_t kWaitingMax = 16;
// Messages of the queue's that wait for the caller in so many messages of the stream at most; what
// else was handed out waits here, and no more is handed out meanwhile.
constexpr size_t kUnsentMax = 4;
// The room that is taken before messages are handed out: for what is handed out at once, the last
// message with it.
constexpr size_t kHandedRoomBytes = queue::kStreamedBytesMax + (size_t{1} << 20);
// Tokens that a caller has said something of, and of which it has not been told what became.
constexpr size_t kUnansweredTokensMax = 10'000;

absl::Status InvalidMessage(std::string_view problem) {
  return Error(ErrorReason::kInvalidMessage, problem);
}

// Whether a caller may still have the queue's messages: its stream is open for long, and what it
// may do can change meanwhile.
class ReceiveAccess {
 public:
  ReceiveAccess(security::Access& access, const server::CallInfo& info, std::string queue)
      : access_(access), identity_(info.identity), peer_(info.peer), queue_(std::move(queue)) {}

  // CREDENTIALS_INVALID, PERMISSION_DENIED.
  absl::Status Check() const {
    RETURN_IF_ERROR(access_.CheckStillValid(*identity_));
    return access_.Authorize(*identity_, {OnQueue(security::Permission::kWrite, queue_)}, peer_);
  }

 private:
  security::Access& access_;
  const std::shared_ptr<const security::Identity> identity_;
  const std::string peer_;
  const std::string queue_;
};

// The messages of one stream. Outlives it where somebody has something to tell it when it ends.
class Messages final : public queue::ReceiverSink {
 public:
  Messages(const ReceiveRequest::Open& open, Stream& stream, ReceiveAccess access)
      : encoding_(open.encoding()), access_(std::move(access)), stream_(stream) {}

  // The first message, without anything: whoever waits for messages knows that it is let in. What
  // was handed out before that follows.
  void SayOpen() {
    const std::lock_guard lock(mutex_);
    Send(ReceiveResponse());
    open_ = true;
    SendMessages();
  }
  // Nobody is there any more.
  void Close() { stream_.Close(); }
  absl::Status Admit() const { return access_.Check(); }
  // Whether it was the server that ended the stream, in so far as it is known here.
  bool ended() const { return ended_; }

  // Before the receiver is called: so many tokens are to be answered. OVERLOADED.
  absl::Status Expect(size_t tokens) {
    const std::lock_guard lock(mutex_);
    if (unanswered_tokens_ + tokens > kUnansweredTokensMax) {
      return Error(ErrorReason::kOverloaded, "more than " + std::to_string(kUnansweredTokensMax) +
                                                 " tokens wait for their results; read these");
    }
    unanswered_tokens_ += tokens;
    return absl::OkStatus();
  }
  // Nothing more is asked: the stream ends when all is answered.
  void EndOnceAnswered() {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
    unsent_.clear();
    EndIfAnswered();
  }
  // All that was sent has left. Whether there is room again for more of the queue's messages, where
  // there was none.
  bool SendMore() {
    const std::lock_guard lock(mutex_);
    if (unsent_.empty()) return false;
    SendMessages();
    return unsent_.empty();
  }
  // There may be the room that there was not.
  void LookForRoom() {
    const std::lock_guard lock(mutex_);
    awaits_room_ = false;
  }

  bool closed() const override { return stream_.closed(); }
  bool full() const override {
    const std::lock_guard lock(mutex_);
    return !open_ || !unsent_.empty() || awaits_room_;
  }
  bool TakeRoom() override {
    const std::lock_guard lock(mutex_);
    bool taken = false;
    stream_.IfOpen([&](Stream& stream) { taken = stream.TakeRoom(kHandedRoomBytes); });
    awaits_room_ = !taken;
    return taken;
  }
  void KeepRoom(size_t bytes) override {
    const std::lock_guard lock(mutex_);
    stream_.IfOpen([&](Stream& stream) { stream.KeepRoom(bytes); });
  }

  void Deliver(std::vector<queue::MessageView> messages) override {
    if (const absl::Status refused = Admit(); !refused.ok()) return End(refused);
    const std::lock_guard lock(mutex_);
    if (leaving_) return;
    for (queue::MessageView& message : messages) unsent_.push_back(std::move(message));
    SendMessages();
  }

  void Answer(std::vector<std::string> tokens,
              std::vector<absl::StatusOr<bool>> replayed) override {
    ReceiveResponse message;
    ReceiveResponse::Results& results = *message.mutable_results();
    for (const absl::StatusOr<bool>& each : replayed) FillTokenResult(each, *results.add_results());
    const std::lock_guard lock(mutex_);
    unanswered_tokens_ -= tokens.size();
    for (std::string& token : tokens) results.add_tokens(std::move(token));
    Send(message);
    EndIfAnswered();
  }

  void End(absl::Status status) override {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
    unsent_.clear();
    Finish(status);
  }

 private:
  // With the lock held, so that all comes in order.
  void Send(const ReceiveResponse& message) {
    stream_.IfOpen([&](Stream& stream) { stream.Send(message); });
  }
  void Finish(const absl::Status& status) {
    ended_ = true;
    stream_.IfOpen([&](Stream& stream) { stream.Finish(status); });
  }
  void EndIfAnswered() {
    if (leaving_ && !ended_ && unanswered_tokens_ == 0) Finish(absl::OkStatus());
  }
  bool has_room() {
    bool room = false;
    stream_.IfOpen([&](Stream& stream) { room = stream.waiting() < kUnsentMax; });
    return room;
  }
  void SendMessages() {
    while (open_ && !unsent_.empty() && has_room()) {
      auto& messages = *made_.message().mutable_messages()->mutable_messages();
      for (; !unsent_.empty(); unsent_.pop_front()) {
        const absl::Status filled = FillMessage(unsent_.front(), encoding_, *messages.Add());
        if (!filled.ok()) {
          unsent_.clear();
          made_.Clear();
          return Finish(filled);
        }
        if (!made_.Keep(messages)) break;
      }
      Send(made_.message());
      made_.Clear();
    }
    size_t bytes = 0;
    for (const queue::MessageView& message : unsent_) {
      bytes += message.message.payload.size() + message.message.headers.size();
    }
    stream_.IfOpen([&](Stream& stream) { stream.KeepRoom(bytes); });
  }

  const wire::Encoding encoding_;
  const ReceiveAccess access_;
  std::atomic<bool> ended_ = false;

  mutable std::mutex mutex_;  // guards what follows
  bool open_ = false;
  bool leaving_ = false;
  bool awaits_room_ = false;
  size_t unanswered_tokens_ = 0;
  std::deque<queue::MessageView> unsent_;
  MessageInMaking<ReceiveResponse> made_;
  Outlived<Stream> stream_;
};

class Receive final : public HandlerOf<ReceiveRequest> {
 public:
  Receive(const Services& services, Stream& stream) : services_(services), stream_(stream) {}

  int64_t unanswered_max() const override { return kWaitingMax; }
  bool answers_each() const override { return false; }
  bool tells_last_from_gone() const override { return true; }
  size_t message_bytes_max() const override { return kMessageBytesMax; }

  void OnRequest(const ReceiveRequest& request) override {
    if (ended_) return;
    if (receiver_ != nullptr) {
      if (const absl::Status refused = messages_->Admit(); !refused.ok()) return End(refused);
    }
    if (const absl::Status refused = Take(request); !refused.ok()) End(refused);
  }

  // The call ends with it; what is out has not failed for that.
  bool OnRefused(const absl::Status& /*refusal*/) override {
    Leave();
    return false;
  }

  void OnLastMessage() override {
    if (ended_) return;
    if (receiver_ == nullptr) return End(InvalidMessage("no message came"));
    ended_ = true;
    receiver_->Leave(/*orderly=*/true);
    messages_->EndOnceAnswered();
  }

  void OnSent() override {
    if (!ended_ && receiver_ != nullptr && messages_->SendMore()) receiver_->Ready();
  }

  void OnRoom() override {
    if (ended_ || receiver_ == nullptr) return;
    messages_->LookForRoom();
    receiver_->Ready();
  }

  void OnClosed() override {
    if (messages_ != nullptr) messages_->Close();
    if (receiver_ != nullptr) receiver_->Leave(messages_->ended() || IsOld());
    receiver_.reset();
  }

 private:
  absl::Status Take(const ReceiveRequest& request) {
    if (request.has_open()) return Open(request.open());
    if (receiver_ == nullptr) return InvalidMessage("the first message has to be an open");
    switch (request.message_case()) {
      case ReceiveRequest::kAcknowledge: {
        ASSIGN_OR_RETURN(std::vector<std::string> tokens,
                         ToTokens("acknowledge.tokens", request.acknowledge().tokens()));
        RETURN_IF_ERROR(messages_->Expect(tokens.size()));
        receiver_->Acknowledge(std::move(tokens));
        return absl::OkStatus();
      }
      case ReceiveRequest::kRollback: {
        ASSIGN_OR_RETURN(queue::RollbackRequest rollback,
                         ToRollback("rollback", request.rollback()));
        RETURN_IF_ERROR(messages_->Expect(rollback.tokens.size()));
        rollback.deadline = std::chrono::steady_clock::now() + services_.deadline;
        return receiver_->Rollback(std::move(rollback));
      }
      case ReceiveRequest::kExtend:
        return Extend(request.extend());
      case ReceiveRequest::kCredits:
        return receiver_->AddCredits(request.credits().count());
      default:
        return InvalidMessage("a message without acknowledge, rollback, extend or credits came");
    }
  }

  absl::Status Extend(const ReceiveRequest::Extend& extend) {
    ASSIGN_OR_RETURN(std::vector<std::string> tokens, ToTokens("extend.tokens", extend.tokens()));
    std::optional<std::chrono::microseconds> timeout;
    if (extend.has_timeout()) {
      ASSIGN_OR_RETURN(timeout, ToDuration("extend.timeout", extend.timeout()));
    }
    RETURN_IF_ERROR(messages_->Expect(tokens.size()));
    return receiver_->Extend(std::move(tokens), timeout);
  }

  absl::Status Open(const ReceiveRequest::Open& open) {
    if (receiver_ != nullptr) return InvalidMessage("a second open came");
    RETURN_IF_ERROR(InField(CheckEncoding(open.encoding()), "open"));
    queue::ReceiveRequest receive;
    receive.queue = open.queue();
    receive.credits = open.credits();
    if (open.has_timeout()) {
      ASSIGN_OR_RETURN(receive.timeout, ToDuration("open.timeout", open.timeout()));
    }
    messages_ = std::make_shared<Messages>(
        open, stream_, ReceiveAccess(services_.access, stream_.info(), open.queue()));
    ASSIGN_OR_RETURN(receiver_, services_.queues.Receive(std::move(receive), messages_));
    messages_->SayOpen();
    receiver_->Ready();
    return absl::OkStatus();
  }

  // What is out goes to others at once.
  void Leave() {
    ended_ = true;
    if (messages_ != nullptr) messages_->Close();
    if (receiver_ != nullptr) receiver_->Leave(/*orderly=*/true);
  }
  void End(const absl::Status& status) {
    Leave();
    stream_.Finish(status);
  }
  // Then it was the server that ended it.
  bool IsOld() const {
    return services_.stream_age_max.count() > 0 &&
           std::chrono::steady_clock::now() - opened_ >= services_.stream_age_max;
  }

  const Services& services_;
  Stream& stream_;
  const std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  std::shared_ptr<Messages> messages_;
  std::unique_ptr<queue::Receiver> receiver_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<HandlerOf<ReceiveRequest>> OpenReceive(const Services& services, Stream& stream) {
  return std::make_unique<Receive>(services, stream);
}

}  // namespace strata::rpc::queue_service
