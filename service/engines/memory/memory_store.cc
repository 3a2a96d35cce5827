// The memory engine: ordered maps with every capability of the port, for tests and for
// --engine=memory. It is the reference that the other engines are compared with; it is durable as
// long as the process lives.

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "schemas/base/age_clock.h"
#include "schemas/store/key_codec.h"
#include "schemas/store/store.h"
#include "service/engines/engines.h"
#include "service/engines/guards.h"
#include "service/engines/memory/tree.h"
#include "service/engines/nested_callbacks.h"
#include "service/engines/position_teller.h"

namespace strata::engines {
namespace memory {
namespace {

using store::Keyspace;

// One moment of the whole store.
struct State {
  std::array<Tree, store::kAllKeyspaces.size()> trees;
  store::CommitPosition position = 0;
  store::LedgerTail ledger;

  const Tree& tree(Keyspace keyspace) const { return trees[static_cast<size_t>(keyspace)]; }
  Tree& tree(Keyspace keyspace) { return trees[static_cast<size_t>(keyspace)]; }
};
using StatePointer = std::shared_ptr<const State>;

// Walks one state by searching from key to key: no path to keep right, and a step costs a descent.
class MemoryCursor final : public store::Cursor {
 public:
  MemoryCursor(StatePointer state, Keyspace keyspace, store::Range range)
      : state_(std::move(state)), tree_(state_->tree(keyspace)), range_(std::move(range)) {
    const bool from_the_last = range_.reverse && range_.end.empty();
    if (from_the_last) {
      Settle(tree_.Last());
    } else {
      Seek(range_.reverse ? range_.end : range_.begin);
    }
  }

  bool Valid() const override { return item_ != nullptr; }
  std::string_view key() const override { return item_->key; }
  std::string_view value() const override { return item_->record.value; }
  store::Stamp stamp() const override { return item_->record.stamp; }
  store::CommitPosition position() const override { return item_->record.position; }

  void Next() override {
    Settle(range_.reverse ? tree_.LastBefore(item_->key) : tree_.FirstAfter(item_->key));
  }

  void Seek(std::string_view key) override {
    if (!range_.reverse) {
      Settle(tree_.FirstAtOrAfter(key < range_.begin ? std::string_view(range_.begin) : key));
    } else if (!range_.end.empty() && key >= range_.end) {
      Settle(tree_.LastBefore(range_.end));
    } else {
      Settle(tree_.LastAtOrBefore(key));
    }
  }

  absl::Status status() const override { return absl::OkStatus(); }

 private:
  void Settle(const Item* item) {
    const bool inside = item != nullptr && item->key >= range_.begin &&
                        (range_.end.empty() || item->key < range_.end);
    item_ = inside ? item : nullptr;
  }

  const StatePointer state_;
  const Tree& tree_;
  const store::Range range_;
  const Item* item_ = nullptr;
};

std::optional<store::Record> Find(const State& state, Keyspace keyspace, std::string_view key) {
  const Item* item = state.tree(keyspace).Find(key);
  if (item == nullptr) return std::nullopt;
  return item->record;
}

class MemorySnapshot final : public store::Reader {
 public:
  explicit MemorySnapshot(StatePointer state) : state_(std::move(state)) {}

  absl::StatusOr<std::optional<store::Record>> Get(Keyspace keyspace,
                                                   std::string_view key) const override {
    return Find(*state_, keyspace, key);
  }
  std::unique_ptr<store::Cursor> Scan(Keyspace keyspace, const store::Range& range) const override {
    return std::make_unique<MemoryCursor>(state_, keyspace, range);
  }

 private:
  const StatePointer state_;
};

class MemoryStore final : public store::Store {
 public:
  explicit MemoryStore(const Clock& clock)
      : clock_(clock),
        start_position_(std::max<store::CommitPosition>(clock.Now(), 0)),
        state_(Empty(start_position_)) {}

  store::Capabilities capabilities() const override {
    return {.atomic_batches = true,
            .fresh_scans = true,
            .snapshots = true,
            .commit_positions = true,
            .blocking_reads = false};
  }

  absl::Status Ready() const override { return absl::OkStatus(); }

  absl::StatusOr<std::optional<store::Record>> Get(Keyspace keyspace,
                                                   std::string_view key) const override {
    return Find(*Current(), keyspace, key);
  }
  std::unique_ptr<store::Cursor> Scan(Keyspace keyspace, const store::Range& range) const override {
    return std::make_unique<MemoryCursor>(Current(), keyspace, range);
  }
  std::unique_ptr<store::Reader> Snapshot() const override {
    return std::make_unique<MemorySnapshot>(Current());
  }

  void Commit(store::WriteBatch batch, store::CommitCallback done) override {
    store::CommitResult result = Apply(batch);
    if (result.committed) teller_.Tell();
    CallNested(*this, [result = std::move(result), done = std::move(done)] { done(result); });
  }

  store::RangeEstimate Estimate(Keyspace keyspace, const store::Range& range) const override {
    const StatePointer state = Current();
    const Tree& tree = state->tree(keyspace);
    const Totals upper = range.end.empty() ? tree.All() : tree.Below(range.end);
    const Totals lower = tree.Below(range.begin);
    if (upper.records <= lower.records) return {};
    return {upper.records - lower.records, upper.bytes - lower.bytes};
  }

  // A commit's position is that of its life and no earlier one's: the clock is ahead of all that
  // an earlier life gave, at less than a commit in each microsecond.
  store::CommitPosition LastPosition() const override { return Current()->position; }
  store::CommitPosition StartPosition() const override { return start_position_; }
  void OnPosition(store::PositionListener listener) override { teller_.Set(std::move(listener)); }

 private:
  static StatePointer Empty(store::CommitPosition position) {
    auto state = std::make_shared<State>();
    state->position = position;
    return state;
  }

  StatePointer Current() const {
    const std::lock_guard lock(state_mutex_);
    return state_;
  }

  store::CommitResult Apply(const store::WriteBatch& batch);
  void DropExpired(State& state, UnixMicros now);

  const AgeClock clock_;
  const store::CommitPosition start_position_;
  PositionTeller teller_;

  std::mutex commit_mutex_;  // held by the one commit that is being decided
  // When records expire. May name records that were replaced since.
  std::multimap<UnixMicros, std::pair<Keyspace, std::string>> expiries_;

  mutable std::mutex state_mutex_;  // guards the pointer only; taken inside commit_mutex_
  StatePointer state_;
};

store::CommitResult MemoryStore::Apply(const store::WriteBatch& batch) {
  const std::lock_guard lock(commit_mutex_);
  if (TooLate(batch, clock_.SteadyNow())) return DroppedTooLate();
  // The batch works on a copy of the trees' roots; refused, the copy is dropped with all it did.
  auto next = std::make_shared<State>(*Current());
  const store::CommitPosition position = ++next->position;
  const UnixMicros now = clock_.Now();
  for (size_t index = 0; index < batch.writes().size(); ++index) {
    const store::Write& write = batch.writes()[index];
    Tree& tree = next->tree(write.keyspace);
    const Item* stored = tree.Find(write.key);
    const bool present = stored != nullptr && !Expired(stored->expire_time, now);
    const Verdict verdict =
        Judge(write, present ? std::optional(stored->record.stamp) : std::nullopt);
    if (verdict == Verdict::kRefuse) {
      store::CommitResult lost;
      lost.refused = index;
      return lost;
    }
    if (verdict == Verdict::kSkip || write.kind == store::WriteKind::kCheck) continue;
    if (write.kind == store::WriteKind::kDelete) {
      tree = tree.Without(write.key);
    } else {
      tree = tree.With(std::make_shared<Item>(
          Item{write.key, {write.value, position, position}, write.expire_time}));
    }
  }
  if (!batch.ledger().empty()) {
    store::LedgerBlockWriter writer(next->ledger);
    writer.Add(position, batch.ledger());
    store::LedgerBlockWriter::Block block = writer.Finish(position);
    next->ledger = block.tail;
    Tree& ledger = next->tree(Keyspace::kLedger);
    ledger = ledger.With(std::make_shared<Item>(
        Item{store::LedgerKey(block.first), {std::move(block.value), position, position}, 0}));
  }
  DropExpired(*next, now);
  for (const store::Write& write : batch.writes()) {
    if (write.expire_time != 0)
      expiries_.emplace(write.expire_time, std::pair(write.keyspace, write.key));
  }
  StatePointer published = std::move(next);
  {
    const std::lock_guard state_lock(state_mutex_);
    state_.swap(published);  // what nobody reads any more dies after the lock is released
  }
  return {.status = absl::OkStatus(),
          .committed = true,
          .applied = batch.writes().size(),
          .position = position};
}

void MemoryStore::DropExpired(State& state, UnixMicros now) {
  // A few with each commit: more than come in, so few are left and no commit pays for all.
  constexpr int kDropMax = 4;
  for (int i = 0; i < kDropMax && !expiries_.empty(); ++i) {
    const auto first = expiries_.begin();
    if (!Expired(first->first, now)) return;
    const auto& [keyspace, key] = first->second;
    Tree& tree = state.tree(keyspace);
    const Item* item = tree.Find(key);
    if (item != nullptr && item->expire_time == first->first) tree = tree.Without(key);
    expiries_.erase(first);
  }
}

}  // namespace
}  // namespace memory

Engine MemoryEngine(std::string_view name) {
  return {
      name, {}, 0, [](const OpenOptions& options) -> absl::StatusOr<std::unique_ptr<store::Store>> {
        return std::make_unique<memory::MemoryStore>(*options.clock);
      }};
}

}  // namespace strata::engines
