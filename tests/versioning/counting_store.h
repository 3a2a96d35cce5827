// A store that counts what is read through it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "schemas/store/forwarding_store.h"

namespace strata::versioning::checks {

// Not thread-safe. `inner` must outlive it.
class CountingStore final : public store::ForwardingStore {
 public:
  explicit CountingStore(store::Store& inner) : ForwardingStore(inner) {}

  int gets() const { return counts_.gets; }
  int scans() const { return counts_.scans; }
  int moves() const { return counts_.moves; }  // of cursors: Next and Seek

  absl::StatusOr<std::optional<store::Record>> Get(store::Keyspace keyspace,
                                                   std::string_view key) const override {
    return CountingReader(inner(), counts_).Get(keyspace, key);
  }
  std::vector<absl::StatusOr<std::optional<store::Record>>> GetMany(
      std::span<const store::RecordKey> keys) const override {
    return CountingReader(inner(), counts_).GetMany(keys);
  }
  std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                      const store::Range& range) const override {
    return CountingReader(inner(), counts_).Scan(keyspace, range);
  }
  std::unique_ptr<store::Reader> Snapshot() const override {
    return std::make_unique<CountingReader>(inner().Snapshot(), counts_);
  }

 private:
  struct Counts {
    int gets = 0;
    int scans = 0;
    int moves = 0;
  };

  class CountingCursor final : public store::ForwardingCursor {
   public:
    CountingCursor(std::unique_ptr<store::Cursor> inner, int& moves)
        : ForwardingCursor(std::move(inner)), moves_(moves) {}
    void Next() override {
      ++moves_;
      ForwardingCursor::Next();
    }
    void Seek(std::string_view key) override {
      ++moves_;
      ForwardingCursor::Seek(key);
    }

   private:
    int& moves_;
  };

  class CountingReader final : public store::ForwardingReader {
   public:
    template <typename Inner>  // borrowed or owned
    CountingReader(Inner&& inner, Counts& counts)
        : ForwardingReader(std::forward<Inner>(inner)), counts_(counts) {}
    absl::StatusOr<std::optional<store::Record>> Get(store::Keyspace keyspace,
                                                     std::string_view key) const override {
      ++counts_.gets;
      return ForwardingReader::Get(keyspace, key);
    }
    std::vector<absl::StatusOr<std::optional<store::Record>>> GetMany(
        std::span<const store::RecordKey> keys) const override {
      counts_.gets += static_cast<int>(keys.size());
      return ForwardingReader::GetMany(keys);
    }
    std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                        const store::Range& range) const override {
      ++counts_.scans;
      return std::make_unique<CountingCursor>(ForwardingReader::Scan(keyspace, range),
                                              counts_.moves);
    }

   private:
    Counts& counts_;
  };

  mutable Counts counts_;
};

}  // namespace strata::versioning::checks
