#include "schemas/versioning/batch_get.h"

#include <utility>

#include "schemas/base/status_macros.h"
#include "schemas/versioning/names.h"

namespace strata::versioning {
namespace {

absl::Status Validate(const std::string& collection, const std::vector<std::string>& ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    RETURN_IF_ERROR(ValidateName("ids[" + std::to_string(i) + "]", ids[i]));
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

absl::StatusOr<bool> BatchGetCursor::Advance() {
  if (std::exchange(stands_, false)) ++next_;
  if (next_ == ids_.size()) return false;
  const Collection& collection = reader().collection();
  ASSIGN_OR_RETURN(head_, collection.strategy->ReadHead(reader().context(),
                                                        {collection.incarnation, ids_[next_]}));
  stands_ = true;
  return true;
}

}  // namespace strata::versioning
