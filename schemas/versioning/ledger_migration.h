// Reads the ledger of format 2, for the engine that turns it into blocks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "schemas/store/ledger_block.h"
#include "schemas/store/store.h"
#include "schemas/versioning/collections.h"
#include "schemas/versioning/strategy.h"

namespace strata::versioning {

// What an entry of format 2 lacks is the beginning of its version's chain hash, which is read from
// the version. Not thread-safe.
class LedgerMigration {
 public:
  // The entry of a record; without chain if its collection is gone, or if its version cannot be
  // read, of which Verify tells. RECORD_CORRUPT if the record is none; STORE_UNAVAILABLE.
  absl::StatusOr<store::LedgerEntry> Convert(const store::Reader& reader, std::string_view record);

 private:
  absl::Status AddChain(const ReadContext& context, store::LedgerEntry& entry);

  std::map<std::string, CollectionPtr, std::less<>> collections_;  // null: there is none
  // Entries of one document often stand together.
  store::DocumentKey document_;
  std::optional<Head> head_;
};

// For the engines' OpenOptions.
std::function<absl::StatusOr<store::LedgerEntry>(const store::Reader&, std::string_view)>
LedgerConverter();

}  // namespace strata::versioning
