// Keyspaces: ordered sets of keys with one role each; one RocksDB column family or MongoDB
// collection each. keyspaces.def lists them, with what engines need to know of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace strata::store {

enum class Keyspace : uint8_t {
#define KEYSPACE(id, ...) id,
#include "schemas/store/keyspaces.def"
#undef KEYSPACE
};

// How much of what is written goes there.
enum class Volume : uint8_t {
  kLow,     // a few records, rarely written
  kMedium,  // something small with every commit
  kHigh,    // contents
};

// What keys beside each other hold.
enum class Neighbours : uint8_t {
  kUnlike,
  kAlike,         // much of the same, such as the versions of one document; also read alone
  kReadAlone,     // the same, and each is read by itself, those around it hardly ever then
  kReadTogether,  // the same, and hardly ever is one read without those around it
};

// What else a keyspace holds and how it is used, in no engine's terms. Nothing here changes what
// reads and commits answer.
struct KeyspaceTraits {
  // Belongs to documents: keys begin with an incarnation and an id (key_codec.h).
  bool of_documents = false;
  // The same records are read again and again, by their keys.
  bool point_reads_cached = false;
  // Most keys that are asked for are not there: the next version, a new request.
  bool absence_asked = false;
  // What is written within a short time lies all over it, or at both of its ends.
  bool writes_scattered = false;
  // Records may have an expire_time (write_batch.h); elsewhere none has.
  bool expires = false;
  // A record that was inserted or replaced is soon replaced again, or deleted.
  bool replaced_in_steps = false;
  // Written by the engine alone, each key greater than all before.
  bool append_only = false;
  // Came later than others: a store has it from its first record on, so that builds that do not
  // know it can still open one that never used it.
  bool made_when_used = false;
};

struct KeyspaceEntry {
  Keyspace keyspace;
  std::string_view name;
  Volume volume;
  Neighbours neighbours;
  KeyspaceTraits traits;
};

inline constexpr std::array kKeyspaceEntries = {
#define KEYSPACE(id, name, volume, neighbours, ...) \
  KeyspaceEntry{Keyspace::id, name, Volume::volume, Neighbours::neighbours, {__VA_ARGS__}},
#include "schemas/store/keyspaces.def"
#undef KEYSPACE
};

constexpr const KeyspaceEntry& EntryOf(Keyspace keyspace) {
  return kKeyspaceEntries[static_cast<size_t>(keyspace)];
}

// "heads", "versions", …: stable, part of every stored format.
constexpr std::string_view KeyspaceName(Keyspace keyspace) { return EntryOf(keyspace).name; }

constexpr const KeyspaceTraits& TraitsOf(Keyspace keyspace) { return EntryOf(keyspace).traits; }

inline constexpr std::array kAllKeyspaces = {
#define KEYSPACE(id, ...) Keyspace::id,
#include "schemas/store/keyspaces.def"
#undef KEYSPACE
};

// The keyspaces with a trait, or without it, in their order.
template <bool KeyspaceTraits::*trait, bool value = true>
constexpr auto KeyspacesWith() {
  constexpr auto has = [](Keyspace keyspace) { return TraitsOf(keyspace).*trait == value; };
  constexpr auto count = std::count_if(kAllKeyspaces.begin(), kAllKeyspaces.end(), has);
  std::array<Keyspace, static_cast<size_t>(count)> keyspaces = {};
  std::copy_if(kAllKeyspaces.begin(), kAllKeyspaces.end(), keyspaces.begin(), has);
  return keyspaces;
}

// What a cache holds is not judged again, so it must not go by itself.
static_assert(std::none_of(kAllKeyspaces.begin(), kAllKeyspaces.end(), [](Keyspace keyspace) {
  return TraitsOf(keyspace).point_reads_cached && TraitsOf(keyspace).expires;
}));

}  // namespace strata::store
