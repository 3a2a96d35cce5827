// The registry of engines: adapters of the store port, by name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/store/store.h"

namespace strata::engines {

// Reads one ledger record of format 2, which had one for each entry: BSON, in the words of the code
// above the port. `reader` shows all other records.
using LedgerEntryConverter = std::function<absl::StatusOr<store::LedgerEntry>(
    const store::Reader& reader, std::string_view bytes)>;

struct OpenOptions {
  std::string directory;                  // where the engine keeps its files; ignored by memory
  const Clock* clock = &Clock::System();  // for the expiry of records; outlives the store
  size_t block_cache_bytes = size_t{256} << 20;  // rocksdb: for uncompressed blocks
  // For directories of an older format; none: they are refused.
  LedgerEntryConverter convert_ledger_entry{};
};

using OpenFunction = absl::StatusOr<std::unique_ptr<store::Store>> (*)(const OpenOptions& options);

struct Engine {
  std::string_view name;
  OpenFunction open;
};

// All engines, in the order of engines.def.
const std::vector<Engine>& AllEngines();

// INVALID_FIELD, naming the engines there are, for an unknown name; else as the engine's open:
// STORE_UNAVAILABLE (the directory cannot be made or is in use by another process), RECORD_CORRUPT.
absl::StatusOr<std::unique_ptr<store::Store>> OpenEngine(std::string_view name,
                                                         const OpenOptions& options);

}  // namespace strata::engines
