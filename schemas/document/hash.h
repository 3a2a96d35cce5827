// SHA-256 over parts of known length, and the content hash.
#pragma once

#include <cstdint>
#include <string_view>

#include "schemas/base/sha256.h"
#include "schemas/document/content.h"

namespace strata::document {

using strata::Hash;
using strata::HashBytes;

// Hashes parts one after the other, each after its length as 8 bytes, big-endian, so that no two
// different lists of parts hash alike. Numbers are hashed as a part of 8 bytes, big-endian.
class PartHasher {
 public:
  PartHasher& Add(std::string_view part);
  PartHasher& Add(int64_t number);
  // The hash of all parts so far. REQUIRES: called once.
  Hash Finish() { return hasher_.Finish(); }

 private:
  Sha256 hasher_;
};

// SHA-256 of `salt` and the BSON bytes, as two parts. The salt (16 random bytes, stored with the
// content) lets content be erased later without leaving a hash that confirms a guess.
Hash ContentHash(std::string_view salt, const Content& content);

}  // namespace strata::document
