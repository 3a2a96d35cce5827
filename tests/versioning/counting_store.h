// A store that counts what is read through it.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "schemas/store/store.h"

namespace strata::versioning::checks {

// Not thread-safe. `inner` must outlive it.
class CountingStore final : public store::Store {
 public:
  explicit CountingStore(store::Store& inner) : inner_(inner) {}

  int gets() const { return gets_; }
  int scans() const { return scans_; }
  int moves() const { return moves_; }  // of cursors: Next and Seek

  store::Capabilities capabilities() const override { return inner_.capabilities(); }
  absl::StatusOr<std::optional<store::Record>> Get(store::Keyspace keyspace,
                                                   std::string_view key) const override {
    ++gets_;
    return inner_.Get(keyspace, key);
  }
  std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                      const store::Range& range) const override {
    ++scans_;
    return std::make_unique<CountingCursor>(inner_.Scan(keyspace, range), moves_);
  }
  std::unique_ptr<store::Reader> Snapshot() const override {
    return std::make_unique<CountingSnapshot>(inner_.Snapshot(), *this);
  }
  void Commit(store::WriteBatch batch, store::CommitCallback done) override {
    inner_.Commit(std::move(batch), std::move(done));
  }
  store::RangeEstimate Estimate(store::Keyspace keyspace,
                                const store::Range& range) const override {
    return inner_.Estimate(keyspace, range);
  }
  store::CommitPosition LastPosition() const override { return inner_.LastPosition(); }

 private:
  class CountingCursor final : public store::Cursor {
   public:
    CountingCursor(std::unique_ptr<store::Cursor> inner, int& moves)
        : inner_(std::move(inner)), moves_(moves) {}
    bool Valid() const override { return inner_->Valid(); }
    std::string_view key() const override { return inner_->key(); }
    std::string_view value() const override { return inner_->value(); }
    store::Stamp stamp() const override { return inner_->stamp(); }
    store::CommitPosition position() const override { return inner_->position(); }
    void Next() override {
      ++moves_;
      inner_->Next();
    }
    void Seek(std::string_view key) override {
      ++moves_;
      inner_->Seek(key);
    }
    absl::Status status() const override { return inner_->status(); }

   private:
    const std::unique_ptr<store::Cursor> inner_;
    int& moves_;
  };

  // Counts for its store, which must outlive it.
  class CountingSnapshot final : public store::Reader {
   public:
    CountingSnapshot(std::unique_ptr<store::Reader> inner, const CountingStore& counts)
        : inner_(std::move(inner)), counts_(counts) {}
    absl::StatusOr<std::optional<store::Record>> Get(store::Keyspace keyspace,
                                                     std::string_view key) const override {
      ++counts_.gets_;
      return inner_->Get(keyspace, key);
    }
    std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                        const store::Range& range) const override {
      ++counts_.scans_;
      return std::make_unique<CountingCursor>(inner_->Scan(keyspace, range), counts_.moves_);
    }

   private:
    const std::unique_ptr<store::Reader> inner_;
    const CountingStore& counts_;
  };

  store::Store& inner_;
  mutable int gets_ = 0;
  mutable int scans_ = 0;
  mutable int moves_ = 0;
};

}  // namespace strata::versioning::checks
