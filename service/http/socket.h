// One connection to a client, in the clear or by TLS, whose every wait has an end.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "service/http/tls_context.h"

namespace strata::http {

using Clock = std::chrono::steady_clock;

// Whose other end a connected socket is: "10.0.0.7", "::1"; "unknown" when it is gone already.
std::string AddressOf(int descriptor);

// Of one thread; but for Cut, which any may call.
class Socket {
 public:
  // Takes over a connected, non-blocking socket. Without `ssl`: in the clear.
  Socket(int descriptor, SslPointer ssl);
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // By TLS: before anything else. Whether it has come about by then.
  bool ShakeHands(Clock::time_point deadline);

  enum class Ended { kNo, kByPeer, kByDeadline };
  static constexpr size_t kReadBytesMax = size_t{16} << 10;
  // Appends what has arrived, at most `size` bytes and kReadBytesMax; waits for some.
  Ended Read(std::string& to, size_t size, Clock::time_point deadline);
  // Until the kernel has taken everything.
  Ended Write(std::string_view bytes, Clock::time_point deadline);

  // Whether the other end has closed, or broken off. Does not wait. (Bytes that it sent before do
  // not hide that; what it sends after, it does not.)
  bool IsGone() const;

  // Says that nothing more is sent, and takes in what is still on its way, up to so many bytes, so
  // that the last answer is not lost with it: the kernel resets a connection that is closed before
  // all was read.
  void Linger(size_t size, Clock::time_point deadline);

  // Ends all waiting, now and in future; the descriptor stays.
  void Cut();

  bool encrypted() const { return ssl_ != nullptr; }
  PeerNames peer_names() const;
  // "ipv4:10.0.0.7:51234", "ipv6:%5B::1%5D:51234", as gRPC names them.
  const std::string& peer() const { return peer_; }
  // Its own address as a Host header would have it: "10.0.0.7", "[::1]".
  const std::string& own_address() const { return own_address_; }

 private:
  // Waits for the events; whether they came by then.
  bool Await(int events, Clock::time_point deadline) const;
  // What to do after OpenSSL's `result`: whether to try again by then.
  Ended AwaitTls(int result, Clock::time_point deadline) const;

  const int descriptor_;
  const SslPointer ssl_;
  std::string peer_;
  std::string own_address_;
};

}  // namespace strata::http
