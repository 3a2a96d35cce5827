#include "schemas/feed/tail.h"

#include <algorithm>
#include <utility>

#include "schemas/base/status_macros.h"
#include "schemas/versioning/ledger.h"
#include "schemas/versioning/ledger_floor.h"

namespace strata::feed {
namespace {

// What is read before it is shown: so far behind the ledger's end may a follower be woken.
constexpr size_t kStepEntries = 1024;

}  // namespace

// A part of the ledger, whole commits of it.
struct Tail::Step {
  std::vector<CommitPtr> commits;
  store::CommitPosition end = 0;  // up to here
};

Tail::Tail(store::Store& store, const Clock& clock, Executor& executor, const RingLimits& limits)
    : store_(store), clock_(clock), executor_(executor), ring_(limits) {}

Tail::~Tail() { store_.OnPosition(nullptr); }

void Tail::Join() {
  const std::lock_guard joining(joining_);
  if (followers_++ > 0) return;
  store_.OnPosition([this] { OnPosition(); });
  const std::lock_guard lock(mutex_);
  ring_.Reset(store_.LastPosition());
  follows_ = true;
  ++life_;
}

// The listener takes no lock, so that it may be waited for here.
void Tail::Leave() {
  const std::lock_guard joining(joining_);
  if (--followers_ > 0) return;
  store_.OnPosition(nullptr);
  const std::lock_guard lock(mutex_);
  ring_.Reset(0);
  follows_ = false;
  armed_for_.reset();
}

store::CommitPosition Tail::end() const {
  const std::lock_guard lock(mutex_);
  return ring_.end();
}

Tail::Taken Tail::Take(store::CommitPosition behind, size_t entries_max) const {
  const std::lock_guard lock(mutex_);
  Taken taken;
  taken.end = ring_.end();
  if (auto commits = ring_.Behind(behind, entries_max)) {
    taken.held = true;
    taken.commits = *std::move(commits);
  }
  return taken;
}

bool Tail::Park(const FollowerPtr& follower, store::CommitPosition looked,
                const Bookmark& bookmark) {
  const std::lock_guard lock(mutex_);
  if (looked < ring_.end()) return false;
  parking_.Add(follower, bookmark);
  if (bookmark.told < ring_.end()) ArmTimer();
  return true;
}

void Tail::Unpark(const Follower& follower) {
  const std::lock_guard lock(mutex_);
  parking_.Remove(follower);
}

size_t Tail::parked() const {
  const std::lock_guard lock(mutex_);
  return parking_.size();
}

void Tail::OnPosition() {
  if (work_.exchange(Work::kWaits) != Work::kNone) return;  // a run is to come, or looks again
  executor_.Schedule([this] { Run(); });
}

void Tail::Run() {
  work_ = Work::kRuns;
  Look();
  Work done = Work::kRuns;
  if (!work_.compare_exchange_strong(done, Work::kNone)) {
    executor_.Schedule([this] { Run(); });
  }
}

// In steps, so that nobody waits for all of a long part. Where the ledger cannot be read, the ring
// goes on behind it, and those who follow meet there what is wrong with it.
void Tail::Look() {
  while (true) {
    std::unique_lock lock(mutex_);
    if (!follows_) return;
    const uint64_t life = life_;
    const store::CommitPosition from = ring_.end();
    lock.unlock();
    Step step;
    step.end = store_.LastPosition();
    if (step.end <= from) return;
    ++looks_;
    const bool read = Read(from, step).ok();
    lock.lock();
    if (life != life_ || !follows_) return;
    if (read) {
      for (const CommitPtr& commit : step.commits) ring_.Append(commit);
      ring_.MoveTo(step.end);
    } else {
      ring_.Reset(step.end);
    }
    const std::vector<Woken> woken = read ? parking_.TakeFor(step.commits) : parking_.TakeAll(from);
    parking_.Moved();
    ArmTimer();
    lock.unlock();
    WakeAll(woken);
  }
}

absl::Status Tail::Read(store::CommitPosition from, Step& step) const {
  versioning::LedgerCursor cursor(store_, from + 1, 0);
  std::shared_ptr<Commit> commit;
  size_t entries = 0;
  while (cursor.Next() && cursor.position() <= step.end) {
    if (commit == nullptr || commit->position != cursor.position()) {
      if (entries >= kStepEntries) {
        step.end = commit->position;
        break;
      }
      commit = std::make_shared<Commit>();
      commit->position = cursor.position();
      step.commits.push_back(commit);
    }
    commit->entries.push_back(Entry::Of(cursor.entry()));
    ++entries;
  }
  RETURN_IF_ERROR(cursor.status());
  // What another process has trimmed meanwhile is not to look as if it had never been.
  ASSIGN_OR_RETURN(const versioning::LedgerFloor floor, versioning::ReadLedgerFloor(store_));
  return versioning::CheckKept(floor, "", from);
}

// With the lock held. One timer for all: for the first bookmark that is due, and not for each that
// is due a little later. Once all have been told all there is, none is armed.
void Tail::ArmTimer() {
  const std::optional<Parking::Time> due = parking_.NextDue();
  if (!due) return;
  const Parking::Time now = clock_.SteadyNow();
  const Parking::Time wanted = std::max(*due, now + kBookmarkLook);
  if (armed_for_ && *armed_for_ <= wanted) return;
  armed_for_ = wanted;
  executor_.Schedule(std::chrono::duration_cast<std::chrono::microseconds>(wanted - now),
                     [this, wanted] { OnTimer(wanted); });
}

void Tail::OnTimer(Parking::Time armed_for) {
  std::unique_lock lock(mutex_);
  if (armed_for_ != armed_for) return;  // another one counts by now
  armed_for_.reset();
  const std::vector<Woken> woken = parking_.TakeDue(clock_.SteadyNow(), ring_.end());
  ArmTimer();
  lock.unlock();
  WakeAll(woken);
}

void Tail::WakeAll(std::span<const Woken> woken) {
  for (const Woken& each : woken) each.follower->Wake(each.passed);
}

}  // namespace strata::feed
