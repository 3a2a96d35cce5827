// A disk in memory, for RocksDB and what else the engine keeps: it loses what was not synced when
// the power goes, fails when it is told to, and lets a test damage what it holds.
//
// What a power loss leaves, as POSIX and a journaling file system with ordered data leave it:
//
//   what was synced stays. Of what was written into a file's synced size since, any sectors may
//   stay, each as it was or as it became; of what was appended, any beginning, cut at a sector or
//   anywhere. Names that were made, renamed or deleted since their directory was synced may or may
//   not be so: none, all, the first few or any of these changes, a rename being one. Each file and
//   each directory takes its own chance, or all take the same (nothing stays, everything stays).
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace strata::engines::rocks {

// Thread-safe.
class FaultFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  enum class CallKind {
    kRead,   // opening, reading or listing
    kWrite,  // of a file's bytes or size
    kSync,   // of a file or a directory
    kName,   // making, renaming or deleting a file or a directory
  };
  struct Call {
    CallKind kind;
    std::string_view path;
  };
  // Asked before each call, one call at a time; what is not OK is the call's answer, and the call
  // does nothing. Must not call the file system.
  using Fault = std::function<rocksdb::IOStatus(const Call& call)>;
  // All that a disk holds, by path.
  struct Image {
    std::map<std::string, std::string> files;
    std::vector<std::string> directories;
  };

  // Empty but for `root`, which has always been there.
  explicit FaultFileSystem(std::string root);
  ~FaultFileSystem() override;

  // An empty function ends the faults.
  void SetFault(Fault fault);

  // From now on no file is opened for direct writes, as on file systems without them.
  void RefuseDirectWrites() { takes_direct_writes_ = false; }

  // The power goes at the `call`-th call from now that changes something, which may be half done.
  // From then on all calls fail. `seed` decides what stays.
  void CutPowerAt(int64_t call, uint64_t seed);
  void CutPower(uint64_t seed);
  // The power goes now, and nothing stays that was not synced.
  void CutPowerLosingAll();
  bool has_power() const;
  // The disk holds what stayed; locks are free. Whoever used it before must be gone.
  void RestorePower();

  // What the files hold now, synced or not.
  Image Save() const;
  // From now on the disk holds `image`, all of it synced. Whoever used it before must be gone.
  void Load(const Image& image);

  const char* Name() const override { return "strata.FaultFileSystem"; }

  using Status = rocksdb::IOStatus;
  using Options = rocksdb::IOOptions;
  using Debug = rocksdb::IODebugContext;
  Status NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSSequentialFile>* result,
                           Debug* debug) override;
  Status NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                             std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                             Debug* debug) override;
  Status NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                         std::unique_ptr<rocksdb::FSWritableFile>* result, Debug* debug) override;
  Status ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                            std::unique_ptr<rocksdb::FSWritableFile>* result,
                            Debug* debug) override;
  Status ReuseWritableFile(const std::string& path, const std::string& old_path,
                           const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result, Debug* debug) override;
  Status NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                         std::unique_ptr<rocksdb::FSRandomRWFile>* result, Debug* debug) override;
  Status NewMemoryMappedFileBuffer(
      const std::string& path, std::unique_ptr<rocksdb::MemoryMappedFileBuffer>* result) override;
  Status NewDirectory(const std::string& path, const Options& options,
                      std::unique_ptr<rocksdb::FSDirectory>* result, Debug* debug) override;
  Status FileExists(const std::string& path, const Options& options, Debug* debug) override;
  Status GetChildren(const std::string& path, const Options& options,
                     std::vector<std::string>* result, Debug* debug) override;
  Status GetChildrenFileAttributes(const std::string& path, const Options& options,
                                   std::vector<rocksdb::FileAttributes>* result,
                                   Debug* debug) override;
  Status DeleteFile(const std::string& path, const Options& options, Debug* debug) override;
  Status Truncate(const std::string& path, size_t size, const Options& options,
                  Debug* debug) override;
  Status CreateDir(const std::string& path, const Options& options, Debug* debug) override;
  Status CreateDirIfMissing(const std::string& path, const Options& options, Debug* debug) override;
  Status DeleteDir(const std::string& path, const Options& options, Debug* debug) override;
  Status GetFileSize(const std::string& path, const Options& options, uint64_t* size,
                     Debug* debug) override;
  Status GetFileModificationTime(const std::string& path, const Options& options, uint64_t* time,
                                 Debug* debug) override;
  Status RenameFile(const std::string& source, const std::string& target_path,
                    const Options& options, Debug* debug) override;
  Status LinkFile(const std::string& source, const std::string& target_path, const Options& options,
                  Debug* debug) override;
  Status NumFileLinks(const std::string& path, const Options& options, uint64_t* count,
                      Debug* debug) override;
  Status AreFilesSame(const std::string& first, const std::string& second, const Options& options,
                      bool* result, Debug* debug) override;
  Status LockFile(const std::string& path, const Options& options, rocksdb::FileLock** lock,
                  Debug* debug) override;
  Status UnlockFile(rocksdb::FileLock* lock, const Options& options, Debug* debug) override;
  Status NewLogger(const std::string& path, const Options& options,
                   std::shared_ptr<rocksdb::Logger>* result, Debug* debug) override;
  Status IsDirectory(const std::string& path, const Options& options, bool* result,
                     Debug* debug) override;
  Status GetFreeSpace(const std::string& path, const Options& options, uint64_t* bytes,
                      Debug* debug) override;

 private:
  // How much of what was not synced stays.
  enum class Stays { kNothing, kEverything, kSome };
  struct File;
  struct NameChange;
  class Access;
  class SequentialFile;
  class RandomAccessFile;
  class WritableFile;
  class RandomRWFile;
  class Directory;
  using FilePointer = std::shared_ptr<File>;
  using Names = std::map<std::string, FilePointer>;  // null: a directory

  // All of these REQUIRE the mutex.
  bool IsDirectoryNow(const std::string& path) const;
  FilePointer FindFile(const std::string& path) const;
  FilePointer MakeFile(const std::string& path);
  void Change(NameChange change);
  void SyncNames(const std::string& directory);
  std::vector<std::string> ChildrenOf(const std::string& directory) const;
  void LosePower(Stays all, std::mt19937_64& chance);
  static Stays DrawStays(std::mt19937_64& chance);
  Names NamesThatStay(std::mt19937_64& chance) const;

  const std::string root_;
  std::atomic<bool> takes_direct_writes_ = true;
  mutable std::mutex mutex_;  // guards all that follows
  Fault fault_;
  int64_t calls_to_power_cut_ = 0;  // 0: none is planned
  uint64_t seed_ = 0;
  bool has_power_ = true;
  Names names_;
  Names synced_names_;
  std::vector<NameChange> changes_;  // since their directory was synced, in their order
  std::set<std::string> locked_;
};

}  // namespace strata::engines::rocks
