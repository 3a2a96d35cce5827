// The column families of a database, by keyspace.
#pragma once

#include <rocksdb/db.h>

#include <array>
#include <atomic>
#include <cstddef>

#include "schemas/store/keyspace.h"

namespace strata::engines::rocks {

// One thread at a time sets them; any may ask meanwhile.
class KeyspaceHandles {
 public:
  // Null: it is not made, and holds nothing.
  rocksdb::ColumnFamilyHandle* operator[](store::Keyspace keyspace) const {
    return handles_[static_cast<size_t>(keyspace)].load(std::memory_order_acquire);
  }
  void Set(store::Keyspace keyspace, rocksdb::ColumnFamilyHandle* handle) {
    handles_[static_cast<size_t>(keyspace)].store(handle, std::memory_order_release);
  }

 private:
  std::array<std::atomic<rocksdb::ColumnFamilyHandle*>, store::kAllKeyspaces.size()> handles_ = {};
};

}  // namespace strata::engines::rocks
