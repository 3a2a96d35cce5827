#include "service/engines/rocksdb/record_cache.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"

namespace strata::engines::rocks {
namespace {

// What a node costs besides its bytes, about.
constexpr size_t kNodeBytes = 160;

}  // namespace

RecordCache::RecordCache(size_t bytes_max) : shard_bytes_max_(bytes_max / kShards) {}

RecordCache::Shard& RecordCache::ShardOf(const Place& place) {
  // The map uses the hash's lower bits.
  return shards_[(absl::HashOf(place) >> 48) % kShards];
}

std::optional<RecordCache::Entry> RecordCache::Find(const Place& place,
                                                    store::CommitPosition as_of) {
  Shard& shard = ShardOf(place);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.by_place.find(place);
  if (found == shard.by_place.end() || found->second->entry.position > as_of) return std::nullopt;
  shard.nodes.splice(shard.nodes.begin(), shard.nodes, found->second);
  return found->second->entry;
}

void RecordCache::Learn(const Place& place, Entry entry, store::CommitPosition read_at) {
  Shard& shard = ShardOf(place);
  const std::lock_guard lock(shard.mutex);
  if (shard.writes > 0 || shard.last_written > read_at) return;
  // That there is no record is known from `read_at` on only.
  if (entry.value == nullptr) entry.position = std::max(entry.position, read_at);
  Put(shard, place, std::move(entry));
}

void RecordCache::BeginWrite(const std::vector<Place>& places) {
  for (const Place& place : places) {
    Shard& shard = ShardOf(place);
    const std::lock_guard lock(shard.mutex);
    ++shard.writes;
    Erase(shard, place);
  }
}

void RecordCache::EndWrite(const std::vector<Place>& places, std::vector<Entry> entries) {
  for (size_t i = 0; i < places.size(); ++i) {
    Shard& shard = ShardOf(places[i]);
    const std::lock_guard lock(shard.mutex);
    --shard.writes;
    if (entries.empty()) continue;
    shard.last_written = std::max(shard.last_written, entries[i].position);
    Put(shard, places[i], std::move(entries[i]));
  }
}

void RecordCache::Put(Shard& shard, const Place& place, Entry entry) {
  Erase(shard, place);
  Node node{place.keyspace, std::string(place.key), std::move(entry)};
  const size_t bytes = node.bytes() + kNodeBytes;
  if (bytes > shard_bytes_max_ / 16) return;
  shard.nodes.push_front(std::move(node));
  shard.by_place.emplace(shard.nodes.front().place(), shard.nodes.begin());
  shard.bytes += bytes;
  while (shard.bytes > shard_bytes_max_) Erase(shard, shard.nodes.back().place());
}

void RecordCache::Erase(Shard& shard, const Place& place) {
  const auto found = shard.by_place.find(place);
  if (found == shard.by_place.end()) return;
  const Nodes::iterator node = found->second;
  shard.bytes -= node->bytes() + kNodeBytes;
  shard.by_place.erase(found);
  shard.nodes.erase(node);
}

}  // namespace strata::engines::rocks
