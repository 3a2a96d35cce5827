// Where RocksDB's types meet ours: its string views and its errors.
#pragma once

#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <string_view>

#include "absl/status/status.h"

namespace strata::engines::rocks {

inline rocksdb::Slice ToSlice(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view ToView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// Our word for a RocksDB error: RECORD_CORRUPT for damage, STORE_UNAVAILABLE for all else. What
// RocksDB says goes to the log, since it may name files and keys; `doing` ("reading a record")
// completes both messages. REQUIRES: !status.ok().
absl::Status Translate(const rocksdb::Status& status, std::string_view doing);

// RECORD_CORRUPT for bytes under a key that record_format.h does not know.
absl::Status UnreadableRecord();

}  // namespace strata::engines::rocks
