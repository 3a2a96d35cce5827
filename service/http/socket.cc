#include "service/http/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <optional>
#include <utility>

namespace strata::http {
namespace {

struct Ends {
  std::string address;  // "10.0.0.7", "::1"
  bool v6 = false;
  int port = 0;
};

// An address of IPv4 that comes through a socket of IPv6 is the same caller's.
Ends EndsOf(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return {text, false, ntohs(v4.sin_port)};
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
    return {text, false, ntohs(v6.sin6_port)};
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return {text, true, ntohs(v6.sin6_port)};
}

std::optional<Ends> OtherEndOf(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return std::nullopt;
  }
  return EndsOf(address);
}

std::string PeerOf(int descriptor) {
  const std::optional<Ends> ends = OtherEndOf(descriptor);
  if (!ends) return "unknown";
  const std::string port = ":" + std::to_string(ends->port);
  return ends->v6 ? "ipv6:%5B" + ends->address + "%5D" + port : "ipv4:" + ends->address + port;
}

std::string OwnAddressOf(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  const Ends ends = EndsOf(address);
  return ends.v6 ? "[" + ends.address + "]" : ends.address;
}

// Of another end that vanished without a word the kernel hears after two minutes.
constexpr int kKeepaliveIdleSeconds = 60;
constexpr int kKeepaliveIntervalSeconds = 15;
constexpr int kKeepaliveProbes = 4;

void KeepAlive(int descriptor) {
  const auto set = [descriptor](int level, int option, int value) {
    setsockopt(descriptor, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepaliveIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepaliveIntervalSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kKeepaliveProbes);
}

}  // namespace

std::string AddressOf(int descriptor) {
  const std::optional<Ends> ends = OtherEndOf(descriptor);
  return ends ? ends->address : "unknown";
}

Socket::Socket(int descriptor, SslPointer ssl)
    : descriptor_(descriptor),
      ssl_(std::move(ssl)),
      peer_(PeerOf(descriptor)),
      own_address_(OwnAddressOf(descriptor)) {
  KeepAlive(descriptor_);
  if (ssl_ != nullptr) SSL_set_fd(ssl_.get(), descriptor_);
}

Socket::~Socket() { close(descriptor_); }

bool Socket::Await(int events, Clock::time_point deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd wait{descriptor_, static_cast<short>(events), 0};
    const int ready =
        poll(&wait, 1, static_cast<int>(std::min<int64_t>(left, std::numeric_limits<int>::max())));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // whoever reads or writes finds out
  }
}

Socket::Ended Socket::AwaitTls(int result, Clock::time_point deadline) const {
  int events = 0;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      events = POLLIN;
      break;
    case SSL_ERROR_WANT_WRITE:
      events = POLLOUT;
      break;
    default:
      ERR_clear_error();
      return Ended::kByPeer;
  }
  return Await(events, deadline) ? Ended::kNo : Ended::kByDeadline;
}

bool Socket::ShakeHands(Clock::time_point deadline) {
  if (ssl_ == nullptr) return true;
  for (;;) {
    ERR_clear_error();
    const int result = SSL_accept(ssl_.get());
    if (result == 1) return true;
    if (AwaitTls(result, deadline) != Ended::kNo) return false;
  }
}

Socket::Ended Socket::Read(std::string& to, size_t size, Clock::time_point deadline) {
  std::array<char, kReadBytesMax> bytes;
  size = std::min(size, bytes.size());
  for (;;) {
    Ended ended = Ended::kNo;
    if (ssl_ != nullptr) {
      ERR_clear_error();
      const int count = SSL_read(ssl_.get(), bytes.data(), static_cast<int>(size));
      if (count > 0) {
        to.append(bytes.data(), static_cast<size_t>(count));
        return Ended::kNo;
      }
      ended = AwaitTls(count, deadline);
    } else {
      const ssize_t count = recv(descriptor_, bytes.data(), size, 0);
      if (count > 0) {
        to.append(bytes.data(), static_cast<size_t>(count));
        return Ended::kNo;
      }
      if (count == 0 || (errno != EAGAIN && errno != EINTR)) return Ended::kByPeer;
      if (!Await(POLLIN, deadline)) ended = Ended::kByDeadline;
    }
    if (ended != Ended::kNo) return ended;
  }
}

Socket::Ended Socket::Write(std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    Ended ended = Ended::kNo;
    if (ssl_ != nullptr) {
      ERR_clear_error();
      const auto size = static_cast<int>(
          std::min<size_t>(bytes.size(), static_cast<size_t>(std::numeric_limits<int>::max())));
      const int count = SSL_write(ssl_.get(), bytes.data(), size);
      if (count > 0) {
        bytes.remove_prefix(static_cast<size_t>(count));
        // A reader that takes a little again and again must not have for ever.
        if (!bytes.empty() && Clock::now() >= deadline) return Ended::kByDeadline;
        continue;
      }
      ended = AwaitTls(count, deadline);
    } else {
      const ssize_t count = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count > 0) {
        bytes.remove_prefix(static_cast<size_t>(count));
        if (!bytes.empty() && Clock::now() >= deadline) return Ended::kByDeadline;
        continue;
      }
      if (errno != EAGAIN && errno != EINTR) return Ended::kByPeer;
      if (!Await(POLLOUT, deadline)) ended = Ended::kByDeadline;
    }
    if (ended != Ended::kNo) return ended;
  }
  return Ended::kNo;
}

bool Socket::IsGone() const {
  pollfd look{descriptor_, POLLRDHUP, 0};
  return poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void Socket::Linger(size_t size, Clock::time_point deadline) {
  if (ssl_ != nullptr) SSL_shutdown(ssl_.get());
  ERR_clear_error();
  shutdown(descriptor_, SHUT_WR);
  std::array<char, kReadBytesMax> bytes;
  while (size > 0) {
    const ssize_t count = recv(descriptor_, bytes.data(), std::min(size, bytes.size()), 0);
    if (count > 0) {
      size -= static_cast<size_t>(count);
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR) || !Await(POLLIN, deadline)) {
      return;
    }
  }
}

void Socket::Cut() { shutdown(descriptor_, SHUT_RDWR); }

PeerNames Socket::peer_names() const {
  return ssl_ == nullptr ? PeerNames() : PeerNamesOf(ssl_.get());
}

}  // namespace strata::http
