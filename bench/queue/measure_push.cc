// Push beside W1, one message a call and a hundred: rounds of all in turns.
#include <functional>
#include <string>
#include <vector>

#include "bench/queue/message_rounds.h"
#include "bench/queue/queue_server.h"
#include "bench/queue/queue_workloads.h"
#include "bench/support/rounds.h"

namespace strata::bench {
namespace {

constexpr char kUpdateBesidePush[] = "W1 update, beside queues";
constexpr char kPush[] = "q1_push";
constexpr char kPushBatch[] = "q1_push_batch";

}  // namespace

void MeasurePush(const QueueLoadSettings& settings, FigureLines& lines) {
  QueueServer server(settings, "push");
  server.population();
  std::vector<Measurement> updates;
  std::vector<Measurement> single;
  std::vector<Measurement> batches;
  const auto push = [&](int batch) {
    // A new one each time, so that it begins empty.
    return InMessages(
        server.Run(*PushTo(server.NewQueue(), batch), kInFlight, settings.duration, lines));
  };
  const std::function<void()> steps[] = {
      [&] { updates.push_back(server.Update(kInFlight, settings.duration, lines)); },
      [&] { single.push_back(push(1)); }, [&] { batches.push_back(push(kBatch)); }};
  // Each begins a round in its turn, so that nobody always comes after the same other.
  for (size_t round = 0; round < static_cast<size_t>(kTurns * settings.rounds); ++round) {
    for (size_t i = 0; i < std::size(steps); ++i) steps[(round + i) % std::size(steps)]();
  }
  WriteCalls(kUpdateBesidePush, updates, lines);
  WriteMessages(kPush, single, lines);
  WriteMessages(kPushBatch, batches, lines);
  WriteRatios(kPush, single, kUpdateBesidePush, updates, lines);
  WriteRatios(kPushBatch, batches, kPush, single, lines);
}

}  // namespace strata::bench
