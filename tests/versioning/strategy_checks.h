// Checkers of what every way of storing versions must promise: crashes between any two writes,
// races forced at every point, readers in the middle. They drive anything that reads and writes
// documents over a store: the strategies by a test harness (strategy_subject.h), or a facade.
//
// A checker returns an empty text, or the first violation that it sees with how it came about. That
// they see violations is itself tested, by strategies that are wrong on purpose.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/store/store.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/version.h"
#include "tests/versioning/operations.h"

namespace strata::versioning::checks {

// What the checkers drive. Each call stands for a process that was just started over `store`: it
// keeps nothing from one call to the next.
class Subject {
 public:
  virtual ~Subject() = default;

  virtual std::string_view collection() const = 0;

  // Makes one version for each operation, all in one batch (several only with atomic batches), and
  // goes on after lost races. OK: acknowledged. OUTCOME_UNKNOWN, STORE_UNAVAILABLE: the store died.
  // Any other: nothing was written, as for an operation that does not apply.
  virtual absl::Status Write(store::Store& store, const std::string& id,
                             std::span<const Operation> operations) = 0;

  virtual absl::StatusOr<std::optional<StoredVersion>> ReadHead(store::Store& store,
                                                                const std::string& id) = 0;
  virtual absl::StatusOr<StoredVersion> ReadVersion(store::Store& store, const std::string& id,
                                                    int64_t version, Part part) = 0;
  // `range.last` 0: up to the head, whichever that is. Nothing for a document never written.
  virtual absl::StatusOr<std::vector<StoredVersion>> ReadVersions(store::Store& store,
                                                                  const std::string& id,
                                                                  const VersionRange& range,
                                                                  Part part) = 0;

  // Empty, or what is wrong with the stored records themselves, at any moment.
  virtual std::string CheckRecords(store::Store& /*store*/, const std::string& /*id*/) {
    return "";
  }
};

// Which engine the checkers make of the one they are given.
enum class Mode {
  kAtomic,  // as it is; it must have atomic batches
  kSingle,  // writes one record at a time, fresh scans
  kStale,   // and scans that answer from any state since the case began
};
std::string_view ModeName(Mode mode);

// How many combinations the checkers try.
enum class Depth {
  kShallow,  // one thing goes wrong: for engines whose writes cost an fsync
  kDeep,     // all combinations
};

class StrategyChecks {
 public:
  // Both must outlive it. `base` has atomic batches and snapshots; each case uses a document of its
  // own in it.
  StrategyChecks(Subject& subject, store::Store& base, Mode mode, Depth depth = Depth::kDeep);
  ~StrategyChecks();

  // For each kind of write: the process dies between every two of its writes; reading then answers
  // the state before or after; the next writer dies too, at each of its points; and the one after
  // it succeeds.
  std::string Crashes();

  // Two writers, the second run whole (deep: or up to each of its crashes) inside the first, at
  // each of the first's reads and writes (deep: the first crashing too), over a document without
  // (deep: and with) what an earlier crash left. No update is lost, no number used twice, the next
  // update succeeds.
  std::string Races();

  // A reader of a history, upward and downward, with two updates at each of its reads.
  std::string Reads();

  // Begins a document of its own, for CheckDocument and Store.
  std::string BeginDocument();
  // A store of the mode, over the base.
  std::unique_ptr<store::Store> OpenStore();
  // Reads the document in every way and compares: nothing, or the problem. `known` versions must be
  // there unchanged; `history` gets all.
  std::string CheckDocument(const std::string& id, std::span<const StoredVersion> known,
                            std::vector<StoredVersion>& history);

  // From now on CheckDocument reads each version and the whole history both ways, and not every
  // range.
  void CheckLess() { check_all_ranges_ = false; }

  // How many documents were used so far, each for one case.
  int cases() const { return cases_; }

 private:
  class PastStore;
  class Process;
  struct Race;
  struct Attempt;

  std::string CrashTwice(const std::vector<Operation>& prelude,
                         const std::vector<Operation>& operations, size_t first_crash,
                         size_t second_crash, bool& first_died, bool& second_died);
  std::string CrashAll(const std::vector<Operation>& prelude,
                       const std::vector<Operation>& operations);
  struct RaceResult;

  RaceResult RunRace(const Race& race);
  std::string RaceAll(const Race& race);
  std::string RaceEvents(Race& race, RaceResult& seen);
  std::string CheckAttempts(const std::string& id, std::span<const StoredVersion> known,
                            std::span<const Operation> operations,
                            std::span<const Attempt> attempts);
  std::string RunRead(bool newest_first, bool leftover, size_t event, bool& fired);
  std::string WriteAll(const std::string& id, std::span<const Operation> operations);
  std::string CheckNextUpdate(const std::string& id, std::vector<StoredVersion>& known);
  std::string CheckView(store::Store& store, const std::string& id,
                        std::span<const StoredVersion> history);

  Subject& subject_;
  const Mode mode_;
  const Depth depth_;
  const std::unique_ptr<PastStore> past_;
  bool check_all_ranges_ = true;
  int cases_ = 0;
};

}  // namespace strata::versioning::checks
