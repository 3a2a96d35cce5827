#include "service/engines/rocksdb/record_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace strata::engines::rocks {
namespace {

// What a node costs besides its bytes, about: itself (96), its place in a map, the value's string
// and count of references (48), and what the allocator rounds up.
constexpr size_t kNodeBytes = 200;

// Once a shard is full, one of so many records that were read takes the place of another. What is
// read again and again comes in soon; for what is read once, hardly any other is let go, which
// costs the way to its memory besides.
constexpr uint32_t kLearnedOnceFull = 4;

}  // namespace

RecordCache::RecordCache(size_t bytes_max) : shard_bytes_max_(bytes_max / kShards) {}

void RecordCache::Resize(size_t bytes_max) {
  shard_bytes_max_ = bytes_max / kShards;
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    MakeRoom(shard, 0);
  }
}

// The map uses the hash's lower bits.
RecordCache::Shard& RecordCache::ShardOf(size_t hash) { return shards_[(hash >> 48) % kShards]; }

std::optional<RecordCache::Entry> RecordCache::Find(const Place& place,
                                                    store::CommitPosition as_of) {
  const size_t hash = HashOf(place);
  Shard& shard = ShardOf(hash);
  const std::lock_guard lock(shard.mutex);
  ByKey& map = shard.map_of(place.keyspace);
  const auto found = map.find(place.key, hash);
  if (found == map.end()) return std::nullopt;
  Node& node = *found->second;
  if (node.writes > 0 || node.entry.position > as_of) return std::nullopt;
  node.used = true;
  return node.entry;
}

// Each step of a lookup goes to memory that the one before names. Taken for all places before the
// next is, they wait for memory together.
void RecordCache::Prefetch(std::span<const Place> places) {
  for (const Place& place : places) {
    const size_t hash = HashOf(place);
    Shard& shard = ShardOf(hash);
    const std::lock_guard lock(shard.mutex);
    shard.map_of(place.keyspace).prefetch(place.key);
  }
  for (const Place& place : places) {
    const size_t hash = HashOf(place);
    Shard& shard = ShardOf(hash);
    const std::lock_guard lock(shard.mutex);
    const ByKey& map = shard.map_of(place.keyspace);
    const auto found = map.find(place.key, hash);
    if (found == map.end()) continue;
    const std::string* const value = found->second->entry.value.get();
    __builtin_prefetch(value);
  }
}

void RecordCache::Learn(const Place& place, Entry entry, store::CommitPosition read_at) {
  const size_t hash = HashOf(place);
  Shard& shard = ShardOf(hash);
  const std::lock_guard lock(shard.mutex);
  if (shard.writes > 0 || shard.last_written > read_at) return;
  // That there is no record is known from `read_at` on only.
  if (entry.value == nullptr) entry.position = std::max(entry.position, read_at);
  const size_t bytes = place.key.size() + (entry.value == nullptr ? 0 : entry.value->size());
  const bool full = shard.bytes + bytes + kNodeBytes > shard_bytes_max();
  if (full && ++shard.learned_full % kLearnedOnceFull != 0) return;
  Put(shard, place, hash, std::move(entry));
}

void RecordCache::BeginWrite(const std::vector<Place>& places) {
  for (const Place& place : places) {
    const size_t hash = HashOf(place);
    Shard& shard = ShardOf(hash);
    const std::lock_guard lock(shard.mutex);
    ++shard.writes;
    ByKey& map = shard.map_of(place.keyspace);
    const auto found = map.find(place.key, hash);
    if (found != map.end()) ++found->second->writes;
  }
}

// The other way round, for a place that was written twice: nobody sees what was there between.
void RecordCache::EndWrite(const std::vector<Place>& places, std::vector<Entry> entries) {
  for (size_t i = places.size(); i-- > 0;) {
    const size_t hash = HashOf(places[i]);
    Shard& shard = ShardOf(hash);
    const std::lock_guard lock(shard.mutex);
    --shard.writes;
    ByKey& map = shard.map_of(places[i].keyspace);
    const auto found = map.find(places[i].key, hash);
    if (entries.empty()) {
      if (found != map.end()) Erase(shard, found);
      continue;
    }
    shard.last_written = std::max(shard.last_written, entries[i].position);
    if (found != map.end()) {
      Replace(shard, found, std::move(entries[i]));
    } else {
      Put(shard, places[i], hash, std::move(entries[i]));
    }
  }
}

// In its place: whoever takes a node out of the list goes to its neighbours' memory, and these are
// any two records.
void RecordCache::Replace(Shard& shard, ByKey::iterator found, Entry entry) {
  Node& node = *found->second;
  node.writes -= node.writes > 0 ? 1 : 0;  // none, if it left the cache and has come back since
  if (node.entry.position >= entry.position) return;
  shard.bytes -= node.bytes();
  node.entry = std::move(entry);
  shard.bytes += node.bytes();
  node.used = true;
  if (node.bytes() + kNodeBytes > record_bytes_max()) return Erase(shard, found);
  MakeRoom(shard, 0);
}

void RecordCache::Put(Shard& shard, const Place& place, size_t hash, Entry entry) {
  Erase(shard, place, hash);
  Node node{.keyspace = place.keyspace,
            .entry = std::move(entry),
            .key = {place.key.begin(), place.key.end()}};
  const size_t bytes = node.bytes() + kNodeBytes;
  if (bytes > record_bytes_max()) return;
  MakeRoom(shard, bytes);
  shard.nodes.push_front(std::move(node));
  shard.map_of(place.keyspace).emplace(shard.nodes.front().key_view(), shard.nodes.begin());
  shard.bytes += bytes;
}

// To where the allocator puts values of this size now. The few that stay from a time when most were
// of another size would each keep the pages that those around it have left: in a run of 10^6
// documents that grew by an update, 7 MiB of values kept 77 (bench/README.md).
void RecordCache::Relocate(Node& node) {
  if (node.entry.value != nullptr) {
    node.entry.value = std::make_shared<const std::string>(*node.entry.value);
  }
}

void RecordCache::MakeRoom(Shard& shard, size_t bytes) const {
  while (!shard.nodes.empty() && shard.bytes + bytes > shard_bytes_max()) {
    const Nodes::iterator last = std::prev(shard.nodes.end());
    if (std::exchange(last->used, false)) {
      Relocate(*last);
      shard.nodes.splice(shard.nodes.begin(), shard.nodes, last);
    } else {
      Erase(shard, shard.map_of(last->keyspace).find(last->key_view()));
    }
  }
}

void RecordCache::Erase(Shard& shard, const Place& place, size_t hash) {
  ByKey& map = shard.map_of(place.keyspace);
  const auto found = map.find(place.key, hash);
  if (found != map.end()) Erase(shard, found);
}

void RecordCache::Erase(Shard& shard, ByKey::iterator found) {
  const Nodes::iterator node = found->second;
  shard.bytes -= node->bytes() + kNodeBytes;
  shard.map_of(node->keyspace).erase(found);
  shard.nodes.erase(node);
}

}  // namespace strata::engines::rocks
