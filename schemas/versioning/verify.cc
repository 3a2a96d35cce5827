#include "schemas/versioning/verify.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/store/key_codec.h"
#include "schemas/versioning/document_errors.h"
#include "schemas/versioning/ledger_floor.h"
#include "schemas/versioning/snapshot_budget.h"
#include "schemas/versioning/verify_document.h"
#include "schemas/versioning/verify_ledger.h"

namespace strata::versioning {
namespace {

using store::Keyspace;

constexpr std::chrono::milliseconds kStep{100};
// Versions, requests or ledger entries that are checked on one snapshot.
constexpr int64_t kItemsMax = 1000;
// A step ends with about so many findings, so that it fits a message.
constexpr size_t kFindingsMax = 1000;
// Without snapshots: a suspect counts when it was seen so often in a row, the head unmoved; after
// so many looks at a document that does not rest, what all of them saw counts.
constexpr int kLooksInARow = 3;
constexpr int kLooksMax = 10;
// So often a repair that lost its guard is tried anew, on another look.
constexpr int kRepairsMax = 3;

bool IsSame(const Finding& a, const Finding& b) {
  return a.kind == b.kind && a.version == b.version && a.problem == b.problem;
}

bool IsSame(const std::vector<Finding>& a, const std::vector<Finding>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Finding& x, const Finding& y) { return IsSame(x, y); });
}

// Leaves in `found` what `others` has too.
void Intersect(const std::vector<Finding>& others, std::vector<Finding>& found) {
  std::erase_if(found, [&](const Finding& one) {
    return std::none_of(others.begin(), others.end(),
                        [&](const Finding& other) { return IsSame(one, other); });
  });
}

// Moves them to what the caller is told, who has no use for the writes.
void Tell(std::vector<Finding> found, std::vector<Finding>& findings) {
  for (Finding& one : found) {
    one.repair = store::WriteBatch();
    findings.push_back(std::move(one));
  }
}

// The ids of all that is stored of an incarnation, in their order: the union over their keyspaces,
// by seeking from id to id.
class IdWalk {
 public:
  IdWalk(const store::Reader& reader, int64_t incarnation)
      : prefix_size_(store::IncarnationRange(incarnation).begin.size()) {
    for (size_t i = 0; i < kKeyspaces.size(); ++i) {
      cursors_[i] = reader.Scan(kKeyspaces[i], store::IncarnationRange(incarnation));
    }
  }

  // The first id whose keys are at or after `from`, which moves past them; empty: the key at
  // `from` names no document. Nothing at the end.
  absl::StatusOr<std::optional<std::string>> Next(std::string& from) {
    const store::Cursor* first = nullptr;
    for (const auto& cursor : cursors_) {
      if (!cursor->Valid() || cursor->key() < from) cursor->Seek(from);
      if (!cursor->Valid()) {
        RETURN_IF_ERROR(cursor->status());
      } else if (first == nullptr || cursor->key() < first->key()) {
        first = cursor.get();
      }
    }
    if (first == nullptr) return std::nullopt;
    const std::string key(first->key());
    const size_t end = key.find('\0', prefix_size_);
    const std::string id = key.substr(prefix_size_, end - prefix_size_);
    if (end == std::string::npos) {
      from = key + '\0';
      return std::string();
    }
    from = store::PrefixEnd(std::string_view(key).substr(0, end + 1));
    return ValidateName("id", id).ok() ? id : std::string();
  }

 private:
  const size_t prefix_size_;
  static constexpr auto kKeyspaces = store::KeyspacesWith<&store::KeyspaceTraits::of_documents>();

  std::array<std::unique_ptr<store::Cursor>, kKeyspaces.size()> cursors_;
};

}  // namespace

class Verification::Walk {
 public:
  Walk(store::Store& store, Collections& collections, const Clock& clock, VerifyQuery query,
       VerifyPlace place)
      : store_(store),
        capabilities_(store.capabilities()),
        collections_(collections),
        clock_(clock),
        query_(std::move(query)),
        at_(std::move(place)) {
    if (at_.ledger) ledger_.emplace(*at_.ledger, query_.expect_head);
    at_.ledger.reset();
    if (LedgerAlone() && at_.stage == Stage::kDocuments) at_.stage = Stage::kLedger;
  }

  absl::StatusOr<VerifyStep> Next();

 private:
  using Time = std::chrono::steady_clock::time_point;
  using Stage = VerifyPlace::Stage;

  bool LedgerAlone() const { return query_.collection.empty() && query_.expect_head; }
  absl::Status CheckQuery() const;
  absl::Status Pass(Time until, std::vector<Finding>& findings);
  absl::Status FindCollection(const store::Reader& reader);
  absl::Status CheckDocuments(const ReadContext& context, SnapshotBudget& budget,
                              std::vector<Finding>& findings, std::vector<Finding>& to_repair);
  absl::Status NextDocument(IdWalk& ids, std::vector<Finding>& findings);
  absl::Status EndDocument();
  absl::Status LookAgain(const ReadContext& context, int64_t items, std::vector<Finding>& found);
  absl::Status Repair(std::vector<Finding> found, std::vector<Finding>& findings);
  VerifyPlace Place() const;

  store::Store& store_;
  const store::Capabilities capabilities_;
  Collections& collections_;
  const Clock& clock_;
  const VerifyQuery query_;

  CollectionPtr collection_;
  VerifyPlace at_;                      // but for what is under way; its document is yet to begin
  std::optional<DocumentCheck> check_;  // under way
  std::optional<DocumentCheck> begin_;  // where its last run began
  int repairs_lost_ = 0;
  std::optional<LedgerCheck> ledger_;
};

absl::StatusOr<VerifyStep> Verification::Walk::Next() {
  RETURN_IF_ERROR(CheckQuery());
  VerifyStep step;
  const Time until = clock_.SteadyNow() + kStep;
  do {
    RETURN_IF_ERROR(Pass(until, step.findings));
  } while (at_.stage != Stage::kDone && step.findings.size() < kFindingsMax &&
           clock_.SteadyNow() < until);
  at_.broken += std::count_if(
      step.findings.begin(), step.findings.end(),
      [](const Finding& finding) { return !finding.recoverable && !finding.repaired; });
  // Only now: the ledger might have named it.
  if (at_.stage == Stage::kDone && !query_.id.empty() && at_.documents == 0 && at_.broken == 0 &&
      step.findings.empty()) {
    return DocumentNotFound({query_.collection, query_.id});
  }
  step.place = Place();
  step.documents = at_.documents;
  step.versions = at_.versions + (check_ ? check_->place().versions : 0);
  step.ledger_entries =
      ledger_ && query_.id.empty() ? ledger_->place().entries : at_.ledger_entries;
  step.complete = at_.stage == Stage::kDone;
  return step;
}

absl::Status Verification::Walk::CheckQuery() const {
  if (query_.expect_head && !capabilities_.commit_positions) {
    return Error(ErrorReason::kUnsupportedByEngine,
                 "this engine numbers no commits, so its ledger has no head")
        .With("capability", "commit_positions");
  }
  if (!LedgerAlone()) RETURN_IF_ERROR(ValidateName("collection", query_.collection));
  if (LedgerAlone() && !query_.id.empty()) {
    return Error(ErrorReason::kInvalidField, "id names a document of a collection; name that, too")
        .With("field", "id");
  }
  return query_.id.empty() ? absl::OkStatus() : ValidateName("id", query_.id);
}

VerifyPlace Verification::Walk::Place() const {
  VerifyPlace place = at_;
  if (check_) place.document = check_->place();
  if (ledger_) place.ledger = ledger_->place();
  return place;
}

// Checks on, on one snapshot, and repairs when it is let go.
absl::Status Verification::Walk::Pass(Time until, std::vector<Finding>& findings) {
  // Before the snapshot, which then holds all commits up to it.
  if (at_.stage == Stage::kLedger && !ledger_) {
    VerifyPlace::Ledger begin{.last = store_.LastPosition(), .next = at_.ledger_from, .before = {}};
    if (begin.next == 0) begin.before = store::kNoHash;
    ledger_.emplace(begin, query_.expect_head);
  }
  std::vector<Finding> to_repair;
  {
    const std::unique_ptr<store::Reader> reader = store_.Snapshot();
    // Said at once, and not after hours.
    if (query_.expect_head && !ledger_) {
      ASSIGN_OR_RETURN(const LedgerFloor floor, ReadLedgerFloor(*reader));
      RETURN_IF_ERROR(CheckKept(floor, "expect_head.position", query_.expect_head->position));
    }
    if (!LedgerAlone()) RETURN_IF_ERROR(FindCollection(*reader));
    const ReadContext context{*reader, capabilities_};
    SnapshotBudget budget(clock_, until, kItemsMax);
    if (at_.stage == Stage::kDocuments) {
      RETURN_IF_ERROR(CheckDocuments(context, budget, findings, to_repair));
    } else if (at_.stage == Stage::kLedger) {
      RETURN_IF_ERROR(ledger_->Run(context, {collection_.get(), query_.id}, budget, findings));
      if (ledger_->complete()) at_.stage = Stage::kDone;
    }
  }
  if (to_repair.empty()) return absl::OkStatus();
  return Repair(std::move(to_repair), findings);
}

absl::Status Verification::Walk::FindCollection(const store::Reader& reader) {
  ASSIGN_OR_RETURN(CollectionPtr found, collections_.Require(reader, query_.collection));
  // Deleted and made again since: the one that was asked for is gone.
  if (at_.incarnation != 0 && at_.incarnation != found->incarnation) {
    return CollectionNotFound(query_.collection);
  }
  at_.incarnation = found->incarnation;
  collection_ = std::move(found);
  return absl::OkStatus();
}

// Until the budget is used up, the collection is through, or a document is to be repaired.
absl::Status Verification::Walk::CheckDocuments(const ReadContext& context, SnapshotBudget& budget,
                                                std::vector<Finding>& findings,
                                                std::vector<Finding>& to_repair) {
  IdWalk ids(context.reader, collection_->incarnation);
  if (at_.document) check_.emplace(collection_, *std::move(at_.document));
  at_.document.reset();
  do {
    if (!check_) {
      RETURN_IF_ERROR(NextDocument(ids, findings));
      if (at_.stage != Stage::kDocuments) return absl::OkStatus();
      if (!check_) continue;
    }
    begin_ = check_;
    std::vector<Finding> found;
    const int64_t taken = budget.taken();
    RETURN_IF_ERROR(check_->Run(context, budget, found));
    if (!found.empty() && !capabilities_.snapshots) {
      RETURN_IF_ERROR(LookAgain(context, budget.taken() - taken, found));
    }
    const bool repairs = std::any_of(found.begin(), found.end(), [](const Finding& one) {
      return !one.repair.writes().empty();
    });
    if (query_.repair && repairs) {
      to_repair = std::move(found);
      return absl::OkStatus();
    }
    Tell(std::move(found), findings);
    if (check_->complete()) RETURN_IF_ERROR(EndDocument());
  } while (!budget.used_up() && findings.size() < kFindingsMax);
  return absl::OkStatus();
}

// Sets `check_`, or the stage after the documents; neither for a key that names none.
absl::Status Verification::Walk::NextDocument(IdWalk& ids, std::vector<Finding>& findings) {
  if (!query_.id.empty()) {
    check_.emplace(collection_, VerifyPlace::Document{.id = query_.id});
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::optional<std::string> id, ids.Next(at_.next_key));
  if (!id) {
    at_.stage = capabilities_.commit_positions ? Stage::kLedger : Stage::kDone;
  } else if (id->empty()) {
    Finding finding;
    finding.kind = FindingKind::kOrphan;
    finding.problem = "a record of the collection stands under a key that names no document";
    findings.push_back(std::move(finding));
  } else {
    check_.emplace(collection_, VerifyPlace::Document{.id = *id});
  }
  return absl::OkStatus();
}

absl::Status Verification::Walk::EndDocument() {
  if (!query_.id.empty()) {
    at_.stage = capabilities_.commit_positions ? Stage::kLedger : Stage::kDone;
    // An entry of a version above the head stands after the head's own.
    at_.ledger_from = query_.expect_head ? 0 : check_->head_position();
    at_.ledger_entries = check_->place().ledger_entries;
  }
  at_.documents += check_->place().seen ? 1 : 0;
  at_.versions += check_->place().versions;
  check_.reset();
  return absl::OkStatus();
}

// Without snapshots, a writer in between makes a document look broken that is not.
absl::Status Verification::Walk::LookAgain(const ReadContext& context, int64_t items,
                                           std::vector<Finding>& found) {
  std::vector<Finding> always = found;
  int in_a_row = 1;
  for (int look = 1; look < kLooksMax && in_a_row < kLooksInARow && !found.empty(); ++look) {
    DocumentCheck again = *begin_;
    std::vector<Finding> now;
    SnapshotBudget same(clock_, Time::max(), items);
    RETURN_IF_ERROR(again.Run(context, same, now));
    const bool unmoved = again.head() == check_->head() && IsSame(now, found);
    in_a_row = unmoved ? in_a_row + 1 : 1;
    Intersect(now, always);
    check_ = std::move(again);
    found = std::move(now);
  }
  if (in_a_row < kLooksInARow) Intersect(always, found);
  // Nor is one broken whose collection is being swept.
  return found.empty() ? absl::OkStatus() : FindCollection(store_);
}

absl::Status Verification::Walk::Repair(std::vector<Finding> found,
                                        std::vector<Finding>& findings) {
  bool lost = false;
  // One after the other, in the order of versions: what a crash leaves in between is what it may
  // leave anyway.
  for (Finding& one : found) {
    if (one.repair.writes().empty()) continue;
    const auto committed = std::make_shared<std::promise<store::CommitResult>>();
    // What it does is right for as long as its guards hold.
    one.repair.MarkAsBackground();
    store_.Commit(std::exchange(one.repair, {}),
                  [committed](const store::CommitResult& result) { committed->set_value(result); });
    const store::CommitResult result = committed->get_future().get();
    RETURN_IF_ERROR(result.status);
    one.repaired = result.committed;
    lost |= !result.committed;
  }
  if (lost && ++repairs_lost_ < kRepairsMax) {
    // Somebody else moved on, and perhaps repaired it: look again.
    std::erase_if(found, [](const Finding& one) { return !one.repaired; });
    Tell(std::move(found), findings);
    check_ = begin_;
    return absl::OkStatus();
  }
  repairs_lost_ = 0;
  Tell(std::move(found), findings);
  return check_->complete() ? EndDocument() : absl::OkStatus();
}

Verification::Verification(store::Store& store, Collections& collections, const Clock& clock,
                           VerifyQuery query, VerifyPlace place)
    : walk_(std::make_unique<Walk>(store, collections, clock, std::move(query), std::move(place))) {
}

Verification::~Verification() = default;
Verification::Verification(Verification&&) noexcept = default;
Verification& Verification::operator=(Verification&&) noexcept = default;

absl::StatusOr<VerifyStep> Verification::Next() { return walk_->Next(); }

absl::Status BrokenBy(const VerifyQuery& query, const Finding* first, int64_t findings,
                      int64_t before) {
  std::string message = "the stored data is not whole: ";
  if (first == nullptr) {
    message += std::to_string(before) + " findings before the verification was resumed, none since";
  } else {
    if (!first->id.empty()) {
      message += "document " + first->id;
      if (first->version != 0) message += ", version " + std::to_string(first->version);
      message += ": ";
    }
    message += first->problem;
  }
  if (first != nullptr && findings > 1) {
    message += " (" + std::to_string(findings) + " such findings";
    if (before > 0) {
      message += ", " + std::to_string(before) + " before the verification was resumed";
    }
    message += ")";
  }
  Error error(ErrorReason::kChainBroken, message);
  error.With("collection", std::string_view(query.collection)).With("findings", findings);
  if (first != nullptr) {
    error.With("id", std::string_view(first->id)).With("version", first->version);
  }
  return error;
}

}  // namespace strata::versioning
