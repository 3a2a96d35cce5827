// Keeps the process at an eighth, or 32 MiB, more than the memory that its caches were given: looks
// four times a second at what it has, and takes from the caches what is beyond, down to half.
//
// Caches count what they hold. What comes on top of it is some 80 MiB at most times: the program,
// what the allocator rounds up and notes, connections, compactions. At times it is 140: when most
// records change their size, the pages of the old size are kept by the few that have not
// (bench/README.md).
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace strata::engines::rocks {

// How much of the memory that they were given the caches take. Pure.
class CacheBudget {
 public:
  // How often to look, and how soon the system has back what was taken.
  static constexpr std::chrono::milliseconds kInterval{250};
  static constexpr size_t kLooksUntilReturned = 2;
  // What the rest of the process may have where caches are small.
  static constexpr uint64_t kBesideMin = uint64_t{32} << 20;

  explicit CacheBudget(uint64_t given_bytes) : given_(given_bytes), bytes_(given_bytes) {}

  // What they take from now on, where the process has so much. What is too much is taken at once,
  // but not again before the system can have it back; what may be given back is, by and by.
  uint64_t Look(uint64_t process_bytes);
  uint64_t bytes() const { return bytes_; }

 private:
  const uint64_t given_;
  uint64_t bytes_;
  std::array<uint64_t, kLooksUntilReturned> taken_{};  // by the last looks
};

// What this process has of the machine's memory, in bytes; 0 where it cannot be told.
uint64_t ProcessBytes();

// Thread-safe.
class MemoryWatch {
 public:
  using Source = std::function<uint64_t()>;      // ProcessBytes
  using Resize = std::function<void(uint64_t)>;  // takes what all caches together may have

  MemoryWatch(uint64_t given_bytes, std::chrono::milliseconds interval, Source source,
              Resize resize);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

 private:
  void Run();

  const std::chrono::milliseconds interval_;
  const Source source_;
  const Resize resize_;
  CacheBudget budget_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace strata::engines::rocks
