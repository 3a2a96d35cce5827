// How the server grows: everything that the tables, the JSON and the page show.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/support/measurement.h"

namespace strata::bench {

enum class Operation { kGet, kUpdate, kHistory };
inline constexpr std::array kOperationNames = {"Get", "Update", "History, newest ten"};

// What the operations cost at one size, in the order of the names.
struct Costs {
  std::array<Measurement, 3> operations;
  const Measurement& of(Operation operation) const {
    return operations[static_cast<size_t>(operation)];
  }
};

struct DocumentsPoint {
  int64_t documents = 0;
  double fills_per_second = 0;  // how fast documents came in since the point before
  int64_t resident_bytes = 0;   // of the server, behind the measurements
  Costs costs;
};

struct VersionsPoint {
  std::string strategy;
  int64_t versions = 0;   // of each document, before the updates
  int64_t documents = 0;  // so many that an update adds little to each
  Costs costs;
};

// A strategy that does not go to the end.
struct StrategyEnd {
  std::string strategy;
  std::string why;
};

// Many connections or streams on which nothing happens.
struct IdleResult {
  std::string what;  // "connections"
  int64_t asked = 0;
  int64_t open = 0;
  double opening_seconds = 0;
  struct Moment {
    int64_t resident_bytes = 0;
    int64_t open_files = 0;
  };
  Moment before;
  Moment with;
  Moment after;
  Measurement get_before;
  Measurement get_beside;

  double kib_each() const {
    return open == 0 ? 0
                     : static_cast<double>(with.resident_bytes - before.resident_bytes) / 1024 /
                           static_cast<double>(open);
  }
};

// Updates of a megabyte, all at once.
struct BurstResult {
  int64_t calls = 0;
  int64_t at_once = 0;
  bool stalled = false;  // none is sent to its last byte
  int connections = 0;
  int64_t in_flight_mib_max = 0;  // what the server was told
  int64_t sent_bytes = 0;         // that the documents of all calls have together
  int64_t accepted = 0;
  int64_t refused = 0;  // RESOURCE_EXHAUSTED, or cut off where nothing is sent to its end
  int64_t cut_off = 0;  // the same by gRPC, without a reason: the write may have taken effect
  int64_t others = 0;
  std::string other;  // the first of them
  double seconds = 0;
  int64_t resident_before = 0;
  int64_t resident_peak = 0;
  int64_t resident_after = 0;
  double get_ms = 0;               // a small one, right behind
  std::vector<std::string> wrong;  // what should not be

  int64_t growth() const { return resident_peak - resident_before; }
};

struct StartResult {
  std::string what;  // "an empty directory"
  int64_t directory_bytes = 0;
  double serving_ms = 0;  // from exec to the line that says so; median
  double serving_ms_max = 0;
  int64_t resident_bytes = 0;
};

struct Figures {
  std::vector<DocumentsPoint> documents;
  std::vector<VersionsPoint> versions;
  std::vector<StrategyEnd> ends;
  std::vector<IdleResult> idle;
  std::vector<BurstResult> bursts;
  std::vector<StartResult> starts;
  std::vector<std::string> wrong;  // answers that were; none in a run that is worth anything
  double seconds = 0;
};

}  // namespace strata::bench
