// Drops expired records when RocksDB compacts.
#pragma once

#include <rocksdb/compaction_filter.h>

#include <string>

#include "schemas/base/clock.h"
#include "service/engines/guards.h"
#include "service/engines/rocksdb/driver.h"
#include "service/engines/rocksdb/record_format.h"

namespace strata::engines::rocks {

// Thread-safe; `clock` must outlive it; an AgeClock, so that no jump makes records expire.
// Snapshots do not keep a record that has expired.
class ExpiryFilter final : public rocksdb::CompactionFilter {
 public:
  explicit ExpiryFilter(const Clock& clock) : clock_(clock) {}

  const char* Name() const override { return "strata.expiry"; }

  bool Filter(int /*level*/, const rocksdb::Slice& /*key*/, const rocksdb::Slice& stored,
              std::string* /*new_value*/, bool* /*value_changed*/) const override {
    const std::optional<StoredRecord> record = ParseRecord(ToView(stored));
    // A record that does not parse stays: whoever reads it must learn of it.
    return record && Expired(record->expire_time, clock_.Now());
  }

 private:
  const Clock& clock_;
};

}  // namespace strata::engines::rocks
