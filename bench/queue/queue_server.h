// A server in a folder of its own, and its queues.
#pragma once

#include <strata/v1/queue_service.pb.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "bench/load/closed_loop.h"
#include "bench/load/workloads.h"
#include "bench/queue/measure.h"
#include "tests/fault/server_process.h"

namespace strata::bench {

inline constexpr int kInFlight = 64;
inline constexpr int64_t kDocumentCount = 10'000;
inline constexpr int64_t kFewWaiting = 1'000;
// What gives a wait up that should long be over.
inline constexpr std::chrono::seconds kPatience{60};

// In ways that a stopped server can be started anew.
enum class Ending { kOrderly, kKill };

class QueueServer {
 public:
  // In `settings.folder`/`name`. `binary`: another server program; empty: the one that was built
  // with this.
  QueueServer(const QueueLoadSettings& settings, const std::string& name,
              const std::string& binary = "");

  // Ends it, and starts it on what it has stored. How long that took, from exec until it served.
  // Who was connected is so no longer.
  std::chrono::nanoseconds Restart(Ending ending);

  pid_t pid() const { return server_->pid(); }
  const std::string& address() const { return server_->address(); }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  // W1's documents, made when they are asked for first.
  Population& population();

  // An empty queue of a name that none had before. Reservations last for hours, so that what a
  // round leaves behind is not handed out in the next.
  std::string NewQueue();
  // With so many messages, pushed a hundred at a time by several calls in flight.
  std::string FilledQueue(int64_t messages);
  // As it stands, once its statistics are exact.
  v1::Queue Queue(const std::string& name) const;

  // Until it does nothing any more, at most some seconds.
  void AwaitQuiet() const;
  // A round of so long, after a warm-up of a quarter of it, begun when the server is quiet. What is
  // answered wrong is written as such.
  Measurement Run(Workload& workload, int in_flight, std::chrono::milliseconds duration,
                  FigureLines& lines);
  // So many calls, begun at once.
  Measurement RunCalls(Workload& workload, int in_flight, int64_t calls, FigureLines& lines);
  // W1.
  Measurement Update(int in_flight, std::chrono::milliseconds duration, FigureLines& lines);
  Measurement UpdateCalls(int in_flight, int64_t calls, FigureLines& lines);

  // Of its memory, once that does not move any more.
  int64_t SettledBytes() const;
  // That the files of its data take of the disk.
  int64_t DiskBytes() const;

 private:
  Measurement RunLoop(Workload& workload, const LoopSettings& loop, FigureLines& lines) const;

  const fault::ServerSettings settings_;
  const int64_t documents_;
  std::optional<fault::ServerProcess> server_;
  std::shared_ptr<grpc::Channel> channel_;
  Population population_;
  int queues_ = 0;
  uint64_t seed_ = 1;
};

}  // namespace strata::bench
