#include "schemas/versioning/copy.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/collection_walk.h"

namespace strata::versioning {
namespace {

CopyQuery InOrder(CopyQuery query) {
  std::sort(query.collections.begin(), query.collections.end());
  query.collections.erase(std::unique(query.collections.begin(), query.collections.end()),
                          query.collections.end());
  return query;
}

}  // namespace

CopyCursor::CopyCursor(store::Store& store, Collections& collections, const Clock& clock,
                       CopyQuery query)
    : store_(store), collections_(collections), clock_(clock), query_(InOrder(std::move(query))) {}

bool CopyCursor::Next() {
  if (ended_) return false;
  const absl::StatusOr<bool> moved = Advance();
  status_ = moved.status();
  ended_ = !moved.ok() || !*moved;
  return !ended_;
}

absl::StatusOr<bool> CopyCursor::Advance() {
  while (true) {
    if (documents_ != nullptr) {
      if (documents_->Next()) return true;
      // Deleted since, or not there yet.
      const absl::Status& status = documents_->status();
      if (ReasonOf(status) != ErrorReason::kCollectionNotFound) RETURN_IF_ERROR(status);
      if (documents_->resume_after()) return false;
      examined_ += documents_->examined() + 1;
      examined_bytes_ += documents_->examined_bytes();
    }
    ASSIGN_OR_RETURN(std::optional<std::string> collection, NextCollection());
    if (!collection) {
      documents_.reset();
      return false;
    }
    if (examined_ >= kExaminedMax || examined_bytes_ >= query_.examined_bytes_max) {
      documents_.reset();
      unopened_ = std::move(collection);
      return false;
    }
    std::string after_id = *collection == query_.after.collection ? query_.after.id : "";
    Open(*std::move(collection), std::move(after_id));
  }
}

// The first one not before the place, then those behind it.
absl::StatusOr<std::optional<std::string>> CopyCursor::NextCollection() {
  const std::string& after = query_.after.collection;
  if (!query_.collections.empty()) {
    const auto& named = query_.collections;
    while (next_named_ < named.size() && named[next_named_] < after) ++next_named_;
    if (next_named_ == named.size()) return std::nullopt;
    return named[next_named_++];
  }
  if (!std::exchange(begun_, true) && !after.empty()) return after;
  if (!names_) names_.emplace(collections_.List(after));
  if (names_->Next()) return names_->collection().name;
  RETURN_IF_ERROR(names_->status());
  return std::nullopt;
}

void CopyCursor::Open(std::string collection, std::string after_id) {
  ListQuery list;
  list.collection = std::move(collection);
  list.id_prefix = query_.id_prefix;
  list.after_id = std::move(after_id);
  list.filter = query_.filter;
  list.at_position = query_.at_position;
  list.as_written = true;
  list.examined_bytes_max = query_.examined_bytes_max - examined_bytes_;
  list.stopped = query_.stopped;
  documents_ = std::make_unique<ListCursor>(store_, collections_, clock_, std::move(list));
}

std::optional<CopyPlace> CopyCursor::resume_after() const {
  if (unopened_) return CopyPlace{*unopened_, ""};
  if (documents_ == nullptr) return std::nullopt;
  std::optional<std::string> id = documents_->resume_after();
  if (!id) return std::nullopt;
  return CopyPlace{collection(), *std::move(id)};
}

}  // namespace strata::versioning
