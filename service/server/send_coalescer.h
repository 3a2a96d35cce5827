// Lets answers that one thread gives in a row share a send.
//
// gRPC 1.51 makes one sendmsg of each answer, and on a busy connection the kernel's way to the peer
// costs more than all else that a small answer takes. So the linker leads gRPC's sendmsg through
// here (--wrap), and while a thread answers, a send that closely follows another one to the same
// socket finds it corked (TCP_CORK): the kernel keeps the bytes, and what other threads send there,
// until the thread flushes, for 200 ms at most. A lone send, and the first in a row, goes out at
// once.
//
// Where gRPC is linked as a shared library its sends do not come by here, and are as they were.
#pragma once

#include <chrono>
#include <vector>

#include "schemas/base/clock.h"

namespace strata::server {

// Not thread-safe: of one thread.
class SendCoalescer {
 public:
  // How closely two sends must follow each other.
  static constexpr std::chrono::microseconds kApartMax{50};
  // How long a send is kept while the thread works on, and then until it is through with what it
  // does; some 25 small answers.
  static constexpr std::chrono::microseconds kHeldMax{250};

  explicit SendCoalescer(const Clock& clock = Clock::System()) : clock_(clock) {}
  ~SendCoalescer() { Flush(); }
  SendCoalescer(const SendCoalescer&) = delete;
  SendCoalescer& operator=(const SendCoalescer&) = delete;

  // While one is there, what its thread sends may be kept. One at a time. Not for a thread that
  // polls: then it also sends what others wait for, such as room in a flow-control window.
  class Scope {
   public:
    explicit Scope(SendCoalescer& coalescer);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  };

  // Whether something is kept. A thread that may wait must have flushed.
  bool Holds() const { return holds_; }
  void Flush();
  // Flushes if what is kept has waited long enough.
  void FlushIfDue();

  // Called by sendmsg before it sends.
  void BeforeSend(int socket);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Recent {
    int socket = 0;
    bool corked = false;
  };

  const Clock& clock_;
  std::vector<Recent> recent_;  // sockets that were sent to in a row
  Time last_send_;
  bool holds_ = false;
  Time held_since_;
};

}  // namespace strata::server
