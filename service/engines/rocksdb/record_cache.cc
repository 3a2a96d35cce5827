#include "service/engines/rocksdb/record_cache.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace strata::engines::rocks {
namespace {

// What a node costs besides its bytes, about.
constexpr size_t kNodeBytes = 160;

std::string KeyOf(const RecordCache::Place& place) {
  std::string key;
  key.reserve(place.key.size() + 1);
  key += static_cast<char>(place.keyspace);
  key += place.key;
  return key;
}

}  // namespace

RecordCache::RecordCache(size_t bytes_max) : shard_bytes_max_(bytes_max / kShards) {}

RecordCache::Shard& RecordCache::ShardOf(const std::string& key) {
  // The map uses the hash's lower bits.
  return shards_[(std::hash<std::string>{}(key) >> 32) % kShards];
}

std::optional<RecordCache::Entry> RecordCache::Find(const Place& place,
                                                    store::CommitPosition as_of) {
  const std::string key = KeyOf(place);
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.by_key.find(key);
  if (found == shard.by_key.end() || found->second->entry.position > as_of) return std::nullopt;
  shard.nodes.splice(shard.nodes.begin(), shard.nodes, found->second);
  return found->second->entry;
}

void RecordCache::Learn(const Place& place, Entry entry, store::CommitPosition read_at) {
  std::string key = KeyOf(place);
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  if (shard.writes > 0 || shard.last_written > read_at) return;
  // That there is no record is known from `read_at` on only.
  if (entry.value == nullptr) entry.position = std::max(entry.position, read_at);
  Put(shard, std::move(key), std::move(entry));
}

void RecordCache::BeginWrite(const std::vector<Place>& places) {
  for (const Place& place : places) {
    const std::string key = KeyOf(place);
    Shard& shard = ShardOf(key);
    const std::lock_guard lock(shard.mutex);
    ++shard.writes;
    Erase(shard, key);
  }
}

void RecordCache::EndWrite(const std::vector<Place>& places, std::vector<Entry> entries) {
  for (size_t i = 0; i < places.size(); ++i) {
    std::string key = KeyOf(places[i]);
    Shard& shard = ShardOf(key);
    const std::lock_guard lock(shard.mutex);
    --shard.writes;
    if (entries.empty()) continue;
    shard.last_written = std::max(shard.last_written, entries[i].position);
    Put(shard, std::move(key), std::move(entries[i]));
  }
}

void RecordCache::Put(Shard& shard, std::string key, Entry entry) {
  Erase(shard, key);
  Node node{std::move(key), std::move(entry)};
  const size_t bytes = node.bytes() + kNodeBytes;
  if (bytes > shard_bytes_max_ / 16) return;
  shard.nodes.push_front(std::move(node));
  shard.by_key.emplace(shard.nodes.front().key, shard.nodes.begin());
  shard.bytes += bytes;
  while (shard.bytes > shard_bytes_max_) Erase(shard, shard.nodes.back().key);
}

void RecordCache::Erase(Shard& shard, std::string_view key) {
  const auto found = shard.by_key.find(key);
  if (found == shard.by_key.end()) return;
  const Nodes::iterator node = found->second;
  shard.bytes -= node->bytes() + kNodeBytes;
  shard.by_key.erase(found);
  shard.nodes.erase(node);
}

}  // namespace strata::engines::rocks
