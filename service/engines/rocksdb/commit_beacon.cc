#include "service/engines/rocksdb/commit_beacon.h"

#include <rocksdb/convenience.h>
#include <zlib.h>

#include <array>
#include <string_view>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "service/engines/rocksdb/data_directory.h"
#include "service/engines/rocksdb/driver.h"
#include "service/engines/rocksdb/log_shape.h"
#include "service/observability/log.h"

namespace strata::engines::rocks {
namespace {

constexpr size_t kSlotBytes = 4096;
constexpr size_t kOldSlotBytes = 512;
constexpr size_t kNumberBytes = 8;
constexpr size_t kCrcBytes = 4;
constexpr size_t kUsedBytes = 3 * kNumberBytes + kCrcBytes;

// Where a slot may be: the two, and the second of the old layout.
constexpr std::array<uint64_t, 3> kOffsets = {0, kSlotBytes, kOldSlotBytes};

std::string PathIn(const std::string& directory) { return directory + "/commit-beacon"; }

absl::Status Unusable(const rocksdb::IOStatus& status) {
  observability::Log(observability::LogLevel::kError, "the commit beacon cannot be read or written",
                     {{"status", status.ToString()}});
  return Error(ErrorReason::kStoreUnavailable, "The commit beacon cannot be read or written.");
}

void AppendNumber(uint64_t number, size_t size, std::string& to) {
  for (size_t i = 0; i < size; ++i) to += static_cast<char>(number >> (8 * i));
}

uint64_t TakeNumber(std::string_view& from, size_t size) {
  uint64_t number = 0;
  for (size_t i = size; i-- > 0;) number = (number << 8) | static_cast<unsigned char>(from[i]);
  from.remove_prefix(size);
  return number;
}

uint64_t Crc(std::string_view bytes) {
  return crc32(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()),
               static_cast<uInt>(bytes.size()));
}

std::string Slot(const Durable& durable) {
  std::string slot;
  AppendNumber(static_cast<uint64_t>(durable.position), kNumberBytes, slot);
  AppendNumber(durable.manifest, kNumberBytes, slot);
  AppendNumber(durable.manifest_bytes, kNumberBytes, slot);
  AppendNumber(Crc(slot), kCrcBytes, slot);
  slot.resize(kSlotBytes);
  return slot;
}

// `slot` begins with `numbers` of them and their checksum; nothing if it does not.
std::optional<Durable> ParseSlot(std::string_view slot, size_t numbers) {
  const std::string_view summed = slot.substr(0, numbers * kNumberBytes);
  Durable durable;
  durable.position = static_cast<store::CommitPosition>(TakeNumber(slot, kNumberBytes));
  if (numbers > 1) {
    durable.manifest = TakeNumber(slot, kNumberBytes);
    durable.manifest_bytes = TakeNumber(slot, kNumberBytes);
  }
  if (TakeNumber(slot, kCrcBytes) != Crc(summed)) return std::nullopt;
  return durable;
}

struct Newest {
  Durable durable;
  uint64_t offset = 0;
};

// The newest of the slots that are whole; nothing if none is.
absl::StatusOr<std::optional<Newest>> FindNewest(const rocksdb::FSRandomRWFile& file) {
  std::optional<Newest> newest;
  for (const uint64_t offset : kOffsets) {
    std::array<char, kUsedBytes> room;
    rocksdb::Slice read;
    const rocksdb::IOStatus status =
        file.Read(offset, room.size(), rocksdb::IOOptions(), &read, room.data(), nullptr);
    if (!status.ok()) return Unusable(status);
    if (read.size() < room.size()) continue;
    std::optional<Durable> durable = ParseSlot(ToView(read), 3);
    if (!durable) durable = ParseSlot(ToView(read), 1);
    if (durable && (!newest || *durable > newest->durable)) newest = {*durable, offset};
  }
  return newest;
}

// Null if there is no such file.
absl::StatusOr<std::unique_ptr<rocksdb::FSRandomRWFile>> OpenBeacon(rocksdb::FileSystem& files,
                                                                    const std::string& directory) {
  const std::string path = PathIn(directory);
  const rocksdb::IOStatus exists = files.FileExists(path, rocksdb::IOOptions(), nullptr);
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  if (exists.IsNotFound() || exists.IsPathNotFound()) return file;
  if (!exists.ok()) return Unusable(exists);
  const rocksdb::IOStatus opened =
      files.NewRandomRWFile(path, rocksdb::FileOptions(), &file, nullptr);
  if (!opened.ok()) return Unusable(opened);
  return file;
}

rocksdb::IOStatus WriteNewFile(rocksdb::FileSystem& files, const std::string& path,
                               const std::string& bytes) {
  const rocksdb::IOOptions options;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  rocksdb::IOStatus status = files.NewWritableFile(path, rocksdb::FileOptions(), &file, nullptr);
  if (status.ok()) status = file->Append(rocksdb::Slice(bytes), options, nullptr);
  if (status.ok()) status = file->Fsync(options, nullptr);
  if (status.ok()) status = file->Close(options, nullptr);
  return status;
}

absl::Status Damaged(std::string_view problem) {
  return Error(ErrorReason::kRecordCorrupt, std::string(problem) + " Nothing was changed.");
}

// Whether the manifest that the database names is there, and as long as it was durable. Of a newer
// one nothing is known.
absl::Status CheckManifest(rocksdb::FileSystem& files, const std::string& directory,
                           const Durable& durable) {
  std::string name;
  rocksdb::Status status = rocksdb::ReadFileToString(&files, directory + "/CURRENT", &name);
  if (!status.ok()) return Translate(status, "opening the data directory " + directory);
  const bool whole = name.ends_with('\n');
  if (whole) name.pop_back();
  const std::optional<uint64_t> current = ParseManifestName(name);
  if (!whole || !current) return Damaged("The file CURRENT of the database is damaged.");
  if (*current < durable.manifest)
    return Damaged("The database is of an older state than its commit beacon.");
  const std::string manifest = directory + "/" + ManifestName(*current);
  status = files.FileExists(manifest, rocksdb::IOOptions(), nullptr);
  if (status.IsNotFound()) return Damaged("The manifest of the database is missing.");
  LogShape shape;
  if (status.ok()) status = ReadLogShape(files, manifest, LogPart::kAll, &shape);
  if (!status.ok()) return Translate(status, "opening the data directory " + directory);
  if (*current > durable.manifest || shape.records_end >= durable.manifest_bytes)
    return absl::OkStatus();
  return Damaged("The manifest of the database is damaged: what was durable of it is missing.");
}

}  // namespace

absl::StatusOr<std::optional<Durable>> ReadBeacon(rocksdb::FileSystem& files,
                                                  const std::string& directory) {
  ASSIGN_OR_RETURN(const auto file, OpenBeacon(files, directory));
  if (file == nullptr) return std::nullopt;
  ASSIGN_OR_RETURN(const std::optional<Newest> newest, FindNewest(*file));
  if (!newest) return std::nullopt;
  return newest->durable;
}

absl::Status MakeBeacon(rocksdb::FileSystem& files, const std::string& directory, Durable durable) {
  // Beside the old one until it is whole, so that there is one at any moment.
  const std::string made = PathIn(directory) + ".new";
  rocksdb::IOStatus status = WriteNewFile(files, made, Slot(durable) + Slot(durable));
  if (status.ok()) {
    status = files.RenameFile(made, PathIn(directory), rocksdb::IOOptions(), nullptr);
  }
  if (status.ok()) status = SyncDirectory(files, directory);
  return status.ok() ? absl::OkStatus() : Unusable(status);
}

absl::StatusOr<std::optional<Durable>> ReadOrMakeBeacon(rocksdb::FileSystem& files,
                                                        const std::string& directory) {
  ASSIGN_OR_RETURN(const std::optional<Durable> durable, ReadBeacon(files, directory));
  ASSIGN_OR_RETURN(const bool database, HoldsDatabase(files, directory));
  if (database) {
    if (durable) RETURN_IF_ERROR(CheckManifest(files, directory, *durable));
    return durable;
  }
  if (durable && durable->position > 0)
    return Damaged("The database is missing, and its commits were durable.");
  if (!durable) RETURN_IF_ERROR(MakeBeacon(files, directory, {}));
  return Durable{};
}

absl::StatusOr<std::unique_ptr<CommitBeacon>> CommitBeacon::Start(
    rocksdb::FileSystem& files, const std::string& directory, std::chrono::milliseconds behind_max,
    std::function<Durable()> durable) {
  ASSIGN_OR_RETURN(std::unique_ptr<rocksdb::FSRandomRWFile> file, OpenBeacon(files, directory));
  if (file == nullptr) return Unusable(rocksdb::IOStatus::PathNotFound());
  ASSIGN_OR_RETURN(const std::optional<Newest> newest, FindNewest(*file));
  std::unique_ptr<CommitBeacon> beacon(
      new CommitBeacon(std::move(file), behind_max, std::move(durable)));
  if (newest) {
    beacon->written_ = newest->durable;
    beacon->next_slot_ = newest->offset == kSlotBytes ? 0 : 1;
  }
  beacon->thread_ = std::thread([made = beacon.get()] { made->Run(); });
  return beacon;
}

CommitBeacon::CommitBeacon(std::unique_ptr<rocksdb::FSRandomRWFile> file,
                           std::chrono::milliseconds behind_max, std::function<Durable()> durable)
    : file_(std::move(file)), behind_max_(behind_max), durable_(std::move(durable)) {}

CommitBeacon::~CommitBeacon() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void CommitBeacon::Run() {
  // What was done before the stop is written too.
  for (bool last = false;;) {
    const Durable durable = durable_();
    if (durable > written_) Write(durable);
    if (last) return;
    std::unique_lock lock(mutex_);
    last = changed_.wait_for(lock, behind_max_, [this] { return stopping_; });
  }
}

void CommitBeacon::Write(const Durable& durable) {
  const rocksdb::IOOptions options;
  const std::string slot = Slot(durable);
  const uint64_t offset = kSlotBytes * static_cast<uint64_t>(next_slot_);
  rocksdb::IOStatus status = file_->Write(offset, rocksdb::Slice(slot), options, nullptr);
  if (status.ok()) status = file_->Sync(options, nullptr);
  if (status.ok()) {
    written_ = durable;
    next_slot_ = 1 - next_slot_;
  } else if (!failed_) {
    // Commits stay as durable as they are; only a torn log will be refused more often than it had
    // to be.
    observability::Log(observability::LogLevel::kError, "the commit beacon cannot be written",
                       {{"status", status.ToString()}});
  }
  failed_ = !status.ok();
}

}  // namespace strata::engines::rocks
