#include "schemas/versioning/collection_count.h"

#include <memory>
#include <string>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/collection_record.h"

namespace strata::versioning {

absl::Status CollectionCount::Begin() {
  const std::lock_guard lock(mutex_);
  return BeginLocked();
}

absl::Status CollectionCount::BeginLocked() {
  if (count_) return absl::OkStatus();
  int64_t count = 0;
  const std::unique_ptr<store::Reader> snapshot = store_.Snapshot();
  const auto records = snapshot->Scan(store::Keyspace::kCollections, {});
  for (; records->Valid(); records->Next()) {
    const store::Record record{std::string(records->value()), records->stamp(), 0};
    const absl::StatusOr<CollectionRecord> decoded =
        CollectionRecord::Decode(records->key(), record);
    // A damaged one is there; whoever reads it says what is wrong.
    count += decoded.ok() && decoded->deleted ? 0 : 1;
  }
  RETURN_IF_ERROR(records->status());
  count_ = count;
  return absl::OkStatus();
}

absl::Status CollectionCount::CheckLocked(int64_t count) const {
  if (*count_ + count <= most_) return absl::OkStatus();
  return Error(ErrorReason::kCollectionLimit,
               "there are " + std::to_string(*count_) + " collections, and the limit is " +
                   std::to_string(most_) + "; delete some, or keep more in each")
      .With("limit", most_);
}

absl::Status CollectionCount::Check(int64_t count) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(BeginLocked());
  return CheckLocked(count);
}

absl::Status CollectionCount::Add() {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(BeginLocked());
  RETURN_IF_ERROR(CheckLocked(1));
  ++*count_;
  return absl::OkStatus();
}

void CollectionCount::Remove(int64_t count) {
  const std::lock_guard lock(mutex_);
  if (count_) *count_ -= count;
}

}  // namespace strata::versioning
