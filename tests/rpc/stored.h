// What a store holds, to be compared.
#pragma once

#include "schemas/document/hash.h"
#include "schemas/store/store.h"

namespace strata::rpc_test {

// All records, keys, values and stamps, as one hash.
inline document::Hash HashOfAll(const store::Store& store) {
  document::PartHasher hasher;
  for (const store::Keyspace keyspace : store::kAllKeyspaces) {
    for (auto cursor = store.Scan(keyspace, {}); cursor->Valid(); cursor->Next()) {
      hasher.Add(cursor->key()).Add(cursor->value()).Add(cursor->stamp());
    }
  }
  return hasher.Finish();
}

}  // namespace strata::rpc_test
