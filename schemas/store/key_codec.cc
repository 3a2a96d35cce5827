#include "schemas/store/key_codec.h"

#include <array>
#include <limits>

namespace strata::store {
namespace {

constexpr size_t kNumberSize = 8;

void AppendBigEndian(uint64_t number, std::string& out) {
  std::array<char, kNumberSize> bytes;
  for (char& byte : bytes) {
    byte = static_cast<char>(number >> 56);
    number <<= 8;
  }
  out.append(bytes.data(), bytes.size());
}

uint64_t ReadBigEndian(std::string_view bytes) {
  uint64_t number = 0;
  for (const char byte : bytes) number = (number << 8) | static_cast<uint8_t>(byte);
  return number;
}

// Nothing for what no key holds: as int64 it would be negative, and sort before what it follows.
std::optional<int64_t> ReadNumber(std::string_view bytes) {
  const uint64_t number = ReadBigEndian(bytes);
  if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return static_cast<int64_t>(number);
}

std::string DocumentPrefix(int64_t incarnation, std::string_view id, size_t room) {
  std::string key;
  key.reserve(kNumberSize + id.size() + 1 + room);
  AppendBigEndian(static_cast<uint64_t>(incarnation), key);
  key += id;
  key += '\0';
  return key;
}

}  // namespace

std::string HeadKey(int64_t incarnation, std::string_view id) {
  return DocumentPrefix(incarnation, id, 0);
}

std::string VersionKey(int64_t incarnation, std::string_view id, int64_t version) {
  std::string key = DocumentPrefix(incarnation, id, kNumberSize);
  AppendBigEndian(static_cast<uint64_t>(version), key);
  return key;
}

std::string RequestKey(int64_t incarnation, std::string_view id, std::string_view request_id) {
  return DocumentPrefix(incarnation, id, request_id.size()).append(request_id);
}

std::string LedgerKey(CommitPosition position) {
  std::string key;
  AppendBigEndian(static_cast<uint64_t>(position), key);
  return key;
}

std::string PrefixEnd(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && end.back() == '\xFF') end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<uint8_t>(end.back()) + 1);
  return end;
}

Range IncarnationRange(int64_t incarnation) {
  Range range;
  AppendBigEndian(static_cast<uint64_t>(incarnation), range.begin);
  range.end = PrefixEnd(range.begin);
  return range;
}

std::optional<DocumentKey> ParseHeadKey(std::string_view key) {
  if (key.size() < kNumberSize + 1 || key.back() != '\0') return std::nullopt;
  const std::optional<int64_t> incarnation = ReadNumber(key.substr(0, kNumberSize));
  const std::string_view id = key.substr(kNumberSize, key.size() - kNumberSize - 1);
  // Without this, a version's key whose last byte is zero would pass for a head's.
  if (!incarnation || id.find('\0') != std::string_view::npos) return std::nullopt;
  return DocumentKey{*incarnation, std::string(id)};
}

std::optional<ParsedVersionKey> ParseVersionKey(std::string_view key) {
  if (key.size() < kNumberSize) return std::nullopt;
  const size_t split = key.size() - kNumberSize;
  std::optional<DocumentKey> document = ParseHeadKey(key.substr(0, split));
  const std::optional<int64_t> version = ReadNumber(key.substr(split));
  if (!document || !version) return std::nullopt;
  return ParsedVersionKey{*std::move(document), *version};
}

std::optional<CommitPosition> ParseLedgerKey(std::string_view key) {
  if (key.size() != kNumberSize) return std::nullopt;
  return ReadNumber(key);
}

}  // namespace strata::store
