#include "service/engines/rocksdb/disk_watch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "service/observability/log.h"

namespace strata::engines::rocks {
namespace {

using observability::Log;
using observability::LogLevel;

// Between two attempts to make a ballast that could not be made.
constexpr int kLooksBetweenAttempts = 60;
// A flush takes a while, and to ask again makes more of it; so does what is begun anew when RocksDB
// goes on.
constexpr int kLooksBetweenFlushes = 5;
constexpr uint64_t kWorthAFlush = uint64_t{8} << 20;
constexpr uint64_t kFlushMargin = uint64_t{32} << 20;

DiskSpaceSource SourceOf(const RocksDbOptions& options) {
  if (options.disk_space) return options.disk_space;
  return [directory = options.directory] { return SpaceAt(directory); };
}

}  // namespace

absl::StatusOr<std::unique_ptr<DiskWatch>> DiskWatch::Start(const RocksDbOptions& options,
                                                            const DataDirectory& directory,
                                                            LogFileSystem& files,
                                                            BackgroundWrites& background,
                                                            Actions actions) {
  uint64_t reserve = options.disk_reserve_bytes.value_or(0);
  if (!options.disk_reserve_bytes) {
    ASSIGN_OR_RETURN(const DiskSpace space, SourceOf(options)());
    reserve = DefaultReserve(space.total_bytes);
  }
  return std::unique_ptr<DiskWatch>(
      new DiskWatch(options, reserve, directory, files, background, std::move(actions)));
}

DiskWatch::DiskWatch(const RocksDbOptions& options, uint64_t reserve_bytes,
                     const DataDirectory& directory, LogFileSystem& files,
                     BackgroundWrites& background, Actions actions)
    : directory_(directory),
      files_(files),
      background_(background),
      actions_(std::move(actions)),
      space_(SourceOf(options)),
      interval_(options.disk_look_interval),
      ballast_(options.directory, options.ballast_bytes),
      guard_(
          reserve_bytes,
          [this]() -> absl::StatusOr<uint64_t> {
            ASSIGN_OR_RETURN(const DiskSpace space, space_());
            return space.free_bytes;
          },
          [this] { return background_.Outstanding(); }) {
  if (ballast_.bytes() == 0) ballast_.GiveUp();  // of an earlier start
  thread_ = std::thread([this] { Run(); });
}

DiskWatch::~DiskWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

absl::Status DiskWatch::Admit(size_t bytes, bool removal) {
  RETURN_IF_ERROR(Held());
  return guard_.Admit(bytes, removal);
}

absl::Status DiskWatch::Ready() const {
  RETURN_IF_ERROR(Held());
  return guard_.Ready();
}

absl::Status DiskWatch::Held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

void DiskWatch::Run() {
  while (true) {
    Look();
    std::unique_lock lock(mutex_);
    const auto interval = guard_.IsNear() ? interval_ / 10 : interval_;
    if (changed_.wait_for(lock, interval, [this] { return stopping_; })) return;
  }
}

void DiskWatch::Look() {
  LookAtDirectory();
  const absl::StatusOr<DiskSpace> space = space_();
  if (space.ok()) LookAtStop(*space);
  guard_.Look();
  if (!space.ok()) return;
  const uint64_t reserve = guard_.reserve_bytes();
  if (reserve > 0) {
    files_.AllocateLogsAhead(space->free_bytes >= 3 * reserve);
    // Half of the reserve stays for removals.
    background_.Limit(space->free_bytes, reserve / 2);
    LookAtMemory(*space);
  }
  LookAtBallast(*space);
}

void DiskWatch::LookAtDirectory() {
  absl::Status held = directory_.CheckHeld();
  const std::lock_guard lock(mutex_);
  if (held.ok() != held_.ok()) {
    Log(held.ok() ? LogLevel::kInfo : LogLevel::kError,
        held.ok() ? "the data directory is back: writes are taken"
                  : "the data directory is gone: writes are refused",
        {{"problem", ToStd(held.message())}});
  }
  held_ = std::move(held);
}

// What memory holds counts as taken from the disk, and keeps the log: before writes are refused for
// that it is flushed, and while they are, since then nothing else would flush it.
void DiskWatch::LookAtMemory(const DiskSpace& space) {
  if (++looks_since_flush_ < kLooksBetweenFlushes) return;
  const uint64_t memory = background_.MemoryBytes();
  const uint64_t near = guard_.reserve_bytes() + background_.Outstanding() + kFlushMargin;
  if (memory < kWorthAFlush || memory > space.free_bytes || space.free_bytes > near) return;
  looks_since_flush_ = 0;
  actions_.flush();
}

// Asked before the guard looks whether to take writes again: RocksDB refuses those that come before
// it is resumed.
void DiskWatch::LookAtStop(const DiskSpace& space) {
  if (++looks_since_resume_ < kLooksBetweenFlushes || !background_.awaits_room()) return;
  if (space.free_bytes < background_.Outstanding() + kFlushMargin) return;
  looks_since_resume_ = 0;
  actions_.resume();
}

// Makes the ballast where there is room for it and for twice the reserve: it must not end writes.
void DiskWatch::LookAtBallast(const DiskSpace& space) {
  if (ballast_.bytes() == 0 || !Held().ok()) return;
  if (looks_without_ballast_ > 0 && looks_without_ballast_++ < kLooksBetweenAttempts) return;
  looks_without_ballast_ = 0;
  const uint64_t reserve = guard_.reserve_bytes();
  const uint64_t needed = std::max(2 * reserve, ballast_.bytes() + reserve + reserve / 10);
  if (space.free_bytes < needed || ballast_.IsWhole()) return;
  const absl::Status made = ballast_.Make();
  if (made.ok()) return;
  looks_without_ballast_ = 1;
  Log(LogLevel::kWarning, "the ballast cannot be made", {{"problem", ToStd(made.message())}});
}

}  // namespace strata::engines::rocks
