#include "schemas/store/store.h"

namespace strata::store {

std::vector<absl::StatusOr<std::optional<Record>>> Reader::GetMany(
    std::span<const RecordKey> keys) const {
  std::vector<absl::StatusOr<std::optional<Record>>> records;
  records.reserve(keys.size());
  for (const RecordKey& each : keys) records.push_back(Get(each.keyspace, each.key));
  return records;
}

}  // namespace strata::store
