// What is measured, apart from how, and from how it is written down.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::bench {

enum class Operation { kUpdate, kFetchOne, kFetchMany, kOldVersion, kHistory };

struct OperationName {
  Operation operation;
  std::string_view name;
};

inline constexpr std::array<OperationName, 5> kOperations = {{
    // With hash chain, request record and ledger entry, durable where the engine is.
    {Operation::kUpdate, "update"},
    // The current version of one document.
    {Operation::kFetchOne, "fetch one"},
    // A list of current documents, per document.
    {Operation::kFetchMany, "fetch many"},
    // One version, drawn from all that a document has.
    {Operation::kOldVersion, "old version"},
    // The newest ten versions of a document with contents.
    {Operation::kHistory, "history page"},
}};

struct Latency {
  double p50_us = 0;
  double p99_us = 0;
  int64_t repetitions = 0;
};

// By Operation.
using Costs = std::array<std::optional<Latency>, kOperations.size()>;

// By keyspace, after everything was compacted; uncompressed records where an engine has no files.
struct StoredBytes {
  int64_t heads = 0;
  int64_t versions = 0;
  int64_t requests = 0;
  int64_t ledger = 0;
  int64_t other = 0;

  int64_t contents() const { return heads + versions; }
  int64_t total() const { return heads + versions + requests + ledger + other; }
};

// After the kill of a process that had loaded everything.
struct Recovery {
  double open_ms = 0;
  double first_read_ms = 0;
  int64_t log_bytes = 0;  // that the engine had to read
  double total_ms() const { return open_ms + first_read_ms; }
};

// With documents of so many versions each.
struct Point {
  int64_t versions = 0;
  int64_t documents = 0;
  Costs costs;
  double sync_us = 0;  // as Result's
  StoredBytes bytes;
  std::optional<Recovery> recovery;
  double bytes_per_version() const {
    return static_cast<double>(bytes.total()) / static_cast<double>(versions * documents);
  }
};

// Where a layout takes no more.
struct Limit {
  int64_t versions = 0;
  std::string reason;
};

// A process that died after so many writes of one update.
struct CrashPoint {
  int64_t writes = 0;
  int64_t version_read = 0;           // by the next reader; the update was to make version 4
  std::vector<std::string> findings;  // of a verification before anybody wrote again
  bool next_update_succeeded = false;
  int64_t findings_after = 0;  // of a verification after that update
};

// One strategy on one engine.
struct Result {
  std::string strategy;
  std::string engine;
  bool durable = false;
  Costs costs;         // on the real histories
  double sync_us = 0;  // a bare fdatasync right after the updates, to hold them against
  StoredBytes bytes;   // of the real histories
  StoredBytes bare;    // of the same histories with empty contents
  std::optional<Recovery> recovery;
  std::vector<Point> growth;
  std::optional<Limit> limit;
};

struct CrashResult {
  std::string strategy;
  std::vector<CrashPoint> points;
};

}  // namespace strata::bench
