// Writes zeros into a log ahead of its end, on a thread of its own.
//
// Space that is allocated and was never written is marked so in the file system: the first write to
// a block takes the mark away, and the sync after it commits the file system's journal, with what
// neighbours have in it. From four updates a group on every commit meets such a block. Where zeros
// were written before, a sync writes the log's bytes alone. The price: a
// log's bytes are written twice.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace strata::engines::rocks {

// Reach by one thread at a time.
class LogAhead {
 public:
  // How far the zeros go at most, and what is written and synced at once.
  static constexpr uint64_t kBytesMax = uint64_t{8} << 20;
  static constexpr uint64_t kStepBytesMax = uint64_t{1} << 20;
  // A log that holds less than this is not written ahead: it may never grow. One that holds more
  // has four times its own size ahead of it, and kBytesMax at most.
  static constexpr uint64_t kLogBytesMin = uint64_t{16} << 10;

  // Of the log at `path` in `files`, which must outlive this. Writes nothing while `wanted` is
  // false.
  LogAhead(rocksdb::FileSystem& files, std::string path,
           std::shared_ptr<const std::atomic<bool>> wanted)
      : files_(files), path_(std::move(path)), wanted_(std::move(wanted)) {}
  // Waits for the step that is being written.
  ~LogAhead() { End(); }

  // The log is about to write everything below `end`: from now on no zeros are written there. Waits
  // for a step that is being written there.
  void Reach(uint64_t end);

  // No zeros are written from now on. Waits for the step that is being written.
  void End();

 private:
  void Run();
  // Where the zeros are to end, and whether a quarter of what is to be ahead is missing.
  uint64_t Goal() const;
  bool IsDue() const { return 4 * (Goal() - zeros_to_) >= Goal() - reached_; }

  rocksdb::FileSystem& files_;
  const std::string path_;
  const std::shared_ptr<const std::atomic<bool>> wanted_;

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t reached_ = 0;     // the log writes below this
  uint64_t zeros_from_ = 0;  // of the step that is being written
  uint64_t zeros_to_ = 0;    // no zeros were written, or are being written, from here on
  bool writing_ = false;
  bool ended_ = false;  // the log is closed, or zeros could not be written
  std::thread thread_;  // none before the log holds kLogBytesMin
};

}  // namespace strata::engines::rocks
