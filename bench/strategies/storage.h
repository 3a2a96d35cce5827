// What a store takes on disk.
#pragma once

#include <cstdint>
#include <filesystem>

#include "bench/strategies/figures.h"
#include "bench/strategies/histories.h"
#include "schemas/store/store.h"
#include "service/engines/engines.h"

namespace strata::bench {

// Puts all that a store holds into tables, where its engine knows such a thing.
void Compact(store::Store& store);

// RocksDB: the table files, by keyspace, with all that is in them. REQUIRES: nothing was written
// since Compact. Other engines: the keys and records, which nothing compresses.
StoredBytes MeasureBytes(store::Store& store, const std::filesystem::path& directory);

// The bytes of the files whose names end with `extension`, in a folder and below it.
int64_t FileBytes(const std::filesystem::path& directory, std::string_view extension = "");

// All contents put under their keys as they are, compacted: what the engine's compression alone
// makes of them.
int64_t RawBytes(const engines::Engine& engine, const Histories& histories,
                 const std::filesystem::path& directory);

// Whether anything of an engine outlives its process.
bool IsDurable(const engines::Engine& engine, const std::filesystem::path& directory);

}  // namespace strata::bench
