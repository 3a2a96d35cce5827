// Documents and their versions.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "strata/client/range.h"
#include "strata/client/value.h"

namespace strata::client {

class Core;
class Watch;
struct WatchOptions;
template <typename T>
class TypedCollection;

// The actor of a change and the reason for it.
struct ChangeInfo {
  std::string actor = {};         // empty: no actor
  std::string on_behalf_of = {};  // empty: for itself
  std::string reason = {};
  std::map<std::string, std::string> labels = {};
};

// One document, as of one version.
struct Document {
  std::string collection = {};
  std::string id = {};
  int64_t version = 0;  // from 1; 0: it was never written
  // Unset: a deletion, or the content was left out.
  std::optional<Value> content = {};
  absl::Time create_time = absl::InfinitePast();
  absl::Time update_time = absl::InfinitePast();
  // A transaction in two phases that wrote the next version and is not decided yet.
  std::string pending_transaction_id = {};
};

// The result of a write.
struct Written {
  Document document = {};
  // How often the server tried to commit; 0 if nothing had to be written.
  int32_t attempts = 0;
  // false: the result equals the current content, and nothing was written.
  bool changed = false;
  // true: an earlier call with this request id did it.
  bool replayed = false;
  // true: the precondition `newer` found the document as new or newer; nothing was written.
  bool stale = false;
  // Position in the store-wide order of commits. 0: nothing was written, or the engine numbers
  // none.
  int64_t commit_position = 0;
};

enum class VersionKind {
  kUnspecified = 0,
  kCreated = 1,
  kUpdated = 2,
  kDeleted = 3,
  kRestored = 4
};
enum class ChangeType { kUnspecified = 0, kAdded = 1, kRemoved = 2, kChanged = 3 };

// One member that differs between two contents.
struct FieldChange {
  std::string path = {};  // a JSON Pointer; empty: the whole document
  ChangeType type = ChangeType::kUnspecified;
  std::optional<Value> before = {};
  std::optional<Value> after = {};
  // true: the values are left out, as they would take more than 3 MiB.
  bool values_omitted = false;
};

// One version of a document.
struct Version {
  int64_t version = 0;
  VersionKind kind = VersionKind::kUnspecified;
  absl::Time commit_time = absl::InfinitePast();
  ChangeInfo change = {};
  std::string request_id = {};
  std::string content_hash = {};  // bytes
  std::string chain_hash = {};    // bytes
  std::optional<Value> content = {};
  std::vector<FieldChange> changes = {};
  // true: there are more changes; Diff has them all.
  bool changes_truncated = false;
  std::string transaction_id = {};
};

// An entry of the ledger.
struct AuditEntry {
  int64_t commit_position = 0;
  int32_t index = 0;  // in the commit
  std::string collection = {};
  std::string id = {};
  Version version = {};
};

// Proof that the writer holds a lease: see LeaseToken in the protos.
struct LeaseToken {
  std::string name = {};
  int64_t token = 0;
  std::optional<int64_t> position = {};
  std::optional<int32_t> index = {};
  std::optional<int64_t> after_position = {};
  std::optional<int32_t> after_index = {};
};

// Lets writes that arrive late, twice or out of order leave no trace: the integer at `path` has to
// be below `value`, which the server sets there.
struct Newer {
  std::string path = {};
  int64_t value = 0;
};

// One change of one member. Values travel as JSON in the end, in which the members of objects are
// sorted; where their order matters, use Replace or Merge.
struct Operation {
  enum class Kind { kSet, kUnset, kIncrement, kAppend, kAppendMissing, kRemoveAll };
  Kind kind = Kind::kSet;
  std::string path = {};  // a JSON Pointer
  Value value = {};       // of kSet and kIncrement
  Array values = {};      // of kAppend, kAppendMissing and kRemoveAll
};
Operation Set(std::string path, Value value);
Operation Unset(std::string path);
Operation Increment(std::string path, Value number);
Operation Append(std::string path, Array values);
Operation AppendMissing(std::string path, Array values);
Operation RemoveAll(std::string path, Array values);

// A change of a content: a replacement, or a merge (RFC 7396) followed by operations.
struct Change {
  std::optional<Value> replace = {};
  std::optional<Value> merge = {};
  std::vector<Operation> operations = {};
};
Change Replace(Value content);
Change Merge(Value content);
Change Patch(std::vector<Operation> operations);

// Options are members that may be left out: `.reason = "sold"`. The protos explain them in full, at
// the fields of the same name. Every write without `actor` takes the client's, and without
// `request_id` a random one.
struct CreateOptions {
  std::string actor = {};
  std::string on_behalf_of = {};
  std::string reason = {};
  std::map<std::string, std::string> labels = {};
  std::string request_id = {};
  bool validate_only = false;
  bool omit_content = false;
  std::optional<LeaseToken> lease = {};
};

struct UpdateOptions {
  std::optional<int64_t> if_version = {};
  std::optional<bool> if_exists = {};
  std::optional<Value> if_matches = {};  // a filter
  std::optional<Newer> newer = {};
  bool allow_missing = false;
  bool keep_unchanged = false;
  int32_t max_attempts = 0;
  std::string actor = {};
  std::string on_behalf_of = {};
  std::string reason = {};
  std::map<std::string, std::string> labels = {};
  std::string request_id = {};
  bool validate_only = false;
  bool omit_content = false;
  std::optional<LeaseToken> lease = {};
};

struct DeleteOptions {
  std::optional<int64_t> if_version = {};
  std::optional<bool> if_exists = {};
  std::optional<Value> if_matches = {};
  std::optional<Newer> newer = {};
  int32_t max_attempts = 0;
  std::string actor = {};
  std::string on_behalf_of = {};
  std::string reason = {};
  std::map<std::string, std::string> labels = {};
  std::string request_id = {};
  bool validate_only = false;
  std::optional<LeaseToken> lease = {};
};

struct RestoreOptions {
  std::optional<int64_t> if_version = {};
  std::optional<bool> if_exists = {};
  std::optional<Value> if_matches = {};
  bool keep_unchanged = false;
  int32_t max_attempts = 0;
  std::string actor = {};
  std::string on_behalf_of = {};
  std::string reason = {};
  std::map<std::string, std::string> labels = {};
  std::string request_id = {};
  bool validate_only = false;
  bool omit_content = false;
  std::optional<LeaseToken> lease = {};
};

struct ModifyOptions {
  std::string actor = {};
  std::string on_behalf_of = {};
  std::string reason = {};
  std::map<std::string, std::string> labels = {};
  std::optional<LeaseToken> lease = {};
};

// At most one of the first three.
struct GetOptions {
  std::optional<int64_t> version = {};
  std::optional<absl::Time> at_time = {};
  std::optional<int64_t> at_position = {};
  std::vector<std::string> fields = {};  // JSON Pointers; empty: all
};

struct HistoryOptions {
  bool oldest_first = false;
  std::optional<int64_t> from_version = {};
  std::optional<absl::Time> from_time = {};
  std::optional<int64_t> to_version = {};
  std::optional<absl::Time> to_time = {};
  bool include_content = false;
  bool include_changes = false;
  std::optional<Value> filter = {};
  int32_t page_size = 0;
};

struct DiffOptions {
  int32_t page_size = 0;
};

struct AuditOptions {
  std::string collection = {};  // empty: all
  std::string id = {};
  std::string actor = {};
  std::vector<VersionKind> kinds = {};
  std::optional<absl::Time> start_time = {};
  std::optional<absl::Time> end_time = {};
  std::string request_id = {};
  std::string transaction_id = {};
  bool include_changes = false;
  bool newest_first = false;
  int32_t page_size = 0;
};

struct ListOptions {
  std::optional<Value> filter = {};
  std::string id_prefix = {};
  bool show_deleted = false;
  std::vector<std::string> fields = {};
  std::optional<absl::Time> at_time = {};
  std::optional<int64_t> at_position = {};
  int32_t page_size = 0;
};

struct BatchGetOptions {
  std::vector<std::string> fields = {};
};

struct BatchGetAnswer {
  std::vector<Document> documents = {};  // in the order of the ids
  std::vector<std::string> missing_ids = {};
};

// Content to content: nothing in: the document is missing or deleted; nothing out: write nothing.
// An error ends Modify, and nothing is written.
using ModifyFunction = std::function<absl::StatusOr<std::optional<Value>>(std::optional<Value>)>;

// The documents of one collection, which need not exist: the first write makes it. A handle, cheap
// to copy, thread-safe. Calls are made again by the rules of clients/README.md, "Repetition".
// …Async calls run in the background; those still under way when the last handle of a client is
// destroyed end with CANCELLED.
class Collection {
 public:
  Collection(std::shared_ptr<Core> core, std::string name);

  const std::string& name() const { return name_; }

  // ALREADY_EXISTS / DOCUMENT_EXISTS. With an empty `id` the server makes one.
  absl::StatusOr<Written> Create(const std::string& id, const Value& content,
                                 const CreateOptions& options = {}) const;
  std::future<absl::StatusOr<Written>> CreateAsync(const std::string& id, const Value& content,
                                                   const CreateOptions& options = {}) const;

  // Nothing: it was never written, or is deleted. Asked for at a version, time or position, what is
  // not there is an error.
  absl::StatusOr<std::optional<Document>> Get(const std::string& id,
                                              const GetOptions& options = {}) const;
  std::future<absl::StatusOr<std::optional<Document>>> GetAsync(
      const std::string& id, const GetOptions& options = {}) const;

  // At most 1000 ids, none twice; requests documents again that did not fit into one answer.
  absl::StatusOr<BatchGetAnswer> BatchGet(std::vector<std::string> ids,
                                          const BatchGetOptions& options = {}) const;

  // `Update("moby", Patch({Increment("/stock", -1)}), {.reason = "sold"})`.
  absl::StatusOr<Written> Update(const std::string& id, const Change& change,
                                 const UpdateOptions& options = {}) const;
  std::future<absl::StatusOr<Written>> UpdateAsync(const std::string& id, const Change& change,
                                                   const UpdateOptions& options = {}) const;

  // Reads, calls `function`, and writes its answer. If another writer was faster, it begins again,
  // so that `function` may be called several times. If nothing was written, `changed` is false and
  // `document` is the one that was read.
  absl::StatusOr<Written> Modify(const std::string& id, const ModifyFunction& function,
                                 const ModifyOptions& options = {}) const;
  // In a thread of its own, which the future's destructor waits for.
  std::future<absl::StatusOr<Written>> ModifyAsync(const std::string& id, ModifyFunction function,
                                                   const ModifyOptions& options = {}) const;

  absl::StatusOr<Written> Delete(const std::string& id, const DeleteOptions& options = {}) const;
  std::future<absl::StatusOr<Written>> DeleteAsync(const std::string& id,
                                                   const DeleteOptions& options = {}) const;

  // Makes the content of `version` the newest.
  absl::StatusOr<Written> Restore(const std::string& id, int64_t version,
                                  const RestoreOptions& options = {}) const;
  std::future<absl::StatusOr<Written>> RestoreAsync(const std::string& id, int64_t version,
                                                    const RestoreOptions& options = {}) const;

  Range<Version> History(const std::string& id, const HistoryOptions& options = {}) const;
  // From `from_version` to `to_version`; 0: the current one.
  Range<FieldChange> Diff(const std::string& id, int64_t from_version, int64_t to_version = 0,
                          const DiffOptions& options = {}) const;
  // Of this collection; options.collection is ignored.
  Range<AuditEntry> Audit(AuditOptions options) const;
  Range<AuditEntry> Audit() const;
  Range<Document> List(const ListOptions& options = {}) const;
  // Of this collection (feed.h).
  client::Watch Watch(WatchOptions options) const;

  // The same documents as T's (typed.h).
  template <typename T>
  TypedCollection<T> Of() const {
    return TypedCollection<T>(*this);
  }

 private:
  std::shared_ptr<Core> core_;
  std::string name_;
};

}  // namespace strata::client
