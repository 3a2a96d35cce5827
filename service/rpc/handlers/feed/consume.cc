#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/feed/subscriptions.h"
#include "service/rpc/convert.h"
#include "service/rpc/handlers/feed/events.h"
#include "service/rpc/lease_messages.h"

namespace strata::rpc::feed_service {
namespace {

using wire::ConsumeRequest;
using wire::ConsumeResponse;

// A message has names and a reason only.
constexpr size_t kMessageBytesMax = size_t{8} << 10;
// Messages sent that wait for the caller: past so many it is not listened to either.
constexpr int64_t kWaitingMax = 16;

absl::Status InvalidMessage(std::string_view problem) {
  return Error(ErrorReason::kInvalidMessage, problem);
}

absl::StatusOr<feed::ConsumeQuery> ToQuery(const ConsumeRequest::Open& open,
                                           const std::string& caller) {
  RETURN_IF_ERROR(InField(CheckEncoding(open.encoding()), "open"));
  feed::ConsumeQuery query;
  query.caller = caller;
  query.subscription = open.subscription();
  query.consumer = open.consumer();
  if (open.window() != 0) query.window = open.window();
  query.include_content = open.include_content();
  query.include_before = open.include_before();
  query.include_changes = open.include_changes();
  return query;
}

// The messages of one stream. Outlives it where somebody has something to tell it when it ends.
class Messages final : public feed::ConsumerSink {
 public:
  Messages(const ConsumeRequest::Open& open, Stream& stream) : form_(open), stream_(stream) {}

  // The first message, without anything: whoever waits for a partition knows that it is let in.
  void SayOpen() { Send(ConsumeResponse()); }
  // Before anything is asked of it.
  void SetAccess(const EventAccess& access) { access_.emplace(access); }
  void Close() { stream_.Close(); }

  // Whether the message of deliveries that was sent has left. Once for each.
  bool HasLeft() {
    bool left = false;
    stream_.IfOpen([&](Stream& stream) { left = stream.waiting() == 0; });
    return left && deliveries_under_way_.exchange(false);
  }

  bool closed() const override { return stream_.closed(); }
  absl::Status Admit() override { return access_->Check(); }

  void Assigned(int32_t partition, store::Stamp token, const lease::Place& place) override {
    ConsumeResponse message;
    ConsumeResponse::Assigned& assigned = *message.mutable_assigned();
    assigned.set_partition(partition);
    assigned.set_token(token);
    assigned.set_position(place.position);
    if (place.index) assigned.set_index(*place.index);
    Send(message);
  }

  void Revoked(int32_t partition, feed::RevokeReason reason) override {
    ConsumeResponse message;
    message.mutable_revoked()->set_partition(partition);
    message.mutable_revoked()->set_reason(static_cast<wire::RevokeReason>(reason));
    Send(message);
  }

  void Acknowledged(int32_t partition, const lease::Place& place) override {
    ConsumeResponse message;
    ConsumeResponse::Acknowledged& acknowledged = *message.mutable_acknowledged();
    acknowledged.set_partition(partition);
    acknowledged.set_position(place.position);
    if (place.index) acknowledged.set_index(*place.index);
    Send(message);
  }

  bool TakeRoom() override {
    bool taken = false;
    stream_.IfOpen([&](Stream& stream) { taken = stream.TakeRoom(kMessageRoomBytes); });
    return taken;
  }

  bool Add(int32_t /*partition*/, feed::Delivery&& delivery) override {
    auto& deliveries = *made_.message().mutable_deliveries()->mutable_deliveries();
    wire::Delivery& added = *deliveries.Add();
    form_.Fill(delivery.event, *added.mutable_event());
    added.set_attempt(delivery.attempt);
    added.set_replay(delivery.replay);
    FillLeaseToken(delivery.lease, *added.mutable_lease());
    return made_.Keep(deliveries);
  }

  void SendDeliveries(int32_t partition) override {
    made_.message().mutable_deliveries()->set_partition(partition);
    deliveries_under_way_ = true;
    Send(made_.message());
    made_.Clear();
    stream_.IfOpen([](Stream& stream) { stream.KeepRoom(0); });
  }

  void Finish(const absl::Status& status) override {
    stream_.IfOpen([&](Stream& stream) { stream.Finish(status); });
  }

 private:
  void Send(const ConsumeResponse& message) {
    stream_.IfOpen([&](Stream& stream) { stream.Send(message); });
  }

  const EventForm form_;
  std::optional<EventAccess> access_;
  MessageInMaking<ConsumeResponse> made_;
  std::atomic<bool> deliveries_under_way_ = false;
  Outlived<Stream> stream_;
};

class Consume final : public HandlerOf<ConsumeRequest> {
 public:
  Consume(const Services& services, Stream& stream) : services_(services), stream_(stream) {}

  int64_t unanswered_max() const override { return kWaitingMax; }
  bool answers_each() const override { return false; }
  bool tells_last_from_gone() const override { return true; }
  size_t message_bytes_max() const override { return kMessageBytesMax; }

  void OnRequest(const ConsumeRequest& request) override {
    if (ended_) return;
    if (consumer_ != nullptr) {
      if (const absl::Status refused = messages_->Admit(); !refused.ok()) {
        OnRefused(refused);
        return stream_.Finish(refused);
      }
    }
    if (const absl::Status refused = Take(request); !refused.ok()) End(refused);
  }

  // The call ends with it; what was delivered has not failed for that.
  bool OnRefused(const absl::Status& /*refusal*/) override {
    ended_ = true;
    if (messages_ != nullptr) messages_->Close();
    if (consumer_ != nullptr) consumer_->Leave();
    return false;
  }

  void OnLastMessage() override {
    if (ended_) return;
    if (consumer_ == nullptr) return End(InvalidMessage("no message came"));
    consumer_->Leave();
  }

  void OnSent() override {
    if (consumer_ != nullptr && messages_->HasLeft()) consumer_->Ready();
  }
  void OnRoom() override {
    if (consumer_ != nullptr) consumer_->Ready();
  }

  void OnClosed() override {
    if (messages_ != nullptr) messages_->Close();
    consumer_.reset();
  }

 private:
  absl::Status Take(const ConsumeRequest& request) {
    if (request.has_open()) return Open(request.open());
    if (consumer_ == nullptr) return InvalidMessage("the first message has to be an open");
    switch (request.message_case()) {
      case ConsumeRequest::kAck: {
        const ConsumeRequest::Ack& ack = request.ack();
        return consumer_->Ack(ack.partition(), {ack.position(), ack.index()});
      }
      case ConsumeRequest::kNack: {
        const ConsumeRequest::Nack& nack = request.nack();
        return consumer_->Nack(nack.partition(), {nack.position(), nack.index()}, nack.reason(),
                               nack.park());
      }
      default:
        return InvalidMessage("a message without ack or nack came");
    }
  }

  // What it takes to read the subscription's events is known only with the subscription.
  absl::Status Open(const ConsumeRequest::Open& open) {
    if (consumer_ != nullptr) return InvalidMessage("a second open came");
    ASSIGN_OR_RETURN(feed::ConsumeQuery query, ToQuery(open, stream_.info().caller->name()));
    messages_ = std::make_shared<Messages>(open, stream_);
    ASSIGN_OR_RETURN(consumer_, services_.subscriptions.Open(std::move(query), messages_));
    messages_->SetAccess(EventAccess(services_.access, stream_.info(),
                                     consumer_->subscription().selection.collections,
                                     open.subscription()));
    RETURN_IF_ERROR(messages_->Admit());
    messages_->SayOpen();
    consumer_->Ready();
    return absl::OkStatus();
  }

  // At once, so that others need not wait for what a caller that is refused had.
  void End(const absl::Status& status) {
    ended_ = true;
    if (messages_ != nullptr) messages_->Close();
    consumer_.reset();
    stream_.Finish(status);
  }

  const Services& services_;
  Stream& stream_;
  std::shared_ptr<Messages> messages_;
  std::unique_ptr<feed::Consumer> consumer_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<HandlerOf<ConsumeRequest>> OpenConsume(const Services& services, Stream& stream) {
  return std::make_unique<Consume>(services, stream);
}

}  // namespace strata::rpc::feed_service
