#include "schemas/lease/leases.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "schemas/base/doors.h"
#include "schemas/base/error.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/lease/expiries.h"
#include "schemas/lease/fence.h"
#include "schemas/lease/lease_requests.h"
#include "schemas/store/guarded_commit.h"

namespace strata::lease {
namespace {

using std::chrono::microseconds;
using store::CommitResult;
using store::Keyspace;
using store::WriteBatch;

// Between two turns of the sweeper over the same leases.
constexpr microseconds kSweepPause = std::chrono::milliseconds(100);

absl::Status Held(const std::string& name, const StoredLease& stored, UnixMicros expires,
                  UnixMicros now) {
  const std::string time =
      absl::FormatTime(absl::RFC3339_full, absl::FromUnixMicros(expires), absl::UTCTimeZone());
  return Error(ErrorReason::kLeaseHeld, stored.owner->holder + " has the lease until " + time)
      .With("lease", name)
      .With("holder", stored.owner->holder)
      .With("expire_time", time)
      .RetryAfter(microseconds(std::max<UnixMicros>(expires - now, 1)));
}

std::string SubjectOf(const std::string& name) { return "lease " + name; }

absl::Status TooManyWait(size_t most) {
  return Error(ErrorReason::kOverloaded, "the lease is held, and " + std::to_string(most) +
                                             " calls wait for leases already; try again");
}

// What was asked for has been done; what became of it is not known.
absl::Status Unknown(const absl::Status& cause) {
  return Error(ErrorReason::kOutcomeUnknown,
               "the lease was written, but not read again: " + std::string(ToStd(cause.message())));
}

// REQUIRES: it has an owner.
Lease ToLease(std::string name, const StoredLease& stored) {
  Lease lease;
  lease.name = std::move(name);
  lease.holder = stored.owner->holder;
  lease.token = stored.token;
  lease.ttl = stored.state->ttl;
  lease.expire_time = stored.state->expire_time;
  if (lease.holder.empty()) {
    lease.expire_time = std::min(lease.expire_time, stored.owner->release_time);
  }
  lease.metadata = stored.owner->metadata;
  lease.place = stored.state->place;
  lease.data = stored.state->data;
  return lease;
}

Owner Released(const Owner& owner, UnixMicros now) {
  Owner released;
  released.acquire_time = owner.acquire_time;
  released.release_time = std::max<UnixMicros>(now, 1);
  return released;
}

void PutOwner(const std::string& name, const StoredLease& stored, const Owner& owner,
              WriteBatch& batch) {
  if (stored.owner) {
    batch.Replace(Keyspace::kLeases, OwnerKey(name), owner.Encode(), stored.token);
  } else {
    batch.Insert(Keyspace::kLeases, OwnerKey(name), owner.Encode());
  }
}

void PutState(const std::string& name, const StoredLease& stored, const State& state,
              WriteBatch& batch) {
  if (stored.state) {
    batch.Replace(Keyspace::kLeases, StateKey(name), state.Encode(), stored.state_stamp);
  } else {
    batch.Insert(Keyspace::kLeases, StateKey(name), state.Encode());
  }
}

}  // namespace

class Leases::Impl : public std::enable_shared_from_this<Impl> {
 public:
  using HeldCallback = std::function<void(absl::StatusOr<HeldState>)>;

  Impl(store::Store& store, const Clock& clock, Executor& executor, LeasesOptions options)
      : store_(store),
        capabilities_(store.capabilities()),
        clock_(clock),
        executor_(executor),
        options_(options),
        expiries_(store, clock, options.wrong_times_max) {}

  // Returns when nothing touches any more what it was made with, but for the executor.
  void Close() {
    StopWaiting();
    doors_.Close();
  }

  void Acquire(AcquireRequest request, LeaseCallback done);
  void Renew(RenewRequest request, LeaseCallback done);
  void Release(ReleaseRequest request, LeaseCallback done);
  absl::StatusOr<Lease> Get(const std::string& name);
  absl::StatusOr<std::vector<Lease>> List(const LeaseQuery& query, size_t most);
  void SetRightLater(microseconds delay, std::string after_name);
  bool IsHeld(std::string_view name, const StoredLease& stored) {
    return expiries_.IsHeld(name, stored);
  }
  void Write(HeldWrite request, HeldCallback done);
  LeaseCounts counts() const { return {counters_->take_overs, counters_->lost}; }
  store::JoinedPlan Fence(LeaseToken token) const {
    return MakeFence(store_, counters_, std::move(token));
  }
  void StopWaiting();
  void StartSweeping();

 private:
  using Time = std::chrono::steady_clock::time_point;

  // A call of Acquire that has no answer yet.
  struct Waiting {
    AcquireRequest request;
    LeaseCallback done;
    Time until;  // it is answered, whoever has the lease
    int attempts = 0;
    bool counted = false;  // among those who wait
  };
  using WaitingPtr = std::shared_ptr<Waiting>;

  // Who wants one lease, in the order of their calls. One thread at a time looks for all of them.
  struct Line {
    std::deque<WaitingPtr> waiting;
    bool looking = false;
    bool look_again = false;  // something has happened since it began
    uint64_t timer = 0;       // which one counts
  };

  struct Answer {
    WaitingPtr waiting;
    absl::Status status;
  };
  using Answers = std::vector<Answer>;

  void Look(const std::string& name);
  void LookLater(const std::string& name);
  void LookAt(const std::string& name, microseconds delay, uint64_t timer);
  WaitingPtr TakeFirst(Line& line, const absl::StatusOr<StoredLease>& stored, UnixMicros expires,
                       Answers& answers);
  microseconds UntilNextLook(const Line& line, UnixMicros expires) const;
  Lease AsItStands(std::string name, const StoredLease& stored);
  void Refuse(Line& line, size_t index, absl::Status status, Answers& answers);
  void Forget(Waiting& waiting);
  void Take(const WaitingPtr& waiting, StoredLease stored);
  // What was stored before, and is now.
  struct Taking {
    std::optional<UnixMicros> abandoned;
    StoredLease lease;
  };
  void EndTake(const WaitingPtr& waiting, Taking taking, const CommitResult& result);
  void Confirm(const WaitingPtr& waiting, Taking taking);
  void EndTaken(const WaitingPtr& waiting, const Taking& taking);
  void EndTurn(const WaitingPtr& waiting, absl::StatusOr<Lease> answer);
  void LoseRace(const WaitingPtr& waiting);
  void Wake(const std::string& name);

  store::CommitGround Ground() { return {store_, executor_, {shared_from_this(), &doors_}}; }
  absl::StatusOr<State> Renewed(const RenewRequest& request, const StoredLease& stored);
  absl::StatusOr<HeldState> PlanWrite(const HeldWrite& request, WriteBatch& batch);
  void EndRelease(const std::string& name, StoredLease released, store::CommitPosition position,
                  const LeaseCallback& done);
  absl::Status CheckHeld(const std::string& name, const StoredLease& lease, store::Stamp token);

  void Sweep(const std::string& after_name);
  void SweepLater(microseconds delay, std::string after_name);
  void SetRight(const std::string& after_name);
  bool MayBeForgotten(const Owner& owner, UnixMicros now) const;
  bool IsForgotten(const StoredLease& stored, UnixMicros now) const;

  absl::StatusOr<StoredLease> Read(const std::string& name) const {
    return ReadLease(*store_.Snapshot(), name);
  }
  // Runs `work` on the executor, unless this has come to its end; then `otherwise`, which touches
  // nothing but this object.
  template <typename Work, typename Otherwise>
  void Later(microseconds delay, Work work, Otherwise otherwise) {
    ScheduleInside({shared_from_this(), &doors_}, executor_, delay, std::move(work),
                   std::move(otherwise));
  }
  // Runs `work` unless this has come to its end, or nobody else has it any more.
  template <typename Work>
  void LaterIfKept(microseconds delay, Work work) {
    executor_.Schedule(delay, [weak = weak_from_this(), work = std::move(work)] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      const Doors::Visit visit(self->doors_);
      if (visit.let_in()) work();
    });
  }

  store::Store& store_;
  const store::Capabilities capabilities_;
  const Clock& clock_;
  Executor& executor_;
  const LeasesOptions options_;
  const std::shared_ptr<Counters> counters_ = std::make_shared<Counters>();
  Expiries expiries_;
  Doors doors_;

  std::mutex mutex_;  // guards the members below
  absl::flat_hash_map<std::string, Line> lines_;
  size_t waiting_ = 0;
  uint64_t timers_ = 0;
  bool stopping_ = false;
};

void Leases::Impl::Acquire(AcquireRequest request, LeaseCallback done) {
  if (absl::Status valid = CheckAcquire(request); !valid.ok()) return done(std::move(valid));
  auto waiting = std::make_shared<Waiting>();
  waiting->until = std::min(clock_.SteadyNow() + request.wait, request.deadline);
  waiting->request = std::move(request);
  waiting->done = std::move(done);
  const std::string& name = waiting->request.name;
  {
    const std::lock_guard lock(mutex_);
    Line& line = lines_[name];
    line.waiting.push_back(waiting);
    line.look_again = true;
    if (std::exchange(line.looking, true)) return;
  }
  Look(name);
}

// Gives the lease to the first who may have it, answers those who do not wait for it, and lets the
// others wait. REQUIRES: the line is being looked at, by this thread.
void Leases::Impl::Look(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    lines_[name].look_again = false;
  }
  absl::StatusOr<StoredLease> stored = Read(name);
  const UnixMicros expires =
      stored.ok() && stored->state ? expiries_.ExpireTime(name, *stored) : UnixMicros{0};
  Answers answers;
  WaitingPtr first;
  bool again = false;
  microseconds delay{0};
  uint64_t timer = 0;
  {
    const std::lock_guard lock(mutex_);
    Line& line = lines_[name];
    first = TakeFirst(line, stored, expires, answers);
    again = first == nullptr && line.look_again && !line.waiting.empty();
    if (first == nullptr && !again) {
      line.looking = false;
      if (line.waiting.empty()) {
        lines_.erase(name);
      } else {
        delay = UntilNextLook(line, expires);
        timer = line.timer = ++timers_;
      }
    }
  }
  if (timer != 0) LookAt(name, delay, timer);
  for (const Answer& answer : answers) answer.waiting->done(answer.status);
  if (first != nullptr) return Take(first, *std::move(stored));
  // Not on this thread: the first caller must not serve all later ones.
  if (again) LookLater(name);
}

// Takes the first who may have the lease out of the line, and those who are not to wait any longer.
Leases::Impl::WaitingPtr Leases::Impl::TakeFirst(Line& line,
                                                 const absl::StatusOr<StoredLease>& stored,
                                                 UnixMicros expires, Answers& answers) {
  const Time steady = clock_.SteadyNow();
  const UnixMicros now = clock_.Now();
  for (size_t i = 0; i < line.waiting.size();) {
    Waiting& waiting = *line.waiting[i];
    const AcquireRequest& request = waiting.request;
    if (request.waiter != nullptr && request.waiter->gone()) {
      Refuse(line, i, StoppedError(), answers);
    } else if (!stored.ok()) {
      Refuse(line, i, stored.status(), answers);
    } else if (!stored->IsHeld(now) || expires <= now || stored->owner->holder == request.holder) {
      WaitingPtr first = line.waiting[i];
      line.waiting.erase(line.waiting.begin() + static_cast<std::ptrdiff_t>(i));
      Forget(*first);
      return first;
    } else if (waiting.until <= steady) {
      Refuse(line, i, Held(request.name, *stored, expires, now), answers);
    } else if (stopping_) {
      Refuse(line, i, Draining(), answers);
    } else if (!waiting.counted && waiting_ >= options_.waiting_max) {
      Refuse(line, i, TooManyWait(options_.waiting_max), answers);
    } else {
      if (!std::exchange(waiting.counted, true)) ++waiting_;
      ++i;
    }
  }
  return nullptr;
}

void Leases::Impl::Refuse(Line& line, size_t index, absl::Status status, Answers& answers) {
  const auto at = line.waiting.begin() + static_cast<std::ptrdiff_t>(index);
  Forget(**at);
  answers.push_back({*at, std::move(status)});
  line.waiting.erase(at);
}

// It does not wait any more.
void Leases::Impl::Forget(Waiting& waiting) {
  if (std::exchange(waiting.counted, false)) --waiting_;
}

// When the lease expires or the first of those who wait has waited enough; before that to see what
// other processes have done.
microseconds Leases::Impl::UntilNextLook(const Line& line, UnixMicros expires) const {
  microseconds delay = options_.look_interval;
  delay = std::min(delay, microseconds(expires - clock_.Now()));
  const Time now = clock_.SteadyNow();
  for (const WaitingPtr& waiting : line.waiting) {
    if (waiting->until - now >= delay) continue;
    delay = std::chrono::ceil<microseconds>(waiting->until - now);
  }
  return delay;
}

void Leases::Impl::LookAt(const std::string& name, microseconds delay, uint64_t timer) {
  // Whoever waits then is answered at the end, so there is nothing to keep this object for.
  LaterIfKept(delay, [this, name, timer] {
    {
      const std::lock_guard lock(mutex_);
      const auto found = lines_.find(name);
      if (found == lines_.end() || found->second.timer != timer) return;
      if (std::exchange(found->second.looking, true)) return;
    }
    Look(name);
  });
}

// REQUIRES: the line is being looked at.
void Leases::Impl::LookLater(const std::string& name) {
  Later(
      microseconds(0), [this, name] { Look(name); }, [] {});
}

// Something has happened to the lease.
void Leases::Impl::Wake(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = lines_.find(name);
    if (found == lines_.end()) return;
    found->second.look_again = true;
    if (std::exchange(found->second.looking, true)) return;
  }
  LookLater(name);
}

// Commits that the lease is this one's. REQUIRES: as of Look; it is over when EndTurn is called.
void Leases::Impl::Take(const WaitingPtr& waiting, StoredLease stored) {
  const AcquireRequest& request = waiting->request;
  const UnixMicros now = clock_.Now();
  State state = stored.state.value_or(State());
  state.expire_time = now + request.ttl.count();
  state.ttl = request.ttl;
  Owner owner;
  owner.holder = request.holder;
  owner.metadata = request.metadata;
  owner.acquire_time = stored.owner ? std::max(now, stored.owner->acquire_time + 1) : now;
  Taking taking;
  if (stored.owner && !stored.owner->holder.empty()) {
    taking.abandoned = expiries_.ExpireTime(request.name, stored);
  }
  // The commit point comes last: a state without it changes for whom the lease is nothing but when
  // to try.
  WriteBatch batch;
  if (request.joined != nullptr) {
    const auto reader = store_.Snapshot();
    absl::Status joined = request.joined(*reader, batch);
    if (!joined.ok()) return EndTurn(waiting, std::move(joined));
  }
  PutState(request.name, stored, state, batch);
  PutOwner(request.name, stored, owner, batch);
  batch.MarkCommitPoint();
  batch.set_deadline(request.deadline);
  if (request.background) batch.MarkAsBackground();
  ++waiting->attempts;
  taking.lease = std::move(stored);
  taking.lease.state = std::move(state);
  taking.lease.owner = std::move(owner);
  store_.Commit(std::move(batch),
                [self = shared_from_this(), waiting, taking = std::move(taking)](
                    const CommitResult& result) { self->EndTake(waiting, taking, result); });
}

void Leases::Impl::EndTake(const WaitingPtr& waiting, Taking taking, const CommitResult& result) {
  if (!result.status.ok()) return EndTurn(waiting, result.status);
  if (!result.committed) return LoseRace(waiting);
  if (capabilities_.commit_positions) {
    taking.lease.token = result.position;
    return EndTaken(waiting, taking);
  }
  Later(
      microseconds(0), [this, waiting, taking = std::move(taking)] { Confirm(waiting, taking); },
      [this, waiting] { EndTurn(waiting, Unknown(Draining())); });
}

void Leases::Impl::EndTaken(const WaitingPtr& waiting, const Taking& taking) {
  if (taking.abandoned) ++counters_->take_overs;
  Lease lease = ToLease(waiting->request.name, taking.lease);
  lease.abandoned = taking.abandoned;
  EndTurn(waiting, std::move(lease));
}

// Reads which token it is that was taken. Another may have taken the lease since.
void Leases::Impl::Confirm(const WaitingPtr& waiting, Taking taking) {
  StoredLease& taken = taking.lease;
  const std::string& name = waiting->request.name;
  const absl::StatusOr<StoredLease> now = Read(name);
  if (!now.ok()) return EndTurn(waiting, Unknown(now.status()));
  // Where a batch is not one step another may have written either record; taken anew, the lease is
  // the same holder's.
  if (now->owner != taken.owner || now->state != taken.state) return LoseRace(waiting);
  taken.token = now->token;
  EndTaken(waiting, taking);
}

// Another was faster: it stays the first of the line.
void Leases::Impl::LoseRace(const WaitingPtr& waiting) {
  const std::string& name = waiting->request.name;
  if (waiting->attempts >= store::kAttemptsMax) {
    return EndTurn(waiting, store::RetriesExhausted(SubjectOf(name), waiting->attempts));
  }
  bool stopping = false;
  {
    const std::lock_guard lock(mutex_);
    stopping = stopping_;
    if (!stopping) lines_[name].waiting.push_front(waiting);
  }
  if (stopping) return EndTurn(waiting, Draining());
  LookLater(name);
}

// Answers, and goes on with the line, if there is anybody left in it.
void Leases::Impl::EndTurn(const WaitingPtr& waiting, absl::StatusOr<Lease> answer) {
  const std::string& name = waiting->request.name;
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = lines_.find(name);
    more = !found->second.waiting.empty();
    if (!more) lines_.erase(found);
  }
  if (more) LookLater(name);
  waiting->done(std::move(answer));
}

void Leases::Impl::StopWaiting() {
  std::vector<WaitingPtr> all;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (auto line = lines_.begin(); line != lines_.end();) {
      for (WaitingPtr& waiting : line->second.waiting) {
        Forget(*waiting);
        all.push_back(std::move(waiting));
      }
      line->second.waiting.clear();
      // One that is being looked at is ended by who looks.
      const auto at = line++;
      if (!at->second.looking) lines_.erase(at);
    }
  }
  for (const WaitingPtr& waiting : all) waiting->done(Draining());
}

void Leases::Impl::Renew(RenewRequest request, LeaseCallback done) {
  if (absl::Status valid = CheckRenew(request); !valid.ok()) return done(std::move(valid));
  store::Race race{SubjectOf(request.name), request.deadline};
  store::CommitGuarded(
      Ground(), std::move(race),
      [this, request = std::move(request)](WriteBatch& batch) -> absl::StatusOr<Lease> {
        ASSIGN_OR_RETURN(StoredLease stored, Read(request.name));
        ASSIGN_OR_RETURN(State state, Renewed(request, stored));
        // Without atomic batches whoever takes the lease now may find its time changed, and no
        // more: its token is another.
        if (capabilities_.atomic_batches) {
          batch.Check(Keyspace::kLeases, OwnerKey(request.name), stored.token);
        }
        PutState(request.name, stored, state, batch);
        stored.state = std::move(state);
        return ToLease(request.name, stored);
      },
      std::move(done));
}

// What becomes of the state.
absl::StatusOr<State> Leases::Impl::Renewed(const RenewRequest& request,
                                            const StoredLease& stored) {
  RETURN_IF_ERROR(CheckHeld(request.name, stored, request.token));
  State state = *stored.state;
  state.ttl = request.ttl.value_or(state.ttl);
  state.expire_time = clock_.Now() + state.ttl.count();
  if (!request.position) return state;
  const Place place{*request.position, std::nullopt};
  RETURN_IF_ERROR(CheckPlaceExists(store_, "position", place));
  if (place < state.place) return AlreadyAcknowledged(request.name, place, state.place);
  state.place = place;
  return state;
}

void Leases::Impl::Release(ReleaseRequest request, LeaseCallback done) {
  if (absl::Status valid = CheckRelease(request); !valid.ok()) return done(std::move(valid));
  store::CommitGuarded(
      Ground(), {SubjectOf(request.name), request.deadline},
      [this, request](WriteBatch& batch) -> absl::StatusOr<StoredLease> {
        ASSIGN_OR_RETURN(StoredLease stored, Read(request.name));
        RETURN_IF_ERROR(CheckHeld(request.name, stored, request.token));
        Owner owner = Released(*stored.owner, clock_.Now());
        PutOwner(request.name, stored, owner, batch);
        stored.owner = std::move(owner);
        return stored;
      },
      [this, name = request.name, done = std::move(done)](absl::StatusOr<StoredLease> released,
                                                          store::CommitPosition position) {
        if (!released.ok()) return done(released.status());
        EndRelease(name, *std::move(released), position, done);
      });
}

void Leases::Impl::EndRelease(const std::string& name, StoredLease released,
                              store::CommitPosition position, const LeaseCallback& done) {
  Wake(name);
  if (capabilities_.commit_positions) {
    released.token = position;
    return done(ToLease(name, released));
  }
  Later(
      microseconds(0),
      [this, name, done, released = std::move(released)] {
        const absl::StatusOr<StoredLease> now = Read(name);
        if (!now.ok()) return done(Unknown(now.status()));
        Lease lease = ToLease(name, released);
        // Whoever has it by now has a greater one.
        lease.token = now->token;
        done(std::move(lease));
      },
      [done] { done(Unknown(Draining())); });
}

absl::Status Leases::Impl::CheckHeld(const std::string& name, const StoredLease& lease,
                                     store::Stamp token) {
  absl::Status held = CheckToken(name, lease, token);
  if (!held.ok()) ++counters_->lost;
  return held;
}

void Leases::Impl::Write(HeldWrite request, HeldCallback done) {
  const std::string name = request.name;
  const bool ends = request.end != HeldWrite::End::kNone;
  store::CommitGuarded(
      Ground(), {SubjectOf(name), /*deadline=*/std::nullopt},
      [this, request = std::move(request)](WriteBatch& batch) { return PlanWrite(request, batch); },
      [this, name, ends, done = std::move(done)](absl::StatusOr<HeldState> state) {
        if (ends && state.ok() && state->written) Wake(name);
        done(std::move(state));
      });
}

absl::StatusOr<HeldState> Leases::Impl::PlanWrite(const HeldWrite& request, WriteBatch& batch) {
  const auto reader = store_.Snapshot();
  ASSIGN_OR_RETURN(const StoredLease stored, ReadLease(*reader, request.name));
  RETURN_IF_ERROR(CheckHeld(request.name, stored, request.token));
  State state = *stored.state;
  state.expire_time = clock_.Now() + state.ttl.count();
  if (!request.change(state)) return HeldState{*stored.state, false};
  state.place = std::max(state.place, stored.state->place);
  switch (request.end) {
    case HeldWrite::End::kNone:
      batch.Check(Keyspace::kLeases, OwnerKey(request.name), stored.token);
      break;
    case HeldWrite::End::kRelease:
      PutOwner(request.name, stored, Released(*stored.owner, clock_.Now()), batch);
      break;
    case HeldWrite::End::kForget:
      batch.DeleteIf(Keyspace::kLeases, OwnerKey(request.name), stored.token);
      batch.DeleteIf(Keyspace::kLeases, StateKey(request.name), stored.state_stamp);
      break;
  }
  if (request.joined != nullptr) {
    RETURN_IF_ERROR(request.joined(*reader, batch));
  }
  if (request.end != HeldWrite::End::kForget) PutState(request.name, stored, state, batch);
  return HeldState{std::move(state), true};
}

// Its time is the one that Acquire goes by.
Lease Leases::Impl::AsItStands(std::string name, const StoredLease& stored) {
  Lease lease = ToLease(std::move(name), stored);
  if (!lease.holder.empty()) lease.expire_time = expiries_.ExpireTime(lease.name, stored);
  return lease;
}

absl::StatusOr<Lease> Leases::Impl::Get(const std::string& name) {
  RETURN_IF_ERROR(ValidateName("name", name));
  ASSIGN_OR_RETURN(const StoredLease stored, Read(name));
  if (stored.owner) return AsItStands(name, stored);
  return Error(ErrorReason::kLeaseNotFound, "no such lease").With("lease", name);
}

absl::StatusOr<std::vector<Lease>> Leases::Impl::List(const LeaseQuery& query, size_t most) {
  if (!query.prefix.empty()) RETURN_IF_ERROR(ValidateName("prefix", query.prefix));
  const auto reader = store_.Snapshot();
  std::vector<Lease> page;
  std::string last;
  const auto cursor = reader->Scan(Keyspace::kLeases, LeaseRange(query.prefix, query.after_name));
  for (; cursor->Valid() && page.size() < most; cursor->Next()) {
    if (Stopped(query.stopped)) return StoppedError();
    ASSIGN_OR_RETURN(const std::string_view name, LeaseNameOf(cursor->key()));
    if (name == last) continue;
    last = name;
    // A scan may be stale, and the owner and the state of two moments.
    ASSIGN_OR_RETURN(const StoredLease stored, ReadLease(*reader, name));
    if (stored.owner) page.push_back(AsItStands(last, stored));
  }
  RETURN_IF_ERROR(cursor->status());
  return page;
}

void Leases::Impl::StartSweeping() {
  if (!capabilities_.commit_positions || !capabilities_.atomic_batches) return;
  SweepLater(microseconds(0), "");
}

void Leases::Impl::SweepLater(microseconds delay, std::string after_name) {
  LaterIfKept(delay, [this, after_name = std::move(after_name)] { Sweep(after_name); });
}

bool Leases::Impl::MayBeForgotten(const Owner& owner, UnixMicros now) const {
  return owner.holder.empty() && owner.release_time + options_.released_kept.count() <= now;
}

bool Leases::Impl::IsForgotten(const StoredLease& stored, UnixMicros now) const {
  return stored.owner && MayBeForgotten(*stored.owner, now) && stored.state->place == Place();
}

// One turn; what cannot be read or deleted now is met again the next time round. The owner comes
// first of a lease's records, and tells of most that there is nothing to do: asked for by their
// keys, all leases would take the places of what is in use in the engine's cache.
void Leases::Impl::Sweep(const std::string& after_name) {
  const auto reader = store_.Snapshot();
  const UnixMicros now = clock_.Now();
  std::string last;
  size_t leases = 0;
  const auto cursor = reader->Scan(Keyspace::kLeases, LeaseRange("", after_name));
  for (; cursor->Valid(); cursor->Next()) {
    const absl::StatusOr<std::string_view> name = LeaseNameOf(cursor->key());
    if (!name.ok() || *name == last) continue;
    if (leases++ == options_.sweep_leases_max) break;
    last = *name;
    const absl::StatusOr<Owner> owner = Owner::Decode(cursor->value());
    if (!owner.ok() || !MayBeForgotten(*owner, now)) continue;
    const absl::StatusOr<StoredLease> stored = ReadLease(*reader, last);
    if (!stored.ok() || !IsForgotten(*stored, now)) continue;
    WriteBatch batch;
    batch.MarkAsBackground();
    batch.DeleteIf(Keyspace::kLeases, OwnerKey(last), stored->token);
    batch.DeleteIf(Keyspace::kLeases, StateKey(last), stored->state_stamp);
    store_.Commit(std::move(batch), [](const CommitResult&) {});
  }
  const bool more = cursor->Valid();
  SweepLater(more ? kSweepPause : options_.sweep_interval, more ? std::move(last) : "");
}

// So that a process that begins later need not find out anew. A renewal meanwhile is as good.
void Leases::Impl::SetRight(const std::string& after_name) {
  const auto reader = store_.Snapshot();
  const UnixMicros now = clock_.Now();
  std::string last;
  size_t leases = 0;
  const auto cursor = reader->Scan(Keyspace::kLeases, LeaseRange("", after_name));
  for (; cursor->Valid(); cursor->Next()) {
    const absl::StatusOr<std::string_view> name = LeaseNameOf(cursor->key());
    if (!name.ok() || *name == last) continue;
    if (leases++ == options_.sweep_leases_max) break;
    last = *name;
    const absl::StatusOr<StoredLease> stored = ReadLease(*reader, last);
    if (!stored.ok() || !stored->IsHeld(now)) continue;
    State state = *stored->state;
    state.expire_time = expiries_.ExpireTime(last, *stored);
    if (state.expire_time == stored->state->expire_time) continue;
    WriteBatch batch;
    batch.MarkAsBackground();
    batch.Replace(Keyspace::kLeases, StateKey(last), state.Encode(), stored->state_stamp);
    store_.Commit(std::move(batch), [](const CommitResult&) {});
  }
  if (cursor->Valid()) SetRightLater(kSweepPause, std::move(last));
}

void Leases::Impl::SetRightLater(microseconds delay, std::string after_name) {
  LaterIfKept(delay, [this, after_name = std::move(after_name)] { SetRight(after_name); });
}

Leases::Leases(store::Store& store, const Clock& clock, Executor& executor, LeasesOptions options)
    : impl_(std::make_shared<Impl>(store, clock, executor, options)) {}

Leases::~Leases() { impl_->Close(); }

void Leases::Acquire(AcquireRequest request, LeaseCallback done) {
  impl_->Acquire(std::move(request), std::move(done));
}

void Leases::Renew(RenewRequest request, LeaseCallback done) {
  impl_->Renew(std::move(request), std::move(done));
}

void Leases::Release(ReleaseRequest request, LeaseCallback done) {
  impl_->Release(std::move(request), std::move(done));
}

void Leases::Write(HeldWrite request, std::function<void(absl::StatusOr<HeldState>)> done) {
  impl_->Write(std::move(request), std::move(done));
}

LeaseCounts Leases::counts() const { return impl_->counts(); }

absl::StatusOr<Lease> Leases::Get(const std::string& name) const { return impl_->Get(name); }

absl::StatusOr<std::vector<Lease>> Leases::List(const LeaseQuery& query, size_t most) const {
  return impl_->List(query, most);
}

void Leases::SetRight() { impl_->SetRightLater(microseconds(0), ""); }

bool Leases::IsHeld(std::string_view name, const StoredLease& stored) const {
  return impl_->IsHeld(name, stored);
}

store::JoinedPlan Leases::Fence(LeaseToken token) const { return impl_->Fence(std::move(token)); }

void Leases::StopWaiting() { impl_->StopWaiting(); }

void Leases::StartSweeping() { impl_->StartSweeping(); }

}  // namespace strata::lease
