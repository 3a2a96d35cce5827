#include "service/engines/rocksdb/driver.h"

#include <string>

#include "schemas/base/error.h"
#include "service/observability/log.h"

namespace strata::engines::rocks {

absl::Status Translate(const rocksdb::Status& status, std::string_view doing) {
  observability::Log(observability::LogLevel::kError, "rocksdb failed",
                     {{"doing", doing}, {"status", status.ToString()}});
  if (status.IsCorruption()) {
    return Error(ErrorReason::kRecordCorrupt,
                 "The store found damaged data while " + std::string(doing) + ".");
  }
  return Error(ErrorReason::kStoreUnavailable,
               "The store failed while " + std::string(doing) + ".");
}

absl::Status UnreadableRecord() {
  observability::Log(observability::LogLevel::kError, "a record that this engine did not write");
  return Error(ErrorReason::kRecordCorrupt, "The store holds a record that it cannot read.");
}

}  // namespace strata::engines::rocks
