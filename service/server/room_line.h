// Streams that wait for room for a message.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace strata::server {

class Caller;

// In the order in which they came, caller by caller. Thread-safe.
class RoomLine {
 public:
  // One that waits.
  class Waiter {
   public:
    // There may be room. With the line's lock held: what is to be done is done later.
    virtual void Wake() = 0;

   protected:
    ~Waiter() = default;

   private:
    friend class RoomLine;
    enum class Place : uint8_t { kOutside, kWaits, kWoken };
    Place place_ = Place::kOutside;  // guarded by the line's lock
    size_t bytes_ = 0;               // that it waits for
  };
  // Whether that much more of the caller's may find room now.
  using Fits = std::function<bool(const Caller& caller, size_t bytes)>;

  explicit RoomLine(Fits fits) : fits_(std::move(fits)) {}

  // Has it woken once, when there may be so much room. Nothing, where it waits or has been woken.
  void Enter(Waiter& waiter, const Caller& caller, size_t bytes);
  // Does not wake it from now on. False: it has been woken, and has not said so yet.
  bool Leave(Waiter& waiter, const Caller& caller);
  // It was woken, and knows.
  void Woken(Waiter& waiter);

  // The caller holds less than before: wakes its next one and, as all hold less, one of another
  // caller's, callers in turn; each if there may be room for it.
  void Offer(const Caller& caller);
  // The same for the next one of each caller.
  void OfferAll();

 private:
  using Lines = std::map<const Caller*, std::deque<Waiter*>>;

  // Looked at for one that there may be room for.
  static constexpr size_t kOthersMax = 8;

  // With the lock held. Whether it was woken; then the line may be gone.
  bool WakeFirst(Lines::iterator line);

  const Fits fits_;
  std::atomic<size_t> waiting_ = 0;
  std::mutex mutex_;  // guards what follows
  Lines lines_;
  const Caller* last_ = nullptr;  // of the others, the one that was looked at last
};

}  // namespace strata::server
