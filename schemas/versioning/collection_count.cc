#include "schemas/versioning/collection_count.h"

#include <memory>
#include <string>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/collection_record.h"

namespace strata::versioning {
namespace {

constexpr std::chrono::seconds kCountInterval{10};

}  // namespace

absl::Status CollectionCount::Begin() {
  const std::lock_guard lock(mutex_);
  return BeginLocked();
}

absl::Status CollectionCount::BeginLocked() { return count_ ? absl::OkStatus() : CountLocked(); }

absl::Status CollectionCount::CountLocked() {
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
  for (const auto& [name, making] : making_) count += making.made ? 0 : 1;
  count_ = count;
  counted_at_ = clock_.SteadyNow();
  return absl::OkStatus();
}

absl::Status CollectionCount::CheckLocked(int64_t count) {
  RETURN_IF_ERROR(BeginLocked());
  if (*count_ + count <= most_) return absl::OkStatus();
  if (clock_.SteadyNow() - counted_at_ >= kCountInterval) RETURN_IF_ERROR(CountLocked());
  if (*count_ + count <= most_) return absl::OkStatus();
  return Error(ErrorReason::kCollectionLimit,
               "there are " + std::to_string(*count_) + " collections, and the limit is " +
                   std::to_string(most_) + "; delete some, or keep more in each")
      .With("limit", most_);
}

absl::Status CollectionCount::Check(int64_t count) {
  const std::lock_guard lock(mutex_);
  return CheckLocked(count);
}

absl::Status CollectionCount::Take(const std::string& name) {
  const std::lock_guard lock(mutex_);
  auto making = making_.find(name);
  if (making == making_.end()) {
    RETURN_IF_ERROR(CheckLocked(1));
    ++*count_;
    making = making_.try_emplace(name).first;
  }
  ++making->second.makers;
  return absl::OkStatus();
}

void CollectionCount::End(const std::string& name, bool made) {
  const std::lock_guard lock(mutex_);
  const auto making = making_.find(name);
  making->second.made = making->second.made || made;
  if (--making->second.makers > 0) return;
  if (!making->second.made) --*count_;
  making_.erase(making);
}

void CollectionCount::Remove() {
  const std::lock_guard lock(mutex_);
  if (count_) --*count_;
}

}  // namespace strata::versioning
