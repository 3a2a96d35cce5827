#include "schemas/document/hash.h"

#include <array>

namespace strata::document {
namespace {

std::array<char, 8> BigEndian(uint64_t number) {
  std::array<char, 8> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>((number >> (8 * (7 - i))) & 0xFF);
  }
  return bytes;
}

}  // namespace

PartHasher& PartHasher::Add(std::string_view part) {
  const std::array<char, 8> length = BigEndian(part.size());
  hasher_.Update({length.data(), length.size()}).Update(part);
  return *this;
}

PartHasher& PartHasher::Add(int64_t number) {
  const std::array<char, 8> bytes = BigEndian(static_cast<uint64_t>(number));
  return Add(std::string_view(bytes.data(), bytes.size()));
}

Hash ContentHash(std::string_view salt, const Content& content) {
  return PartHasher().Add(salt).Add(content.bytes()).Finish();
}

}  // namespace strata::document
