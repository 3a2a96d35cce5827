// What messages that wait take of the server's memory, and what they do to its start.
#include <algorithm>
#include <string>
#include <vector>

#include "bench/queue/cycles.h"
#include "bench/queue/message_rounds.h"
#include "bench/queue/queue_server.h"
#include "bench/queue/queue_workloads.h"
#include "bench/support/rounds.h"

namespace strata::bench {
namespace {

constexpr int64_t kWaiting = 1'000'000;
constexpr char kWithFew[] = "10^3 waiting";
constexpr char kWithMany[] = "10^6 waiting";

// Starts the server as often as there are rounds, and uses the queue each time.
std::vector<double> Start(const QueueLoadSettings& settings, QueueServer& server, Cycles& queue,
                          Ending ending) {
  std::vector<double> serving_us;
  for (int round = 0; round < settings.rounds; ++round) {
    const auto taken = server.Restart(ending);
    serving_us.push_back(std::chrono::duration<double, std::micro>(taken).count());
    queue.PassThrough(kFewWaiting);
  }
  return serving_us;
}

}  // namespace

// What is written fills memtables, whatever it is; so a server that was started anew tells more of
// those who wait.
void MeasureWaiting(const QueueLoadSettings& settings, FigureLines& lines) {
  const int64_t messages = settings.Scaled(kWaiting) / kBatch * kBatch;
  const std::string anew = ", started anew";
  const std::string killed = ", started anew after a kill -9";
  const auto write = [&](const char* figure, const std::string& what, int64_t bytes) {
    lines.Number(figure, QueueParameters(what), static_cast<double>(bytes), Unit::kBytes);
  };
  const auto write_serving = [&](const std::string& what, const std::vector<double>& serving_us) {
    WriteRounds("serving", QueueParameters(what), serving_us, Unit::kMicroseconds, lines);
  };
  QueueServer server(settings, "waiting");
  Cycles few(server, server.FilledQueue(kFewWaiting), kFewWaiting);
  few.PassThrough(kFewWaiting);
  const int64_t with_few = server.SettledBytes();
  write("resident_memory", kWithFew, with_few);
  write_serving(kWithFew + anew, Start(settings, server, few, Ending::kOrderly));
  const int64_t with_few_anew = server.SettledBytes();
  write("resident_memory", kWithFew + anew, with_few_anew);

  Cycles many(server, server.FilledQueue(messages), messages);
  many.PassThrough(kFewWaiting);
  const int64_t with_many = server.SettledBytes();
  write("resident_memory", kWithMany, with_many);
  write("memory_above", kWithMany, std::max<int64_t>(with_many - with_few, 0));
  write_serving(kWithMany + killed, Start(settings, server, many, Ending::kKill));
  write_serving(kWithMany + anew, Start(settings, server, many, Ending::kOrderly));
  const int64_t with_many_anew = server.SettledBytes();
  write("resident_memory", kWithMany + anew, with_many_anew);
  write("memory_above", kWithMany + anew, std::max<int64_t>(with_many_anew - with_few_anew, 0));
}

}  // namespace strata::bench
