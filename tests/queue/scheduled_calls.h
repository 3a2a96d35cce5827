// Calls of queues that a schedule begins, and what their answers may be: of each change of a
// message somebody is told once, and nobody is told of what has not been.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/queue/queues_world.h"
#include "tests/queue/scheduled_queues.h"

namespace strata::queue::testing {

struct ScheduleOptions {
  bool single = true;  // single-record writes; else atomic batches, and ordering keys
  uint64_t seed = 1;
  Fault fault = Fault::kNone;
  bool deletes = false;  // queues often, whatever the seed says
};

// A seed's choices.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  uint64_t Seed() { return random_(); }
  uint64_t Draw(uint64_t below) { return random_() % below; }
  bool Chance(int percent) { return Draw(100) < static_cast<uint64_t>(percent); }

 private:
  std::mt19937_64 random_;
};

inline constexpr std::string_view kScheduleQueues[] = {"a", "b"};

class ScheduledCalls {
 public:
  ScheduledCalls(const ScheduleOptions& options, Dice& dice, const Clock& clock, Witness& witness)
      : options_(options),
        dice_(dice),
        clock_(clock),
        witness_(witness),
        pops_(dice.Chance(25)),
        purges_(dice.Chance(15)),
        deletes_(dice.Chance(30) || options.deletes) {}

  // One that the seed draws.
  void Call(ScheduledQueues& queues) {
    const uint64_t what = Draw(100);
    if (what < 34 || tokens_.empty()) {
      if (what % 2 == 0) return Push(queues);
      return Reserve(queues, DrawQueue(), 1 + static_cast<int32_t>(Draw(3)), Chance(20));
    }
    if (deletes_ && what < (options_.deletes ? 50 : 38)) return Delete(queues);
    if (what < 60) return Acknowledge(queues, DrawToken());
    if (what < 70) return Rollback(queues, DrawToken());
    if (what < 77) return Extend(queues, DrawToken());
    if (what < 84) return Move(queues, DrawToken());
    if (what < 88) return Replay(queues);
    if (what < 92 && pops_) return Pop(queues);
    if (what < 95 && purges_) return Purge(queues);
    return Reserve(queues, DrawQueue(), 1 + static_cast<int32_t>(Draw(3)), false);
  }

  // Somebody got it.
  void TakeHanded(const MessageView& view) {
    const int64_t delivery = view.message.delivery;
    const auto handed_out = [&](const Change& change) {
      return change.handed_out() && change.after->delivery == delivery;
    };
    if (witness_.Answer("hand-out", view.id, handed_out) == nullptr) {
      witness_.Say("a delivery is handed to two consumers, or did not take place");
    }
    tokens_.push_back(view.token);
    handed.insert(view.id);
  }

  void Acknowledge(ScheduledQueues& queues, const std::string& token) {
    const std::string sent = Sent(token);
    const Token parsed = *Token::FromText("", sent);
    witness_.acknowledging.insert({parsed.message, parsed.delivery});
    queues->Acknowledge(
        {sent}, kNoDeadline,
        [this, token, from = witness_.changes().size()](const QueueProcess::Results& results) {
          CheckTaken("an acknowledgement", "end", token, results.front(), from,
                     [](const Change& change) { return change.ended(); });
        });
  }

  void ExpectRefusal(const std::string& what, const absl::Status& status) {
    switch (ReasonOf(status).value_or(ErrorReason::kInternal)) {
      case ErrorReason::kReservationLost:
      case ErrorReason::kMessageNotFound:
        ++tokens_refused_;
        return;
      case ErrorReason::kRetriesExhausted:
      case ErrorReason::kDraining:
        return;
      case ErrorReason::kQueueNotFound:
      case ErrorReason::kQueueExists:
      case ErrorReason::kQueueNotEmpty:
        if (deletes_) return;
        witness_.Say(what + " fails: " + status.ToString());
        return;
      case ErrorReason::kInvalidField:
        // By the time it came to be pushed it had expired.
        if (what == kExpiringPush) return;
        [[fallthrough]];
      default:
        witness_.Say(what + " fails: " + status.ToString());
    }
  }

  // So that there is one, whatever became of it.
  void MakeAgain(ScheduledQueues& queues, const std::string& name) {
    queues->Create(name, witness_.SettingsOf(name), kNoDeadline,
                   [this](const absl::StatusOr<Queue>& made) {
                     if (!made.ok()) ExpectRefusal("a creation", made.status());
                   });
  }

  // Those that were handed out since this was cleared.
  std::set<MessageId> handed;
  int tokens_refused() const { return tokens_refused_; }
  int deleted() const { return deleted_; }
  int not_deleted() const { return not_deleted_; }

 private:
  static constexpr std::string_view kExpiringPush = "a push of what expires";

  uint64_t Draw(uint64_t below) { return dice_.Draw(below); }
  bool Chance(int percent) { return dice_.Chance(percent); }
  std::string DrawQueue() { return std::string(kScheduleQueues[Chance(75) ? 0 : 1]); }

  // A new one as a rule: it is still out.
  std::string DrawToken() {
    if (Chance(60)) return tokens_.back();
    return tokens_[Draw(tokens_.size())];
  }

  void Push(ScheduledQueues& queues) {
    PushRequest request;
    request.queue = DrawQueue();
    struct Expected {
      UnixMicros due = 0;
      std::string request_id;
    };
    std::vector<Expected> expected;
    std::string what = "a push";
    for (uint64_t i = Chance(80) ? 1 : 2; i > 0; --i) {
      PushedMessage message = Numbered(++pushed_);
      if (Chance(20)) {
        // The same again, whoever asks for it.
        message = Numbered(-1);
        message.request_id = "r" + std::to_string(Draw(3));
      } else {
        message.priority = static_cast<int32_t>(Draw(2));
        if (Chance(40)) message.delay = microseconds(Draw(6'000'000));
        if (Chance(10)) {
          what = kExpiringPush;
          message.expire_time =
              clock_.Now() + 7'000'000 + message.delay.value_or(microseconds(0)).count();
        }
        if (Chance(20)) message.sequence_number = pushed_;
        if (!options_.single && Chance(70)) message.ordering_key = Chance(70) ? "k" : "l";
      }
      expected.push_back({clock_.Now() + message.delay.value_or(microseconds(0)).count(),
                          request.queue + message.request_id});
      if (message.request_id.empty()) expected.back().request_id.clear();
      request.messages.push_back(std::move(message));
    }
    queues->Push(std::move(request), [this, expected, what](const QueueProcess::Pushes& pushes) {
      if (!pushes.ok()) return ExpectRefusal(what, pushes.status());
      for (size_t i = 0; i < pushes->size(); ++i) {
        const absl::StatusOr<PushResult>& push = (*pushes)[i];
        if (!push.ok()) {
          ExpectRefusal(what, push.status());
          continue;
        }
        if (!expected[i].request_id.empty()) {
          const MessageId id = ids_.try_emplace(expected[i].request_id, push->id).first->second;
          // Of a queue that was made anew meanwhile it is.
          if (id != push->id && !deletes_) {
            witness_.Say("a push that is repeated is another message");
          }
        } else if (push->replayed) {
          witness_.Say("a push is replayed that was none");
        }
        if (push->replayed || popped_unseen_.contains(push->id)) continue;
        const auto was_pushed = [](const Change& change) { return change.pushed(); };
        const Change* change = witness_.Answer("push", push->id, was_pushed);
        if (change == nullptr) {
          witness_.Say("a push is answered that did not take place, or twice");
        } else if (change->after->stage == Stage::kOpen && change->after->time < expected[i].due) {
          witness_.Say("a message is due before its delay is over");
        }
      }
    });
  }

  void Reserve(ScheduledQueues& queues, const std::string& queue, int32_t count, bool waits) {
    ReserveRequest request;
    request.queue = queue;
    request.count = count;
    if (waits) request.wait = seconds(5);
    queues->Reserve(request, [this](const QueueProcess::Messages& messages) {
      if (!messages.ok()) return ExpectRefusal("a reservation", messages.status());
      for (const MessageView& view : *messages) TakeHanded(view);
    });
  }

  void Pop(ScheduledQueues& queues) {
    const int process = queues.number();
    ++witness_.popping[process];
    ReserveRequest request;
    request.queue = DrawQueue();
    request.count = 1 + static_cast<int32_t>(Draw(2));
    request.pop = true;
    queues->Reserve(request, [this, process](const QueueProcess::Messages& messages) {
      --witness_.popping[process];
      if (!messages.ok()) return ExpectRefusal("a pop", messages.status());
      for (const MessageView& view : *messages) {
        const auto ended = [&](const Change& change) {
          return change.ended() && change.process == process;
        };
        if (witness_.Answer("end", view.id, ended) != nullptr) continue;
        // Pushed and popped in one batch it was never stored.
        if (options_.single || !popped_unseen_.insert(view.id).second) {
          witness_.Say("a message is popped that did not end, or ended for another");
        }
      }
    });
  }

  // One result of a call with a token. `fits`: the change that makes it true.
  // `kind`: of which nobody else is told.
  template <typename Fits>
  void CheckTaken(const std::string& what, const std::string& kind, const std::string& token,
                  const absl::StatusOr<bool>& result, size_t from, const Fits& fits) {
    if (!result.ok()) return ExpectRefusal(what, result.status());
    const Token sent = *Token::FromText("", token);
    const auto of_delivery = [&](const Change& change) {
      return change.of_delivery(sent.delivery) && fits(change);
    };
    // What is repeated is true of a change that somebody was told of, or nobody yet.
    if (*result) {
      const auto& all = witness_.changes();
      const bool was = std::any_of(all.begin(), all.end(), [&](const Change& change) {
        return change.id == sent.message && of_delivery(change);
      });
      if (!was) witness_.Say(what + " is called a repetition of nothing");
      return;
    }
    if (witness_.Answer(kind, sent.message, of_delivery, from) == nullptr) {
      witness_.Say(what + " takes a token whose delivery is over, or twice");
    }
  }

  // As it goes out: by the message's id alone, whoever holds it now, if that is the fault.
  std::string Sent(const std::string& token) {
    if (options_.fault != Fault::kTokenWithoutDelivery) return token;
    Token changed = *Token::FromText("", token);
    const auto living = witness_.living().find(changed.message);
    if (living != witness_.living().end()) changed.delivery = living->second.delivery;
    return changed.ToText();
  }

  void Releases(const std::string& token) {
    const Token parsed = *Token::FromText("", token);
    witness_.releasing.insert({parsed.message, parsed.delivery});
  }

  // Of a message that was handed out as often as its queue tries it.
  bool IsLastTry(const Message& message) const {
    const int32_t tries_max = witness_.SettingsOfIncarnation(message.queue).max_tries;
    return tries_max != 0 && message.tries >= tries_max;
  }

  void Rollback(ScheduledQueues& queues, const std::string& token) {
    RollbackRequest request;
    request.tokens = {token};
    const UnixMicros delay = static_cast<UnixMicros>(Draw(5'000'000));
    const bool timed = Chance(60);
    if (timed) request.delay = microseconds(delay);
    request.not_counted = Chance(20);
    request.dead = Chance(15);
    if (request.dead) {  // which goes with neither
      request.delay.reset();
      request.not_counted = false;
    }
    Releases(token);
    const UnixMicros earliest = timed ? clock_.Now() + delay : 0;
    const absl::Status taken = queues->Rollback(
        request, [this, token, earliest, dead = request.dead, counted = !request.not_counted,
                  from = witness_.changes().size()](const QueueProcess::Results& results) {
          CheckTaken("a roll back", "release", token, results.front(), from,
                     [&](const Change& change) {
                       if (!options_.single) return !StillHeld(change);
                       if (!change.after) return false;
                       if (dead || (counted && IsLastTry(*change.before))) {
                         return change.after->stage == Stage::kDead ||
                                change.after->queue != change.before->queue;
                       }
                       return change.after->stage == Stage::kOpen && change.after->time >= earliest;
                     });
        });
    EXPECT_THAT(taken, IsOk());
  }

  static bool StillHeld(const Change& change) {
    return change.after && change.after->stage == Stage::kReserved &&
           change.after->delivery == change.before->delivery;
  }

  void Extend(ScheduledQueues& queues, const std::string& token) {
    const absl::Status taken = queues->Extend(
        {token}, std::nullopt, kNoDeadline,
        [this, token, from = witness_.changes().size()](const QueueProcess::Results& results) {
          // Whatever else the batch did.
          const std::string kind = "extension" + std::to_string(options_.single ? 0 : ++extended_);
          CheckTaken("an extension", kind, token, results.front(), from,
                     [&](const Change& change) { return !options_.single || StillHeld(change); });
        });
    EXPECT_THAT(taken, IsOk());
  }

  void Move(ScheduledQueues& queues, const std::string& token) {
    MoveRequest request;
    request.token = token;
    request.queue = token_queue(token) == "a" ? "b" : "a";
    Releases(token);
    queues->Move(request, [this, token, target = request.queue, from = witness_.changes().size()](
                              const absl::StatusOr<MessageView>& moved) {
      const absl::StatusOr<bool> result =
          moved.ok() ? absl::StatusOr<bool>(false) : absl::StatusOr<bool>(moved.status());
      CheckTaken("a move", "release", token, result, from, [&](const Change& change) {
        return change.after && change.after->live() &&
               witness_.IsNamed(change.after->queue, target);
      });
    });
  }
  static std::string token_queue(const std::string& token) {
    return Token::FromText("", token)->queue;
  }

  void Replay(ScheduledQueues& queues) {
    ReplayRequest request;
    request.queue = DrawQueue();
    request.states = {State::kDead, State::kFinished};
    if (Chance(50)) request.target_queue = DrawQueue();
    queues->Replay(request, [this](const absl::StatusOr<Swept>& swept) {
      if (!swept.ok()) ExpectRefusal("a replay", swept.status());
    });
  }

  void Purge(ScheduledQueues& queues) {
    const int process = queues.number();
    ++witness_.purging[process];
    PurgeRequest request;
    request.queue = DrawQueue();
    request.states = {Chance(50) ? State::kReady : State::kDead};
    queues->Purge(request, [this, process](const absl::StatusOr<Swept>& swept) {
      --witness_.purging[process];
      if (!swept.ok()) ExpectRefusal("a purge", swept.status());
    });
  }

  // Whatever is in it stays where it is; what is under way to it comes, or stays where it was.
  void Delete(ScheduledQueues& queues) {
    const std::string name(kScheduleQueues[1]);
    queues->Delete(name, false, kNoDeadline, [this, &queues, name](const absl::Status& deleted) {
      if (deleted.ok()) {
        ++deleted_;
        return MakeAgain(queues, name);
      }
      not_deleted_ += ReasonOf(deleted) == ErrorReason::kQueueNotEmpty ? 1 : 0;
      ExpectRefusal("a deletion", deleted);
    });
  }

  const ScheduleOptions options_;
  Dice& dice_;
  const Clock& clock_;
  Witness& witness_;
  const bool pops_;
  const bool purges_;
  const bool deletes_;
  int pushed_ = 0;
  int extended_ = 0;
  int tokens_refused_ = 0;
  int deleted_ = 0;
  int not_deleted_ = 0;
  std::vector<std::string> tokens_;  // of all deliveries that anybody got
  std::set<MessageId> popped_unseen_;
  std::map<std::string, MessageId> ids_;  // by request
};

}  // namespace strata::queue::testing
