// Collections: their strategies and sizes, and the verification of stored data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "strata/client/range.h"

namespace strata::client {

class Core;

enum class Strategy {
  kUnspecified = 0,  // in a request: the server's default
  kFullCopies = 1,
  kCurrentFlag = 2,
  kEmbeddedHistory = 3,
  kShadowCollection = 4,
  kDeltas = 5,
};

struct CollectionOptions {
  int32_t keyframe_interval = 0;  // of kDeltas; 0: the server's default
};

struct KeyspaceSize {
  std::string keyspace = {};
  int64_t records = 0;
  int64_t bytes = 0;
};

// Estimated: right in order of magnitude.
struct CollectionStatistics {
  int64_t documents = 0;
  int64_t versions = 0;
  std::vector<KeyspaceSize> keyspaces = {};
};

// A collection as the server describes it; its documents are Client::collection.
struct CollectionInfo {
  std::string name = {};
  Strategy strategy = Strategy::kUnspecified;
  CollectionOptions options = {};
  absl::Time create_time = absl::InfinitePast();
  std::optional<CollectionStatistics> statistics = {};  // only from Get
  int64_t incarnation = 0;
};

// The end of the ledger at one moment: a proof of every entry up to it.
struct LedgerHead {
  int64_t position = 0;
  std::string hash = {};  // 32 bytes
};

enum class FindingKind {
  kUnspecified = 0,
  kVersionMissing = 1,
  kRecordCorrupt = 2,
  kContentMismatch = 3,
  kChainBroken = 4,
  kOrphan = 5,
  kWrongFlag = 6,
  kEarlyCopy = 7,
  kWrongCopy = 8,
  kLedgerEntryMissing = 9,
  kLedgerEntryOrphan = 10,
  kLedgerMismatch = 11,
  kRequestMismatch = 12,
  kLedgerBroken = 13,
  kLedgerHeadMismatch = 14,
  kRequestMissing = 15,
  kCollectionMissing = 16,
};

// One fault in the stored data.
struct Finding {
  std::string id = {};
  int64_t version = 0;  // 0: the document as a whole
  FindingKind kind = FindingKind::kUnspecified;
  std::string problem = {};
  bool recoverable = false;
  bool repaired = false;
  int64_t commit_position = 0;
};

// The progress of a verification.
struct VerifyProgress {
  std::vector<Finding> findings = {};  // since the progress before
  int64_t documents = 0;
  int64_t versions = 0;
  int64_t ledger_entries = 0;
  bool complete = false;  // the last one
  std::string resume_token = {};
};

struct CreateCollectionOptions {
  Strategy strategy = Strategy::kUnspecified;
  std::optional<CollectionOptions> options = {};
};

struct DeleteCollectionOptions {
  bool force = false;
  std::string request_id = {};  // empty: a random one
  int64_t incarnation = 0;
};

struct ListCollectionsOptions {
  int32_t page_size = 0;
};

struct VerifyOptions {
  std::string id = {};  // empty: all documents
  bool repair = false;
  std::optional<LedgerHead> expect_head = {};
};

// Thread-safe.
class Collections {
 public:
  explicit Collections(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  absl::StatusOr<CollectionInfo> Create(const std::string& name,
                                        const CreateCollectionOptions& options = {}) const;
  absl::StatusOr<CollectionInfo> Get(const std::string& name) const;
  Range<CollectionInfo> List(const ListCollectionsOptions& options = {}) const;
  // Answers whether an earlier call with this request id did it.
  absl::StatusOr<bool> Delete(const std::string& name,
                              const DeleteCollectionOptions& options = {}) const;
  absl::StatusOr<LedgerHead> GetLedgerHead() const;
  // With an empty `name`: the ledger alone. A broken stream is resumed. status() is DATA_LOSS /
  // CHAIN_BROKEN at the end if a finding is neither recoverable nor repaired.
  Range<VerifyProgress> Verify(const std::string& name, const VerifyOptions& options = {}) const;

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace strata::client
