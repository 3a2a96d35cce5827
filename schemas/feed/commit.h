// What a commit did, as the feed keeps it in memory, and which of it a watcher wants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "schemas/store/ledger_block.h"
#include "schemas/store/record.h"
#include "schemas/versioning/version.h"

namespace strata::feed {

// A place in the feed: the entry `index` of the commit at `position`. Everything in front of it has
// been looked at.
struct Place {
  store::CommitPosition position = 0;
  uint32_t index = 0;

  // The last commit of which everything lies in front of the place.
  store::CommitPosition whole() const { return position - 1; }

  static Place Behind(store::CommitPosition position) { return {position + 1, 0}; }
  friend bool operator==(const Place&, const Place&) = default;
};

// What an entry of the ledger tells of. The numbers are those of strata.v1.EventType.
enum class EventType : uint8_t {
  kOther = 0,  // nothing that the feed tells of
  kVersion = 1,
  kCollectionDeleted = 2,
};

// An entry of the ledger.
struct Entry {
  EventType type = EventType::kOther;
  std::string collection;
  int64_t incarnation = 0;
  std::string id;                    // empty: it is of the collection
  versioning::VersionHeader header;  // of a version, as the ledger has it: without hashes

  static Entry Of(const store::LedgerEntryView& entry);
  // Roughly what it takes in memory.
  size_t bytes() const;
};

// What one commit appended to the ledger, in its order: entry n has the index n.
struct Commit {
  store::CommitPosition position = 0;
  std::vector<Entry> entries;
};
using CommitPtr = std::shared_ptr<const Commit>;

// Which entries are wanted.
struct Selection {
  std::vector<std::string> collections;        // sorted; empty: all
  std::string id_prefix;                       // of documents
  std::vector<versioning::VersionKind> kinds;  // of versions; empty: all

  // What is no version passes all but `collections`.
  bool Wants(const Entry& entry) const;
};

}  // namespace strata::feed
