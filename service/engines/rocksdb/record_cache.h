// The records that were written or read lately, of heads and collections (the keyspaces whose point
// reads are cached): a point read of one of them costs no search through memtables and files, and
// the committer, who reads the stamp of what it replaces, finds it here.
//
// It holds what is newest and durable, and answers as of a moment only where that is the same. A
// commit blocks the places that it writes from before it is visible in the database until it is
// durable, so that no reader sees here what another has already seen replaced.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "schemas/base/bytes.h"
#include "schemas/store/record.h"

namespace strata::engines::rocks {

// Of the bytes that both caches are given: this one's, and the block cache's.
constexpr size_t RecordCacheShare(size_t bytes) { return bytes / 3; }
constexpr size_t BlockCacheShare(size_t bytes) { return bytes - RecordCacheShare(bytes); }

class RecordCache {
 public:
  // What is stored under a key.
  struct Entry {
    // Of the commit that made it so, or of a later one.
    store::CommitPosition position = 0;
    Bytes value;  // none: there is no record
  };
  using Place = store::RecordKey;

  // `as_of` a read of what is newest.
  static constexpr store::CommitPosition kNewest =
      std::numeric_limits<store::CommitPosition>::max();

  // Keys up to this many bytes lie in the entry's own memory: those of documents with ids as long
  // as most are.
  static constexpr size_t kInlineKeyBytes = 40;

  using Hash = size_t (*)(std::string_view key);
  static size_t HashOf(std::string_view key) { return absl::HashOf(key); }

  // Keys and values together; entries over 1/256 of it are not kept. Tests have keys share a hash.
  explicit RecordCache(size_t bytes_max, Hash hash = &HashOf);

  // From now on it takes at most so many. What is beyond goes at once.
  void Resize(size_t bytes_max);

  // Entries of more bytes are not kept.
  size_t record_bytes_max() const { return shard_bytes_max() / 16; }

  // Whether records of the keyspace are kept.
  static bool Keeps(store::Keyspace keyspace) {
    return store::TraitsOf(keyspace).point_reads_cached;
  }

  // What was stored under `key` at `as_of`; nothing if that is not known here.
  std::optional<Entry> Find(const Place& place, store::CommitPosition as_of);

  // Has the processor fetch what Find is going to look at, of all the places side by side.
  void Prefetch(std::span<const Place> places);

  // Keeps what a reader found in the database, if nothing was written beside it: `read_at` is the
  // position of the last commit that was visible before it read. Where another record would have to
  // go for it, it keeps only one of several that it is told.
  void Learn(const Place& place, Entry entry, store::CommitPosition read_at);

  // A commit is about to write these places; then EndWrite with the same. One commit at a time.
  void BeginWrite(const std::vector<Place>& places);
  // Parallel to `places`; empty if the commit failed.
  void EndWrite(const std::vector<Place>& places, std::vector<Entry> entries);

 private:
  // Each piece of memory that a lookup goes to is one more that no cache of the processor has: a
  // key lies beside its entry.
  struct Node {
    store::Keyspace keyspace;
    bool used = false;    // since it came to the front
    uint32_t writes = 0;  // between BeginWrite and EndWrite
    Entry entry;
    absl::InlinedVector<char, kInlineKeyBytes> key;
    std::string_view key_view() const { return {key.data(), key.size()}; }
    size_t bytes() const { return key.size() + entry.value.size(); }
  };
  using Nodes = std::list<Node>;
  // By what is in the map itself the node and its value are found and fetched side by side. Of two
  // keys with one hash only the one that came last is here.
  struct Slot {
    Nodes::iterator node;
    const char* value = nullptr;  // where its bytes begin; null: it has none
  };
  struct ItIsTheHash {
    size_t operator()(size_t hash) const { return hash; }
  };
  using ByHash = absl::flat_hash_map<size_t, Slot, ItIsTheHash>;
  struct Shard {
    std::mutex mutex;
    // Those that came last in front. One that was used goes to the front when its turn to leave has
    // come, and not each time it is used: that would touch three nodes where one is asked for.
    Nodes nodes;
    // By keyspace: where one has few records, the processor's caches go on holding its map, however
    // many records the others have.
    std::array<ByHash, store::kAllKeyspaces.size()> by_hash;
    size_t bytes = 0;
    uint32_t learned_full = 0;               // reads that found it full
    int writes = 0;                          // places between BeginWrite and EndWrite
    store::CommitPosition last_written = 0;  // of the newest entry that a commit left
    ByHash& map_of(store::Keyspace keyspace) { return by_hash[static_cast<size_t>(keyspace)]; }
  };
  static constexpr size_t kShards = 16;

  Shard& ShardOf(size_t hash);
  // Null: there is none.
  static Slot* SlotOf(Shard& shard, const Place& place, size_t hash);
  static void Fetch(const Slot& slot);
  void Put(Shard& shard, const Place& place, size_t hash, Entry entry);
  void Replace(Shard& shard, Slot& slot, size_t hash, Entry entry);
  void MakeRoom(Shard& shard, size_t bytes) const;
  static void SetValue(Slot& slot, Bytes value);
  static void Erase(Shard& shard, store::Keyspace keyspace, size_t hash);

  size_t shard_bytes_max() const { return shard_bytes_max_.load(std::memory_order_relaxed); }

  const Hash hash_;
  std::atomic<size_t> shard_bytes_max_;
  std::array<Shard, kShards> shards_;
};

}  // namespace strata::engines::rocks
