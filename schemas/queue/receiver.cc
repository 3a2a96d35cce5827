#include "schemas/queue/receiver.h"

#include <map>
#include <utility>

#include "schemas/queue/queue_errors.h"

namespace strata::queue {

absl::Status StreamConsumer::AddCredits(int32_t credits) {
  const std::lock_guard lock(mutex_);
  if (credits < 1) return CheckRange("credits.count", credits, 1, kCreditsMax);
  if (credits > kCreditsMax - credits_) {
    return OutOfRange("credits.count", std::to_string(credits),
                      "1 to " + std::to_string(kCreditsMax - credits_) + " more, " +
                          std::to_string(kCreditsMax) + " in all");
  }
  credits_ += credits;
  return absl::OkStatus();
}

void StreamConsumer::Leave(bool orderly) {
  std::vector<std::string> tokens;
  {
    const std::lock_guard lock(mutex_);
    if (left_) return;
    left_ = orderly;
    // In their order, in which they are to come again.
    std::map<uint64_t, std::string> in_order;
    for (auto& [id, held] : held_) in_order.emplace(held.number, std::move(held.token));
    for (auto& [number, token] : in_order) tokens.push_back(std::move(token));
    held_.clear();
  }
  if (!tokens.empty()) give_back_(std::move(tokens), orderly);
}

bool StreamConsumer::gone() const {
  const std::lock_guard lock(mutex_);
  return left_.has_value() || sink_->closed();
}

int32_t StreamConsumer::wants() const {
  const std::lock_guard lock(mutex_);
  if (left_ || sink_->full()) return 0;
  return credits_ - expected_ - static_cast<int32_t>(held_.size());
}

bool StreamConsumer::takes_suspect() const {
  const std::lock_guard lock(mutex_);
  return suspects_ == 0 && !expects_suspect_;
}

void StreamConsumer::Expect(int32_t messages, bool suspect) {
  const std::lock_guard lock(mutex_);
  expected_ += messages;
  expects_suspect_ = expects_suspect_ || suspect;
}

bool StreamConsumer::Deliver(Handed handed) {
  std::vector<std::string> unwanted;
  bool orderly = false;
  {
    const std::lock_guard lock(mutex_);
    expected_ -= handed.expected;
    expects_suspect_ = false;
    for (size_t i = 0; i < handed.messages.size(); ++i) {
      const MessageView& message = handed.messages[i];
      if (left_) {
        unwanted.push_back(message.token);
        continue;
      }
      held_[message.id] = {message.token, message.message.delivery, handed.suspects[i], given_++};
      if (handed.suspects[i]) ++suspects_;
    }
    orderly = left_.value_or(true);
  }
  // It left while they were on their way, and nobody has seen them.
  if (!unwanted.empty()) {
    give_back_(std::move(unwanted), orderly);
    return false;
  }
  if (handed.messages.empty()) {
    sink_->KeepRoom(0);
  } else {
    sink_->Deliver(std::move(handed.messages));
  }
  return !gone();
}

void StreamConsumer::End(const absl::Status& status) {
  Leave(true);
  sink_->End(status);
}

void StreamConsumer::Released(const MessageId& id, int64_t delivery) {
  const std::lock_guard lock(mutex_);
  const auto held = held_.find(id);
  if (held == held_.end() || held->second.delivery != delivery) return;
  if (held->second.suspect) --suspects_;
  held_.erase(held);
}

}  // namespace strata::queue
