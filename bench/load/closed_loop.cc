#include "bench/load/closed_loop.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <iostream>
#include <optional>
#include <vector>

#include "bench/support/process.h"

namespace strata::bench {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::chrono::seconds kCallDeadline{30};

// The bytes of a message in one piece.
std::string_view Join(const grpc::ByteBuffer& buffer, grpc::Slice& slice) {
  if (!buffer.TrySingleSlice(&slice).ok() && !buffer.DumpToSingleSlice(&slice).ok()) return {};
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

class Loop {
 public:
  Loop(const std::shared_ptr<grpc::Channel>& channel, Workload& workload,
       const LoopSettings& settings)
      : stub_(channel),
        workload_(workload),
        settings_(settings),
        method_(workload.method()),
        slots_(static_cast<size_t>(settings.in_flight)) {}

  Measurement Run();

 private:
  struct Slot {
    std::optional<grpc::ClientContext> context;
    std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
    grpc::ByteBuffer response;
    grpc::Status status;
    Steady::time_point sent;
    bool on_the_way = false;
  };

  void Send(size_t index);
  void Take(size_t index);
  void Begin();
  void End();

  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  Workload& workload_;
  const LoopSettings settings_;
  const std::string method_;
  std::vector<Slot> slots_;
  std::string request_;
  int open_ = 0;
  int64_t sent_ = 0;
  bool measuring_ = false;
  bool sending_ = true;
  Steady::time_point begin_;
  int64_t attempts_before_ = 0;
  Measurement result_;
};

void Loop::Send(size_t index) {
  Slot& slot = slots_[index];
  const bool enough = settings_.calls_max > 0 && sent_ >= settings_.calls_max;
  if (!sending_ || enough || !workload_.Next(static_cast<int>(index), request_)) return;
  ++sent_;
  ++open_;
  slot.context.emplace();
  slot.context->set_deadline(std::chrono::system_clock::now() + kCallDeadline);
  if (!settings_.authorization.empty()) {
    slot.context->AddMetadata("authorization", settings_.authorization);
  }
  const grpc::Slice bytes(request_);
  const grpc::ByteBuffer message(&bytes, 1);
  if (!slot.on_the_way) slot.sent = Steady::now();
  const std::string* const method = workload_.next_method();
  slot.reader = stub_.PrepareUnaryCall(&*slot.context, method == nullptr ? method_ : *method,
                                       message, &queue_);
  slot.reader->StartCall();
  slot.reader->Finish(&slot.response, &slot.status, reinterpret_cast<void*>(index));
}

void Loop::Take(size_t index) {
  Slot& slot = slots_[index];
  --open_;
  const auto taken = Steady::now() - slot.sent;
  Workload::Outcome outcome = Workload::Outcome::kWrong;
  if (slot.status.ok()) {
    grpc::Slice slice;
    outcome = workload_.Answered(static_cast<int>(index), Join(slot.response, slice));
  } else {
    outcome = workload_.Refused(static_cast<int>(index), slot.status.error_message());
  }
  slot.on_the_way = outcome == Workload::Outcome::kOnTheWay;
  slot.response.Clear();
  slot.reader.reset();
  slot.context.reset();
  if (outcome == Workload::Outcome::kWrong && result_.failures++ == 0) {
    std::cerr << workload_.name() << ": "
              << (slot.status.ok() ? "a wrong answer" : slot.status.error_message()) << std::endl;
  }
  if (measuring_ && outcome == Workload::Outcome::kRight) {
    ++result_.calls;
    result_.latencies.Add(taken);
  }
}

void Loop::Begin() {
  measuring_ = true;
  begin_ = Steady::now();
  attempts_before_ = workload_.attempts();
  result_.server_cpu = CpuTime(settings_.server);
  result_.client_cpu = CpuTime(getpid());
}

void Loop::End() {
  measuring_ = false;
  sending_ = false;
  result_.duration = Steady::now() - begin_;
  result_.attempts = workload_.attempts() - attempts_before_;
  result_.server_cpu = CpuTime(settings_.server) - result_.server_cpu;
  result_.client_cpu = CpuTime(getpid()) - result_.client_cpu;
}

Measurement Loop::Run() {
  const bool timed = settings_.calls_max == 0;
  const Steady::time_point start = Steady::now();
  if (!timed) Begin();
  for (size_t i = 0; i < slots_.size(); ++i) Send(i);
  void* tag = nullptr;
  for (bool ok = false; open_ > 0 && queue_.Next(&tag, &ok);) {
    const auto index = reinterpret_cast<size_t>(tag);
    Take(index);
    if (timed && sending_) {
      const Steady::time_point now = Steady::now();
      if (!measuring_ && now - start >= settings_.warm_up) Begin();
      if (measuring_ && now - begin_ >= settings_.duration) End();
    }
    Send(index);
    while (const std::optional<int> woken = workload_.Woken()) Send(static_cast<size_t>(*woken));
  }
  if (measuring_) End();
  queue_.Shutdown();
  result_.workload = workload_.name();
  result_.in_flight = settings_.in_flight;
  workload_.Tell(result_);
  return std::move(result_);
}

}  // namespace

std::shared_ptr<grpc::Channel> Connect(const std::string& address,
                                       const client::Credentials& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  // A call that is refused counts; it is not sent again. It also takes less of the machine.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return grpc::CreateCustomChannel(address, client::ChannelCredentialsOf(credentials), arguments);
}

Measurement RunLoop(const std::shared_ptr<grpc::Channel>& channel, Workload& workload,
                    const LoopSettings& settings) {
  return Loop(channel, workload, settings).Run();
}

}  // namespace strata::bench
