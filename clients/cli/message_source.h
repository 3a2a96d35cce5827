// The messages of a file, read by a thread of their own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "clients/cli/line_stream.h"
#include "strata/v1/enrollment_service.pb.h"

namespace strata::cli {

// One line that is not empty.
struct Message {
  int64_t line = 0;
  std::string text;
  v1::ApplyRequest request;
  absl::Status parsed;  // Not OK: the line is malformed, why.
};

// Reads ahead as far as a bounded queue goes. A thread of its own, because a pipe may be silent for
// long: what was read before it fell silent is sent and answered meanwhile.
class MessageSource {
 public:
  // `defaults`: what lines do not say themselves. `on_more` is called by the thread when there is
  // something to take; not again before it was taken.
  MessageSource(LineReader& lines, v1::ApplyRequest defaults, std::function<void()> on_more);
  // Waits for the line that is being read: a silent pipe cannot be interrupted.
  ~MessageSource();

  struct Batch {
    std::vector<Message> messages;
    int64_t bytes_read = 0;  // Of the file, as stored.
    bool at_end = false;     // These were the last.
    absl::Status failure;    // Not OK: the file cannot be read after them.
    int64_t failed_line = 0;
  };
  // All that is there.
  Batch Take();

 private:
  void Run();
  bool Put(Message message);
  void End(const absl::Status& failure, int64_t line);
  void Announce(std::unique_lock<std::mutex>& lock);

  LineReader& lines_;
  const v1::ApplyRequest defaults_;
  const std::function<void()> on_more_;

  std::mutex mutex_;
  std::condition_variable room_;
  Batch batch_;
  size_t batch_bytes_ = 0;
  bool announced_ = false;
  bool stopped_ = false;
  std::thread thread_;  // The last member: it uses the others.
};

}  // namespace strata::cli
