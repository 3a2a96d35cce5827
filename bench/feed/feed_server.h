// A server in a folder of its own, with the documents that all measurements write to, and those who
// follow it.
#pragma once

#include <strata/v1/feed_service.pb.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "bench/feed/measure.h"
#include "bench/load/closed_loop.h"
#include "bench/load/watchers.h"
#include "bench/load/workloads.h"
#include "tests/fault/server_process.h"

namespace strata::bench {

inline constexpr char kDocuments[] = "documents";
inline constexpr int64_t kDocumentCount = 10'000;
// What gives a wait up that should long be over.
inline constexpr std::chrono::seconds kPatience{60};

// What a figure of the feed was measured on: a system, such as "strata", and what it did.
Parameters FeedParameters(const std::string& what, const std::string& system = "strata");

class FeedServer {
 public:
  // In `settings.folder`/`name`, its documents in so many versions. `binary`: another server
  // program; empty: the one that was built with this.
  FeedServer(const FeedSettings& settings, const std::string& name, int64_t depth,
             const std::string& binary = "");

  // On what one that has stopped left in `settings.folder`/`name`, with its documents.
  FeedServer(const FeedSettings& settings, const std::string& name, Population population);

  // Ends it. Nobody may be connected any more, and nothing else be asked for but its documents.
  void Stop();

  pid_t pid() const { return server_->pid(); }
  const std::string& address() const { return server_->address(); }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  Population& population() { return population_; }
  // Events of the feed so far.
  int64_t entries() const;

  // Until it does nothing any more, such as compacting what was written before: at most a minute.
  void AwaitQuiet() const;
  // A round of so long, after a warm-up of a quarter of it. What is answered wrong is written as
  // such.
  Measurement Run(Workload& workload, int in_flight, std::chrono::milliseconds duration,
                  FigureLines& lines);
  // So many calls, without a warm-up.
  Measurement RunCalls(Workload& workload, int in_flight, int64_t calls, FigureLines& lines);
  // Of W1.
  Measurement Update(int in_flight, std::chrono::milliseconds duration, FigureLines& lines);

  // Each has been greeted.
  std::unique_ptr<Watchers> Watch(const v1::WatchRequest& request, int64_t count = 1,
                                  std::chrono::milliseconds pause = {}) const;
  // Of a collection to which nothing happens.
  std::unique_ptr<Watchers> Park(int64_t count) const;

 private:
  Measurement Run(Workload& workload, LoopSettings loop, FigureLines& lines);

  const fault::ServerSettings settings_;
  std::optional<fault::ServerProcess> server_;
  std::shared_ptr<grpc::Channel> channel_;
  Population population_;
  uint64_t seed_ = 1;
};

}  // namespace strata::bench
