#include "service/engines/rocksdb/memory_watch.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <utility>

// jemalloc's, null in a program that has another allocator.
extern "C" __attribute__((weak)) int mallctl(const char* name, void* old_value, size_t* old_length,
                                             void* new_value, size_t new_length);

namespace strata::engines::rocks {
namespace {

// Has the allocator give the system what is free, at once: by itself it keeps it for a while
// (app/allocator.cc). Does nothing where the allocator is another one.
void ReturnFreedPages() {
  // Of all arenas: MALLCTL_ARENAS_ALL of jemalloc.h, which only programs that link it have.
  if (mallctl != nullptr) mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);
}

}  // namespace

uint64_t CacheBudget::Look(uint64_t process_bytes) {
  const uint64_t process_max = given_ + std::max(given_ / 8, kBesideMin);
  const uint64_t step = given_ / 256;
  const uint64_t expected =
      process_max + std::accumulate(taken_.begin(), taken_.end(), uint64_t{0});
  uint64_t taken = 0;
  if (process_bytes > expected) {
    taken = std::min(process_bytes - expected, bytes_ - given_ / 2);
    bytes_ -= taken;
  } else if (process_bytes + 2 * step < process_max) {
    bytes_ = std::min(bytes_ + step, given_);
  }
  std::shift_left(taken_.begin(), taken_.end(), 1);
  taken_.back() = taken;
  return bytes_;
}

uint64_t ProcessBytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t all_pages = 0;
  uint64_t resident_pages = 0;
  if (!(file >> all_pages >> resident_pages)) return 0;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

MemoryWatch::MemoryWatch(uint64_t given_bytes, std::chrono::milliseconds interval, Source source,
                         Resize resize)
    : interval_(interval),
      source_(std::move(source)),
      resize_(std::move(resize)),
      budget_(given_bytes),
      thread_([this] { Run(); }) {}

MemoryWatch::~MemoryWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void MemoryWatch::Run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, interval_, [this] { return stopping_; })) {
    const uint64_t before = budget_.bytes();
    const uint64_t now = budget_.Look(source_());
    if (now != before) resize_(now);
    if (now < before) ReturnFreedPages();
  }
}

}  // namespace strata::engines::rocks
