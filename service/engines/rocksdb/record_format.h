// What lies in RocksDB under a key, and how it is written.
//
// Each keyspace is a column family of its name (store::KeyspaceName); keys are the port's, as they
// are. The column family "default" holds the engine's own two:
//
//   "format"   -> format.h
//   "position" -> varint       the last commit's position, where the ledger does not tell: it is
//                              written iff no commit of a group has a ledger entry
//
// So the last position of a database is the greater of "position" and the last ledger block's.
//
//   stored   = flags position [expires] value
//   flags    = byte            bit 0: `expires` follows; the others are 0
//   position = varint          of the commit that wrote the record; its stamp, too. From 1
//   expires  = varint          from this time on the record counts as absent, Unix microseconds.
//                              From 1
//   value    = the rest        a BSON document
//   varint   = 1 to 9 bytes    base/varint.h
//
// Against damage the file formats below have checksums; this one only refuses what was never
// written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "schemas/base/clock.h"
#include "schemas/store/record.h"

namespace strata::engines::rocks {

inline constexpr std::string_view kPositionKey = "position";

struct StoredRecord {
  store::CommitPosition position = 0;
  UnixMicros expire_time = 0;  // 0: never
  std::string_view value;      // into the bytes that were parsed
};

// flags, position and expires: what goes before a value. REQUIRES: position > 0, expire_time >= 0.
std::string RecordHeader(store::CommitPosition position, UnixMicros expire_time);

// Nothing if the bytes are no such record.
std::optional<StoredRecord> ParseRecord(std::string_view stored);

// A varint alone. REQUIRES: number >= 0. Nothing if the bytes are not exactly one.
std::string EncodePosition(store::CommitPosition number);
std::optional<store::CommitPosition> ParsePosition(std::string_view bytes);

}  // namespace strata::engines::rocks
