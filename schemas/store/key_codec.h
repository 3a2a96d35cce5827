// Keys as bytes, whose order is the order of what they name.
//
//   collections  = name
//   heads        = incarnation document
//   versions     = incarnation document version
//   requests     = incarnation document request-id
//   ledger       = position             of the first commit of a block (ledger_block.h)
//
//   incarnation  = 8 bytes, big-endian      the collection's, never reused, so that a collection
//                                           deleted and made again shares nothing with its
//                                           predecessor
//   document     = id 0x00                  ids hold no control characters, so 0x00 ends them and
//                                           "a" sorts before "a/b"
//   version      = 8 bytes, big-endian      from 1
//   position     = 8 bytes, big-endian
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "schemas/store/record.h"
#include "schemas/store/store.h"

namespace strata::store {

// Names one document in one incarnation of its collection.
struct DocumentKey {
  int64_t incarnation = 0;
  std::string id;

  friend bool operator==(const DocumentKey&, const DocumentKey&) = default;
};

std::string HeadKey(int64_t incarnation, std::string_view id);
std::string VersionKey(int64_t incarnation, std::string_view id, int64_t version);
std::string RequestKey(int64_t incarnation, std::string_view id, std::string_view request_id);
std::string LedgerKey(CommitPosition position);

inline std::string HeadKey(const DocumentKey& document) {
  return HeadKey(document.incarnation, document.id);
}
inline std::string VersionKey(const DocumentKey& document, int64_t version) {
  return VersionKey(document.incarnation, document.id, version);
}
inline std::string RequestKey(const DocumentKey& document, std::string_view request_id) {
  return RequestKey(document.incarnation, document.id, request_id);
}

// The least key greater than every key that begins with `prefix`; empty if there is none.
std::string PrefixEnd(std::string_view prefix);

// Every key of an incarnation (heads, versions and requests alike).
Range IncarnationRange(int64_t incarnation);

// What a key names; nothing if the bytes are no such key.
std::optional<DocumentKey> ParseHeadKey(std::string_view key);
struct ParsedVersionKey {
  DocumentKey document;
  int64_t version = 0;
};
std::optional<ParsedVersionKey> ParseVersionKey(std::string_view key);
std::optional<CommitPosition> ParseLedgerKey(std::string_view key);

}  // namespace strata::store
