#include "bench/growth/idle_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace strata::bench {
namespace {

// RFC 9113: the preface, and SETTINGS frames without settings, the second one an acknowledgement.
constexpr std::string_view kHello("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", 33);
constexpr std::string_view kAcknowledgement("\0\0\0\x04\x01\0\0\0\0", 9);
constexpr size_t kFrameHeaderBytes = 9;
constexpr char kSettings = 4;

// Under the length of the listener's queue.
constexpr int64_t kOpeningMax = 100;
// Each address has some 28,000 ports, fewer while those of earlier connections rest.
constexpr size_t kConnectionsPerAddress = 5'000;

sockaddr_in Address(uint32_t host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(host);
  return address;
}

const sockaddr* Generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

IdleConnections::~IdleConnections() {
  for (const Connection& connection : connections_) {
    if (connection.socket >= 0) close(connection.socket);
  }
  if (epoll_ >= 0) close(epoll_);
}

bool IdleConnections::Connect(int port, size_t index) {
  Connection& connection = connections_[index];
  connection.socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (connection.socket < 0) return false;
  const int yes = 1;
  setsockopt(connection.socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
  const auto host = INADDR_LOOPBACK + static_cast<uint32_t>(index / kConnectionsPerAddress);
  const sockaddr_in source = Address(host, 0);
  const sockaddr_in target = Address(INADDR_LOOPBACK, port);
  const bool begun =
      bind(connection.socket, Generic(source), sizeof source) == 0 &&
      (connect(connection.socket, Generic(target), sizeof target) == 0 || errno == EINPROGRESS);
  epoll_event event{};
  event.events = EPOLLOUT;
  event.data.u64 = index;
  return begun && epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.socket, &event) == 0;
}

bool IdleConnections::Proceed(Connection& connection) {
  char buffer[4096];
  const ssize_t count = recv(connection.socket, buffer, sizeof buffer, 0);
  if (count < 0) return errno == EAGAIN;
  if (count == 0) return false;
  if (connection.greeted) return true;
  connection.received.append(buffer, static_cast<size_t>(count));
  if (connection.received.size() < kFrameHeaderBytes) return true;
  if (connection.received[3] != kSettings) return false;  // not the server that is meant
  connection.greeted = true;
  connection.received = {};
  return send(connection.socket, kAcknowledgement.data(), kAcknowledgement.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(kAcknowledgement.size());
}

int64_t IdleConnections::Open(int port, int64_t count, std::chrono::seconds patience) {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) throw std::runtime_error("epoll_create1 failed");
  connections_.resize(static_cast<size_t>(count));
  const auto end = std::chrono::steady_clock::now() + patience;
  int64_t open = 0;
  int64_t opening = 0;
  size_t next = 0;
  bool more = true;
  while ((more && next < connections_.size()) || opening > 0) {
    while (more && opening < kOpeningMax && next < connections_.size()) {
      more = Connect(port, next++);
      if (more) ++opening;
    }
    if (std::chrono::steady_clock::now() > end) break;
    epoll_event events[kOpeningMax];
    const int found = epoll_wait(epoll_, events, static_cast<int>(kOpeningMax), 100);
    for (int i = 0; i < found; ++i) {
      Connection& connection = connections_[events[i].data.u64];
      if ((events[i].events & EPOLLOUT) != 0 && (events[i].events & (EPOLLERR | EPOLLHUP)) == 0) {
        send(connection.socket, kHello.data(), kHello.size(), MSG_NOSIGNAL);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = events[i].data.u64;
        epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.socket, &event);
        continue;
      }
      const bool alive = Proceed(connection);
      if (alive && !connection.greeted) continue;
      epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.socket, nullptr);
      --opening;
      if (alive) ++open;
    }
  }
  return open;
}

int64_t IdleConnections::CountClosed() {
  return std::count_if(connections_.begin(), connections_.end(), [this](Connection& connection) {
    return connection.greeted && !Proceed(connection);
  });
}

}  // namespace strata::bench
