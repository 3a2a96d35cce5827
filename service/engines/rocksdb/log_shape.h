// Where a file of RocksDB's log records ends, by its frames alone: logs and manifests.
//
//   file   = block*             32 KiB each
//   block  = record* zeros      fewer than 7 bytes at the end are not used
//   record = crc length type [number] payload
//   crc    = 4 bytes
//   length = 2 bytes, little-endian    of the payload
//   type   = byte               whole, first, middle or last part; 0: nothing was written here
//   number = 4 bytes            in the types of files that are used again
//
// A log's payload begins with 8 bytes, the sequence number of its first key, and 4, how many keys
// it writes; both little-endian. The next payload's sequence follows.
//
// RocksDB's own reader takes a header of zeros for space that was never written and goes on after
// it, and a manifest whose last record is cut for one whose writer died: it tells what was written
// from what was lost only where something is left of it.
#pragma once

#include <rocksdb/file_system.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strata::engines::rocks {

inline constexpr size_t kLogBlockBytes = size_t{32} << 10;
inline constexpr size_t kLogHeaderBytes = 7;

// "MANIFEST-000012"; and 12 from it, nothing from any other name.
std::string ManifestName(uint64_t number);
std::optional<uint64_t> ParseManifestName(std::string_view name);

struct LogShape {
  uint64_t records_end = 0;  // after the last record before the first that is broken, cut or zeros
  bool hole = false;         // zeros stand there, and something after them
  std::optional<uint64_t> first_sequence;  // of a log with a record
  uint64_t next_sequence = 0;              // after its last whole one
};

// Reads the file once, to its end or, if asked, to that of its first record. Checksums are left to
// RocksDB.
enum class LogPart { kAll, kFirstRecord };
rocksdb::IOStatus ReadLogShape(rocksdb::FileSystem& files, const std::string& path, LogPart part,
                               LogShape* shape);

// The offset from which the log or manifest at `path` lacks what was in it: at a hole, or at the
// end of a log, if the next one of its directory does not go on there. Nothing if the file is
// whole, as far as frames and sequence numbers tell.
rocksdb::IOStatus FindLogGap(rocksdb::FileSystem& files, const std::string& path,
                             std::optional<uint64_t>* gap);

}  // namespace strata::engines::rocks
