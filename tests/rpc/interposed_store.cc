#include "tests/rpc/interposed_store.h"

namespace strata::rpc_test {

void InterposedStore::set_interposer(Interposer interposer) {
  const std::lock_guard lock(mutex_);
  interposer_ = std::move(interposer);
}

void InterposedStore::HoldCommits() {
  const std::lock_guard lock(mutex_);
  holding_ = true;
}

void InterposedStore::LetGo() {
  std::deque<std::pair<store::WriteBatch, store::CommitCallback>> held;
  {
    const std::lock_guard lock(mutex_);
    holding_ = false;
    held.swap(held_);
  }
  for (auto& [batch, done] : held) inner().Commit(std::move(batch), std::move(done));
}

size_t InterposedStore::held() const {
  const std::lock_guard lock(mutex_);
  return held_.size();
}

void InterposedStore::Commit(store::WriteBatch batch, store::CommitCallback done) {
  std::optional<store::CommitResult> instead;
  {
    const std::lock_guard lock(mutex_);
    if (holding_) {
      held_.emplace_back(std::move(batch), std::move(done));
      return;
    }
    if (interposer_) instead = interposer_(batch);
  }
  if (instead) return done(*std::move(instead));
  inner().Commit(std::move(batch), std::move(done));
}

}  // namespace strata::rpc_test
