// Ledger entries for tests of engines, and what an engine has kept of them.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "schemas/store/key_codec.h"
#include "schemas/store/ledger_block.h"
#include "schemas/store/store.h"

namespace strata::test_support {

// An entry that says `reason`.
inline store::LedgerEntry EntryThatSays(std::string_view reason) {
  store::LedgerEntry entry;
  entry.kind = 1;
  entry.collection = "things";
  entry.incarnation = 1;
  entry.id = "a";
  entry.version = 1;
  entry.time = 1'000'000;
  entry.reason = reason;
  return entry;
}

// Where an entry stands, and what it says.
using SaidAt = std::tuple<store::CommitPosition, uint32_t, std::string>;

// The whole ledger. Empty after the first block that is damaged, or that does not hash on from the
// one before.
inline std::vector<SaidAt> LedgerOf(const store::Reader& reader) {
  std::vector<SaidAt> said;
  Hash before = store::kNoHash;
  for (auto cursor = reader.Scan(store::Keyspace::kLedger, {}); cursor->Valid(); cursor->Next()) {
    const auto header = store::ParseLedgerBlockHeader(cursor->value());
    if (!header || store::ParseLedgerKey(cursor->key()) != header->first ||
        store::LedgerBlockHash(before, cursor->value()) != header->tail.hash) {
      break;
    }
    before = header->tail.hash;
    store::LedgerBlockReader entries(cursor->value());
    while (entries.Next()) {
      said.emplace_back(entries.position(), entries.index(), entries.entry().reason);
    }
  }
  return said;
}

}  // namespace strata::test_support
