#include "service/server/send_coalescer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

namespace strata::server {
namespace {

// Answers to so many connections in a row share nothing worth looking for.
constexpr size_t kRecentMax = 64;

thread_local SendCoalescer* active = nullptr;

// The socket may be closed by now (closing sends, too), or its number another's, to whom letting go
// of what nobody kept does nothing.
void SetCork(int socket, int on) { setsockopt(socket, IPPROTO_TCP, TCP_CORK, &on, sizeof on); }

}  // namespace

SendCoalescer::Scope::Scope(SendCoalescer& coalescer) { active = &coalescer; }

SendCoalescer::Scope::~Scope() { active = nullptr; }

void SendCoalescer::Flush() {
  if (!holds_) return;
  for (Recent& recent : recent_) {
    if (recent.corked) SetCork(recent.socket, 0);
    recent.corked = false;
  }
  holds_ = false;
}

void SendCoalescer::FlushIfDue() {
  if (holds_ && clock_.SteadyNow() - held_since_ >= kHeldMax) Flush();
}

void SendCoalescer::BeforeSend(int socket) {
  const Time now = clock_.SteadyNow();
  if (holds_ && now - held_since_ >= kHeldMax) Flush();
  if (!holds_ && (now - last_send_ > kApartMax || recent_.size() >= kRecentMax)) recent_.clear();
  last_send_ = now;
  const auto found = std::find_if(recent_.begin(), recent_.end(), [socket](const Recent& recent) {
    return recent.socket == socket;
  });
  if (found == recent_.end()) {
    recent_.push_back({socket, false});
  } else if (!found->corked) {
    SetCork(socket, 1);
    found->corked = true;
    if (!holds_) held_since_ = now;
    holds_ = true;
  }
}

}  // namespace strata::server

// The names are the linker's: --wrap=sendmsg.
extern "C" {

ssize_t __real_sendmsg(int socket, const msghdr* message, int flags);

ssize_t __wrap_sendmsg(int socket, const msghdr* message, int flags) {
  if (strata::server::active != nullptr) strata::server::active->BeforeSend(socket);
  return __real_sendmsg(socket, message, flags);
}

}  // extern "C"
