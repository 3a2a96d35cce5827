// What a commit did, as the feed keeps it in memory, and which of it a watcher wants.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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

// A number that whoever needs it first works out, for all threads. Copies know what it is.
class LazyNumber {
 public:
  LazyNumber() = default;
  LazyNumber(const LazyNumber& other) : number_(other.number_.load(std::memory_order_relaxed)) {}
  LazyNumber& operator=(const LazyNumber& other) {
    number_.store(other.number_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    return *this;
  }

  template <typename WorkOut>
  uint64_t Get(const WorkOut& work_out) const {
    uint64_t number = number_.load(std::memory_order_relaxed);
    if (number == 0) number_.store(number = work_out(), std::memory_order_relaxed);
    return number;
  }

 private:
  mutable std::atomic<uint64_t> number_ = 0;  // 0: nobody knows
};

// An entry of the ledger.
struct Entry {
  EventType type = EventType::kOther;
  std::string collection;
  int64_t incarnation = 0;
  std::string id;  // empty: it is of the collection
  // Of a version, as the ledger has it: without hashes. Of what is none only the commit time.
  versioning::VersionHeader header;
  LazyNumber document_hash;  // HashOfDocument

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

// The first 8 bytes of SHA-256(collection 0x00 id), big-endian.
uint64_t HashOfDocument(std::string_view collection, std::string_view id);

// Which entries are wanted.
struct Selection {
  std::vector<std::string> collections;        // sorted; empty: all
  std::string id_prefix;                       // of documents
  std::vector<versioning::VersionKind> kinds;  // of versions; empty: all
  // Of documents whose hash modulo `partitions` is `partition`; 0: of all.
  int32_t partitions = 0;
  int32_t partition = 0;

  // What is no version passes all but `collections`.
  bool Wants(const Entry& entry) const;
};

}  // namespace strata::feed
