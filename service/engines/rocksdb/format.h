// Which stored form a database has.
//
//   "format" = number (" " feature)*     in the column family "default"
//
// The number counts what every database of this build has: record_format.h, the keys of
// key_codec.h, the ledger's blocks, the records that versioning stores. A feature names a form of
// record that came later and that a database may have or not; it is set when it is first used, so
// that going back to an older build stays possible until then. A keyspace that came later is a
// feature by itself: its column family is made, durably, before its first record (made_when_used in
// keyspace.h), and stays. Another number, and a feature or a keyspace that is unknown, are refused
// by name.
//
//   principals                 records of queues, schedules and messages may say whose they are
//   transactions (keyspace)    units and transactions that are remembered; where there is none, no
//                              version bears a transaction's mark either
//   feed (keyspace)            where there is none, the ledger was never trimmed and has entries of
//                              versions only
#pragma once

#include <rocksdb/db.h>

#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/store/ledger_block.h"

namespace strata::engines::rocks {

inline constexpr std::string_view kFormatKey = "format";
inline constexpr int kFormatNumber = 3;

struct Format {
  int number = 0;  // 0: a new database, which has none
  std::set<std::string, std::less<>> features;

  static absl::StatusOr<Format> Parse(std::string_view text);
  std::string ToText() const;

  friend bool operator==(const Format&, const Format&) = default;
};

// STORE_UNAVAILABLE: `what` of a database is nothing that this build knows.
absl::Status UnknownFormat(std::string_view what);

// OK if this build reads databases of that format. STORE_UNAVAILABLE, naming what it does not know.
absl::Status CheckReadable(const Format& format);

// Durably. STORE_UNAVAILABLE.
absl::Status WriteFormat(rocksdb::DB& database, const Format& format);

// The newest position that the ledger vouches for, and where the next block goes on.
// RECORD_CORRUPT.
absl::StatusOr<store::LedgerTail> ReadLedgerTail(rocksdb::DB& database,
                                                 rocksdb::ColumnFamilyHandle* ledger);

}  // namespace strata::engines::rocks
