// What streams of Receive take: a filled queue to its end, and what 64 calls in flight push
// meanwhile.
#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/queue/message_rounds.h"
#include "bench/queue/queue_server.h"
#include "bench/queue/queue_workloads.h"
#include "bench/queue/receivers.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"

namespace strata::bench {
namespace {

constexpr int64_t kFilled = 200'000;
constexpr int64_t kPushed = 50'000;

Measurement Measured(const Received& received, std::chrono::nanoseconds server_cpu) {
  Measurement measured;
  measured.calls = received.messages;
  measured.duration = received.duration;
  measured.server_cpu = server_cpu;
  return measured;
}

void CheckEmpty(const v1::QueueStatistics& left) {
  if (left.ready() + left.reserved() + left.scheduled() + left.waiting() + left.dead() == 0) return;
  throw std::runtime_error("all messages were acknowledged, and some are left");
}

Measurement TakeFilled(QueueServer& server, int64_t messages) {
  const std::string queue = server.FilledQueue(messages);
  server.AwaitQuiet();
  const auto cpu_before = CpuTime(server.pid());
  const Received received = ReceiveAll(server.channel(), {.queue = queue}, messages);
  const auto cpu = CpuTime(server.pid()) - cpu_before;
  CheckEmpty(server.Queue(queue).statistics());
  return Measured(received, cpu);
}

// Streams on a connection and in a thread of their own.
Measurement TakePushed(QueueServer& server, int64_t messages) {
  const std::string queue = server.NewQueue();
  server.AwaitQuiet();
  const auto cpu_before = CpuTime(server.pid());
  Received received;
  std::exception_ptr failure;
  std::thread thread([&] {
    try {
      received = ReceiveAll(Connect(server.address()), {.queue = queue}, messages);
    } catch (...) {
      failure = std::current_exception();
    }
  });
  LoopSettings loop;
  loop.in_flight = kInFlight;
  loop.calls_max = messages;
  const Measurement pushed = RunLoop(server.channel(), *PushTo(queue, 1), loop);
  thread.join();
  if (failure != nullptr) std::rethrow_exception(failure);
  if (pushed.failures > 0) throw std::runtime_error("pushes were answered wrong");
  const auto cpu = CpuTime(server.pid()) - cpu_before;
  CheckEmpty(server.Queue(queue).statistics());
  return Measured(received, cpu);
}

}  // namespace

void MeasureReceive(const QueueLoadSettings& settings, FigureLines& lines) {
  QueueServer server(settings, "receive");
  std::vector<Measurement> filled;
  std::vector<Measurement> pushed;
  for (int round = 0; round < settings.rounds; ++round) {
    // Whole batches, as the queue is filled so.
    filled.push_back(TakeFilled(server, settings.Scaled(kFilled) / kBatch * kBatch));
    pushed.push_back(TakePushed(server, settings.Scaled(kPushed)));
  }
  WriteMessages("q3_receive", filled, lines);
  WriteMessages("q3_receive, while they are pushed", pushed, lines);
}

}  // namespace strata::bench
