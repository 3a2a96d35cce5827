#include "tests/disk/fault_file_system.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace strata::engines::rocks {
namespace {

using rocksdb::IOStatus;
using rocksdb::Slice;

constexpr size_t kSectorBytes = 512;
// More than this is not allocated ahead: it would only cost time.
constexpr size_t kAllocatedMax = size_t{64} << 10;

// Without doubled and trailing slashes.
std::string Clean(std::string_view path) {
  std::string clean;
  for (const char c : path) {
    if (c != '/' || clean.empty() || clean.back() != '/') clean += c;
  }
  if (clean.size() > 1 && clean.back() == '/') clean.pop_back();
  return clean;
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

bool IsInside(const std::string& path, const std::string& directory) {
  return path.size() > directory.size() && path.starts_with(directory) &&
         (directory == "/" || path[directory.size()] == '/');
}

IOStatus NotFound(const std::string& path) { return IOStatus::PathNotFound(path); }

class SilentLogger final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
  size_t GetLogFileSize() const override { return 0; }
};

class Lock final : public rocksdb::FileLock {
 public:
  explicit Lock(std::string locked_path) : path(std::move(locked_path)) {}
  const std::string path;
};

}  // namespace

struct FaultFileSystem::File {
  std::string bytes;                               // as they are read
  std::string synced;                              // as they stay
  std::vector<std::pair<size_t, size_t>> written;  // since then; from, until

  void Write(size_t at, std::string_view data) {
    if (bytes.size() < at + data.size()) Resize(at + data.size());
    std::memcpy(bytes.data() + at, data.data(), data.size());
    written.emplace_back(at, at + data.size());
  }
  void Resize(size_t size) {
    if (size > bytes.size()) written.emplace_back(bytes.size(), size);
    bytes.resize(size);
  }
  void Sync() {
    synced.resize(bytes.size());
    for (const auto& [from, until] : written) {
      const size_t end = std::min(until, bytes.size());
      if (from < end) std::memcpy(synced.data() + from, bytes.data() + from, end - from);
    }
    written.clear();
  }
  std::string AfterPowerLoss(Stays stays, std::mt19937_64& chance) const;
};

std::string FaultFileSystem::File::AfterPowerLoss(Stays stays, std::mt19937_64& chance) const {
  if (stays == Stays::kNothing || (written.empty() && bytes.size() == synced.size())) return synced;
  if (stays == Stays::kEverything) return bytes;
  std::string left = synced;
  if (bytes.size() > synced.size()) {
    size_t size = synced.size() + chance() % (bytes.size() - synced.size() + 1);
    if (chance() % 2 == 0) size = std::max(size / kSectorBytes * kSectorBytes, synced.size());
    left.append(bytes, synced.size(), size - synced.size());
  } else if (chance() % 2 == 0) {
    left.resize(bytes.size());
  }
  const size_t both = std::min(synced.size(), bytes.size());
  std::set<size_t> sectors;
  for (const auto& [from, until] : written) {
    for (size_t at = from / kSectorBytes; at * kSectorBytes < std::min(until, both); ++at)
      sectors.insert(at);
  }
  for (const size_t sector : sectors) {
    if (chance() % 2 == 0) continue;
    const size_t at = sector * kSectorBytes;
    const size_t end = std::min({at + kSectorBytes, both, left.size()});
    if (at < end) std::memcpy(left.data() + at, bytes.data() + at, end - at);
  }
  return left;
}

struct FaultFileSystem::NameChange {
  std::string path;     // that names `file` from now on; if empty, nothing does
  std::string removed;  // that names nothing from now on; may be empty
  FilePointer file;     // null: a directory

  std::string directory() const { return ParentOf(path.empty() ? removed : path); }
  void Apply(Names& names) const {
    if (!removed.empty()) names.erase(removed);
    if (!path.empty()) names[path] = file;
  }
};

// One call: holds the mutex, and lets the power go after the call at which it is to go.
class FaultFileSystem::Access {
 public:
  Access(const FaultFileSystem& files, CallKind kind, std::string_view path)
      : files_(const_cast<FaultFileSystem&>(files)), lock_(files.mutex_) {
    if (!files_.has_power_) {
      status_ = IOStatus::IOError("the power is off");
      return;
    }
    if (files_.fault_) status_ = files_.fault_({kind, path});
    if (!status_.ok() || kind == CallKind::kRead || files_.calls_to_power_cut_ == 0) return;
    if (--files_.calls_to_power_cut_ > 0) return;
    cut_ = true;
    if (kind != CallKind::kSync) return;  // done, though not synced
    status_ = IOStatus::IOError("the power went");
  }
  ~Access() {
    if (!cut_) return;
    std::mt19937_64 chance(files_.seed_);
    files_.LosePower(DrawStays(chance), chance);
  }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  bool ok() const { return status_.ok(); }
  const IOStatus& status() const { return status_; }

 private:
  FaultFileSystem& files_;
  const std::lock_guard<std::mutex> lock_;
  IOStatus status_;
  bool cut_ = false;
};

class FaultFileSystem::SequentialFile final : public rocksdb::FSSequentialFile {
 public:
  SequentialFile(const FaultFileSystem& files, std::string path, FilePointer file)
      : files_(files), path_(std::move(path)), file_(std::move(file)) {}

  IOStatus Read(size_t count, const Options& /*options*/, Slice* result, char* scratch,
                Debug* /*debug*/) override {
    const Access access(files_, CallKind::kRead, path_);
    *result = Slice(scratch, 0);
    if (!access.ok()) return access.status();
    if (at_ < file_->bytes.size()) {
      *result = Slice(scratch, file_->bytes.copy(scratch, count, at_));
      at_ += result->size();
    }
    return IOStatus::OK();
  }
  IOStatus Skip(uint64_t count) override {
    at_ += count;
    return IOStatus::OK();
  }

 private:
  const FaultFileSystem& files_;
  const std::string path_;
  const FilePointer file_;
  size_t at_ = 0;
};

class FaultFileSystem::RandomAccessFile final : public rocksdb::FSRandomAccessFile {
 public:
  RandomAccessFile(const FaultFileSystem& files, std::string path, FilePointer file)
      : files_(files), path_(std::move(path)), file_(std::move(file)) {}

  IOStatus Read(uint64_t offset, size_t count, const Options& /*options*/, Slice* result,
                char* scratch, Debug* /*debug*/) const override {
    const Access access(files_, CallKind::kRead, path_);
    *result = Slice(scratch, 0);
    if (!access.ok()) return access.status();
    if (offset < file_->bytes.size())
      *result = Slice(scratch, file_->bytes.copy(scratch, count, offset));
    return IOStatus::OK();
  }

 private:
  const FaultFileSystem& files_;
  const std::string path_;
  const FilePointer file_;
};

// As RocksDB's for POSIX: space that is allocated ahead shows in the size if the options say so,
// and goes when the file is closed.
class FaultFileSystem::WritableFile final : public rocksdb::FSWritableFile {
 public:
  WritableFile(FaultFileSystem& files, std::string path, FilePointer file,
               const rocksdb::FileOptions& options)
      : FSWritableFile(options),
        files_(files),
        path_(std::move(path)),
        file_(std::move(file)),
        size_(file_->bytes.size()),
        allocates_size_(options.allow_fallocate && !options.fallocate_with_keep_size),
        direct_(options.use_direct_writes) {}

  bool use_direct_io() const override { return direct_; }
  size_t GetRequiredBufferAlignment() const override { return kSectorBytes; }

  using FSWritableFile::Append;
  using FSWritableFile::PositionedAppend;
  IOStatus Append(const Slice& data, const Options& /*options*/, Debug* /*debug*/) override {
    if (direct_) return IOStatus::InvalidArgument("a direct write has a place");
    return WriteAt(size_, data);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const Options& /*options*/,
                            Debug* /*debug*/) override {
    const auto misaligned = [](size_t value) { return value % kSectorBytes != 0; };
    if (direct_ && (misaligned(offset) || misaligned(data.size()) ||
                    misaligned(reinterpret_cast<uintptr_t>(data.data())))) {
      return IOStatus::InvalidArgument("a direct write is of whole sectors");
    }
    return WriteAt(offset, data);
  }
  IOStatus Truncate(uint64_t size, const Options& /*options*/, Debug* /*debug*/) override {
    return SetSize(size);
  }
  IOStatus Close(const Options& /*options*/, Debug* /*debug*/) override {
    if (!allocated_) return IOStatus::OK();
    allocated_ = false;
    return SetSize(size_);
  }
  IOStatus Flush(const Options& /*options*/, Debug* /*debug*/) override { return IOStatus::OK(); }
  IOStatus Sync(const Options& /*options*/, Debug* /*debug*/) override {
    const Access access(files_, CallKind::kSync, path_);
    if (!access.ok()) return access.status();
    file_->Sync();
    return IOStatus::OK();
  }
  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize(const Options& /*options*/, Debug* /*debug*/) override { return size_; }
  IOStatus Allocate(uint64_t offset, uint64_t length, const Options& /*options*/,
                    Debug* /*debug*/) override {
    if (!allocates_size_) return IOStatus::OK();
    const Access access(files_, CallKind::kWrite, path_);
    if (!access.ok()) return access.status();
    allocated_ = true;
    const size_t size = std::min(offset + length, offset + kAllocatedMax);
    if (file_->bytes.size() < size) file_->Resize(size);
    return IOStatus::OK();
  }

 private:
  IOStatus WriteAt(size_t offset, const Slice& data) {
    const Access access(files_, CallKind::kWrite, path_);
    if (!access.ok()) return access.status();
    file_->Write(offset, std::string_view(data.data(), data.size()));
    size_ = offset + data.size();
    return IOStatus::OK();
  }
  IOStatus SetSize(size_t size) {
    const Access access(files_, CallKind::kWrite, path_);
    if (!access.ok()) return access.status();
    file_->Resize(size);
    size_ = size;
    return IOStatus::OK();
  }

  FaultFileSystem& files_;
  const std::string path_;
  const FilePointer file_;
  size_t size_;
  const bool allocates_size_;
  const bool direct_;
  bool allocated_ = false;
};

class FaultFileSystem::RandomRWFile final : public rocksdb::FSRandomRWFile {
 public:
  RandomRWFile(FaultFileSystem& files, std::string path, FilePointer file)
      : files_(files), path_(std::move(path)), file_(std::move(file)) {}

  IOStatus Write(uint64_t offset, const Slice& data, const Options& /*options*/,
                 Debug* /*debug*/) override {
    const Access access(files_, CallKind::kWrite, path_);
    if (!access.ok()) return access.status();
    file_->Write(offset, std::string_view(data.data(), data.size()));
    return IOStatus::OK();
  }
  IOStatus Read(uint64_t offset, size_t count, const Options& /*options*/, Slice* result,
                char* scratch, Debug* /*debug*/) const override {
    const Access access(files_, CallKind::kRead, path_);
    *result = Slice(scratch, 0);
    if (!access.ok()) return access.status();
    if (offset < file_->bytes.size())
      *result = Slice(scratch, file_->bytes.copy(scratch, count, offset));
    return IOStatus::OK();
  }
  IOStatus Flush(const Options& /*options*/, Debug* /*debug*/) override { return IOStatus::OK(); }
  IOStatus Sync(const Options& /*options*/, Debug* /*debug*/) override {
    const Access access(files_, CallKind::kSync, path_);
    if (!access.ok()) return access.status();
    file_->Sync();
    return IOStatus::OK();
  }
  IOStatus Close(const Options& /*options*/, Debug* /*debug*/) override { return IOStatus::OK(); }

 private:
  FaultFileSystem& files_;
  const std::string path_;
  const FilePointer file_;
};

class FaultFileSystem::Directory final : public rocksdb::FSDirectory {
 public:
  Directory(FaultFileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}

  IOStatus Fsync(const Options& /*options*/, Debug* /*debug*/) override {
    const Access access(files_, CallKind::kSync, path_);
    if (!access.ok()) return access.status();
    files_.SyncNames(path_);
    return IOStatus::OK();
  }
  IOStatus Close(const Options& /*options*/, Debug* /*debug*/) override { return IOStatus::OK(); }

 private:
  FaultFileSystem& files_;
  const std::string path_;
};

FaultFileSystem::FaultFileSystem(std::string root)
    : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()), root_(Clean(root)) {}

FaultFileSystem::~FaultFileSystem() = default;

// Faults, power and images ----------------------------------------------------------------------

void FaultFileSystem::SetFault(Fault fault) {
  const std::lock_guard lock(mutex_);
  fault_ = std::move(fault);
}

void FaultFileSystem::CutPowerAt(int64_t call, uint64_t seed) {
  const std::lock_guard lock(mutex_);
  calls_to_power_cut_ = call;
  seed_ = seed;
}

void FaultFileSystem::CutPower(uint64_t seed) {
  const std::lock_guard lock(mutex_);
  std::mt19937_64 chance(seed);
  if (has_power_) LosePower(DrawStays(chance), chance);
}

void FaultFileSystem::CutPowerLosingAll() {
  const std::lock_guard lock(mutex_);
  std::mt19937_64 chance;
  if (has_power_) LosePower(Stays::kNothing, chance);
}

bool FaultFileSystem::has_power() const {
  const std::lock_guard lock(mutex_);
  return has_power_;
}

void FaultFileSystem::RestorePower() {
  const std::lock_guard lock(mutex_);
  has_power_ = true;
  calls_to_power_cut_ = 0;
  locked_.clear();
}

FaultFileSystem::Stays FaultFileSystem::DrawStays(std::mt19937_64& chance) {
  const uint64_t draw = chance() % 8;
  return draw < 2 ? Stays::kNothing : draw == 2 ? Stays::kEverything : Stays::kSome;
}

// `all` but kSome is for every file and directory alike.
void FaultFileSystem::LosePower(Stays all, std::mt19937_64& chance) {
  has_power_ = false;
  calls_to_power_cut_ = 0;
  Names left = all == Stays::kNothing      ? synced_names_
               : all == Stays::kEverything ? names_
                                           : NamesThatStay(chance);
  std::map<File*, FilePointer> files;  // a file may have several names
  for (auto& [path, file] : left) {
    if (file == nullptr) continue;
    FilePointer& made = files[file.get()];
    if (made == nullptr) {
      made = std::make_shared<File>();
      made->bytes = file->AfterPowerLoss(all == Stays::kSome ? DrawStays(chance) : all, chance);
      made->synced = made->bytes;
    }
    file = made;
  }
  // What was in a directory that is gone is gone with it; parents come first in the map's order.
  for (auto name = left.begin(); name != left.end();) {
    const std::string parent = ParentOf(name->first);
    const auto found = left.find(parent);
    const bool there = parent == root_ || (found != left.end() && found->second == nullptr);
    name = there ? std::next(name) : left.erase(name);
  }
  names_ = synced_names_ = std::move(left);
  changes_.clear();
}

FaultFileSystem::Names FaultFileSystem::NamesThatStay(std::mt19937_64& chance) const {
  enum class Mode { kFirstFew, kAny };
  struct Draw {
    Stays stays = Stays::kSome;
    Mode mode = Mode::kAny;
    bool stopped = false;
  };
  std::map<std::string, Draw> directories;
  Names left = synced_names_;
  for (const NameChange& change : changes_) {
    const auto [directory, is_new] = directories.try_emplace(change.directory());
    Draw& draw = directory->second;
    if (is_new) draw = {DrawStays(chance), chance() % 2 == 0 ? Mode::kFirstFew : Mode::kAny, false};
    const bool happened = chance() % 2 == 0;
    if (draw.mode == Mode::kFirstFew && chance() % 4 == 0) draw.stopped = true;
    const bool some = draw.mode == Mode::kAny ? happened : !draw.stopped;
    if (draw.stays == Stays::kEverything || (draw.stays == Stays::kSome && some))
      change.Apply(left);
  }
  return left;
}

FaultFileSystem::Image FaultFileSystem::Save() const {
  const std::lock_guard lock(mutex_);
  Image image;
  for (const auto& [path, file] : names_) {
    if (file == nullptr) {
      image.directories.push_back(path);
    } else {
      image.files[path] = file->bytes;
    }
  }
  return image;
}

void FaultFileSystem::Load(const Image& image) {
  const std::lock_guard lock(mutex_);
  names_.clear();
  for (const std::string& path : image.directories) names_[path] = nullptr;
  for (const auto& [path, bytes] : image.files) {
    const auto file = std::make_shared<File>();
    file->bytes = file->synced = bytes;
    names_[path] = file;
  }
  synced_names_ = names_;
  changes_.clear();
  locked_.clear();
}

// Names -------------------------------------------------------------------------------------------

bool FaultFileSystem::IsDirectoryNow(const std::string& path) const {
  if (path == root_ || IsInside(root_, path)) return true;
  const auto found = names_.find(path);
  return found != names_.end() && found->second == nullptr;
}

FaultFileSystem::FilePointer FaultFileSystem::FindFile(const std::string& path) const {
  const auto found = names_.find(path);
  return found != names_.end() ? found->second : nullptr;
}

FaultFileSystem::FilePointer FaultFileSystem::MakeFile(const std::string& path) {
  if (!IsDirectoryNow(ParentOf(path))) return nullptr;
  const auto file = std::make_shared<File>();
  Change({path, "", file});
  return file;
}

void FaultFileSystem::Change(NameChange change) {
  change.Apply(names_);
  changes_.push_back(std::move(change));
}

void FaultFileSystem::SyncNames(const std::string& directory) {
  std::erase_if(synced_names_, [&](const auto& name) { return ParentOf(name.first) == directory; });
  for (const auto& [path, file] : names_) {
    if (ParentOf(path) == directory) synced_names_[path] = file;
  }
  std::erase_if(changes_,
                [&](const NameChange& change) { return change.directory() == directory; });
}

std::vector<std::string> FaultFileSystem::ChildrenOf(const std::string& directory) const {
  std::vector<std::string> children;
  for (auto name = names_.lower_bound(directory + "/");
       name != names_.end() && IsInside(name->first, directory); ++name) {
    if (ParentOf(name->first) == directory)
      children.push_back(name->first.substr(directory.size() + 1));
  }
  return children;
}

// Calls -------------------------------------------------------------------------------------------

IOStatus FaultFileSystem::NewSequentialFile(const std::string& path,
                                            const rocksdb::FileOptions& /*options*/,
                                            std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                            Debug* /*debug*/) {
  const Access access(*this, CallKind::kRead, path);
  if (!access.ok()) return access.status();
  FilePointer file = FindFile(Clean(path));
  if (file == nullptr) return NotFound(path);
  *result = std::make_unique<SequentialFile>(*this, Clean(path), std::move(file));
  return IOStatus::OK();
}

IOStatus FaultFileSystem::NewRandomAccessFile(const std::string& path,
                                              const rocksdb::FileOptions& /*options*/,
                                              std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                              Debug* /*debug*/) {
  const Access access(*this, CallKind::kRead, path);
  if (!access.ok()) return access.status();
  FilePointer file = FindFile(Clean(path));
  if (file == nullptr) return NotFound(path);
  *result = std::make_unique<RandomAccessFile>(*this, Clean(path), std::move(file));
  return IOStatus::OK();
}

IOStatus FaultFileSystem::NewWritableFile(const std::string& path,
                                          const rocksdb::FileOptions& options,
                                          std::unique_ptr<rocksdb::FSWritableFile>* result,
                                          Debug* /*debug*/) {
  const Access access(*this, CallKind::kName, path);
  if (!access.ok()) return access.status();
  if (options.use_direct_writes && !takes_direct_writes_) {
    return IOStatus::InvalidArgument("no file is written directly");
  }
  FilePointer file = FindFile(Clean(path));
  if (file != nullptr) {
    file->Resize(0);
  } else {
    file = MakeFile(Clean(path));
  }
  if (file == nullptr) return NotFound(path);
  *result = std::make_unique<WritableFile>(*this, Clean(path), std::move(file), options);
  return IOStatus::OK();
}

IOStatus FaultFileSystem::ReopenWritableFile(const std::string& path,
                                             const rocksdb::FileOptions& options,
                                             std::unique_ptr<rocksdb::FSWritableFile>* result,
                                             Debug* /*debug*/) {
  const Access access(*this, CallKind::kName, path);
  if (!access.ok()) return access.status();
  FilePointer file = FindFile(Clean(path));
  if (file == nullptr) file = MakeFile(Clean(path));
  if (file == nullptr) return NotFound(path);
  *result = std::make_unique<WritableFile>(*this, Clean(path), std::move(file), options);
  return IOStatus::OK();
}

IOStatus FaultFileSystem::ReuseWritableFile(const std::string& /*path*/,
                                            const std::string& /*old_path*/,
                                            const rocksdb::FileOptions& /*options*/,
                                            std::unique_ptr<rocksdb::FSWritableFile>* /*result*/,
                                            Debug* /*debug*/) {
  return IOStatus::NotSupported("no file is used again");
}

IOStatus FaultFileSystem::NewRandomRWFile(const std::string& path,
                                          const rocksdb::FileOptions& /*options*/,
                                          std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                                          Debug* /*debug*/) {
  const Access access(*this, CallKind::kRead, path);
  if (!access.ok()) return access.status();
  FilePointer file = FindFile(Clean(path));
  if (file == nullptr) return NotFound(path);
  *result = std::make_unique<RandomRWFile>(*this, Clean(path), std::move(file));
  return IOStatus::OK();
}

IOStatus FaultFileSystem::NewMemoryMappedFileBuffer(
    const std::string& /*path*/, std::unique_ptr<rocksdb::MemoryMappedFileBuffer>* /*result*/) {
  return IOStatus::NotSupported("no file is mapped");
}

IOStatus FaultFileSystem::NewDirectory(const std::string& path, const Options& /*options*/,
                                       std::unique_ptr<rocksdb::FSDirectory>* result,
                                       Debug* /*debug*/) {
  const Access access(*this, CallKind::kRead, path);
  if (!access.ok()) return access.status();
  if (!IsDirectoryNow(Clean(path))) return NotFound(path);
  *result = std::make_unique<Directory>(*this, Clean(path));
  return IOStatus::OK();
}

IOStatus FaultFileSystem::FileExists(const std::string& path, const Options& /*options*/,
                                     Debug* /*debug*/) {
  const Access access(*this, CallKind::kRead, path);
  if (!access.ok()) return access.status();
  const std::string clean = Clean(path);
  return IsDirectoryNow(clean) || FindFile(clean) != nullptr ? IOStatus::OK()
                                                             : IOStatus::NotFound(path);
}

IOStatus FaultFileSystem::GetChildren(const std::string& path, const Options& /*options*/,
                                      std::vector<std::string>* result, Debug* /*debug*/) {
  const Access access(*this, CallKind::kRead, path);
  if (!access.ok()) return access.status();
  if (!IsDirectoryNow(Clean(path))) return NotFound(path);
  *result = ChildrenOf(Clean(path));
  return IOStatus::OK();
}

IOStatus FaultFileSystem::GetChildrenFileAttributes(const std::string& path,
                                                    const Options& /*options*/,
                                                    std::vector<rocksdb::FileAttributes>* result,
                                                    Debug* /*debug*/) {
  const Access access(*this, CallKind::kRead, path);
  if (!access.ok()) return access.status();
  const std::string clean = Clean(path);
  if (!IsDirectoryNow(clean)) return NotFound(path);
  result->clear();
  for (std::string& name : ChildrenOf(clean)) {
    const FilePointer file = FindFile(clean + "/" + name);
    result->push_back({std::move(name), file != nullptr ? file->bytes.size() : 0});
  }
  return IOStatus::OK();
}

IOStatus FaultFileSystem::DeleteFile(const std::string& path, const Options& /*options*/,
                                     Debug* /*debug*/) {
  const Access access(*this, CallKind::kName, path);
  if (!access.ok()) return access.status();
  if (FindFile(Clean(path)) == nullptr) return NotFound(path);
  Change({"", Clean(path), nullptr});
  return IOStatus::OK();
}

IOStatus FaultFileSystem::Truncate(const std::string& path, size_t size, const Options& /*options*/,
                                   Debug* /*debug*/) {
  const Access access(*this, CallKind::kWrite, path);
  if (!access.ok()) return access.status();
  const FilePointer file = FindFile(Clean(path));
  if (file == nullptr) return NotFound(path);
  file->Resize(size);
  return IOStatus::OK();
}

IOStatus FaultFileSystem::CreateDir(const std::string& path, const Options& /*options*/,
                                    Debug* /*debug*/) {
  const Access access(*this, CallKind::kName, path);
  if (!access.ok()) return access.status();
  const std::string clean = Clean(path);
  if (IsDirectoryNow(clean) || FindFile(clean) != nullptr) return IOStatus::IOError("it exists");
  if (!IsDirectoryNow(ParentOf(clean))) return NotFound(path);
  Change({clean, "", nullptr});
  return IOStatus::OK();
}

IOStatus FaultFileSystem::CreateDirIfMissing(const std::string& path, const Options& options,
                                             Debug* debug) {
  bool exists = false;
  const Status status = IsDirectory(path, options, &exists, debug);
  if (status.ok() && exists) return status;
  return CreateDir(path, options, debug);
}

IOStatus FaultFileSystem::DeleteDir(const std::string& path, const Options& /*options*/,
                                    Debug* /*debug*/) {
  const Access access(*this, CallKind::kName, path);
  if (!access.ok()) return access.status();
  const std::string clean = Clean(path);
  if (!names_.contains(clean) || !IsDirectoryNow(clean)) return NotFound(path);
  if (!ChildrenOf(clean).empty()) return IOStatus::IOError("it is not empty");
  Change({"", clean, nullptr});
  return IOStatus::OK();
}

IOStatus FaultFileSystem::GetFileSize(const std::string& path, const Options& /*options*/,
                                      uint64_t* size, Debug* /*debug*/) {
  const Access access(*this, CallKind::kRead, path);
  if (!access.ok()) return access.status();
  const FilePointer file = FindFile(Clean(path));
  if (file == nullptr) return NotFound(path);
  *size = file->bytes.size();
  return IOStatus::OK();
}

IOStatus FaultFileSystem::GetFileModificationTime(const std::string& path,
                                                  const Options& /*options*/, uint64_t* time,
                                                  Debug* /*debug*/) {
  const Access access(*this, CallKind::kRead, path);
  if (!access.ok()) return access.status();
  if (FindFile(Clean(path)) == nullptr) return NotFound(path);
  *time = 0;
  return IOStatus::OK();
}

IOStatus FaultFileSystem::RenameFile(const std::string& source, const std::string& target_path,
                                     const Options& /*options*/, Debug* /*debug*/) {
  const Access access(*this, CallKind::kName, target_path);
  if (!access.ok()) return access.status();
  FilePointer file = FindFile(Clean(source));
  if (file == nullptr) return NotFound(source);
  Change({Clean(target_path), Clean(source), std::move(file)});
  return IOStatus::OK();
}

IOStatus FaultFileSystem::LinkFile(const std::string& source, const std::string& target_path,
                                   const Options& /*options*/, Debug* /*debug*/) {
  const Access access(*this, CallKind::kName, target_path);
  if (!access.ok()) return access.status();
  FilePointer file = FindFile(Clean(source));
  if (file == nullptr) return NotFound(source);
  Change({Clean(target_path), "", std::move(file)});
  return IOStatus::OK();
}

IOStatus FaultFileSystem::NumFileLinks(const std::string& path, const Options& /*options*/,
                                       uint64_t* count, Debug* /*debug*/) {
  const Access access(*this, CallKind::kRead, path);
  if (!access.ok()) return access.status();
  const FilePointer file = FindFile(Clean(path));
  if (file == nullptr) return NotFound(path);
  *count = static_cast<uint64_t>(std::count_if(
      names_.begin(), names_.end(), [&](const auto& name) { return name.second == file; }));
  return IOStatus::OK();
}

IOStatus FaultFileSystem::AreFilesSame(const std::string& first, const std::string& second,
                                       const Options& /*options*/, bool* result, Debug* /*debug*/) {
  const Access access(*this, CallKind::kRead, first);
  if (!access.ok()) return access.status();
  *result = Clean(first) == Clean(second) || (FindFile(Clean(first)) != nullptr &&
                                              FindFile(Clean(first)) == FindFile(Clean(second)));
  return IOStatus::OK();
}

IOStatus FaultFileSystem::LockFile(const std::string& path, const Options& /*options*/,
                                   rocksdb::FileLock** lock, Debug* /*debug*/) {
  const Access access(*this, CallKind::kName, path);
  *lock = nullptr;
  if (!access.ok()) return access.status();
  const std::string clean = Clean(path);
  if (FindFile(clean) == nullptr && MakeFile(clean) == nullptr) return NotFound(path);
  if (!locked_.insert(clean).second) return IOStatus::IOError("it is locked");
  *lock = new Lock(clean);
  return IOStatus::OK();
}

IOStatus FaultFileSystem::UnlockFile(rocksdb::FileLock* lock, const Options& /*options*/,
                                     Debug* /*debug*/) {
  const std::unique_ptr<Lock> owned(static_cast<Lock*>(lock));
  const std::lock_guard guard(mutex_);
  locked_.erase(owned->path);
  return IOStatus::OK();
}

IOStatus FaultFileSystem::NewLogger(const std::string& /*path*/, const Options& /*options*/,
                                    std::shared_ptr<rocksdb::Logger>* result, Debug* /*debug*/) {
  *result = std::make_shared<SilentLogger>();
  return IOStatus::OK();
}

IOStatus FaultFileSystem::IsDirectory(const std::string& path, const Options& /*options*/,
                                      bool* result, Debug* /*debug*/) {
  const Access access(*this, CallKind::kRead, path);
  if (!access.ok()) return access.status();
  *result = IsDirectoryNow(Clean(path));
  return *result || FindFile(Clean(path)) != nullptr ? IOStatus::OK() : NotFound(path);
}

IOStatus FaultFileSystem::GetFreeSpace(const std::string& /*path*/, const Options& /*options*/,
                                       uint64_t* bytes, Debug* /*debug*/) {
  *bytes = uint64_t{1} << 40;
  return IOStatus::OK();
}

}  // namespace strata::engines::rocks
