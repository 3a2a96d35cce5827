#include "schemas/queue/operations.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/status_macros.h"
#include "schemas/queue/queue_errors.h"

namespace strata::queue {
namespace {

// Members and keys of a record beside its contents.
constexpr size_t kRecordBytes = 512;

// What a step has before it was planned; nobody is answered so.
absl::Status NotPlanned() { return Error(ErrorReason::kInternal, "the step was not planned"); }

}  // namespace

NewMessage AtTime(const PreparedPush& push, const Place& place) {
  NewMessage message = push.message;
  message.due = place.now;
  if (push.delay) message.due += push.delay->count();
  if (push.deliver_time) message.due = std::max(message.due, *push.deliver_time);
  message.at_once = message.due == place.now;
  const UnixMicros lifetime = place.queue.settings.message_lifetime.count();
  if (push.expire_time) {
    message.expire_time = *push.expire_time;
  } else if (lifetime != 0) {
    message.expire_time = message.due + lifetime;
  }
  return message;
}

PushOperation::PushOperation(std::vector<PreparedPush> messages, Deadline deadline, bool atomic,
                             PushCallback done)
    : messages_(std::move(messages)),
      deadline_(deadline),
      atomic_(atomic),
      done_(std::move(done)),
      results_(messages_.size(), NotPlanned()) {
  for (const PreparedPush& push : messages_) {
    bytes_ += kRecordBytes + push.message.payload.size() + push.message.headers.size();
  }
}

// So that none is pushed where one is refused.
absl::Status PushOperation::Check(Draft& draft, const Place& place) {
  absl::flat_hash_map<MessageId, std::string> requests;
  for (size_t i = 0; i < messages_.size(); ++i) {
    const NewMessage& message = messages_[i].message;
    if (message.drawn) draft.KnowAbsent(message.id);
    ASSIGN_OR_RETURN(const Message* stored, draft.Find(message.id));
    const bool stands = stored != nullptr && !stored->gone(place.now);
    const std::string& before =
        requests.try_emplace(message.id, stands ? stored->request : message.request).first->second;
    if (before != message.request) {
      return InField(PushReused(place.queue.name), Element("messages", i));
    }
    if (messages_[i].expire_time) {
      const absl::Status lasts = CheckExpiry(draft, place, AtTime(messages_[i], place));
      if (!lasts.ok()) return InField(lasts, Element("messages", i));
    }
    if (message.ordering_key.empty()) continue;
    RETURN_IF_ERROR(draft.FindOrder(place.queue.incarnation, message.ordering_key).status());
  }
  return absl::OkStatus();
}

absl::Status PushOperation::Plan(size_t step, Draft& draft, const Place& place) {
  NewMessage message = AtTime(messages_[step], place);
  if (!atomic_) {
    const absl::Status lasts = CheckExpiry(draft, place, message);
    if (!lasts.ok()) return InField(lasts, Element("messages", step));
  }
  const MessageId id = message.id;
  const absl::StatusOr<Pushed> pushed = PlanPush(draft, place, std::move(message));
  if (!pushed.ok()) return InField(pushed.status(), Element("messages", step));
  results_[step] = PushResult{id, pushed->replayed};
  return absl::OkStatus();
}

void PushOperation::Fail(size_t step, const absl::Status& status) { results_[step] = status; }

void PushOperation::Count(QueueCounts& counts) const {
  for (const absl::StatusOr<PushResult>& result : results_) {
    if (result.ok() && !result->replayed) ++counts.pushed;
  }
}

void PushOperation::End() {
  if (atomic_) {
    for (const absl::StatusOr<PushResult>& result : results_) {
      if (!result.ok()) return done_(result.status());
    }
  }
  done_(std::move(results_));
}

TokenOperation::TokenOperation(std::vector<Token> tokens, int64_t timeline,
                               std::optional<Deadline> deadline, Step step,
                               int64_t QueueCounts::*counted, Done done)
    : tokens_(std::move(tokens)),
      timeline_(timeline),
      deadline_(deadline),
      step_(std::move(step)),
      counted_(counted),
      done_(std::move(done)),
      results_(tokens_.size(), NotPlanned()) {}

absl::Status TokenOperation::Plan(size_t step, Draft& draft, const Place& place) {
  const Token& token = tokens_[step];
  if (token.timeline != timeline_) return TimelineLost(token, timeline_);
  ASSIGN_OR_RETURN(const TokenResult result, step_(draft, place, token));
  results_[step] = result.replayed;
  return absl::OkStatus();
}

void TokenOperation::Fail(size_t step, const absl::Status& status) { results_[step] = status; }

void TokenOperation::Count(QueueCounts& counts) const {
  if (counted_ == nullptr) return;
  for (const absl::StatusOr<bool>& result : results_) {
    if (result.ok() && !*result) ++(counts.*counted_);
  }
}

SweepOperation::SweepOperation(std::vector<MessageId> ids, Deadline deadline, bool makes_room,
                               Step step, Done done)
    : ids_(std::move(ids)),
      deadline_(deadline),
      makes_room_(makes_room),
      step_(std::move(step)),
      done_(std::move(done)),
      results_(ids_.size(), NotPlanned()) {}

absl::Status SweepOperation::Plan(size_t step, Draft& draft, const Place& place) {
  ASSIGN_OR_RETURN(const bool taken, step_(draft, place, step, ids_[step]));
  results_[step] = taken;
  return absl::OkStatus();
}

void SweepOperation::Fail(size_t step, const absl::Status& status) { results_[step] = status; }

void SweepOperation::End() {
  Result all;
  absl::Status failure;
  for (const absl::StatusOr<bool>& result : results_) {
    if (result.ok()) {
      all.messages += *result ? 1 : 0;
    } else {
      failure.Update(result.status());
    }
  }
  // What was done is told; what is left is still there for the next call.
  if (all.messages == 0 && !failure.ok()) return done_(failure);
  all.some_failed = !failure.ok();
  done_(all);
}

}  // namespace strata::queue
