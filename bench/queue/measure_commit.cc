// Acknowledging a message, updating a document and pushing a message in one commit, beside W1 in
// turns. The messages were reserved before.
#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "bench/load/prepare.h"
#include "bench/queue/message_rounds.h"
#include "bench/queue/queue_server.h"
#include "bench/queue/queue_workloads.h"
#include "bench/support/rounds.h"

namespace strata::bench {
namespace {

constexpr int kTurns = 2;  // rounds in turns for each of other measurements
// More than any machine commits, so that none runs out of messages, and few in a round of a moment.
constexpr int64_t kMessagesPerSecond = 60'000;
constexpr int64_t kMessagesMin = 3'000;
constexpr char kUpdate[] = "W1 update, beside q5_commit";
constexpr char kCommit[] = "q5_commit";

}  // namespace

void MeasureCommit(const QueueLoadSettings& settings, FigureLines& lines) {
  QueueServer server(settings, "commit");
  server.population();
  const auto round_ms = settings.duration.count() * 5 / 4;
  const int64_t needed =
      std::max(kMessagesPerSecond * round_ms / 1000 / kBatch * kBatch, kMessagesMin);
  std::deque<std::string> tokens;
  std::vector<Measurement> updates;
  std::vector<Measurement> commits;
  for (int round = 0; round < kTurns * settings.rounds; ++round) {
    const auto missing = needed - static_cast<int64_t>(tokens.size());
    if (missing > 0) {
      const int64_t more = (missing + kBatch - 1) / kBatch * kBatch;
      Prepare(server.channel(), *ReserveAll(server.FilledQueue(more), more, tokens));
    }
    updates.push_back(server.Update(kInFlight, settings.duration, lines));
    const std::string out = server.NewQueue();
    const auto before = static_cast<int64_t>(tokens.size());
    commits.push_back(
        server.Run(*CommitAll(tokens, server.population(), out, static_cast<uint64_t>(round)),
                   kInFlight, settings.duration, lines));
    const int64_t acknowledged = before - static_cast<int64_t>(tokens.size());
    if (tokens.empty()) lines.Wrong("there were too few messages for a round of q5_commit");
    if (server.Queue(out).statistics().ready() != acknowledged) {
      lines.Wrong("q5_commit pushed another number of messages than it acknowledged");
    }
  }
  WriteCalls(kUpdate, updates, lines);
  WriteMessages(kCommit, commits, lines);
  WriteRatios(kCommit, commits, kUpdate, updates, lines);
}

}  // namespace strata::bench
