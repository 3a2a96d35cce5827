#include "service/engines/rocksdb/commit_beacon.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "schemas/base/error.h"
#include "service/observability/log.h"

namespace strata::engines::rocks {
namespace {

constexpr size_t kSlotBytes = 512;
constexpr size_t kPositionBytes = 8;
constexpr size_t kCrcBytes = 4;
constexpr auto kBehindMax = std::chrono::milliseconds(100);

using Slot = std::array<unsigned char, kSlotBytes>;

std::string PathIn(const std::string& directory) { return directory + "/commit-beacon"; }

absl::Status Unusable() {
  return Error(ErrorReason::kStoreUnavailable, "The commit beacon cannot be read or written.");
}

void PutNumber(uint64_t number, size_t size, unsigned char* to) {
  for (size_t i = 0; i < size; ++i) to[i] = static_cast<unsigned char>(number >> (8 * i));
}

uint64_t GetNumber(const unsigned char* from, size_t size) {
  uint64_t number = 0;
  for (size_t i = size; i-- > 0;) number = (number << 8) | from[i];
  return number;
}

uint64_t Crc(const Slot& slot) {
  return crc32(crc32(0, nullptr, 0), slot.data(), static_cast<uInt>(kPositionBytes));
}

// What a slot vouches for; nothing if it is torn or was never written.
std::optional<store::CommitPosition> ReadSlot(int file, int index) {
  Slot slot;
  const off_t offset = static_cast<off_t>(kSlotBytes) * index;
  if (pread(file, slot.data(), slot.size(), offset) != static_cast<ssize_t>(slot.size())) {
    return std::nullopt;
  }
  if (GetNumber(slot.data() + kPositionBytes, kCrcBytes) != Crc(slot)) return std::nullopt;
  return static_cast<store::CommitPosition>(GetNumber(slot.data(), kPositionBytes));
}

}  // namespace

absl::StatusOr<store::CommitPosition> ReadBeacon(const std::string& directory) {
  const int file = open(PathIn(directory).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT ? absl::StatusOr<store::CommitPosition>(0) : Unusable();
  const std::optional<store::CommitPosition> first = ReadSlot(file, 0);
  const std::optional<store::CommitPosition> second = ReadSlot(file, 1);
  const bool empty = lseek(file, 0, SEEK_END) == 0;
  close(file);
  if (!first && !second && !empty) {
    return Error(ErrorReason::kRecordCorrupt, "The commit beacon is damaged.");
  }
  return std::max(first.value_or(0), second.value_or(0));
}

absl::StatusOr<std::unique_ptr<CommitBeacon>> CommitBeacon::Start(
    const std::string& directory, std::function<store::CommitPosition()> position) {
  const int file = open(PathIn(directory).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return Unusable();
  return std::unique_ptr<CommitBeacon>(new CommitBeacon(file, std::move(position)));
}

CommitBeacon::CommitBeacon(int file, std::function<store::CommitPosition()> position)
    : file_(file), position_(std::move(position)) {
  const store::CommitPosition first = ReadSlot(file_, 0).value_or(0);
  const store::CommitPosition second = ReadSlot(file_, 1).value_or(0);
  written_ = std::max(first, second);
  next_slot_ = first > second ? 1 : 0;
  thread_ = std::thread([this] { Run(); });
}

CommitBeacon::~CommitBeacon() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
  close(file_);
}

void CommitBeacon::Run() {
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kBehindMax, [this] { return stopping_; });
      // The stop may come before this thread's first look: it writes once more in any case.
      last = stopping_;
    }
    const store::CommitPosition position = position_();
    if (position > written_) Write(position);
  }
}

void CommitBeacon::Write(store::CommitPosition position) {
  Slot slot{};
  PutNumber(static_cast<uint64_t>(position), kPositionBytes, slot.data());
  PutNumber(Crc(slot), kCrcBytes, slot.data() + kPositionBytes);
  const off_t offset = static_cast<off_t>(kSlotBytes) * next_slot_;
  const bool written =
      pwrite(file_, slot.data(), slot.size(), offset) == static_cast<ssize_t>(slot.size()) &&
      fdatasync(file_) == 0;
  if (written) {
    written_ = position;
    next_slot_ = 1 - next_slot_;
  } else if (!failed_) {
    // Commits stay as durable as they are; only a torn log will be refused more often than it had
    // to be.
    observability::Log(observability::LogLevel::kError, "the commit beacon cannot be written");
  }
  failed_ = !written;
}

}  // namespace strata::engines::rocks
