// What became of the messages of the crowd, as those who pushed and worked on them heard.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/long/crowd.h"

namespace strata::fault {

// Of one family of messages, each of which is pushed once and ends by one acknowledgement,
// whichever queues it goes through. Thread-safe.
class MessageLedger {
 public:
  MessageLedger(Crowd& crowd, std::string name) : crowd_(crowd), name_(std::move(name)) {}

  // The number of a message that is about to be pushed. Those of a key in the order of the key.
  int64_t Next(const std::string& key = "") {
    const std::lock_guard lock(mutex_);
    const int64_t number = next_++;
    fates_[number].key = key;
    if (!key.empty()) keys_[key].push_back(number);
    return number;
  }
  // It was handed out, for that time. A caller may look late at what it was handed: so one delivery
  // is held against the newest that anyone has looked at.
  void Delivered(int64_t number, int64_t delivery) {
    const std::lock_guard lock(mutex_);
    const auto found = fates_.find(number);
    if (found == fates_.end()) {
      return crowd_.Break(Name(number) +
                          (number < next_ ? " came again after it was over" : " was never pushed"));
    }
    const int64_t newest = found->second.newest;
    found->second.newest = std::max(newest, delivery);
    if (found->second.acknowledged > 0 && delivery > newest) {
      crowd_.Break(Name(number) + " came again after it was acknowledged");
    }
    if (found->second.key.empty()) return;
    std::vector<int64_t>& line = keys_[found->second.key];
    while (!line.empty() && line.front() != number && IsEnded(line.front())) {
      line.erase(line.begin());
    }
    for (const int64_t before : line) {
      if (before >= number) break;
      if (!IsEnded(before)) {
        crowd_.Break(Name(number) + " came before " + Name(before) + ", which has its key");
      }
    }
  }
  // An acknowledgement is sent; each is followed by one of the others.
  void Sent(int64_t number) {
    const std::lock_guard lock(mutex_);
    ++fates_[number].sent;
  }
  void Acknowledged(int64_t number) {
    const std::lock_guard lock(mutex_);
    Fate& fate = fates_[number];
    --fate.sent;
    if (++fate.acknowledged > 1) crowd_.Break(Name(number) + " was acknowledged twice");
  }
  void Refused(int64_t number) {
    const std::lock_guard lock(mutex_);
    --fates_[number].sent;
  }
  // It may have been done, or is said to have been.
  void Unanswered(int64_t number) {
    const std::lock_guard lock(mutex_);
    Fate& fate = fates_[number];
    --fate.sent;
    ++fate.unanswered;
  }

  // Those that are not acknowledged, in words; empty: none.
  std::string Open() {
    const std::lock_guard lock(mutex_);
    int64_t open = 0;
    int64_t first = -1;
    for (const auto& [number, fate] : fates_) {
      if (fate.acknowledged + fate.unanswered > 0) continue;
      if (open++ == 0) first = number;
    }
    if (open == 0) return "";
    return std::to_string(open) + " of " + name_ + " are not acknowledged, the first " +
           std::to_string(first);
  }
  // They are over: none of them may come any more. How many there were.
  int64_t Forget() {
    const std::lock_guard lock(mutex_);
    const auto count = static_cast<int64_t>(fates_.size());
    fates_.clear();
    keys_.clear();
    return count;
  }

 private:
  struct Fate {
    std::string key;
    int64_t newest = 0;  // delivery
    int sent = 0;
    int acknowledged = 0;
    int unanswered = 0;
  };

  std::string Name(int64_t number) const { return name_ + " " + std::to_string(number); }
  // With the lock held. As far as is known.
  bool IsEnded(int64_t number) {
    const Fate& fate = fates_[number];
    return fate.acknowledged + fate.unanswered + fate.sent > 0;
  }

  Crowd& crowd_;
  const std::string name_;
  std::mutex mutex_;  // guards what follows
  int64_t next_ = 0;
  std::map<int64_t, Fate> fates_;
  std::map<std::string, std::vector<int64_t>> keys_;
};

}  // namespace strata::fault
