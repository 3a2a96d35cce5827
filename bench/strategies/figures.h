// What the report says, apart from how it is measured and how it is written down.
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
  std::string_view key;    // for programs
  std::string_view title;  // for people
  std::string_view what;   // for people, precisely
};

inline constexpr std::array<OperationName, 5> kOperations = {{
    {Operation::kUpdate, "update", "Update",
     "one update, with hash chain, request record and ledger entry, durable where the engine is"},
    {Operation::kFetchOne, "fetch_one", "Fetch one", "the current version of one document"},
    {Operation::kFetchMany, "fetch_many", "Fetch many",
     "a list of current documents, per document"},
    {Operation::kOldVersion, "old_version", "Old version",
     "one version, drawn from all that a document has"},
    {Operation::kHistory, "history", "History page",
     "the newest ten versions of a document with contents"},
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

  // What versions cost besides their contents.
  int64_t headers_requests_ledger() const {
    return bare.contents() + bytes.requests + bytes.ledger;
  }
};

struct CrashResult {
  std::string strategy;
  std::vector<CrashPoint> points;
};

struct EngineFacts {
  std::string engine;
  bool durable = false;
  int64_t raw_bytes = 0;  // of all contents, put as they are, without any strategy
};

struct Machine {
  std::string processor;
  int cores = 0;
  int64_t memory_bytes = 0;
  std::string system;
  std::string compiler;
  std::string rocksdb;
  std::string libbson;
  double sync_us = 0;  // fdatasync behind 300 bytes, on the disk that was measured on
};

struct Report {
  std::string date;
  std::string commit;
  Machine machine;
  std::string file;
  int64_t documents = 0;
  int64_t versions = 0;
  int64_t deletions = 0;
  int64_t history_max = 0;
  int64_t json_bytes = 0;
  int64_t bson_bytes = 0;
  std::string repeated_id;
  int64_t repeated_versions = 0;
  int64_t repeated_bytes = 0;  // of one version, in the mean
  double seconds = 0;
  std::vector<EngineFacts> engines;
  std::vector<Result> results;
  std::vector<CrashResult> crashes;

  const EngineFacts& engine(std::string_view name) const {
    for (const EngineFacts& facts : engines) {
      if (facts.engine == name) return facts;
    }
    return engines.front();
  }
};

}  // namespace strata::bench
