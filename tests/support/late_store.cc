#include "tests/support/late_store.h"

#include "schemas/base/error.h"
#include "service/engines/nested_callbacks.h"

namespace strata::test_support {
namespace {

constexpr int kLaterMax = 3;

store::CommitResult Unknown() {
  store::CommitResult result;
  result.status = Error(ErrorReason::kOutcomeUnknown, "the connection was lost during the commit");
  return result;
}

}  // namespace

LateStore::LateStore(store::Store& inner, uint64_t seed, double share)
    : ForwardingStore(inner), share_(share), generator_(seed) {}

LateStore::LateStore(std::unique_ptr<store::Store> inner, uint64_t seed, double share)
    : ForwardingStore(std::move(inner)), share_(share), generator_(seed) {}

void LateStore::StopLosing() {
  const std::lock_guard lock(mutex_);
  losing_ = false;
}

void LateStore::Settle() {
  std::vector<Late> due;
  {
    const std::lock_guard lock(mutex_);
    due.swap(waiting_);
    late_ += due.size();
  }
  CommitLate(std::move(due));
}

size_t LateStore::unknown() const {
  const std::lock_guard lock(mutex_);
  return unknown_;
}

size_t LateStore::late() const {
  const std::lock_guard lock(mutex_);
  return late_;
}

// REQUIRES: the lock is held.
LateStore::Fate LateStore::Draw() {
  if (!losing_ || std::uniform_real_distribution<double>()(generator_) >= share_) {
    return Fate::kKnown;
  }
  ++unknown_;
  switch (generator_() % 3) {
    case 0:
      return Fate::kStored;
    case 1:
      return Fate::kLost;
    default:
      return Fate::kLate;
  }
}

void LateStore::CommitLate(std::vector<Late> due) {
  for (Late& late : due) {
    inner().Commit(std::move(late.batch), [](const store::CommitResult&) {});
  }
}

void LateStore::Commit(store::WriteBatch batch, store::CommitCallback done) {
  std::vector<Late> due;
  Fate fate = Fate::kKnown;
  {
    const std::lock_guard lock(mutex_);
    fate = Draw();
    if (fate == Fate::kKnown || fate == Fate::kStored) {
      std::vector<Late> waiting;
      for (Late& late : waiting_) {
        (--late.commits == 0 ? due : waiting).push_back(std::move(late));
      }
      waiting_ = std::move(waiting);
      late_ += due.size();
    } else if (fate == Fate::kLate) {
      waiting_.push_back({std::move(batch), 1 + static_cast<int>(generator_() % kLaterMax)});
    }
  }
  switch (fate) {
    case Fate::kKnown:
      inner().Commit(std::move(batch), std::move(done));
      break;
    case Fate::kStored:
      inner().Commit(std::move(batch), [done = std::move(done)](const store::CommitResult& result) {
        // What was refused before anything was written is known to be.
        const bool known = !result.status.ok() || !result.committed;
        done(known ? result : Unknown());
      });
      break;
    case Fate::kLost:
    case Fate::kLate:
      engines::CallNested(*this, [done = std::move(done)] { done(Unknown()); });
      break;
  }
  // After this one: the inner store takes the batches of one thread in the order of the calls.
  CommitLate(std::move(due));
}

}  // namespace strata::test_support
