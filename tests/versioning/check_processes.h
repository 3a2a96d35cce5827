// The stores that the checkers put between a subject and an engine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/store/forwarding_store.h"
#include "tests/support/hooked_store.h"
#include "tests/support/single_record_store.h"
#include "tests/versioning/strategy_checks.h"

namespace strata::versioning::checks {

inline constexpr size_t kNever = static_cast<size_t>(-1);

// The base, with all its states since the case began, any of which scans may be answered from.
class StrategyChecks::PastStore final : public store::ForwardingStore {
 public:
  PastStore(store::Store& base, bool remembers) : ForwardingStore(base), remembers_(remembers) {}

  void Begin() {
    past_.clear();
    scan_from_ = kNow;
  }
  size_t past() const { return past_.size(); }

  static constexpr size_t kNow = static_cast<size_t>(-1);
  static constexpr size_t kAny = static_cast<size_t>(-2);
  // Scans answer from that state, from kNow, or from another each time.
  void ScanFrom(size_t state) { scan_from_ = state; }

  std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                      const store::Range& range) const override {
    size_t state = scan_from_;
    if (state == kAny) state = generator_() % (past_.size() + 1);
    if (state >= past_.size()) return inner().Scan(keyspace, range);
    return past_[state]->Scan(keyspace, range);
  }
  void Commit(store::WriteBatch batch, store::CommitCallback done) override {
    if (remembers_) past_.push_back(inner().Snapshot());
    inner().Commit(std::move(batch), std::move(done));
  }

 private:
  const bool remembers_;
  size_t scan_from_ = kNow;
  std::vector<std::unique_ptr<store::Reader>> past_;
  mutable std::mt19937_64 generator_{1};
};

// One process: a store that can be interrupted at each of its calls and die at each of its writes.
class StrategyChecks::Process {
 public:
  Process(PastStore& past, Mode mode, size_t crash_after = kNever) : crash_after_(crash_after) {
    if (mode == Mode::kAtomic) {
      hooked_.emplace(past);
      HookAtomic();
      return;
    }
    past.ScanFrom(mode == Mode::kStale ? PastStore::kAny : PastStore::kNow);
    single_.emplace(past, test_support::SingleRecordOptions{
                              .stale_writes = mode == Mode::kStale ? size_t{4} : 0, .seed = 1});
    if (crash_after != kNever) single_->CrashAfter(crash_after);
    single_->set_hooks({.before_get = [this](auto...) { Step(); },
                        .before_scan = [this](auto...) { Step(); },
                        .before_write =
                            [this](auto...) {
                              Step();
                              return true;
                            }});
  }

  store::Store& store() { return single_ ? static_cast<store::Store&>(*single_) : *hooked_; }

  // Runs `action` before call (read, write) number `event` of this process.
  void At(size_t event, std::function<void()> action) {
    event_ = event;
    action_ = std::move(action);
  }
  bool fired() const { return fired_; }
  bool died() const { return single_ ? single_->crashed() : died_; }

 private:
  void Step() {
    if (steps_++ != event_ || fired_) return;
    fired_ = true;
    action_();
  }

  // A batch is applied whole or not at all: it dies before or after.
  void HookAtomic() {
    test_support::StoreHooks hooks;
    hooks.before_get = [this](auto...) { Step(); };
    hooks.before_scan = [this](auto...) { Step(); };
    hooks.before_commit = [this](auto&...) { Step(); };
    hooks.instead_of_commit = [this](auto&...) -> std::optional<store::CommitResult> {
      if (crash_after_ != 0 && !died_) return std::nullopt;
      died_ = true;
      return store::CommitResult{.status = Unknown()};
    };
    hooks.after_commit = [this](store::CommitResult& result) {
      if (crash_after_ == kNever || --crash_after_ != 0) return;
      died_ = true;
      result = store::CommitResult{.status = Unknown()};
    };
    hooked_->set_hooks(std::move(hooks));
  }

  static absl::Status Unknown() { return Error(ErrorReason::kOutcomeUnknown, "crashed"); }

  size_t crash_after_;
  std::optional<test_support::HookedStore> hooked_;
  std::optional<test_support::SingleRecordStore> single_;
  size_t event_ = kNever;
  std::function<void()> action_;
  size_t steps_ = 0;
  bool fired_ = false;
  bool died_ = false;
};

}  // namespace strata::versioning::checks
