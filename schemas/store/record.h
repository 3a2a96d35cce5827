// What a store holds: records under keys in keyspaces (keyspace.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "schemas/base/bytes.h"
#include "schemas/store/keyspace.h"

namespace strata::store {

// The place of a commit in the store-wide order: from 1, strictly increasing. 0 where an engine has
// none.
using CommitPosition = int64_t;

// The compare-and-swap word of one record: opaque, from 1, grows at every replacement whatever was
// changed. A key that was deleted may start again at any number, so no key whose stamp guards is
// ever deleted while somebody may still hold its stamp. With commit positions it is the position of
// the commit that wrote the record, so no stamp ever comes back, not even after the key was
// deleted.
using Stamp = int64_t;

// The place of a record. A view: the key must outlive it.
struct RecordKey {
  Keyspace keyspace = Keyspace::kMeta;
  std::string_view key;

  friend bool operator==(const RecordKey&, const RecordKey&) = default;
  template <typename Hash>
  friend Hash AbslHashValue(Hash hash, const RecordKey& place) {
    return Hash::combine(std::move(hash), place.keyspace, place.key);
  }
};

struct Record {
  Bytes value;  // a BSON document; in kLedger a block
  Stamp stamp = 0;
  CommitPosition position = 0;  // of the commit that wrote this record; 0 without commit positions
};

}  // namespace strata::store
