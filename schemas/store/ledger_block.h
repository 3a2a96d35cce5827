// The ledger as it is stored: blocks of commits that prove themselves.
//
// An engine with commit positions writes one block a commit group (the commits that it makes
// durable together) into Keyspace::kLedger, under the position of the block's first commit
// (LedgerKey). A block that has grown past kLedgerBlockBytesMax ends with the commit that passed
// it, and the group goes on with another, so that one entry is found without reading much. Blocks
// are never changed; the order of their keys is the order of commits.
//
//   block   = hash body
//   hash    = 32 bytes        SHA-256 of the hash before (kNoHash in front of the first block) and
//                             the body, one after the other
//   body    = first last latest late commit*
//   first   = 8 bytes         position of the block's first commit: the key says it too
//   last    = 8 bytes         position of the group's last commit, if the block is its last one; of
//                             the block's last commit otherwise. Positions in between that have no
//                             commit here appended nothing to the ledger, or were never given
//   latest  = 8 bytes         the greatest time of an entry of this block and all before it
//   late    = 4 bytes         how many blocks so far, this one included, hold a time more than
//                             kLateMicros before the `latest` of the block before
//   commit  = varint coded    how far its position lies above the one before it (the first: above
//                             `first`), and its entries
//   coded   = varint entry*   twice the number of entries, plus 1 if it is coded by itself: then
//                             what it refers to stands in it (else in the block)
//   entry   = varint          bits 0 to 4: kind; from bit 5 on, which of the members after `time`
//                             are there, in their order
//             place text version time
//             [actor] [on_behalf_of] [reason] [labels] [request_id] [transaction_id] [chain]
//   place   = varint [varint text]
//                             0: a new one, its incarnation and its collection; n from 1: the n-th
//                             from the newest backwards
//   version = varint          0: none
//   time    = varint          the difference to the entry before (to 0 in front of the first), in
//                             zigzag: 2n for n from 0, -2n-1 below
//   actor, on_behalf_of, reason = text
//   labels  = varint (text text)*    how many, each name with its value
//   request_id, transaction_id = id
//   chain   = 16 bytes        the first bytes of the version's chain hash
//   text    = varint [bytes]  2n: a new one of n bytes; 2n+1: the n-th before the newest, from 0
//   id      = varint [bytes]  2n: n bytes as they are; 2n+1: n bytes (before), a varint, so many
//                             bytes that stand for twice as many lower-case hexadecimal digits, a
//                             varint, and so many bytes (after)
//
// All fixed numbers are big-endian, so that SQL's int8send and sha256 can make a header; a varint
// is base/varint.h's. Texts and places are counted from the last commit that is coded by itself on.
//
// So a commit costs its entries and little else: names once a block, no names of members, and a
// commit that was coded before its group was known (CodeCommit) can be joined to others as it is.
//
// What the hash proves: whoever removes, adds or changes an entry changes its block's hash and that
// of every later one; a hash that somebody wrote down elsewhere (with `last`) then no longer holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schemas/base/clock.h"
#include "schemas/base/sha256.h"
#include "schemas/store/record.h"

namespace strata::store {

inline constexpr size_t kLedgerBlockBytesMax = size_t{64} << 10;
inline constexpr size_t kLedgerChainBytes = 16;
inline constexpr UnixMicros kLateMicros = 60'000'000;
inline constexpr Hash kNoHash{};

// What the ledger tells of one thing that a commit did. Empty texts are not there.
struct LedgerEntry {
  // What it is, in the words of versioning: 1 to 4 a version of that VersionKind; the others, to
  // kLedgerKindMax, are for what is no version.
  uint8_t kind = 0;
  std::string collection;
  int64_t incarnation = 0;
  std::string id;
  int64_t version = 0;  // 0: none
  UnixMicros time = 0;  // from 0
  std::string actor;
  std::string on_behalf_of;
  std::string reason;
  std::map<std::string, std::string> labels;
  std::string request_id;
  std::string transaction_id;
  std::string chain;  // kLedgerChainBytes of the version's chain hash; empty: not known

  // Roughly what it adds to a block.
  size_t bytes() const;

  friend bool operator==(const LedgerEntry&, const LedgerEntry&) = default;
};

inline constexpr uint8_t kLedgerKindMax = 31;

// Where the ledger ends: what the next block stands on.
struct LedgerTail {
  CommitPosition last = 0;  // 0: there is no block yet
  Hash hash = kNoHash;
  UnixMicros latest = 0;
  uint32_t late = 0;

  friend bool operator==(const LedgerTail&, const LedgerTail&) = default;
};

// The front of a stored block.
struct LedgerBlockHeader {
  CommitPosition first = 0;
  LedgerTail tail;  // with this block
};

// `coded` for entries alone, as an engine needs it that learns only while it commits which commits
// are in. REQUIRES: at least one entry.
std::string CodeCommit(std::span<const LedgerEntry> entries);

// Makes one block. Not thread-safe.
class LedgerBlockWriter {
 public:
  // The block comes after `before`.
  explicit LedgerBlockWriter(const LedgerTail& before);
  ~LedgerBlockWriter();
  LedgerBlockWriter(const LedgerBlockWriter&) = delete;
  LedgerBlockWriter& operator=(const LedgerBlockWriter&) = delete;

  // Adds a commit. REQUIRES: `position` is greater than all before; at least one entry, which
  // outlives the writer; neither time, incarnation nor version is negative.
  void Add(CommitPosition position, std::span<const LedgerEntry> entries);

  bool empty() const { return first_ == 0; }
  bool full() const;

  // Ends the block. `last` is at least the last commit's position. REQUIRES: !empty(); called once.
  struct Block {
    CommitPosition first = 0;
    std::string value;
    LedgerTail tail;
  };
  Block Finish(CommitPosition last);

 private:
  friend std::string CodeCommit(std::span<const LedgerEntry> entries);
  class Coder;

  const LedgerTail before_;
  CommitPosition first_ = 0;
  CommitPosition newest_ = 0;
  UnixMicros earliest_;  // of this block's entries
  UnixMicros latest_;    // of this block's and all before
  std::string value_;
  std::unique_ptr<Coder> coder_;
};

// The front of a block; nothing if the bytes cannot be one. The hash is as it says, unchecked.
std::optional<LedgerBlockHeader> ParseLedgerBlockHeader(std::string_view block);

// The hash that `block` should have after one whose hash is `before`. REQUIRES: it has a header.
Hash LedgerBlockHash(const Hash& before, std::string_view block);

// One entry of a block. The views live as long as the block, `request_id` and `transaction_id`
// until the reader moves.
struct LedgerEntryView {
  uint8_t kind = 0;
  std::string_view collection;
  int64_t incarnation = 0;
  std::string_view id;
  int64_t version = 0;
  UnixMicros time = 0;
  std::string_view actor;
  std::string_view on_behalf_of;
  std::string_view reason;
  std::vector<std::pair<std::string_view, std::string_view>> labels;
  std::string_view request_id;
  std::string_view transaction_id;
  std::string_view chain;

  LedgerEntry ToEntry() const;
};

// Walks the entries of a block in their order. Not thread-safe.
//
//   LedgerBlockReader reader(block);
//   while (reader.Next()) …
//   if (reader.corrupt()) …
class LedgerBlockReader {
 public:
  // `block` must outlive it.
  explicit LedgerBlockReader(std::string_view block);

  // Moves to the next entry; false at the end, and where the bytes make no sense (then corrupt()).
  bool Next();
  bool corrupt() const { return corrupt_; }

  // Of the entry moved to.
  const LedgerEntryView& entry() const { return entry_; }
  CommitPosition position() const { return position_; }
  uint32_t index() const { return index_; }  // in its commit, from 0

 private:
  bool NextCommit();
  bool ReadEntry();
  bool ReadPlace();
  bool ReadLabels();
  bool ReadNumber(int64_t& number);
  bool ReadBytes(int64_t size, std::string_view& bytes);
  bool ReadText(std::string_view& text);
  bool ReadId(std::string& unpacked, std::string_view& id);

  std::string_view rest_;
  CommitPosition last_ = 0;
  bool corrupt_ = false;
  CommitPosition position_ = 0;
  bool first_commit_ = true;
  int64_t entries_left_ = 0;
  uint32_t index_ = 0;
  LedgerEntryView entry_;
  std::vector<std::string_view> texts_;
  std::vector<std::pair<int64_t, std::string_view>> places_;
  std::string request_id_;
  std::string transaction_id_;
};

}  // namespace strata::store
