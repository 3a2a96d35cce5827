// SHA-256 over parts of known length, and the content hash.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "schemas/document/content.h"

namespace strata::document {

using Hash = std::array<uint8_t, 32>;

inline std::string_view HashBytes(const Hash& hash) {
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

// Hashes parts one after the other, each behind its length as 8 bytes, big-endian, so that no two
// different lists of parts hash alike. Numbers are hashed as a part of 8 bytes, big-endian.
class PartHasher {
 public:
  PartHasher();
  ~PartHasher();
  PartHasher(const PartHasher&) = delete;
  PartHasher& operator=(const PartHasher&) = delete;

  PartHasher& Add(std::string_view part);
  PartHasher& Add(int64_t number);
  // The hash of all parts so far. REQUIRES: called once.
  Hash Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// SHA-256 of `salt` and the BSON bytes, as two parts. The salt (16 random bytes, stored with the
// content) lets content be erased later without leaving a hash that confirms a guess.
Hash ContentHash(std::string_view salt, const Content& content);

}  // namespace strata::document
