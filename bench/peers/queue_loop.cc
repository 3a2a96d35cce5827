#include "bench/peers/queue_loop.h"

#include <unistd.h>

#include <iostream>
#include <stdexcept>
#include <utility>

#include "bench/peers/server_program.h"
#include "bench/support/process.h"

namespace strata::bench {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::chrono::seconds kQueueSilenceMax{30};

class QueueLoop {
 public:
  QueueLoop(QueuePeer& peer, QueueWorkload& workload, std::chrono::milliseconds warm_up,
            std::chrono::milliseconds duration)
      : peer_(peer),
        workload_(workload),
        warm_up_(warm_up),
        duration_(duration),
        slots_(static_cast<size_t>(workload.slots())) {}

  Measurement Run();

 private:
  struct Slot {
    Steady::time_point begun;
    bool is_on_the_way = false;
  };

  void Send(int index);
  void Take(int index, const QueueAnswer& answer);
  void KeepTime();
  void Begin();
  void End();

  QueuePeer& peer_;
  QueueWorkload& workload_;
  const std::chrono::milliseconds warm_up_;
  const std::chrono::milliseconds duration_;
  std::vector<Slot> slots_;
  int open_ = 0;
  bool measuring_ = false;
  bool sending_ = true;
  Steady::time_point start_;
  Steady::time_point begin_;
  Steady::time_point answered_;
  Measurement result_;
};

void QueueLoop::Send(int index) {
  QueueCall call;
  if (!sending_ || !workload_.Next(index, call)) return;
  ++open_;
  Slot& slot = slots_[static_cast<size_t>(index)];
  if (!slot.is_on_the_way) slot.begun = Steady::now();
  peer_.Send(index, call);
}

void QueueLoop::Take(int index, const QueueAnswer& answer) {
  --open_;
  answered_ = Steady::now();
  Slot& slot = slots_[static_cast<size_t>(index)];
  const QueueWorkload::Outcome outcome = workload_.Answered(index, answer);
  slot.is_on_the_way = outcome.is_on_the_way;
  if (outcome.is_wrong && result_.failures++ == 0) {
    std::cerr << workload_.name() << ": "
              << (answer.error.empty() ? "a wrong answer" : answer.error) << std::endl;
    // What has no duration might not end any more.
    if (duration_.count() == 0) sending_ = false;
  }
  if (!measuring_ || outcome.results == 0) return;
  result_.calls += outcome.results;
  result_.latencies.Add(answered_ - slot.begun);
}

// The CPU is read outside of the measured time: of a server with a process per connection, that
// takes a while.
void QueueLoop::Begin() {
  result_.server_cpu = CpuTimeOfFamily(peer_.server());
  result_.client_cpu = CpuTime(getpid());
  begin_ = Steady::now();
  measuring_ = true;
}

void QueueLoop::End() {
  measuring_ = false;
  sending_ = false;
  result_.duration = answered_ - begin_;
  result_.client_cpu = CpuTime(getpid()) - result_.client_cpu;
  result_.server_cpu = CpuTimeOfFamily(peer_.server()) - result_.server_cpu;
}

void QueueLoop::KeepTime() {
  if (duration_.count() == 0 || !sending_) return;
  if (!measuring_ && answered_ - start_ >= warm_up_) Begin();
  if (measuring_ && answered_ - begin_ >= duration_) End();
}

Measurement QueueLoop::Run() {
  start_ = answered_ = Steady::now();
  for (int i = 0; i < static_cast<int>(slots_.size()); ++i) Send(i);
  while (open_ > 0) {
    peer_.Receive([this](int index, QueueAnswer& answer) {
      Take(index, answer);
      KeepTime();
      Send(index);
      while (const std::optional<int> woken = workload_.Woken()) Send(*woken);
    });
    if (Interrupted()) throw InterruptedError();
    if (Steady::now() - answered_ > kQueueSilenceMax) {
      throw std::runtime_error(workload_.name() + ": no answer any more");
    }
  }
  if (measuring_) End();
  result_.workload = workload_.name();
  result_.in_flight = workload_.slots();
  return std::move(result_);
}

}  // namespace

Measurement RunLoop(QueuePeer& peer, QueueWorkload& workload, std::chrono::milliseconds warm_up,
                    std::chrono::milliseconds duration) {
  return QueueLoop(peer, workload, warm_up, duration).Run();
}

}  // namespace strata::bench
