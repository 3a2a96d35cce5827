#include "bench/strategies/storage.h"

#include <rocksdb/db.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/strategies/subject.h"
#include "schemas/store/key_codec.h"
#include "service/engines/rocksdb/rocksdb_store.h"
#include "service/engines/rocksdb/tuning.h"
#include "tests/support/await_commit.h"

namespace strata::bench {
namespace {

using BytesByName = std::map<std::string, int64_t, std::less<>>;

// Opened beside the store, for reading: RocksDB's own account of its files.
BytesByName TableBytes(const std::filesystem::path& directory) {
  const std::string path = directory;
  std::vector<std::string> names;
  rocksdb::Status status = rocksdb::DB::ListColumnFamilies({}, path, &names);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  // With the engine's own settings: a reader that does not track logs stumbles over one that does.
  const rocksdb::DBOptions options = engines::rocks::DatabaseOptions(
      rocksdb::Env::Default(), rocksdb::NewLRUCache(1 << 20), /*open_files_max=*/512);
  if (status.ok()) {
    status = rocksdb::DB::OpenForReadOnly(options, path, families, &handles, &opened);
  }
  if (!status.ok()) Fail("looking at " + path + ": " + status.ToString());
  const std::unique_ptr<rocksdb::DB> database(opened);
  BytesByName bytes;
  std::vector<rocksdb::LiveFileMetaData> files;
  database->GetLiveFilesMetaData(&files);
  for (const rocksdb::LiveFileMetaData& file : files) {
    bytes[file.column_family_name] += static_cast<int64_t>(file.size);
  }
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    database->DestroyColumnFamilyHandle(handle);
  }
  return bytes;
}

BytesByName RecordBytes(const store::Store& store) {
  BytesByName bytes;
  for (const store::Keyspace keyspace : store::kAllKeyspaces) {
    int64_t& sum = bytes[std::string(store::KeyspaceName(keyspace))];
    const auto cursor = store.Scan(keyspace, {});
    for (; cursor->Valid(); cursor->Next()) {
      sum += static_cast<int64_t>(cursor->key().size() + cursor->value().size());
    }
    if (!cursor->status().ok()) Fail("scanning: " + cursor->status().ToString());
  }
  return bytes;
}

}  // namespace

void Compact(store::Store& store) {
  auto* const rocksdb = dynamic_cast<engines::rocks::RocksDbStore*>(&store);
  if (rocksdb == nullptr) return;
  const absl::Status status = rocksdb->CompactAll();
  if (!status.ok()) Fail("compacting: " + status.ToString());
}

StoredBytes MeasureBytes(store::Store& store, const std::filesystem::path& directory) {
  const bool tables = dynamic_cast<engines::rocks::RocksDbStore*>(&store) != nullptr;
  StoredBytes bytes;
  for (const auto& [name, count] : tables ? TableBytes(directory) : RecordBytes(store)) {
    if (name == store::KeyspaceName(store::Keyspace::kHeads)) {
      bytes.heads += count;
    } else if (name == store::KeyspaceName(store::Keyspace::kVersions)) {
      bytes.versions += count;
    } else if (name == store::KeyspaceName(store::Keyspace::kRequests)) {
      bytes.requests += count;
    } else if (name == store::KeyspaceName(store::Keyspace::kLedger)) {
      bytes.ledger += count;
    } else {
      bytes.other += count;
    }
  }
  return bytes;
}

int64_t FileBytes(const std::filesystem::path& directory, std::string_view extension) {
  int64_t bytes = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(directory)) {
    if (file.is_regular_file() && file.path().native().ends_with(extension)) {
      bytes += static_cast<int64_t>(file.file_size());
    }
  }
  return bytes;
}

int64_t RawBytes(const engines::Engine& engine, const Histories& histories,
                 const std::filesystem::path& directory) {
  const auto store = Open(engine, directory);
  for (const auto& [id, indexes] : histories.documents) {
    store::WriteBatch batch;
    for (size_t i = 0; i < indexes.size(); ++i) {
      const RealVersion& version = histories.versions[indexes[i]];
      if (version.deleted) continue;
      batch.Put(store::Keyspace::kVersions, store::VersionKey({1, id}, static_cast<int64_t>(i + 1)),
                std::string(version.content.bytes()));
    }
    if (batch.writes().empty()) continue;
    const auto result = test_support::AwaitCommit(*store, std::move(batch));
    if (!result.committed) Fail("putting contents: " + result.status.ToString());
  }
  Compact(*store);
  return MeasureBytes(*store, directory).versions;
}

bool IsDurable(const engines::Engine& engine, const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  Open(engine, directory);
  return !std::filesystem::is_empty(directory);
}

}  // namespace strata::bench
