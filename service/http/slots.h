// Which connections the port serves. A Watch keeps its connection for half an hour, so one caller
// that had all connections would keep the others off the port.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace strata::http {

// Half of the slots are free for each caller. Of the other half a caller gets an eighth of all
// slots, or 16: a caller is a principal or, without credentials, an address. Where there are
// principals, callers without credentials get the first half only. A connection without a slot
// waits at the door until its credentials are known. Thread-safe.
class Slots {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `principals`: callers may show credentials.
  Slots(int most, int door, bool principals)
      : most_(most), door_(door), strangers_most_(principals ? (most + 1) / 2 : most) {}

  // Of one connection, until it is destroyed. Outlived by the slots.
  class Slot {
   public:
    Slot(Slot&& other) noexcept;
    ~Slot();
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    Slot& operator=(Slot&&) = delete;

    // It gets 503, unless its credentials show a caller that has slots left.
    bool at_door() const { return at_door_; }
    const std::string& caller() const { return caller_; }
    // The caller is known now. Returns whether it has a share left for this connection. At the door
    // it waits until then for one.
    bool Introduce(const std::string& caller, bool is_principal, Time until = Time::min());

    // The slots of its caller; 0 at the door. From any thread.
    int of_caller() const;

   private:
    friend class Slots;
    Slot(Slots& slots, std::string caller, bool at_door);

    Slots* slots_;
    std::string caller_;
    bool is_principal_ = false;
    bool at_door_ = false;
  };

  // Nothing: the door is full too.
  std::optional<Slot> Take(const std::string& address);

 private:
  // With the lock held.
  bool HasRoomFor(const std::string& caller, bool is_principal) const;
  void Count(const std::string& caller, bool is_principal, bool at_door, int change);

  const int most_;
  const int door_;
  const int strangers_most_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable freed_;
  int taken_ = 0;
  int strangers_ = 0;
  int waiting_ = 0;
  std::map<std::string, int> of_callers_;
  std::map<std::string, int> waiting_of_callers_;
};

}  // namespace strata::http
