// How long a message takes from its push to whoever waits for it, on a server that does nothing
// else.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/queue/message_rounds.h"
#include "bench/queue/queue_server.h"
#include "bench/queue/queue_workloads.h"
#include "bench/support/histogram.h"
#include "bench/support/rounds.h"
#include "bench/support/ten_fields.h"

namespace strata::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kReserveWaitSeconds = 20;
constexpr std::chrono::seconds kCallDeadline{30};
constexpr char kUpdateAlone[] = "W1 update, one in flight";
constexpr char kWait[] = "q6_wait";

// A call of a method, over and over, one at a time.
class Caller {
 public:
  Caller(const std::shared_ptr<grpc::Channel>& channel, std::string method,
         grpc::CompletionQueue& queue)
      : stub_(channel), method_(std::move(method)), queue_(queue) {}

  void Send(const std::string& request) {
    context_.emplace();
    context_->set_deadline(std::chrono::system_clock::now() + kCallDeadline);
    const grpc::Slice bytes(request);
    reader_ = stub_.PrepareUnaryCall(&*context_, method_, grpc::ByteBuffer(&bytes, 1), &queue_);
    reader_->StartCall();
    reader_->Finish(&response_, &status_, this);
    open_ = true;
  }
  // By whoever finds it in the queue.
  void Ended() {
    open_ = false;
    ended_at_ = Clock::now();
    if (!status_.ok()) throw std::runtime_error(method_ + ": " + status_.error_message());
  }
  void Await() {
    while (open_) {
      void* found = nullptr;
      bool ok = false;
      if (!queue_.Next(&found, &ok)) throw std::runtime_error(method_ + " is not answered");
      static_cast<Caller*>(found)->Ended();
    }
  }
  Clock::time_point ended_at() const { return ended_at_; }
  template <typename Response>
  void Parse(Response& response) {
    grpc::Slice slice;
    const bool joined =
        response_.TrySingleSlice(&slice).ok() || response_.DumpToSingleSlice(&slice).ok();
    if (!joined || !response.ParseFromArray(slice.begin(), static_cast<int>(slice.size()))) {
      throw std::runtime_error(method_ + ": a malformed answer");
    }
  }

 private:
  grpc::GenericStub stub_;
  const std::string method_;
  grpc::CompletionQueue& queue_;
  std::optional<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  bool open_ = false;
  Clock::time_point ended_at_;
};

// A Reserve is on its way to the empty queue together with the acknowledgement of the message
// before; once that is answered, which takes a commit, the Reserve waits, and the next message is
// pushed.
class Waiting {
 public:
  Waiting(const QueueServer& server, const std::string& queue)
      : push_(server.channel(), kPushCall, queue_),
        reserve_(server.channel(), kReserveCall, queue_),
        acknowledge_(server.channel(), kAcknowledgeCall, queue_) {
    v1::PushRequest push;
    push.set_queue(queue);
    push.add_messages()->mutable_payload()->set_bson(TenFields(1, 1));
    push_request_ = push.SerializeAsString();
    v1::ReserveRequest reserve;
    reserve.set_queue(queue);
    reserve.mutable_wait()->set_seconds(kReserveWaitSeconds);
    reserve.set_encoding(v1::ENCODING_BSON);
    reserve_request_ = reserve.SerializeAsString();
  }

  // From sending the push until the Reserve was answered.
  std::chrono::nanoseconds Once() {
    if (acknowledge_request_.tokens_size() > 0) {
      acknowledge_.Send(acknowledge_request_.SerializeAsString());
    }
    reserve_.Send(reserve_request_);
    acknowledge_.Await();
    CheckAcknowledged();
    const Clock::time_point begin = Clock::now();
    push_.Send(push_request_);
    reserve_.Await();
    push_.Await();
    reserve_.Parse(reserved_);
    if (reserved_.messages_size() != 1 || !IsFresh(reserved_.messages(0))) {
      throw std::runtime_error("Reserve was answered with another message than was pushed");
    }
    acknowledge_request_.add_tokens(reserved_.messages(0).token());
    return reserve_.ended_at() - begin;
  }

 private:
  void CheckAcknowledged() {
    if (acknowledge_request_.tokens_size() == 0) return;
    acknowledge_request_.clear_tokens();
    v1::AcknowledgeResponse response;
    acknowledge_.Parse(response);
    if (response.results_size() == 1 && !response.results(0).has_error()) return;
    throw std::runtime_error("an acknowledgement was refused");
  }

  grpc::CompletionQueue queue_;
  Caller push_;
  Caller reserve_;
  Caller acknowledge_;
  std::string push_request_;
  std::string reserve_request_;
  v1::AcknowledgeRequest acknowledge_request_;
  v1::ReserveResponse reserved_;
};

Measurement MeasureRound(QueueServer& server, std::chrono::milliseconds duration) {
  const std::string queue = server.NewQueue();
  server.AwaitQuiet();
  Waiting waiting(server, queue);
  for (const auto end = Clock::now() + duration / 4; Clock::now() < end;) waiting.Once();
  Measurement measured;
  const Clock::time_point begin = Clock::now();
  while (Clock::now() - begin < duration) {
    measured.latencies.Add(waiting.Once());
    ++measured.calls;
  }
  measured.duration = Clock::now() - begin;
  return measured;
}

}  // namespace

void MeasureWait(const QueueLoadSettings& settings, FigureLines& lines) {
  QueueServer server(settings, "wait");
  server.population();
  std::vector<Measurement> updates;
  std::vector<Measurement> waits;
  std::vector<double> ratios;
  for (int round = 0; round < kTurns * settings.rounds; ++round) {
    updates.push_back(server.Update(1, settings.duration, lines));
    waits.push_back(MeasureRound(server, settings.duration));
    ratios.push_back(waits.back().latency_us(0.5) / updates.back().latency_us(0.5));
  }
  WriteCalls(kUpdateAlone, updates, lines);
  WriteMessages(kWait, waits, lines);
  WriteRounds("latency_p50_ratio", {{"of", kWait}, {"to", kUpdateAlone}}, ratios, Unit::kRatio,
              lines);
}

}  // namespace strata::bench
