// The registry of engines: adapters of the store port, by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/store/store.h"

namespace strata::engines {

struct OpenOptions {
  std::string directory;                  // where the engine keeps its files; ignored by memory
  const Clock* clock = &Clock::System();  // for the expiry of records; outlives the store
  size_t block_cache_bytes = size_t{256} << 20;  // rocksdb: for uncompressed blocks
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
