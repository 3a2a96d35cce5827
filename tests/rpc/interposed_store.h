// A store whose commits a test holds back, fails or loses.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "schemas/store/forwarding_store.h"

namespace strata::rpc_test {

// Hands everything to the store inside. Thread-safe.
class InterposedStore final : public store::ForwardingStore {
 public:
  // How a commit ends instead of being made.
  using Interposer = std::function<std::optional<store::CommitResult>(const store::WriteBatch&)>;

  explicit InterposedStore(std::unique_ptr<store::Store> inner)
      : ForwardingStore(std::move(inner)) {}

  void set_interposer(Interposer interposer);
  // Keeps commits waiting from now on; letting go makes those that wait, in order.
  void HoldCommits();
  void LetGo();
  // How many wait.
  size_t held() const;

  void Commit(store::WriteBatch batch, store::CommitCallback done) override;

 private:
  mutable std::mutex mutex_;
  Interposer interposer_;
  bool holding_ = false;
  std::deque<std::pair<store::WriteBatch, store::CommitCallback>> held_;
};

}  // namespace strata::rpc_test
