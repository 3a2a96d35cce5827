// How versions become records: the strategy interface. Read this header second, after
// schemas/store/store.h.
//
// A strategy reads records back as versions, and plans the records of new versions. It never
// commits, owns no state and retries nothing: Plan is a pure function of what was read. Strategies
// differ only in records; all give identical answers.
// tests/conformance/strategy_conformance_test.cc is this header's specification.
//
// Each strategy's .cc opens with its records, its order of writes, what a crash between two of them
// leaves, and who repairs it. The layouts are those of "How to Track Versions with MongoDB"
// (askasya.com, 2014), which names each a choice and says what it costs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
#include "schemas/versioning/read_limits.h"
#include "schemas/versioning/record_codec.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

// Settings of a collection that its strategy reads, by name. Never change.
using StrategyOptions = std::map<std::string, int32_t, std::less<>>;

// An option that a strategy has. Values are greater than 0, which on the wire means unset.
struct StrategyOption {
  std::string_view name;  // of its field in strata.v1.CollectionOptions and its member in records
  int32_t least = 1;
  int32_t most = 1;
  int32_t default_value = 1;
  std::string_view meaning;  // for people
};

// What a strategy reads through: a snapshot, or the live store of an engine that has none.
struct ReadContext {
  const store::Reader& reader;
  store::Capabilities capabilities;
  const ReadLimits* limits = nullptr;  // null: none; outlives what reads through the context
};

// What one strategy alone understands and others carry for it. Never changes, so whoever copies the
// pointer has the same once more.
class StrategyState {
 public:
  virtual ~StrategyState() = default;
};
using StrategyStatePtr = std::shared_ptr<const StrategyState>;

// The current version (a deletion included) as read, with what the next plan must know of its
// records.
struct Head {
  StoredVersion version;   // with content
  store::Stamp stamp = 0;  // of the record that holds it
  Bytes record;            // that record's bytes
  StrategyStatePtr state;  // what PrepareToPlan read; null before, and where nothing is needed
};

// Versions `first` to `last`, both included, upward or downward; none if `first` is the greater.
// REQUIRES: 1 <= first, last <= the head's version.
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

// What Inspect says of one version, or of versions that are all missing.
struct InspectedVersions {
  int64_t first = 0;                     // 0: the document as a whole
  int64_t last = 0;                      // greater than `first`: versions that are all missing
  std::optional<StoredVersion> version;  // its header, if that could be read
  std::vector<Finding> findings;         // without id and position, which the caller knows
};

class InspectionCursor : public Cursor<InspectedVersions> {
 public:
  // What an inspection has to know that begins right after the last item; null where nothing.
  virtual StrategyStatePtr state() const { return nullptr; }
};

// Stateless and thread-safe; one object serves all collections with the same options. The context's
// reader and whatever else is handed in by reference must outlive the cursors.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // The current version, or nothing if the document was never written. Linearizable.
  virtual absl::StatusOr<std::optional<Head>> ReadHead(
      const ReadContext& context, const store::DocumentKey& document) const = 0;

  // Reads into `head` what Plan has to know besides the current version. Writers call it between
  // ReadHead and Plan; readers need not.
  virtual absl::Status PrepareToPlan(const ReadContext& /*context*/,
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
  // only with atomic batches) the newest of a document whose head is `head` (prepared; null: never
  // written), and marks the commit point; for an engine with these capabilities. Pure. LAYOUT_LIMIT
  // where the layout cannot hold them.
  virtual absl::Status Plan(const store::DocumentKey& document, const Head* head,
                            std::span<const StoredVersion> next, store::Capabilities capabilities,
                            store::WriteBatch& batch) const = 0;

  // Adds to `batch` the check that fails once the document has another current version than `head`
  // (null: once it was written). REQUIRES: atomic batches.
  virtual void Confirm(const store::DocumentKey& document, const Head* head,
                       store::WriteBatch& batch) const = 0;

  // What is stored of a document, sound or not, upward: versions `first` to the head's, those that
  // are missing in runs; last, if there are any, the findings of the document as a whole. Looks at
  // records that reads do not use too. `head` is null if ReadHead found none or RECORD_CORRUPT.
  // Contents are checked against their hashes here; what versions say of each other is the caller's
  // to judge. Fails only if the store does (STORE_UNAVAILABLE).
  //
  // `state` is null, or that of a cursor that was left right below `first`, on this snapshot or on
  // an earlier one: then no version is read twice, however often an inspection is cut short.
  virtual std::unique_ptr<InspectionCursor> Inspect(const ReadContext& context,
                                                    const store::DocumentKey& document,
                                                    const Head* head, int64_t first,
                                                    StrategyStatePtr state) const = 0;
};

// One line of strategies.def. `id` is the number in stored collection records and in
// strata.v1.Strategy.
struct StrategyEntry {
  int32_t id;
  std::string_view name;  // as on command lines: "full-copies"
  std::span<const StrategyOption> options;
  // The options that are not given have their defaults. REQUIRES: CompleteOptions takes them.
  std::unique_ptr<Strategy> (*make)(const StrategyOptions& options);
};

// Of collections that name none, unless the caller says another.
inline constexpr std::string_view kDefaultStrategy = "deltas";

// All strategies, in the order of strategies.def.
const std::vector<StrategyEntry>& AllStrategies();

// The value that is given, or the option's own.
int32_t ValueOf(const StrategyOptions& options, const StrategyOption& option);

// All options of the strategy: those given, and the defaults. INVALID_FIELD with the field
// "options.<name>" for a value out of range, with the metadata "limit", and for an option that the
// strategy does not have.
absl::StatusOr<StrategyOptions> CompleteOptions(const StrategyEntry& strategy,
                                                StrategyOptions given);

// Null if there is none of that name or number.
const StrategyEntry* FindStrategy(std::string_view name);
const StrategyEntry* FindStrategy(int32_t id);

}  // namespace strata::versioning
