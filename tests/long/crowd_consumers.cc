// Consumers of subscriptions in the crowd, none of whom ever fails: each version comes to one of
// them, those of a document in their order, and none is parked.
#include <algorithm>
#include <thread>
#include <utility>

#include "strata/v1/document_service.grpc.pb.h"
#include "strata/v1/feed_service.grpc.pb.h"
#include "tests/long/crowd.h"

namespace strata::fault {
namespace {

using Documents = v1::DocumentService::Stub;
using Feed = v1::FeedService::Stub;

constexpr int kOrders = 24;
constexpr int kWriters = 2;
constexpr int kConsumers = 3;  // of each subscription

// What its consumers were told.
struct Consumed {
  std::string name;
  int attempts_max = 0;
  bool breaks = false;                  // streams break off in the midst of work
  std::map<std::string, int64_t> seen;  // up to which version, by document
};

class ConsumerCrowd final : public Part {
 public:
  explicit ConsumerCrowd(Crowd& crowd) : crowd_(crowd) {
    // Nobody's streams break: no event ever fails. Where they do, an event may have been begun by
    // as many as died.
    consumed_[0] = {"steady", 3, false, {}};
    consumed_[1] = {"breaking", 1'000, true, {}};
  }

  std::vector<std::string> callers() const override {
    std::vector<std::string> names;
    for (int i = 0; i < kWriters; ++i) names.push_back("orders-" + std::to_string(i));
    for (const Consumed& each : consumed_) {
      for (int i = 0; i < kConsumers; ++i) names.push_back(each.name + "-" + std::to_string(i));
    }
    return names;
  }

  void SetUp(Caller& caller) override {
    const auto feed = v1::FeedService::NewStub(caller.channel());
    for (const Consumed& each : consumed_) {
      v1::CreateSubscriptionRequest request;
      request.set_name(each.name);
      request.add_collections("orders");
      request.set_after_position(0);
      request.set_partitions(8);
      request.set_max_attempts(each.attempts_max);
      request.mutable_backoff_first()->set_nanos(10'000'000);
      request.mutable_backoff_max()->set_nanos(100'000'000);
      request.mutable_ack_timeout()->set_seconds(30);
      request.mutable_lease_ttl()->set_seconds(1);  // less than the server is stopped for
      v1::CreateSubscriptionResponse response;
      caller.Do("CreateSubscription", *feed, &Feed::CreateSubscription, request, response);
    }
  }

  std::vector<std::function<void()>> Members() override {
    std::vector<std::function<void()>> members;
    for (int i = 0; i < kWriters; ++i) {
      members.push_back([this, i] { Write("orders-" + std::to_string(i)); });
    }
    for (Consumed& each : consumed_) {
      for (int i = 0; i < kConsumers; ++i) {
        members.push_back([this, &each, i] { Consume(each, each.name + "-" + std::to_string(i)); });
      }
    }
    return members;
  }

  std::string Open(Caller& /*caller*/) override {
    const std::lock_guard lock(mutex_);
    for (const Consumed& each : consumed_) {
      for (const auto& [id, version] : written_) {
        const auto seen = each.seen.find(id);
        if (seen == each.seen.end() || seen->second < version) {
          return each.name + " has not seen version " + std::to_string(version) + " of " + id;
        }
      }
    }
    return "";
  }

  void Check(Caller& caller) override {
    const auto feed = v1::FeedService::NewStub(caller.channel());
    for (const Consumed& each : consumed_) {
      v1::GetSubscriptionRequest request;
      request.set_name(each.name);
      v1::GetSubscriptionResponse response;
      if (!caller.Do("GetSubscription", *feed, &Feed::GetSubscription, request, response)) continue;
      if (response.parked() > 0) {
        v1::ListParkedRequest list;
        list.set_subscription(each.name);
        v1::ListParkedResponse parked;
        caller.Do("ListParked", *feed, &Feed::ListParked, list, parked);
        crowd_.Break(each.name + " has parked " + std::to_string(response.parked()) +
                     " documents, though nobody failed: " + parked.ShortDebugString());
      }
      crowd_.Count("take-overs", response.take_overs());
    }
  }

 private:
  void Write(const std::string& name) {
    const Caller caller(crowd_, name);
    const auto documents = v1::DocumentService::NewStub(caller.channel());
    std::mt19937_64 random = crowd_.Random(name);
    for (int64_t number = 0; crowd_.MayWork(Phase::kWork); ++number) {
      v1::UpdateRequest request;
      request.set_collection("orders");
      request.set_id("order-" + std::to_string(random() % kOrders));
      request.set_allow_missing(true);
      request.set_omit_content(true);
      request.set_request_id(name + "-" + std::to_string(number));
      v1::Operation& count = *request.mutable_patch()->add_operations();
      count.set_path("/n");
      count.mutable_increment()->set_number_value(1);
      v1::UpdateResponse response;
      if (caller.Do("Update", *documents, &Documents::Update, request, response)) {
        crowd_.Count("versions");
        const std::lock_guard lock(mutex_);
        int64_t& version = written_[request.id()];
        version = std::max(version, response.document().version());
      }
      crowd_.Pause(Phase::kWork, milliseconds(random() % 60));
    }
  }

  void Consume(Consumed& consumed, const std::string& name) {
    const Caller caller(crowd_, name);
    const auto feed = v1::FeedService::NewStub(caller.channel());
    std::mt19937_64 random = crowd_.Random(name);
    while (crowd_.MayWork(Phase::kDrain)) {
      StreamContext context(caller);
      const auto stream = feed->Consume(*context);
      v1::ConsumeRequest open;
      open.mutable_open()->set_subscription(consumed.name);
      open.mutable_open()->set_consumer(name);
      open.mutable_open()->set_window(16);
      stream->Write(open);
      const auto breaks_after =
          consumed.breaks ? static_cast<int64_t>(random() % 500) : std::numeric_limits<int>::max();
      int64_t read = 0;
      for (v1::ConsumeResponse response; stream->Read(&response);) {
        if (++read > breaks_after) context.BreakOff();
        const auto& deliveries = response.deliveries();
        if (deliveries.deliveries_size() == 0) continue;
        for (const v1::Delivery& delivery : deliveries.deliveries()) {
          See(consumed, delivery);
          crowd_.Pause(Phase::kDrain, milliseconds(random() % 4));
        }
        const v1::Event& last = deliveries.deliveries().rbegin()->event();
        v1::ConsumeRequest request;
        request.mutable_ack()->set_partition(deliveries.partition());
        request.mutable_ack()->set_position(last.position());
        request.mutable_ack()->set_index(last.index());
        stream->Write(request);
      }
      caller.Judge("Consume", stream->Finish());
      crowd_.Count("consumers gone");
      crowd_.Pause(Phase::kDrain, milliseconds(10));
    }
  }

  void See(Consumed& consumed, const v1::Delivery& delivery) {
    const v1::Event& event = delivery.event();
    const int64_t version = event.version().version();
    crowd_.Count("deliveries");
    if (delivery.attempt() > 1) crowd_.Count(consumed.name + " deliveries again");
    const std::lock_guard lock(mutex_);
    int64_t& seen = consumed.seen[event.id()];
    if (version > seen + 1) {
      crowd_.Break(consumed.name + " was given version " + std::to_string(version) + " of " +
                   event.id() + " after " + std::to_string(seen));
    }
    seen = std::max(seen, version);
  }

  Crowd& crowd_;
  std::mutex mutex_;  // guards what follows
  Consumed consumed_[2];
  std::map<std::string, int64_t> written_;  // up to which version, by document
};

}  // namespace

std::unique_ptr<Part> MakeConsumerCrowd(Crowd& crowd) {
  return std::make_unique<ConsumerCrowd>(crowd);
}

}  // namespace strata::fault
