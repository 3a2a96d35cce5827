// A store whose commits a test holds back, fails or loses.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "schemas/store/store.h"

namespace strata::rpc_test {

// Hands everything to the store inside. Thread-safe.
class InterposedStore final : public store::Store {
 public:
  // How a commit ends instead of being made.
  using Interposer = std::function<std::optional<store::CommitResult>(const store::WriteBatch&)>;

  explicit InterposedStore(std::unique_ptr<store::Store> inner) : inner_(std::move(inner)) {}

  store::Store& inner() { return *inner_; }
  void set_interposer(Interposer interposer);
  // Keeps commits waiting from now on; letting go makes those that wait, in order.
  void HoldCommits();
  void LetGo();
  // How many wait.
  size_t held() const;

  store::Capabilities capabilities() const override { return inner_->capabilities(); }
  absl::StatusOr<std::optional<store::Record>> Get(store::Keyspace keyspace,
                                                   std::string_view key) const override {
    return inner_->Get(keyspace, key);
  }
  std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                      const store::Range& range) const override {
    return inner_->Scan(keyspace, range);
  }
  std::unique_ptr<store::Reader> Snapshot() const override { return inner_->Snapshot(); }
  void Commit(store::WriteBatch batch, store::CommitCallback done) override;
  store::RangeEstimate Estimate(store::Keyspace keyspace,
                                const store::Range& range) const override {
    return inner_->Estimate(keyspace, range);
  }
  store::CommitPosition LastPosition() const override { return inner_->LastPosition(); }

 private:
  const std::unique_ptr<store::Store> inner_;
  mutable std::mutex mutex_;
  Interposer interposer_;
  bool holding_ = false;
  std::deque<std::pair<store::WriteBatch, store::CommitCallback>> held_;
};

}  // namespace strata::rpc_test
