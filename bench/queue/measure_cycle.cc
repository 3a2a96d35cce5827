// Messages that go from push to acknowledgement, 64 at once on one queue: by themselves, with many
// that wait besides, and after many have gone through. All in turns with what they are held
// against.
#include <string>
#include <vector>

#include "bench/queue/cycles.h"
#include "bench/queue/message_rounds.h"
#include "bench/queue/queue_server.h"
#include "bench/queue/queue_workloads.h"
#include "bench/support/rounds.h"

namespace strata::bench {
namespace {

constexpr char kUpdateBesideCycle[] = "W1 update, beside q2_cycle";
constexpr char kCycle[] = "q2_cycle";
constexpr char kFew[] = "q2_cycle, 10^3 waiting";
constexpr char kUsed[] = "q2_cycle, many gone through";
constexpr char kNew[] = "q2_cycle, a new queue";

void RunInTurns(const QueueLoadSettings& settings, Cycles& of, Cycles& to, FigureLines& lines) {
  for (int round = 0; round < kTurns * settings.rounds; ++round) {
    Cycles* const first = round % 2 == 0 ? &of : &to;
    first->Run(settings.duration, lines);
    (first == &of ? to : of).Run(settings.duration, lines);
  }
}

}  // namespace

void MeasureCycle(const QueueLoadSettings& settings, FigureLines& lines) {
  QueueServer server(settings, "cycle");
  server.population();
  Cycles cycles(server, server.FilledQueue(kFewWaiting), kFewWaiting);
  std::vector<Measurement> updates;
  for (int round = 0; round < kTurns * settings.rounds; ++round) {
    updates.push_back(server.Update(kInFlight, settings.duration, lines));
    cycles.Run(settings.duration, lines);
  }
  WriteCalls(kUpdateBesideCycle, updates, lines);
  cycles.Write(kCycle, lines);
  WriteRatios(kCycle, cycles.rounds(), kUpdateBesideCycle, updates, lines);
}

void MeasureDepth(const QueueLoadSettings& settings, FigureLines& lines) {
  for (const Depth& depth : settings.depths) {
    const int64_t messages = settings.Scaled(depth.messages) / kBatch * kBatch;
    const std::string waiting = std::string(kCycle) + ", " + depth.name + " waiting";
    QueueServer server(settings, "depth-" + std::to_string(messages));
    Cycles few(server, server.FilledQueue(kFewWaiting), kFewWaiting);
    Cycles many(server, server.FilledQueue(messages), messages);
    RunInTurns(settings, many, few, lines);
    few.Write(kFew, lines);
    many.Write(waiting, lines);
    WriteRatios(waiting, many.rounds(), kFew, few.rounds(), lines);
  }
}

void MeasureThrough(const QueueLoadSettings& settings, FigureLines& lines) {
  QueueServer server(settings, "through");
  const auto write_disk = [&](const std::string& what) {
    server.AwaitQuiet();
    lines.Number("disk", QueueParameters(what), static_cast<double>(server.DiskBytes()),
                 Unit::kBytes);
  };
  Cycles used(server, server.FilledQueue(kFewWaiting), kFewWaiting);
  write_disk("10^3 waiting, none gone through");
  used.PassThrough(settings.Scaled(settings.through));
  write_disk("10^3 waiting, many gone through");
  Cycles fresh(server, server.FilledQueue(kFewWaiting), kFewWaiting);
  RunInTurns(settings, used, fresh, lines);
  used.Write(kUsed, lines);
  WriteRatios(kUsed, used.rounds(), kNew, fresh.rounds(), lines);
  server.Restart(Ending::kOrderly);
  write_disk("the same, started anew");
}

}  // namespace strata::bench
