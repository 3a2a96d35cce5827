#include "bench/queue/cycles.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "bench/queue/message_rounds.h"
#include "bench/support/rounds.h"

namespace strata::bench {
namespace {

constexpr int kPassingConsumers = 4;

}  // namespace

Cycles::Cycles(QueueServer& server, std::string queue, int64_t waiting)
    : server_(server), queue_(std::move(queue)), wanted_(waiting), there_(waiting) {}

// Consumers stop wherever they are in their rounds, so some messages are reserved.
void Cycles::Check(const CycleWorkload& workload) {
  there_ += workload.pushed() - workload.acknowledged();
  const v1::QueueStatistics statistics = server_.Queue(queue_).statistics();
  const int64_t found = statistics.ready() + statistics.reserved();
  if (found == there_ && statistics.scheduled() + statistics.waiting() + statistics.dead() == 0) {
    return;
  }
  throw std::runtime_error(queue_ + ": " + std::to_string(found) + " messages where " +
                           std::to_string(there_) + " should be");
}

void Cycles::Run(std::chrono::milliseconds duration, FigureLines& lines) {
  const v1::Queue at_first = server_.Queue(queue_);
  const v1::QueueCounts& before = at_first.counts();
  // What the round before left reserved, or did not get to push, is missing.
  const int64_t missing = std::max<int64_t>(wanted_ - at_first.statistics().ready(), 0);
  const std::unique_ptr<CycleWorkload> workload =
      Cycle(queue_, {.consumers = kInFlight, .missing = missing});
  rounds_.push_back(InMessages(server_.Run(*workload, 2 * kInFlight, duration, lines)));
  const v1::QueueCounts after = server_.Queue(queue_).counts();
  const auto operations = static_cast<double>(after.operations() - before.operations());
  const auto commits = static_cast<double>(after.commits() - before.commits());
  operations_per_commit_.push_back(commits > 0 ? operations / commits : 0);
  races_lost_ += after.races_lost() - before.races_lost();
  Check(*workload);
}

void Cycles::PassThrough(int64_t messages) {
  const std::unique_ptr<CycleWorkload> workload =
      Cycle(queue_, {.consumers = kPassingConsumers, .batch = kBatch, .messages_max = messages});
  LoopSettings loop;
  loop.in_flight = 2 * kPassingConsumers;
  loop.calls_max = INT64_MAX;  // the workload ends it
  if (RunLoop(server_.channel(), *workload, loop).failures > 0) {
    throw std::runtime_error("messages did not go through " + queue_);
  }
  Check(*workload);
}

void Cycles::Write(const std::string& queue, FigureLines& lines) const {
  WriteMessages(queue, rounds_, lines);
  const Parameters parameters = QueueParameters(queue);
  WriteRounds("operations_per_commit", parameters, operations_per_commit_, Unit::kRatio, lines);
  lines.Number("races_lost", parameters, static_cast<double>(races_lost_), Unit::kCount);
}

}  // namespace strata::bench
