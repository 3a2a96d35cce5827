// One batch under a lock; the reader fills it, the taker swaps it for an empty one.
#include "clients/cli/message_source.h"

#include <utility>

#include "clients/cli/enrollment_line.h"

namespace strata::cli {
namespace {

constexpr size_t kBatchMessages = 1024;
constexpr size_t kBatchBytes = size_t{8} << 20;

}  // namespace

MessageSource::MessageSource(LineReader& lines, v1::ApplyRequest defaults,
                             std::function<void()> on_more)
    : lines_(lines),
      defaults_(std::move(defaults)),
      on_more_(std::move(on_more)),
      thread_([this] { Run(); }) {}

MessageSource::~MessageSource() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  room_.notify_all();
  thread_.join();
}

MessageSource::Batch MessageSource::Take() {
  const std::lock_guard lock(mutex_);
  announced_ = false;
  batch_bytes_ = 0;
  room_.notify_all();
  return std::exchange(batch_, Batch());
}

void MessageSource::Run() {
  std::string text;
  for (int64_t line = 1;; ++line) {
    const absl::StatusOr<bool> more = lines_.Next(text);
    if (!more.ok() || !*more) return End(more.status(), line);
    if (text.empty()) continue;
    Message message;
    message.line = line;
    message.request = defaults_;
    message.parsed = ParseEnrollmentLine(text, message.request);
    message.text = std::move(text);
    if (!Put(std::move(message))) return;
  }
}

// Waits for room. False: nobody takes any more.
bool MessageSource::Put(Message message) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] {
    return stopped_ || (batch_.messages.size() < kBatchMessages && batch_bytes_ < kBatchBytes);
  });
  if (stopped_) return false;
  batch_bytes_ += message.text.size();
  batch_.messages.push_back(std::move(message));
  batch_.bytes_read = lines_.bytes_read();
  Announce(lock);
  return true;
}

void MessageSource::End(const absl::Status& failure, int64_t line) {
  std::unique_lock lock(mutex_);
  batch_.at_end = true;
  batch_.failure = failure;
  batch_.failed_line = line;
  batch_.bytes_read = lines_.bytes_read();
  if (!stopped_) Announce(lock);
}

void MessageSource::Announce(std::unique_lock<std::mutex>& lock) {
  if (announced_) return;
  announced_ = true;
  lock.unlock();
  on_more_();
}

}  // namespace strata::cli
