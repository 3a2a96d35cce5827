// A store that answers some commits with an unknown outcome and goes on, as one that is reached
// over a network does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "schemas/store/forwarding_store.h"

namespace strata::test_support {

// Hands everything to `inner`, but a `share` of the commits, drawn with `seed`, is answered
// OUTCOME_UNKNOWN: a third of those took effect, a third did not and never will, and a third is
// committed after one to three later commits, if its guards hold then. What still waits when it is
// destroyed never takes effect. Thread-safe.
class LateStore final : public store::ForwardingStore {
 public:
  LateStore(store::Store& inner, uint64_t seed, double share);
  LateStore(std::unique_ptr<store::Store> inner, uint64_t seed, double share);

  // From now on every outcome is known. What waits is still committed, after later commits.
  void StopLosing();
  // Commits what waits, if its guards hold.
  void Settle();
  // How many commits were answered so.
  size_t unknown() const;
  // How many of those were committed afterwards, or lost their race then.
  size_t late() const;

  void Commit(store::WriteBatch batch, store::CommitCallback done) override;

 private:
  struct Late {
    store::WriteBatch batch;
    int commits = 0;  // that come before it
  };
  enum class Fate { kKnown, kStored, kLost, kLate };

  Fate Draw();
  void CommitLate(std::vector<Late> due);

  const double share_;
  mutable std::mutex mutex_;  // guards what follows
  std::mt19937_64 generator_;
  bool losing_ = true;
  size_t unknown_ = 0;
  size_t late_ = 0;
  std::vector<Late> waiting_;
};

}  // namespace strata::test_support
