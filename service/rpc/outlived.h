// A stream, or what else may be gone, for those who work for it on other threads.
#pragma once

#include <atomic>
#include <mutex>

namespace strata::rpc {

// A stream as those see it who work for it and may outlive it.
template <typename T>
class Outlived {
 public:
  explicit Outlived(T& stream) : stream_(&stream) {}

  // Waits for whoever uses it, which never takes long.
  void Close() {
    closed_ = true;
    const std::lock_guard lock(mutex_);
    stream_ = nullptr;
  }
  bool closed() const { return closed_.load(std::memory_order_relaxed); }

  // Calls `use` with the stream, unless it is closed.
  template <typename Use>
  void IfOpen(const Use& use) {
    const std::lock_guard lock(mutex_);
    if (stream_ != nullptr) use(*stream_);
  }

 private:
  std::atomic<bool> closed_ = false;
  std::mutex mutex_;  // guards stream_, and is held while it is used
  T* stream_;         // null: it is closed
};

}  // namespace strata::rpc
