#include "schemas/versioning/batch_get.h"

#include <utility>

#include "schemas/base/field_checks.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/one_moment.h"

namespace strata::versioning {
namespace {

absl::Status Validate(const std::string& collection, const std::vector<std::string>& ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    RETURN_IF_ERROR(ValidateName(Element("ids", i), ids[i]));
  }
  return ValidateName("collection", collection);
}

}  // namespace

BatchGetCursor::BatchGetCursor(store::Store& store, Collections& collections,
                               std::string collection, std::vector<std::string> ids)
    : CollectionWalk(store, collections, collection), ids_(std::move(ids)) {
  Refuse(Validate(collection, ids_));
}

StoredVersion* BatchGetCursor::version() {
  return head_ && !head_->version.deleted() ? &head_->version : nullptr;
}

absl::Status BatchGetCursor::Begin() {
  if (reader().context().capabilities.snapshots) return absl::OkStatus();
  first_ = next_;
  const auto collect = [&]() -> absl::StatusOr<std::vector<Visible>> {
    std::vector<Visible> seen;
    const Collection& collection = reader().collection();
    for (size_t i = first_; i < ids_.size(); ++i) {
      const store::DocumentKey document{collection.incarnation, ids_[i]};
      ASSIGN_OR_RETURN(const std::optional<Head> head,
                       collection.strategy->ReadHead(reader().context(), document));
      seen.emplace_back();
      if (!head) continue;
      ASSIGN_OR_RETURN(seen.back(),
                       FindVisible(reader().context(), document, head->version.header));
    }
    return seen;
  };
  const auto same = [](const Visible& a, const Visible& b) { return a.version == b.version; };
  ASSIGN_OR_RETURN(moment_, CollectOneMoment(collect, same));
  return absl::OkStatus();
}

// The head, with the version to be given in its place; nothing if that is none.
absl::StatusOr<std::optional<Head>> BatchGetCursor::ReadVisible(const std::string& id) const {
  const Collection& collection = reader().collection();
  const ReadContext& context = reader().context();
  const store::DocumentKey document{collection.incarnation, id};
  ASSIGN_OR_RETURN(std::optional<Head> head, collection.strategy->ReadHead(context, document));
  if (!head) return std::nullopt;
  if (context.capabilities.snapshots) {
    ASSIGN_OR_RETURN(const bool visible,
                     ShowVisible(context, *collection.strategy, document, *head));
    if (!visible) return std::nullopt;
    return head;
  }
  const Visible& given = moment_[next_ - first_];
  if (given.version == 0) return std::nullopt;
  if (given.version != head->version.header.version) {
    ASSIGN_OR_RETURN(head->version, collection.strategy->ReadVersion(
                                        context, document, *head, given.version, Part::kContent));
  }
  head->version.pending_transaction_id = given.pending_transaction_id;
  return head;
}

absl::StatusOr<bool> BatchGetCursor::Advance() {
  if (std::exchange(stands_, false)) ++next_;
  if (next_ == ids_.size()) return false;
  ASSIGN_OR_RETURN(head_, ReadVisible(ids_[next_]));
  stands_ = true;
  return true;
}

}  // namespace strata::versioning
