#include "service/engines/rocksdb/record_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/base/attributes.h"

namespace strata::engines::rocks {
namespace {

// What a node costs besides its bytes, about: itself (96), its place in a map (36), what is in
// front of the value (24), and what the allocator rounds up.
constexpr size_t kNodeBytes = 160;

constexpr ptrdiff_t kCacheLineBytes = 64;
// Of a value, and of the count in front of it, that much is fetched ahead; the processor follows
// whoever reads on.
constexpr ptrdiff_t kValueFetchedFrom = -24;
constexpr ptrdiff_t kValueFetchedTo = 3 * kCacheLineBytes;

// Once a shard is full, one of so many records that were read takes the place of another. What is
// read again and again comes in soon; for what is read once, hardly any other is let go, which
// costs the way to its memory besides.
constexpr uint32_t kLearnedOnceFull = 4;

}  // namespace

RecordCache::RecordCache(size_t bytes_max, Hash hash)
    : hash_(hash), shard_bytes_max_(bytes_max / kShards) {}

void RecordCache::Resize(size_t bytes_max) {
  shard_bytes_max_ = bytes_max / kShards;
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    MakeRoom(shard, 0);
  }
}

// The map uses the hash's lower bits.
RecordCache::Shard& RecordCache::ShardOf(size_t hash) { return shards_[(hash >> 48) % kShards]; }

// Whoever comes to a slot is going to look at the node, and most will at the value.
//
// Inline by force: g++ 12 takes a function that only prefetches for one without effect, and drops
// calls of it.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void RecordCache::Fetch(const Slot& slot) {
  const char* const node = reinterpret_cast<const char*>(&*slot.node);
  for (ptrdiff_t at = 0; at < ptrdiff_t{sizeof(Node)}; at += kCacheLineBytes) {
    __builtin_prefetch(node + at);
  }
  if (slot.value == nullptr) return;
  for (ptrdiff_t at = kValueFetchedFrom; at < kValueFetchedTo; at += kCacheLineBytes) {
    __builtin_prefetch(slot.value + at);
  }
}

RecordCache::Slot* RecordCache::SlotOf(Shard& shard, const Place& place, size_t hash) {
  ByHash& map = shard.map_of(place.keyspace);
  const auto found = map.find(hash);
  if (found == map.end()) return nullptr;
  Fetch(found->second);
  return found->second.node->key_view() == place.key ? &found->second : nullptr;
}

std::optional<RecordCache::Entry> RecordCache::Find(const Place& place,
                                                    store::CommitPosition as_of) {
  const size_t hash = hash_(place.key);
  Shard& shard = ShardOf(hash);
  const std::lock_guard lock(shard.mutex);
  const Slot* const slot = SlotOf(shard, place, hash);
  if (slot == nullptr) return std::nullopt;
  Node& node = *slot->node;
  if (node.writes > 0 || node.entry.position > as_of) return std::nullopt;
  node.used = true;
  return node.entry;
}

// A lookup goes to memory that the step before names. With the last steps of all places begun
// before the first is waited for, they wait together.
void RecordCache::Prefetch(std::span<const Place> places) {
  for (const Place& place : places) {
    const size_t hash = hash_(place.key);
    Shard& shard = ShardOf(hash);
    const std::lock_guard lock(shard.mutex);
    const ByHash& map = shard.map_of(place.keyspace);
    const auto found = map.find(hash);
    if (found != map.end()) Fetch(found->second);
  }
}

void RecordCache::Learn(const Place& place, Entry entry, store::CommitPosition read_at) {
  const size_t hash = hash_(place.key);
  Shard& shard = ShardOf(hash);
  const std::lock_guard lock(shard.mutex);
  if (shard.writes > 0 || shard.last_written > read_at) return;
  // That there is no record is known from `read_at` on only.
  if (entry.value.none()) entry.position = std::max(entry.position, read_at);
  const size_t bytes = place.key.size() + entry.value.size();
  const bool full = shard.bytes + bytes + kNodeBytes > shard_bytes_max();
  if (full && ++shard.learned_full % kLearnedOnceFull != 0) return;
  Put(shard, place, hash, std::move(entry));
}

void RecordCache::BeginWrite(const std::vector<Place>& places) {
  for (const Place& place : places) {
    const size_t hash = hash_(place.key);
    Shard& shard = ShardOf(hash);
    const std::lock_guard lock(shard.mutex);
    ++shard.writes;
    if (const Slot* const slot = SlotOf(shard, place, hash)) ++slot->node->writes;
  }
}

// The other way round, for a place that was written twice: nobody sees what was there between.
void RecordCache::EndWrite(const std::vector<Place>& places, std::vector<Entry> entries) {
  for (size_t i = places.size(); i-- > 0;) {
    const size_t hash = hash_(places[i].key);
    Shard& shard = ShardOf(hash);
    const std::lock_guard lock(shard.mutex);
    --shard.writes;
    Slot* const slot = SlotOf(shard, places[i], hash);
    if (entries.empty()) {
      if (slot != nullptr) Erase(shard, places[i].keyspace, hash);
      continue;
    }
    shard.last_written = std::max(shard.last_written, entries[i].position);
    if (slot != nullptr) {
      Replace(shard, *slot, hash, std::move(entries[i]));
    } else {
      Put(shard, places[i], hash, std::move(entries[i]));
    }
  }
}

// In its place: whoever takes a node out of the list goes to its neighbours' memory, and these are
// any two records.
void RecordCache::Replace(Shard& shard, Slot& slot, size_t hash, Entry entry) {
  Node& node = *slot.node;
  node.writes -= node.writes > 0 ? 1 : 0;  // none, if it left the cache and has come back since
  if (node.entry.position >= entry.position) return;
  shard.bytes -= node.bytes();
  node.entry.position = entry.position;
  SetValue(slot, std::move(entry.value));
  shard.bytes += node.bytes();
  node.used = true;
  if (node.bytes() + kNodeBytes > record_bytes_max()) return Erase(shard, node.keyspace, hash);
  MakeRoom(shard, 0);
}

void RecordCache::Put(Shard& shard, const Place& place, size_t hash, Entry entry) {
  Erase(shard, place.keyspace, hash);
  Node node{.keyspace = place.keyspace,
            .entry = std::move(entry),
            .key = {place.key.begin(), place.key.end()}};
  const size_t bytes = node.bytes() + kNodeBytes;
  if (bytes > record_bytes_max()) return;
  MakeRoom(shard, bytes);
  shard.nodes.push_front(std::move(node));
  const Nodes::iterator put = shard.nodes.begin();
  shard.map_of(place.keyspace).emplace(hash, Slot{put, std::string_view(put->entry.value).data()});
  shard.bytes += bytes;
}

void RecordCache::SetValue(Slot& slot, Bytes value) {
  slot.value = std::string_view(value).data();
  slot.node->entry.value = std::move(value);
}

void RecordCache::MakeRoom(Shard& shard, size_t bytes) const {
  while (!shard.nodes.empty() && shard.bytes + bytes > shard_bytes_max()) {
    const Nodes::iterator last = std::prev(shard.nodes.end());
    const size_t hash = hash_(last->key_view());
    if (!std::exchange(last->used, false)) {
      Erase(shard, last->keyspace, hash);
      continue;
    }
    shard.nodes.splice(shard.nodes.begin(), shard.nodes, last);
    // Its value goes to where the allocator puts values of this size now. The few that stay from a
    // time when most were of another size would each keep the pages that those around it have left:
    // in a run of 10^6 documents that grew by an update, 7 MiB of values kept 77 (bench/README.md).
    if (last->entry.value.none()) continue;
    SetValue(shard.map_of(last->keyspace).find(hash)->second,
             Bytes(std::string_view(last->entry.value)));
  }
}

void RecordCache::Erase(Shard& shard, store::Keyspace keyspace, size_t hash) {
  ByHash& map = shard.map_of(keyspace);
  const auto found = map.find(hash);
  if (found == map.end()) return;
  const Nodes::iterator node = found->second.node;
  shard.bytes -= node->bytes() + kNodeBytes;
  map.erase(found);
  shard.nodes.erase(node);
}

}  // namespace strata::engines::rocks
