// How versions become records: the strategy interface. Read this header second, after
// schemas/store/store.h.
//
// A strategy reads records back as versions, and plans the records of new versions. It never
// commits, owns no state and retries nothing: Plan is a pure function of what was read. Strategies
// differ only in records; all give identical answers.
// tests/conformance/strategy_conformance_test.cc is this header's specification.
//
// Each strategy's .cc opens with its records, its order of writes, what a crash between two of them
// leaves, and who mends it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/store/key_codec.h"
#include "schemas/store/store.h"
#include "schemas/versioning/cursor.h"
#include "schemas/versioning/finding.h"
#include "schemas/versioning/record_codec.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

inline constexpr int32_t kKeyframeIntervalMax = 1000;

// Settings of a collection that its strategy reads. Never change.
struct StrategyOptions {
  // DELTAS: every how many versions one is stored whole; 1 to kKeyframeIntervalMax.
  int32_t keyframe_interval = 16;

  friend bool operator==(const StrategyOptions&, const StrategyOptions&) = default;
};

// What a strategy reads through: a snapshot, or the live store of an engine that has none.
struct ReadContext {
  const store::Reader& reader;
  store::Capabilities capabilities;
};

// The current version (a deletion included) as read, with what the next plan must know of its
// records.
struct Head {
  StoredVersion version;   // with content
  store::Stamp stamp = 0;  // of the record that holds it
  std::string record;      // that record's bytes
  // CURRENT_FLAG, after ReadLeftovers: older versions still flagged as current, newest first.
  struct Leftover {
    int64_t version = 0;
    store::Record record;
  };
  std::vector<Leftover> leftovers;
};

// Versions `first` to `last`, both included, upward or downward. REQUIRES: 1 <= first, last <= the
// head's version.
struct VersionRange {
  int64_t first = 1;
  int64_t last = 0;
  bool newest_first = false;
  // About so many will be asked for (0: all). For reading ahead; never changes what the cursor
  // gives.
  int64_t wanted = 0;
};

using VersionCursor = Cursor<StoredVersion>;

// The current version of one of many documents.
struct CurrentVersion {
  std::string id;
  StoredVersion version;
};
using HeadCursor = Cursor<CurrentVersion>;

// Something wrong with a document's records.
struct Fault {
  FindingKind kind = FindingKind::kRecordCorrupt;
  int64_t version = 0;  // 0: the document as a whole
  std::string problem;  // for people, without content
  bool recoverable = false;
  // The writes that mend it, guarded by what was read, so that they come to nothing if somebody
  // else was faster; none where there is nothing to write.
  store::WriteBatch mend{};
};

// What Inspect finds under one version's number.
struct Inspected {
  int64_t first = 0;                     // 0: the document as a whole
  int64_t last = 0;                      // greater than `first`: versions that are all missing
  std::optional<StoredVersion> version;  // its header, if that could be read
  std::vector<Fault> faults;
};

// What a strategy in the middle of an inspection knows of the versions below.
// Never changes, so whoever copies the pointer has the same place once more.
class InspectionState {
 public:
  virtual ~InspectionState() = default;
};
using InspectionStatePtr = std::shared_ptr<const InspectionState>;

class InspectionCursor : public Cursor<Inspected> {
 public:
  // What an inspection has to know that begins right after the last item; null where nothing.
  virtual InspectionStatePtr state() const { return nullptr; }
};

// Stateless and thread-safe; one object serves all collections with the same options. The context's
// reader and whatever else is handed in by reference must outlive the cursors.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // The current version, or nothing if the document was never written. Linearizable.
  virtual absl::StatusOr<std::optional<Head>> ReadHead(
      const ReadContext& context, const store::DocumentKey& document) const = 0;

  // Reads into `head` what earlier writers left undone and the next plan has to finish. Writers
  // call it between ReadHead and Plan; readers need not.
  virtual absl::Status ReadLeftovers(const ReadContext& /*context*/,
                                     const store::DocumentKey& /*document*/, Head& /*head*/) const {
    return absl::OkStatus();
  }

  // Version `version` of a document whose head was read before, from the same context. REQUIRES: 1
  // <= version <= the head's. RECORD_CORRUPT if its record is missing or damaged.
  virtual absl::StatusOr<StoredVersion> ReadVersion(const ReadContext& context,
                                                    const store::DocumentKey& document,
                                                    const Head& head, int64_t version,
                                                    Part part) const = 0;

  // The versions of `range`; none is left out (RECORD_CORRUPT instead).
  virtual std::unique_ptr<VersionCursor> ScanVersions(const ReadContext& context,
                                                      const store::DocumentKey& document,
                                                      const Head& head, const VersionRange& range,
                                                      Part part) const = 0;

  // The current version (a deletion included) of every document of `incarnation` whose id begins
  // with `id_prefix` and is greater than `after_id` (empty: from the first), in the byte order of
  // the ids. Cost per document, not per version. Where scans may be stale, recent changes may be
  // missed, but what is given was confirmed by a point read.
  virtual std::unique_ptr<HeadCursor> ScanHeads(const ReadContext& context, int64_t incarnation,
                                                std::string_view id_prefix,
                                                std::string_view after_id, Part part) const = 0;

  // Adds to `batch` the writes that make `next` (successive versions, at least one; more than one
  // only with atomic batches) the newest of a document whose head is `head` (null: never written),
  // and marks the commit point. Pure. LAYOUT_LIMIT where the layout cannot hold them.
  virtual absl::Status Plan(const store::DocumentKey& document, const Head* head,
                            std::span<const StoredVersion> next,
                            store::WriteBatch& batch) const = 0;

  // What is stored of a document, sound or not, upward: versions `first` to the head's, those that
  // are missing in runs; last, if there are any, the faults of the document as a whole. Looks at
  // records that reads do not use too. `head` is null if ReadHead found none or RECORD_CORRUPT.
  // Contents are checked against their hashes here; what versions say of each other is the caller's
  // to judge. Fails only if the store does (STORE_UNAVAILABLE).
  //
  // `state` is null, or that of a cursor that was left right below `first`, on this snapshot or on
  // an earlier one: then no version is read twice, however often an inspection is cut short.
  virtual std::unique_ptr<InspectionCursor> Inspect(const ReadContext& context,
                                                    const store::DocumentKey& document,
                                                    const Head* head, int64_t first,
                                                    InspectionStatePtr state) const = 0;
};

// One line of strategies.def. `id` is the number in stored collection records and in
// strata.v1.Strategy.
struct StrategyEntry {
  int32_t id;
  std::string_view name;  // as on command lines: "full-copies"
  std::unique_ptr<Strategy> (*make)(const StrategyOptions& options);
};

// All strategies, in the order of strategies.def.
const std::vector<StrategyEntry>& AllStrategies();

// Null if there is none of that name or number.
const StrategyEntry* FindStrategy(std::string_view name);
const StrategyEntry* FindStrategy(int32_t id);

}  // namespace strata::versioning
