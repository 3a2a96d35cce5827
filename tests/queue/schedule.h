// Queues under every interleaving that a seed draws: producers, consumers, movers and sweepers in
// some processes over one engine, on one thread, stopped between any two writes, or for ever.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schemas/queue/plans.h"
#include "service/engines/engines.h"
#include "tests/queue/queues_world.h"
#include "tests/queue/scheduled_calls.h"
#include "tests/queue/scheduled_queues.h"

namespace strata::queue::testing {

// What schedules went through, so that it is seen whether they go anywhere.
struct Seen {
  int pushed = 0;
  int handed_out = 0;
  int ran_out = 0;
  int acknowledged = 0;
  int rolled_back = 0;
  int extended = 0;
  int moved = 0;
  int died = 0;
  int replayed = 0;
  int popped_or_purged = 0;
  int promoted = 0;
  int tombstones = 0;
  int tokens_refused = 0;
  int queues_deleted = 0;
  int queues_not_empty = 0;
};

class QueueSchedule {
 public:
  explicit QueueSchedule(const ScheduleOptions& options)
      : options_(options), dice_(options.seed), engine_(Open(clock_)) {
    clock_.StepAtEachCall(microseconds(3));
  }

  // What is wrong after it; empty: nothing.
  std::string Run() {
    SetUp();
    for (int steps = 0; problem().empty() && steps < steps_max_; ++steps) Step();
    if (problem().empty()) Drain();
    std::string found = problem();
    processes_.clear();
    return found;
  }

  std::string Story() const { return witness_.Story(); }
  void AddTo(Seen& seen) const {
    for (const Change& change : witness_.changes()) Count(change, seen);
    seen.tokens_refused += calls_.tokens_refused();
    seen.queues_deleted += calls_.deleted();
    seen.queues_not_empty += calls_.not_deleted();
  }

 private:
  static constexpr seconds kReservation{10};

  static std::unique_ptr<store::Store> Open(const Clock& clock) {
    engines::OpenOptions open;
    open.clock = &clock;
    return *engines::OpenEngine("memory", open);
  }

  const std::string& problem() const { return witness_.problem(); }
  uint64_t Draw(uint64_t below) { return dice_.Draw(below); }
  bool Chance(int percent) { return dice_.Chance(percent); }

  void SetUp() {
    QueueSettings settings;
    settings.reservation_timeout = kReservation;
    settings.retry_delay = seconds(1);
    settings.retry_delay_max = seconds(10);
    if (Chance(30)) settings.history_retention = std::chrono::hours(20);
    QueueProcess process(*engine_, clock_, options_.seed + 1);
    for (const std::string_view name : kScheduleQueues) {
      settings.max_tries = static_cast<int32_t>(Draw(4));
      // What dies in the one goes to the other, or stays.
      settings.dead_letter_queue = name == "a" && Chance(40) ? "b" : "";
      if (!process.Create(std::string(name), settings).ok()) witness_.Say("cannot create");
      witness_.AddQueue(std::string(name));
    }
    for (uint64_t i = 1 + Draw(4); i > 0; --i) AddProcess();
    calls_left_ = 10 + static_cast<int>(Draw(40));
    steps_max_ = Chance(30) ? 20 + static_cast<int>(Draw(200)) : 600;
    freezes_ = Chance(70);
  }

  struct Process {
    std::unique_ptr<ScheduledQueues> queues;
    bool frozen = false;
  };

  void AddProcess() {
    const int number = static_cast<int>(processes_made_++);
    processes_.push_back(
        {std::make_unique<ScheduledQueues>(*engine_, witness_, clock_, number, options_.single,
                                           options_.fault, dice_.Seed()),
         false});
    if (Chance(25)) (*processes_.back().queues)->StartBackground();
  }

  void Step() {
    const uint64_t what = Draw(100);
    if (what < 6) return PassTime();
    if (what < 8 && freezes_) return FreezeOrThaw();
    if (what < 9 && freezes_ && processes_.size() > 1) return Crash();
    Process& process = processes_[Draw(processes_.size())];
    if (process.frozen) return;
    ScheduledQueues& queues = *process.queues;
    if (what < 30 && calls_left_ > 0) {
      --calls_left_;
      return calls_.Call(queues);
    }
    if (what < 35) return queues.RunDue();
    if (queues.writes().held() > 0) {
      queues.writes().LetGo(Draw(queues.writes().held()), Chance(70));
    }
  }

  void PassTime() {
    const uint64_t how = Draw(10);
    const uint64_t most = how < 5 ? 1'000'000 : how < 9 ? 12'000'000 : 90'000'000;
    clock_.Advance(microseconds(Draw(most)));
  }
  void FreezeOrThaw() {
    Process& process = processes_[Draw(processes_.size())];
    process.frozen = !process.frozen;
  }
  // It stands still for ever; another one begins.
  void Crash() {
    processes_.erase(processes_.begin() + static_cast<std::ptrdiff_t>(Draw(processes_.size())));
    AddProcess();
  }

  // Those who are left stand still for ever, or go on, now or later; whatever they do, a fresh
  // process gets all that is not finished.
  void Drain() {
    const uint64_t how = Draw(3);
    if (how == 0) processes_.clear();
    if (how == 1) Thaw();
    ScheduledQueues fresh(*engine_, witness_, clock_, -1, options_.single, Fault::kNone,
                          dice_.Seed());
    // As servers do: what others make of queues, and leave of deleted ones, is met by it alone.
    fresh->StartBackground();
    MakeAll(fresh);
    if (how == 1) CheckLists(fresh);
    CheckNothingReadyWaits(fresh);
    for (int round = 0; problem().empty() && round < 60; ++round) {
      if (how == 2 && round == 2) {
        Thaw();
        MakeAll(fresh);
      }
      clock_.Advance(seconds(round < 5 ? 120 : 1));
      size_t handed = 0;
      for (const std::string_view name : kScheduleQueues)
        handed += Consume(fresh, std::string(name));
      if (handed == 0 && witness_.living().empty() && round > 2) break;
    }
    if (!problem().empty()) return;
    if (!witness_.living().empty()) {
      const auto& [id, message] = *witness_.living().begin();
      return witness_.Say("message " + id.ToText() + " is never handed out: lost");
    }
    CheckLists(fresh);
    CheckIndex(fresh);
  }

  // A deletion may have come before its queue was to be made again.
  void MakeAll(ScheduledQueues& fresh) {
    for (const std::string_view name : kScheduleQueues) {
      const auto queue = ReadQueue(*engine_, name);
      if (!queue.ok() || (*queue && !(*queue)->delete_time)) continue;
      calls_.MakeAgain(fresh, std::string(name));
      fresh.Finish();
    }
  }

  // Whatever died between which two writes: once somebody has met each key of the index, none is
  // left that says nothing true.
  void CheckIndex(ScheduledQueues& fresh) {
    // Behind the least of the sequence numbers nobody looks, before its message is gone.
    ++witness_.purging[fresh.number()];
    for (const std::string_view name : kScheduleQueues) {
      PurgeRequest dead;
      dead.queue = name;
      dead.states = {State::kDead};
      fresh->Purge(dead, [this](const absl::StatusOr<Swept>& swept) {
        if (!swept.ok()) witness_.Say("dead messages cannot be purged");
      });
      fresh.Finish();
    }
    // Whoever pushes is waited for, of one message with a sequence number after the other.
    for (int looks = 0; problem().empty() && looks < 100 && UntrueKeys() > 0; ++looks) {
      clock_.Advance(seconds(61));
      for (const std::string_view name : kScheduleQueues) {
        for (const auto state : {std::optional<State>(), std::optional(State::kFinished)}) {
          const auto page = fresh->ListMessages(
              {.queue = std::string(name), .state = state, .after = "", .stopped = {}}, 1'000);
          if (!page.ok()) return witness_.Say("messages cannot be listed");
        }
        if (!fresh->LowWatermark({std::string(name)}).ok()) witness_.Say("there is no watermark");
      }
      fresh.Finish();
    }
    if (const int untrue = UntrueKeys(); untrue > 0) {
      witness_.Say(std::to_string(untrue) + " keys of the index are left that say nothing true" +
                   untrue_);
    }
  }

  int UntrueKeys() {
    int untrue = 0;
    untrue_.clear();
    const auto cursor = engine_->Scan(store::Keyspace::kQueueIndex, {});
    for (; cursor->Valid(); cursor->Next()) {
      const auto hint = ParseHintKey(cursor->key());
      // In a queue that is deleted they may stay for as long as its tombstone.
      if (!hint || !witness_.IsThere(*IncarnationOf(cursor->key()))) continue;
      const auto record = engine_->Get(store::Keyspace::kMessages, hint->id.bytes());
      bool holds = false;
      if (record.ok() && *record) {
        const auto message = Message::Decode((*record)->value);
        holds =
            message.ok() && message->queue == IncarnationOf(cursor->key()) && Says(*hint, *message);
      }
      if (holds) continue;
      ++untrue;
      untrue_ += std::string(", ") + static_cast<char>(hint->kind) + " of " + hint->id.ToText() +
                 " base " + std::to_string(hint->base);
    }
    return untrue;
  }

  void Thaw() {
    for (Process& process : processes_) process.queues->Finish();
  }

  size_t Consume(ScheduledQueues& fresh, const std::string& queue) {
    std::vector<std::string> tokens;
    ReserveRequest request;
    request.queue = queue;
    request.count = 100;
    bool answered = false;
    fresh->Reserve(request, [&](const QueueProcess::Messages& messages) {
      answered = true;
      if (!messages.ok()) return calls_.ExpectRefusal("a fresh reservation", messages.status());
      for (const MessageView& view : *messages) {
        calls_.TakeHanded(view);
        tokens.push_back(view.token);
      }
    });
    fresh.Finish();
    if (!answered) witness_.Say("a fresh reservation is not answered");
    for (const std::string& token : tokens) calls_.Acknowledge(fresh, token);
    fresh.Finish();
    return tokens.size();
  }

  // Whatever else is blocked, held up or under way: what is ready is handed out at once.
  void CheckNothingReadyWaits(ScheduledQueues& fresh) {
    for (const std::string_view name : kScheduleQueues) {
      const int64_t queue = witness_.IncarnationOf(std::string(name));
      const auto record = ReadQueue(*engine_, name);
      const int32_t tries_max = (*record)->settings.max_tries;
      const UnixMicros now = clock_.Now();
      std::vector<MessageId> ready;
      for (const auto& [id, message] : witness_.living()) {
        if (message.queue != queue || message.stage != Stage::kOpen || message.time > now) continue;
        if (message.expire_time != 0 || (tries_max != 0 && message.tries >= tries_max)) continue;
        ready.push_back(id);
      }
      calls_.handed.clear();
      Consume(fresh, std::string(name));
      for (const MessageId& id : ready) {
        if (!calls_.handed.contains(id))
          witness_.Say("message " + id.ToText() + " is ready and waits");
      }
    }
  }

  // Each message that there is, in one queue and once.
  void CheckLists(ScheduledQueues& fresh) {
    std::set<MessageId> listed;
    for (const std::string_view name : kScheduleQueues) {
      const auto page = fresh->ListMessages(
          {.queue = std::string(name), .state = std::nullopt, .after = "", .stopped = {}}, 1'000);
      if (!page.ok()) return witness_.Say("messages cannot be listed");
      for (const MessageView& view : page->messages) {
        if (!listed.insert(view.id).second) witness_.Say("a message is listed twice");
      }
    }
    for (const auto& [id, message] : witness_.living()) {
      if (!listed.contains(id)) witness_.Say("message " + id.ToText() + " is not listed");
    }
  }

  static void Count(const Change& change, Seen& seen) {
    const std::optional<Message>& before = change.before;
    const std::optional<Message>& after = change.after;
    if (change.pushed()) {
      if (after && after->stage == Stage::kTombstone) ++seen.tombstones;
      if (after && after->live()) ++seen.pushed;
    } else if (!before->live()) {
      seen.replayed += after && after->live() ? 1 : 0;
    } else if (change.ended()) {
      ++(before->stage == Stage::kReserved ? seen.acknowledged : seen.popped_or_purged);
    } else if (change.handed_out()) {
      ++seen.handed_out;
      seen.ran_out += before->stage == Stage::kReserved ? 1 : 0;
    } else if (after->stage == Stage::kDead) {
      ++seen.died;
    } else if (after->queue != before->queue) {
      ++seen.moved;
    } else if (before->stage == Stage::kWaiting) {
      ++seen.promoted;
    } else if (after->stage == Stage::kReserved) {
      ++seen.extended;
    } else {
      ++seen.rolled_back;
    }
  }

  const ScheduleOptions options_;
  Dice dice_;
  test_support::ManualClock clock_;
  const std::unique_ptr<store::Store> engine_;
  Witness witness_{*engine_, clock_, kReservation, !options_.single};
  ScheduledCalls calls_{options_, dice_, clock_, witness_};
  std::vector<Process> processes_;
  uint64_t processes_made_ = 0;
  int calls_left_ = 0;
  int steps_max_ = 0;
  bool freezes_ = false;
  std::string untrue_;  // keys, as they were counted last
};

}  // namespace strata::queue::testing
