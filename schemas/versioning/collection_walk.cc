#include "schemas/versioning/collection_walk.h"

#include <utility>

#include "schemas/versioning/document_errors.h"

namespace strata::versioning {
namespace {

// Whoever deletes and makes collections faster than they are read has it so.
constexpr int kReadAttempts = 3;

}  // namespace

CollectionReader::CollectionReader(store::Store& store, Collections& collections,
                                   const ReadLimits& limits)
    : store_(store),
      collections_(collections),
      limits_(limits),
      capabilities_(store.capabilities()) {}

absl::Status CollectionReader::Open(std::string_view name) {
  ++attempts_;
  collection_.reset();
  context_.reset();
  reader_ = store_.Snapshot();
  context_.emplace(ReadContext{*reader_, capabilities_, &limits_});
  ASSIGN_OR_RETURN(collection_, collections_.Require(*reader_, name));
  return absl::OkStatus();
}

absl::Status CollectionReader::ToTryAgain(absl::Status failure) const {
  const bool may_have_been_swept =
      collection_ && failure.code() == absl::StatusCode::kDataLoss && !capabilities_.snapshots;
  if (!may_have_been_swept) return failure;
  ASSIGN_OR_RETURN(const CollectionPtr now, collections_.Require(store_, collection_->name));
  if (now->incarnation == collection_->incarnation || attempts_ == kReadAttempts) return failure;
  return absl::OkStatus();
}

CollectionWalk::CollectionWalk(store::Store& store, Collections& collections,
                               std::string collection, StopCheck stopped, int64_t incarnation)
    : name_(std::move(collection)),
      limits_{std::move(stopped)},
      reader_(store, collections, limits_),
      incarnation_(incarnation) {}

void CollectionWalk::Refuse(absl::Status refusal) {
  status_ = std::move(refusal);
  ended_ = !status_.ok();
}

bool CollectionWalk::Next() {
  while (!ended_) {
    absl::StatusOr<bool> moved = BeginAndAdvance();
    if (moved.ok()) {
      ended_ = !*moved;
      incarnation_ = reader_.collection().incarnation;
      return *moved;
    }
    LetGo();
    begun_ = false;
    Refuse(reader_.ToTryAgain(std::move(moved).status()));
  }
  return false;
}

absl::StatusOr<bool> CollectionWalk::BeginAndAdvance() {
  if (!begun_) {
    RETURN_IF_ERROR(reader_.Open(name_));
    const int64_t found = reader_.collection().incarnation;
    if (incarnation_ != 0 && found != incarnation_) return CollectionNotFound(name_);
    RETURN_IF_ERROR(Begin());
    begun_ = true;
  }
  return Advance();
}

}  // namespace strata::versioning
