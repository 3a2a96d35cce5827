// Room for what the port's connections hold, all together: bodies on their way in, and answers that
// wait to be taken. What is being handled between the two, the event loop counts.
#pragma once

#include <atomic>
#include <cstddef>

namespace strata::http {

// Thread-safe.
class Budget {
 public:
  explicit Budget(size_t bytes_max) : bytes_max_(bytes_max) {}

  // What one connection holds. Of one thread.
  class Share {
   public:
    explicit Share(Budget& budget) : budget_(budget) {}
    ~Share() { SetTo(0); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // So much from now on; false, and as before: there is no room for more.
    bool TryGrowTo(size_t bytes) {
      if (bytes <= bytes_) return true;
      const size_t more = bytes - bytes_;
      if (budget_.held_.fetch_add(more) + more > budget_.bytes_max_) {
        budget_.held_.fetch_sub(more);
        return false;
      }
      bytes_ = bytes;
      return true;
    }
    // The same for what is there already, whatever room there is: those who come later are refused.
    void SetTo(size_t bytes) {
      budget_.held_.fetch_add(bytes - bytes_);
      bytes_ = bytes;
    }

   private:
    Budget& budget_;
    size_t bytes_ = 0;
  };

 private:
  const size_t bytes_max_;
  std::atomic<size_t> held_ = 0;
};

}  // namespace strata::http
