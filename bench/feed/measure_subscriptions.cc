// What subscriptions give: at least once by acknowledgement, and exactly once by writes that are
// fenced with their deliveries.
#include <strata/v1/document_service.pb.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "bench/feed/consumer.h"
#include "bench/feed/feed_server.h"
#include "bench/feed/subscriptions.h"
#include "bench/load/prepare.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"
#include "bench/support/ten_fields.h"

namespace strata::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kVersions = 10;
constexpr int kConsumers = 2;
constexpr int kWindow = 100;
constexpr char kEffects[] = "effects";
constexpr char kUpdate[] = "/strata.v1.DocumentService/Update";

// For each delivery an update of another collection's document of the same id, fenced with the
// delivery. A slot is a partition.
class EffectsWorkload final : public Workload {
 public:
  EffectsWorkload() {
    request_.set_collection(kEffects);
    request_.set_omit_content(true);
    for (int64_t i = 0; i < kVariants; ++i) {
      v1::UpdateRequest content;
      content.mutable_replace()->set_bson(TenFields(i, i));
      contents_.push_back(content.SerializeAsString());
    }
  }
  // On the consumer's thread.
  void Take(Consumer& consumer, const Consumer::Deliveries& deliveries) {
    const absl::MutexLock lock(&mutex_);
    consumer_ = &consumer;
    auto& waiting = waiting_[static_cast<size_t>(deliveries.partition())];
    waiting.insert(waiting.end(), deliveries.deliveries().begin(), deliveries.deliveries().end());
  }
  // Until each partition has something to do.
  bool AwaitDeliveries(std::chrono::seconds patience) {
    const absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(
                                       +[](EffectsWorkload* self) {
                                         return std::none_of(
                                             self->waiting_.begin(), self->waiting_.end(),
                                             [](const auto& one) { return one.empty(); });
                                       },
                                       this),
                                   absl::FromChrono(patience));
  }
  std::string name() const override { return "Update with the delivery's lease"; }
  std::string method() const override { return kUpdate; }
  bool Next(int slot, std::string& request) override {
    Partition& partition = partitions_[static_cast<size_t>(slot)];
    const absl::MutexLock lock(&mutex_);
    auto& waiting = waiting_[static_cast<size_t>(slot)];
    const auto is_there = [](std::deque<v1::Delivery>* some) { return !some->empty(); };
    if (!mutex_.AwaitWithTimeout(absl::Condition(+is_there, &waiting),
                                 absl::FromChrono(kDeliveryPatience))) {
      return false;
    }
    partition.delivery = std::move(waiting.front());
    waiting.pop_front();
    request_.set_id(partition.delivery.event().id());
    *request_.mutable_lease() = partition.delivery.lease();
    request_.SerializeToString(&request);
    // Messages may be put one after the other.
    request += contents_[static_cast<size_t>(partition.done % kVariants)];
    return true;
  }
  Outcome Answered(int slot, std::string_view response) override {
    Partition& partition = partitions_[static_cast<size_t>(slot)];
    if (!response_.ParseFromArray(response.data(), static_cast<int>(response.size()))) {
      return Outcome::kWrong;
    }
    // Frees the window, and writes nothing.
    if (++partition.done % kAckEvery == 0) {
      const v1::Event& event = partition.delivery.event();
      const absl::MutexLock lock(&mutex_);
      consumer_->Ack(slot, event.position(), event.index());
    }
    return response_.document().id() == partition.delivery.event().id() ? Outcome::kRight
                                                                        : Outcome::kWrong;
  }

 private:
  static constexpr int64_t kVariants = 101;
  static constexpr int64_t kAckEvery = 25;
  static constexpr std::chrono::seconds kDeliveryPatience{5};

  // The loop's thread alone knows these.
  struct Partition {
    v1::Delivery delivery;
    int64_t done = 0;
  };
  std::array<Partition, kPartitions> partitions_;
  std::vector<std::string> contents_;
  v1::UpdateRequest request_;
  v1::UpdateResponse response_;
  absl::Mutex mutex_;
  Consumer* consumer_ = nullptr;                               // guarded by mutex_
  std::array<std::deque<v1::Delivery>, kPartitions> waiting_;  // guarded by mutex_
};

Measurement MeasureEffects(FeedServer& server, const std::string& name,
                           std::chrono::milliseconds duration, FigureLines& lines) {
  CreateSubscription(server, name, 0);
  EffectsWorkload workload;
  const Consumer consumer(
      server.address(), name, kWindow,
      [&](Consumer& from, const auto& deliveries) { workload.Take(from, deliveries); });
  if (!workload.AwaitDeliveries(kPatience)) {
    throw std::runtime_error(name + ": some partitions have no deliveries");
  }
  const Measurement measured = server.Run(workload, kPartitions, duration, lines);
  if (!consumer.ended().empty()) throw std::runtime_error(consumer.ended());
  return measured;
}

}  // namespace

void CreateSubscription(const FeedServer& server, const std::string& name, int64_t position) {
  v1::CreateSubscriptionRequest request;
  request.set_name(name);
  request.add_collections(kDocuments);
  request.set_after_position(position);
  request.set_partitions(kPartitions);
  v1::CreateSubscriptionResponse response;
  grpc::ClientContext context;
  const grpc::Status status =
      v1::FeedService::NewStub(server.channel())->CreateSubscription(&context, request, &response);
  if (!status.ok()) throw std::runtime_error("CreateSubscription: " + status.error_message());
}

Consumed ConsumeAll(const FeedServer& server, const std::string& name, int64_t events) {
  const auto stub = v1::FeedService::NewStub(server.channel());
  const auto cpu_before = CpuTime(server.pid());
  const Clock::time_point begin = Clock::now();
  std::vector<std::unique_ptr<Consumer>> consumers;
  for (int i = 0; i < kConsumers; ++i) {
    consumers.push_back(std::make_unique<Consumer>(
        server.address(), name, kWindow, [](Consumer& consumer, const auto& deliveries) {
          const v1::Event& last = deliveries.deliveries().rbegin()->event();
          consumer.Ack(deliveries.partition(), last.position(), last.index());
        }));
  }
  v1::GetSubscriptionRequest request;
  request.set_name(name);
  v1::GetSubscriptionResponse response;
  while (response.events_acknowledged() < events) {
    if (Clock::now() - begin > kPatience) {
      throw std::runtime_error(std::to_string(response.events_acknowledged()) + " of " +
                               std::to_string(events) + " events were acknowledged");
    }
    for (const auto& consumer : consumers) {
      if (!consumer->ended().empty()) throw std::runtime_error(consumer->ended());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    grpc::ClientContext context;
    const grpc::Status status = stub->GetSubscription(&context, request, &response);
    if (!status.ok()) throw std::runtime_error("GetSubscription: " + status.error_message());
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const auto cpu = CpuTime(server.pid()) - cpu_before;
  if (response.events_acknowledged() > events) {
    throw std::runtime_error("more events were acknowledged than happened");
  }
  const auto count = static_cast<double>(events);
  return {.per_second = count / seconds,
          .commits_per_event = static_cast<double>(response.acknowledging_commits()) / count,
          .cpu_us = static_cast<double>(cpu.count()) / 1e3 / count};
}

void MeasureConsume(const FeedSettings& settings, FigureLines& lines) {
  const FeedServer server(settings, "consume", kVersions);
  std::vector<double> per_second;
  std::vector<double> commits;
  std::vector<double> cpu;
  for (int round = 0; round < settings.rounds; ++round) {
    const std::string name = "round-" + std::to_string(round);
    CreateSubscription(server, name, 0);
    server.AwaitQuiet();
    const Consumed consumed = ConsumeAll(server, name, server.entries());
    per_second.push_back(consumed.per_second);
    commits.push_back(consumed.commits_per_event);
    cpu.push_back(consumed.cpu_us);
  }
  const Parameters parameters = FeedParameters("Consume with ack");
  WriteRounds("events_per_second", parameters, per_second, Unit::kPerSecond, lines);
  WriteRounds("commits_per_event", parameters, commits, Unit::kRatio, lines);
  WriteRounds("server_cpu", parameters, cpu, Unit::kMicroseconds, lines);
}

void MeasureExactlyOnce(const FeedSettings& settings, FigureLines& lines) {
  constexpr char kPlain[] = "W1 update, beside exactly once";
  constexpr char kExactlyOnce[] = "exactly once, 8 partitions";
  // So that no partition comes to its end meanwhile.
  const auto duration = std::min(settings.duration, std::chrono::milliseconds(2000));
  FeedServer server(settings, "exactly-once", kVersions);
  CreateCollection(server.channel(), kEffects, "deltas");
  Population effects;
  effects.collection = kEffects;
  effects.versions.resize(server.population().versions.size());
  Prepare(server.channel(), *Fill(effects));
  std::vector<Measurement> plain;
  std::vector<Measurement> once;
  for (int round = 0; round < settings.rounds; ++round) {
    server.AwaitQuiet();
    plain.push_back(server.Update(kPartitions, duration, lines));
    server.AwaitQuiet();
    once.push_back(MeasureEffects(server, "effects-" + std::to_string(round), duration, lines));
  }
  WriteCalls(kPlain, plain, lines);
  WriteCalls(kExactlyOnce, once, lines);
  WriteRatios(kExactlyOnce, once, kPlain, plain, lines);
}

}  // namespace strata::bench
