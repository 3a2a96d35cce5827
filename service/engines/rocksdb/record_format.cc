#include "service/engines/rocksdb/record_format.h"

#include "schemas/base/varint.h"

namespace strata::engines::rocks {
namespace {

constexpr uint8_t kExpires = 1;

}  // namespace

std::string RecordHeader(store::CommitPosition position, UnixMicros expire_time) {
  std::string header(1, static_cast<char>(expire_time == 0 ? 0 : kExpires));
  AppendVarint(position, header);
  if (expire_time != 0) AppendVarint(expire_time, header);
  return header;
}

std::optional<StoredRecord> ParseRecord(std::string_view stored) {
  if (stored.empty()) return std::nullopt;
  const auto flags = static_cast<uint8_t>(stored.front());
  stored.remove_prefix(1);
  if ((flags & ~kExpires) != 0) return std::nullopt;
  const std::optional<int64_t> position = TakeVarint(stored);
  if (!position || *position == 0) return std::nullopt;
  std::optional<int64_t> expire_time = 0;
  if (flags == kExpires) {
    expire_time = TakeVarint(stored);
    if (!expire_time || *expire_time == 0) return std::nullopt;
  }
  return StoredRecord{*position, *expire_time, stored};
}

std::string EncodePosition(store::CommitPosition number) {
  std::string bytes;
  AppendVarint(number, bytes);
  return bytes;
}

std::optional<store::CommitPosition> ParsePosition(std::string_view bytes) {
  const std::optional<int64_t> number = TakeVarint(bytes);
  return bytes.empty() ? number : std::nullopt;
}

}  // namespace strata::engines::rocks
