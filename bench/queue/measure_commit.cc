// Acknowledging a message, updating a document and pushing a message in one commit, beside W1 in
// turns, as a consumer does with what it has reserved just before.
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/load/prepare.h"
#include "bench/queue/message_rounds.h"
#include "bench/queue/queue_server.h"
#include "bench/queue/queue_workloads.h"
#include "bench/support/rounds.h"

namespace strata::bench {
namespace {

// A round is so many slices of so many calls. Of more messages that are reserved at once a server
// would forget the first ones before they are acknowledged.
constexpr int kSlices = 10;
constexpr int64_t kCalls = 2'000;
constexpr char kUpdateBesideCommit[] = "W1 update, beside q5_commit";
constexpr char kAllInOneCommit[] = "q5_commit";

void Add(Measurement slice, Measurement& round) {
  if (round.calls == 0) {
    round = std::move(slice);
    return;
  }
  round.calls += slice.calls;
  round.failures += slice.failures;
  round.duration += slice.duration;
  round.server_cpu += slice.server_cpu;
  round.client_cpu += slice.client_cpu;
  round.latencies.Merge(slice.latencies);
}

}  // namespace

void MeasureCommit(const QueueLoadSettings& settings, FigureLines& lines) {
  QueueServer server(settings, "commit");
  const int rounds = kTurns * settings.rounds;
  const int64_t calls = settings.Scaled(kCalls) / kBatch * kBatch;
  // One slice of each kind that does not count.
  const int64_t messages = (rounds * kSlices + 1) * calls;
  const std::string in = server.FilledQueue(messages);
  const std::string out = server.NewQueue();
  std::deque<std::string> tokens;
  uint64_t seed = 0;
  const auto update = [&] { return server.UpdateCalls(kInFlight, calls, lines); };
  const auto commit = [&] {
    Prepare(server.channel(), *ReserveAll(in, calls, tokens));
    return server.RunCalls(*CommitAll(tokens, server.population(), out, seed++), kInFlight, calls,
                           lines);
  };
  const auto run = [&](const std::function<Measurement()>& one, std::vector<Measurement>& all) {
    server.AwaitQuiet();
    Measurement& round = all.emplace_back();
    for (int slice = 0; slice < kSlices; ++slice) Add(one(), round);
  };
  update();
  commit();
  std::vector<Measurement> updates;
  std::vector<Measurement> commits;
  for (int round = 0; round < rounds; ++round) {
    run(update, updates);
    run(commit, commits);
  }
  if (server.Queue(out).statistics().ready() != messages) {
    lines.Wrong("q5_commit pushed another number of messages than it acknowledged");
  }
  WriteCalls(kUpdateBesideCommit, updates, lines);
  WriteMessages(kAllInOneCommit, commits, lines);
  WriteRatios(kAllInOneCommit, commits, kUpdateBesideCommit, updates, lines);
}

}  // namespace strata::bench
