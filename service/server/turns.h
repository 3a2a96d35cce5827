// Work that takes long, of many callers on few threads.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "absl/status/status.h"
#include "schemas/base/executor.h"
#include "service/server/caller.h"

namespace strata::server {

// Callers take turns on an executor: what one has waiting delays another's work by one piece at
// most, and one thread is always left to the others. What else the executor does does not count.
// Thread-safe. Keep it in a shared_ptr: what runs holds it.
class Turns : public std::enable_shared_from_this<Turns> {
 public:
  // So many pieces of work of one caller may wait.
  static constexpr size_t kWaitingMax = 1000;

  // `executor` outlives it and has so many threads.
  Turns(Executor& executor, int threads);

  // Runs `work` once, on the executor, after what the caller gave before. OVERLOADED: too much of
  // its waits. After Stop, drops the work.
  absl::Status Schedule(const std::shared_ptr<Caller>& caller, std::function<void()> work);

  // Drops what waits. What runs goes on.
  void Stop();

 private:
  using Work = std::function<void()>;
  using Lock = std::unique_lock<std::mutex>;

  // One caller's, while it has any.
  struct Line {
    std::shared_ptr<Caller> caller;
    std::deque<Work> waiting;
    int at_work = 0;
  };

  bool IsReady(const Line& line) const {
    return !line.waiting.empty() && line.at_work < at_work_max_;
  }
  void StartRunner();
  void RunNext();
  void EndTurn(Line& line);

  Executor& executor_;
  const int threads_;
  const int at_work_max_;  // of one caller

  std::mutex mutex_;  // guards what follows
  std::unordered_map<Caller*, Line> lines_;
  std::list<Line*> ready_;  // whose turn is next; each line once, and only while it is ready
  int runners_ = 0;         // at work, or about to begin
  bool stopped_ = false;
};

}  // namespace strata::server
