// The engine as the registry knows it: its options, and how it is opened with them.
#include "service/engines/engines.h"
#include "service/engines/rocksdb/rocksdb_store.h"

namespace strata::engines {
namespace {

constexpr EngineOption kBlockCacheMib{
    "block-cache-mib", "MIB", "256",
    "memory for uncompressed blocks, an eighth of it for\nsingle records",
    &ExpectedNumber<1, int64_t{1} << 20>};

constexpr EngineOption kOptions[] = {kBlockCacheMib};

absl::StatusOr<std::unique_ptr<store::Store>> Open(const OpenOptions& options) {
  rocks::RocksDbOptions engine_options;
  engine_options.directory = options.directory;
  engine_options.clock = options.clock;
  engine_options.block_cache_bytes = static_cast<size_t>(NumberOf(options.values, kBlockCacheMib))
                                     << 20;
  engine_options.convert_ledger_entry = options.convert_ledger_entry;
  return rocks::RocksDbStore::Open(engine_options);
}

}  // namespace

Engine RocksDbEngine(std::string_view name) { return {name, kOptions, &Open}; }

}  // namespace strata::engines
