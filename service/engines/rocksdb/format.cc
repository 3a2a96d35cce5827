#include "service/engines/rocksdb/format.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/store/key_codec.h"
#include "service/engines/engines.h"
#include "service/engines/rocksdb/driver.h"
#include "service/engines/rocksdb/rocksdb_reader.h"
#include "service/engines/rocksdb/tuning.h"

namespace strata::engines::rocks {

absl::Status UnknownFormat(std::string_view what) {
  return Error(ErrorReason::kStoreUnavailable,
               "The data directory was written by another version of the store: it has " +
                   std::string(what) + ". Nothing was changed.");
}

absl::StatusOr<Format> Format::Parse(std::string_view text) {
  Format format;
  const std::vector<std::string> words = absl::StrSplit(ToAbsl(text), ' ');
  if (!absl::SimpleAtoi(words.front(), &format.number) || format.number < 1) {
    return UnknownFormat("a format that cannot be read");
  }
  format.features.insert(words.begin() + 1, words.end());
  return format;
}

std::string Format::ToText() const {
  std::string text = std::to_string(number);
  for (const std::string& feature : features) text += " " + feature;
  return text;
}

absl::Status CheckReadable(const Format& format) {
  if (format.number != kFormatNumber) {
    return UnknownFormat("format " + std::to_string(format.number) +
                         ", and this one reads format " + std::to_string(kFormatNumber));
  }
  for (const std::string& feature : format.features) {
    if (feature == kPrincipalsFeature || feature == kReadyAtOnceFeature) continue;
    return UnknownFormat("the feature " + feature + ", which this one does not know");
  }
  return absl::OkStatus();
}

absl::Status WriteFormat(rocksdb::DB& database, const Format& format) {
  const rocksdb::Status status = database.Put(DurableWrite(), ToSlice(kFormatKey), format.ToText());
  return status.ok() ? absl::OkStatus() : Translate(status, "writing the database's format");
}

absl::StatusOr<store::LedgerTail> ReadLedgerTail(rocksdb::DB& database,
                                                 rocksdb::ColumnFamilyHandle* ledger) {
  const auto cursor =
      ScanRecords(database, ledger, nullptr, {.begin = "", .end = "", .reverse = true});
  RETURN_IF_ERROR(cursor->status());
  store::LedgerTail tail;
  if (!cursor->Valid()) return tail;
  if (const auto header = store::ParseLedgerBlockHeader(cursor->value());
      header && store::ParseLedgerKey(cursor->key()) == header->first) {
    tail = header->tail;
  }
  if (tail.last == 0 || tail.last != cursor->position()) return UnreadableRecord();
  return tail;
}

}  // namespace strata::engines::rocks
