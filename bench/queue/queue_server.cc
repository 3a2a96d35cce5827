#include "bench/queue/queue_server.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <utility>

#include "bench/load/prepare.h"
#include "bench/queue/queue_workloads.h"
#include "bench/support/process.h"
#include "strata/v1/queue_service.grpc.pb.h"

namespace strata::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr char kDocuments[] = "documents";
constexpr std::chrono::seconds kQuietMax{10};
constexpr std::chrono::milliseconds kLook{100};
constexpr int kLooksStill = 5;
constexpr int64_t kReservationSeconds = int64_t{12} * 3600;
constexpr int kFillInFlight = 8;
constexpr int64_t kBlockBytes = 512;  // of st_blocks

}  // namespace

int64_t QueueLoadSettings::Scaled(int64_t count) const {
  return std::max<int64_t>(static_cast<int64_t>(static_cast<double>(count) * scale), 200);
}

QueueServer::QueueServer(const QueueLoadSettings& settings, const std::string& name,
                         const std::string& binary)
    : settings_({.data = settings.folder + "/" + name,
                 .log = settings.folder + "/" + name + ".log",
                 .flags = {},
                 .binary = binary}),
      documents_(settings.Scaled(kDocumentCount)),
      server_(std::in_place, settings_),
      channel_(Connect(server_->address())) {}

std::chrono::nanoseconds QueueServer::Restart(Ending ending) {
  channel_.reset();
  if (ending == Ending::kKill) {
    server_->Kill();
  } else if (server_->Stop() != 0) {
    throw std::runtime_error("the server did not stop as it should");
  }
  server_.reset();
  const Clock::time_point begin = Clock::now();
  server_.emplace(settings_);
  const auto taken = Clock::now() - begin;
  channel_ = Connect(server_->address());
  return taken;
}

Population& QueueServer::population() {
  if (population_.versions.empty()) {
    CreateCollection(channel_, kDocuments, "deltas");
    population_.collection = kDocuments;
    population_.versions.resize(static_cast<size_t>(documents_));
    Prepare(channel_, *Fill(population_));
  }
  return population_;
}

std::string QueueServer::NewQueue() {
  v1::CreateQueueRequest request;
  request.set_name("queue-" + std::to_string(queues_++));
  request.mutable_settings()->mutable_reservation_timeout()->set_seconds(kReservationSeconds);
  v1::CreateQueueResponse response;
  grpc::ClientContext context;
  const grpc::Status status =
      v1::QueueService::NewStub(channel_)->CreateQueue(&context, request, &response);
  if (!status.ok()) throw std::runtime_error("CreateQueue: " + status.error_message());
  return request.name();
}

std::string QueueServer::FilledQueue(int64_t messages) {
  std::string name = NewQueue();
  LoopSettings loop;
  loop.in_flight = kFillInFlight;
  loop.calls_max = (messages + kBatch - 1) / kBatch;
  const Measurement filled = bench::RunLoop(channel_, *PushTo(name, kBatch), loop);
  if (filled.failures > 0 || filled.calls != loop.calls_max) {
    throw std::runtime_error("cannot fill a queue");
  }
  return name;
}

v1::Queue QueueServer::Queue(const std::string& name) const {
  const auto stub = v1::QueueService::NewStub(channel_);
  v1::GetQueueRequest request;
  request.set_name(name);
  v1::GetQueueResponse response;
  for (const auto end = Clock::now() + kPatience; !response.queue().statistics().exact();) {
    if (Clock::now() >= end) throw std::runtime_error("statistics do not become exact");
    if (response.has_queue()) std::this_thread::sleep_for(kLook);
    grpc::ClientContext context;
    const grpc::Status status = stub->GetQueue(&context, request, &response);
    if (!status.ok()) throw std::runtime_error("GetQueue: " + status.error_message());
  }
  return response.queue();
}

void QueueServer::AwaitQuiet() const { bench::AwaitQuiet(pid(), kQuietMax); }

Measurement QueueServer::Run(Workload& workload, int in_flight, std::chrono::milliseconds duration,
                             FigureLines& lines) {
  AwaitQuiet();
  LoopSettings loop;
  loop.in_flight = in_flight;
  loop.warm_up = duration / 4;
  loop.duration = duration;
  loop.server = pid();
  return RunLoop(workload, loop, lines);
}

Measurement QueueServer::RunCalls(Workload& workload, int in_flight, int64_t calls,
                                  FigureLines& lines) {
  LoopSettings loop;
  loop.in_flight = in_flight;
  loop.calls_max = calls;
  loop.server = pid();
  return RunLoop(workload, loop, lines);
}

Measurement QueueServer::RunLoop(Workload& workload, const LoopSettings& loop,
                                 FigureLines& lines) const {
  Measurement measured = bench::RunLoop(channel_, workload, loop);
  measured.system = "strata";
  if (measured.failures > 0 || measured.calls == 0) {
    lines.Wrong(measured.workload + ": " + std::to_string(measured.failures) +
                " wrong answers, and " + std::to_string(measured.calls) + " right ones");
  }
  return measured;
}

Measurement QueueServer::Update(int in_flight, std::chrono::milliseconds duration,
                                FigureLines& lines) {
  return Run(*UpdateAtRandom(population(), seed_++), in_flight, duration, lines);
}

Measurement QueueServer::UpdateCalls(int in_flight, int64_t calls, FigureLines& lines) {
  return RunCalls(*UpdateAtRandom(population(), seed_++), in_flight, calls, lines);
}

int64_t QueueServer::SettledBytes() const {
  AwaitQuiet();
  int64_t last = ResidentBytes(pid());
  const auto end = Clock::now() + kQuietMax;
  for (int still = 0; still < kLooksStill && Clock::now() < end;) {
    std::this_thread::sleep_for(kLook);
    const int64_t now = ResidentBytes(pid());
    still = now == last ? still + 1 : 0;
    last = now;
  }
  return last;
}

int64_t QueueServer::DiskBytes() const {
  int64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(settings_.data)) {
    struct stat file {};
    // Files go while one looks.
    if (stat(entry.path().c_str(), &file) != 0 || !S_ISREG(file.st_mode)) continue;
    bytes += file.st_blocks * kBlockBytes;
  }
  return bytes;
}

}  // namespace strata::bench
