// The calls of FeedService, and the two streams that last.
#include "strata/client/feed.h"

#include <compare>
#include <deque>
#include <tuple>
#include <utility>

#include "clients/cpp/deliveries.h"
#include "clients/cpp/duplex.h"
#include "clients/cpp/requests.h"
#include "strata/v1/feed_service.grpc.pb.h"

namespace strata::client {
namespace {

using FeedStub = v1::FeedService::Stub;

// Where an event stands.
struct Place {
  int64_t position = 0;
  int32_t index = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

}  // namespace

// Reads in the caller's thread: what it does not take, the server does not send.
class Watch::Body {
 public:
  Body(std::shared_ptr<Core> core, const WatchOptions& options)
      : core_(std::move(core)), attempts_(KindOf<v1::WatchRequest>()) {
    status_ = FillRequest(*core_, options, request_);
    // Zero is a place too, which a writer of messages takes for unset.
    if (options.after_position.has_value()) request_.set_after_position(*options.after_position);
  }

  ~Body() {
    Cancel();
    if (stream_ != nullptr) stream_->Finish();
    Drop();
  }

  std::optional<WatchItem> Next() {
    while (items_.empty()) {
      if (!status_.ok() || cancelled()) return std::nullopt;
      reached_ = next_;
      if (!Read()) return std::nullopt;
    }
    WatchItem item = std::move(items_.front());
    items_.pop_front();
    if (items_.empty()) reached_ = next_;
    return item;
  }

  const absl::Status& status() const { return status_; }
  std::optional<int64_t> resume_position() const { return reached_.resume_position; }
  std::optional<int64_t> last_position() const { return reached_.last_position; }
  std::optional<Snapshot> snapshot() const { return reached_.snapshot; }

  void Cancel() {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (context_ != nullptr) context_->TryCancel();
    woken_.notify_all();
  }

 private:
  struct Progress {
    std::optional<int64_t> resume_position;
    std::optional<int64_t> last_position;
    std::optional<Snapshot> snapshot;
  };

  bool cancelled() {
    const std::lock_guard lock(mutex_);
    return cancelled_;
  }

  // One message, over a new stream if need be. False: there are no more.
  bool Read() {
    if (stream_ == nullptr) Open();
    v1::WatchResponse response;
    if (stream_->Read(&response)) {
      core_->Connected();
      attempts_.Succeeded();
      return Take(response);
    }
    const grpc::Status status = stream_->Finish();
    Drop();
    if (cancelled()) return false;
    Refusal refusal = RefusalOf(status);
    if (status.ok()) refusal.code = grpc::StatusCode::UNAVAILABLE;
    const auto next = core_->AfterFailure(attempts_, std::move(refusal));
    if (!next.has_value()) {
      status_ = attempts_.status("");
      return false;
    }
    std::unique_lock lock(mutex_);
    woken_.wait_until(lock, *next, [this] { return cancelled_; });
    return !cancelled_;
  }

  void Open() {
    {
      const std::lock_guard lock(mutex_);
      context_ = std::make_unique<grpc::ClientContext>();
      if (cancelled_) context_->TryCancel();
    }
    stream_ = core_->connection().feed->Watch(context_.get(), request_);
  }

  void Drop() {
    stream_.reset();
    const std::lock_guard lock(mutex_);
    context_.reset();
  }

  // The request becomes the one that goes on behind this message. A commit that takes several
  // messages comes again whole after a break, so what was given of it is passed over.
  bool Take(v1::WatchResponse& response) {
    for (v1::Event& message : *response.mutable_events()) {
      const Place place{message.position(), message.index()};
      if (last_.has_value() && place <= *last_) continue;
      last_ = place;
      absl::StatusOr<Event> event = ReadMessage<Event>(message);
      if (!event.ok()) return Fail(event.status());
      items_.push_back({.event = *std::move(event), .document = {}});
    }
    for (v1::Document& message : *response.mutable_documents()) {
      auto name = std::make_pair(message.collection(), message.id());
      if (last_document_.has_value() && name <= *last_document_) continue;
      last_document_ = std::move(name);
      absl::StatusOr<Document> document = ReadMessage<Document>(message);
      if (!document.ok()) return Fail(document.status());
      items_.push_back({.event = {}, .document = *std::move(document)});
    }
    if (response.has_snapshot()) {
      absl::StatusOr<Snapshot> snapshot = ReadMessage<Snapshot>(response.snapshot());
      if (!snapshot.ok()) return Fail(snapshot.status());
      next_.snapshot = *snapshot;
      *request_.mutable_snapshot() = response.snapshot();
    }
    next_.last_position = response.last_position();
    // Zero is a place like others: before the first commit of a store.
    const bool copying = response.has_snapshot() && !response.snapshot().complete();
    if (!copying) {
      next_.resume_position = response.resume_position();
      request_.set_after_position(response.resume_position());
    }
    return true;
  }

  bool Fail(absl::Status status) {
    status_ = std::move(status);
    return false;
  }

  const std::shared_ptr<Core> core_;
  v1::WatchRequest request_;
  Attempts attempts_;
  absl::Status status_;
  std::deque<WatchItem> items_;
  std::optional<Place> last_;
  std::optional<std::pair<std::string, std::string>> last_document_;
  // What the last message says is true once all of its items have been given.
  Progress next_;
  Progress reached_;
  std::unique_ptr<grpc::ClientReader<v1::WatchResponse>> stream_;

  std::mutex mutex_;  // guards what follows, but for its use by the reading thread
  std::condition_variable woken_;
  std::unique_ptr<grpc::ClientContext> context_;
  bool cancelled_ = false;
};

Watch::Watch(std::shared_ptr<Core> core, const WatchOptions& options)
    : body_(std::make_unique<Body>(std::move(core), options)) {}
Watch::Watch(Watch&&) noexcept = default;
Watch& Watch::operator=(Watch&&) noexcept = default;
Watch::~Watch() = default;
std::optional<WatchItem> Watch::Next() { return body_->Next(); }
absl::Status Watch::status() const { return body_->status(); }
std::optional<int64_t> Watch::resume_position() const { return body_->resume_position(); }
std::optional<int64_t> Watch::last_position() const { return body_->last_position(); }
bool Watch::caught_up() const {
  return resume_position().has_value() && resume_position() >= last_position();
}
std::optional<Snapshot> Watch::snapshot() const { return body_->snapshot(); }
void Watch::Cancel() { body_->Cancel(); }

class Consumer::Body : public Duplex<v1::ConsumeRequest, v1::ConsumeResponse> {
 public:
  Body(std::shared_ptr<Core> core, const std::string& subscription, const std::string& consumer,
       const ConsumeOptions& options)
      : Duplex(std::move(core)) {
    v1::ConsumeRequest::Open& open = *open_.mutable_open();
    status_ = FillRequest(*core_, options, open);
    open.set_subscription(subscription);
    open.set_consumer(consumer);
    Start();
  }
  ~Body() override {
    Close();
    Stop();
  }

  std::optional<Delivery> Next(absl::Duration patience) {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return over_ || closing_ || !deliveries_.empty(); };
    if (patience == absl::InfiniteDuration()) {
      changed_.wait(lock, ready);
    } else if (!changed_.wait_for(lock, absl::ToChronoMicroseconds(patience), ready)) {
      return std::nullopt;
    }
    if (over_ || closing_) return std::nullopt;
    const Deliveries::Taken taken = deliveries_.Next();
    absl::StatusOr<Delivery> delivery = ReadMessage<Delivery>(taken.delivery);
    if (!delivery.ok()) {
      status_ = delivery.status();
      closing_ = true;
      changed_.notify_all();
      return std::nullopt;
    }
    delivery->partition = taken.partition;
    delivery->stream = stream_number_;
    delivery->term = taken.term;
    return *std::move(delivery);
  }

  void Ack(const Delivery& delivery) {
    const std::lock_guard lock(mutex_);
    if (!Holds(delivery)) return;
    v1::ConsumeRequest::Ack& ack = *words_.emplace_back().mutable_ack();
    ack.set_partition(delivery.partition);
    ack.set_position(delivery.event.position);
    ack.set_index(delivery.event.index);
    changed_.notify_all();
  }

  void Nack(const Delivery& delivery, const std::string& reason, bool park) {
    const std::lock_guard lock(mutex_);
    if (!Holds(delivery)) return;
    v1::ConsumeRequest::Nack& nack = *words_.emplace_back().mutable_nack();
    nack.set_partition(delivery.partition);
    nack.set_position(delivery.event.position);
    nack.set_index(delivery.event.index);
    nack.set_reason(reason);
    nack.set_park(park);
    changed_.notify_all();
    if (delivery.replay) return;
    deliveries_.Fail(delivery.partition, {delivery.event.position, delivery.event.index});
  }

  void Close() {
    std::unique_lock lock(mutex_);
    closing_ = true;
    changed_.notify_all();
    // Not for ever: a server that does not answer must not keep whoever wants to leave.
    if (!changed_.wait_for(lock, kClosePatience, [this] { return over_; })) {
      lock.unlock();
      Stop();
    }
  }

  absl::Status status() {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  static constexpr std::chrono::seconds kClosePatience{10};

  std::unique_ptr<Stream> Open(grpc::ClientContext* context) override {
    return core_->connection().feed->Consume(context);
  }

  void Opened() override {
    ++stream_number_;
    deliveries_.Begin();
    words_ = {open_};
  }

  void Received(v1::ConsumeResponse& response) override {
    Succeeded();
    deliveries_.Add(response);
  }

  bool Holds(const Delivery& delivery) const {
    return delivery.stream == stream_number_ &&
           deliveries_.Holds(delivery.partition, delivery.lease.token, delivery.term,
                             delivery.replay);
  }

  bool HasWrite() override { return !words_.empty(); }
  v1::ConsumeRequest TakeWrite() override {
    v1::ConsumeRequest word = std::move(words_.front());
    words_.pop_front();
    return word;
  }
  bool WantsEnd() override { return closing_; }
  // A stream that breaks while it is closed is as good as closed: its events come again.
  bool Ends(bool) override { return closing_ || !status_.ok(); }

  v1::ConsumeRequest open_;
  int64_t stream_number_ = 0;
  bool closing_ = false;
  std::deque<v1::ConsumeRequest> words_;
  Deliveries deliveries_;
};

Consumer::Consumer(std::shared_ptr<Core> core, const std::string& subscription,
                   const std::string& consumer, const ConsumeOptions& options)
    : body_(std::make_unique<Body>(std::move(core), subscription, consumer, options)) {}
Consumer::Consumer(Consumer&&) noexcept = default;
Consumer& Consumer::operator=(Consumer&&) noexcept = default;
Consumer::~Consumer() = default;
std::optional<Delivery> Consumer::Next(absl::Duration patience) { return body_->Next(patience); }
void Consumer::Ack(const Delivery& delivery) { body_->Ack(delivery); }
void Consumer::Nack(const Delivery& delivery, const std::string& reason, bool park) {
  body_->Nack(delivery, reason, park);
}
void Consumer::Close() { body_->Close(); }
absl::Status Consumer::status() const { return body_->status(); }

absl::StatusOr<Subscription> Subscriptions::Create(const std::string& name,
                                                   const CreateSubscriptionOptions& options) const {
  v1::CreateSubscriptionRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_name(name);
  v1::CreateSubscriptionResponse response;
  if (status.ok()) status = core_->Call(&FeedStub::CreateSubscription, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<Subscription>(response.subscription());
}

absl::StatusOr<SubscriptionState> Subscriptions::Get(const std::string& name) const {
  v1::GetSubscriptionRequest request;
  request.set_name(name);
  v1::GetSubscriptionResponse response;
  absl::Status status = core_->Call(&FeedStub::GetSubscription, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<SubscriptionState>(response);
}

Range<Subscription> Subscriptions::List(const ListSubscriptionsOptions& options) const {
  v1::ListSubscriptionsRequest request;
  absl::Status filled = FillRequest(*core_, options, request);
  return Pages<Subscription>(
      core_, &FeedStub::ListSubscriptions, std::move(request), std::move(filled),
      [](const auto& response) -> auto& { return response.subscriptions(); });
}

absl::Status Subscriptions::Delete(const std::string& name) const {
  v1::DeleteSubscriptionRequest request;
  request.set_name(name);
  v1::DeleteSubscriptionResponse response;
  return core_->Call(&FeedStub::DeleteSubscription, request, &response);
}

Consumer Subscriptions::Consume(const std::string& name, const std::string& consumer,
                                const ConsumeOptions& options) const {
  return Consumer(core_, name, consumer, options);
}

Range<ParkedDocument> Subscriptions::Parked(const std::string& name,
                                            const ListParkedOptions& options) const {
  v1::ListParkedRequest request;
  absl::Status filled = FillRequest(*core_, options, request);
  request.set_subscription(name);
  return Pages<ParkedDocument>(
      core_, &FeedStub::ListParked, std::move(request), std::move(filled),
      [](const auto& response) -> auto& { return response.documents(); });
}

absl::StatusOr<int32_t> Subscriptions::ReplayParked(const std::string& name,
                                                    const ParkedOptions& options) const {
  v1::ReplayParkedRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_subscription(name);
  v1::ReplayParkedResponse response;
  if (status.ok()) status = core_->Call(&FeedStub::ReplayParked, request, &response);
  if (!status.ok()) return status;
  return response.documents();
}

absl::StatusOr<int32_t> Subscriptions::DiscardParked(const std::string& name,
                                                     const ParkedOptions& options) const {
  v1::DiscardParkedRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_subscription(name);
  v1::DiscardParkedResponse response;
  if (status.ok()) status = core_->Call(&FeedStub::DiscardParked, request, &response);
  if (!status.ok()) return status;
  return response.documents();
}

}  // namespace strata::client
