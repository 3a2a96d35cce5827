// A store that counts the scans of its records.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "schemas/store/forwarding_store.h"

namespace strata::feed::testing {

// Counts those of one keyspace that begin with a certain text, of its snapshots too.
class CountedScans final : public store::ForwardingStore {
 public:
  CountedScans(store::Store& inner, store::Keyspace keyspace, std::string begin)
      : ForwardingStore(inner), keyspace_(keyspace), begin_(std::move(begin)) {}

  std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                      const store::Range& range) const override {
    Count(keyspace, range);
    return ForwardingStore::Scan(keyspace, range);
  }
  std::unique_ptr<store::Reader> Snapshot() const override {
    return std::make_unique<CountedReader>(*this, ForwardingStore::Snapshot());
  }

  int64_t count() const { return count_; }

 private:
  class CountedReader final : public store::ForwardingReader {
   public:
    CountedReader(const CountedScans& store, std::unique_ptr<store::Reader> inner)
        : ForwardingReader(std::move(inner)), store_(store) {}
    std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                        const store::Range& range) const override {
      store_.Count(keyspace, range);
      return ForwardingReader::Scan(keyspace, range);
    }

   private:
    const CountedScans& store_;
  };

  void Count(store::Keyspace keyspace, const store::Range& range) const {
    if (keyspace == keyspace_ && std::string_view(range.begin).starts_with(begin_)) ++count_;
  }

  const store::Keyspace keyspace_;
  const std::string begin_;
  mutable std::atomic<int64_t> count_ = 0;
};

}  // namespace strata::feed::testing
