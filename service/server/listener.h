// The listening socket: accepts connections itself, so that neither how many there are nor a want
// of descriptors ever ends it, and hands them on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"

namespace strata::server {

struct ListenerOptions {
  std::string listen{};  // HOST:PORT; port 0 picks one
  // Open at once; at most half of the descriptors that the process may have count.
  int connections_max = 10'000;
  int connections_per_address_max = 1'000;  // 0: as many as there may be at all
  // How long nobody is let in from an address after a connection of its was reset for flooding. Its
  // other connections stay.
  std::chrono::milliseconds flood_pause{10'000};
};

// What is beyond its limits is accepted and reset at once: a caller hears so right away, instead of
// waiting in the backlog.
class Listener {
 public:
  // Takes over a connected, non-blocking socket.
  using Take = std::function<void(int socket)>;
  struct FloodLook {
    std::vector<std::string> peers;  // of connections to be reset, as CallInfo::peer names them
    std::chrono::milliseconds next;  // how long until the next look
  };
  using Floods = std::function<FloodLook()>;

  // Binds and listens; callers wait in the backlog until Start. STORE_UNAVAILABLE, naming the
  // address.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(const ListenerOptions& options);
  // As Stop.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port() const { return port_; }

  // Accepts on a thread of its own, on which `take` is called too and, while there are connections,
  // `floods` as often as it says. Once.
  void Start(Take take, Floods floods = nullptr);
  // Stops listening. What was handed on stays open. May be called again.
  void Stop();

  // As of the last look, each second, but for those who came since.
  int64_t open() const { return open_.load(std::memory_order_relaxed); }
  // Since the start.
  int64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  int64_t floods() const { return flooded_.load(std::memory_order_relaxed); }

 private:
  // Whoever took a connection closes it without a word. The kernel never gives a socket's cookie to
  // another, so a descriptor with another one, or none, is another file.
  struct Connection {
    int descriptor = -1;
    uint64_t cookie = 0;
    std::string address;
    int port = 0;
  };

  explicit Listener(const ListenerOptions& options);
  absl::Status Bind();
  void Run();
  void AcceptAll(int listening);
  void AcceptOne(int socket, std::string address, int port);
  void Refuse(int socket);
  void RefuseWithoutDescriptors(int listening);
  bool IsFull(const std::string& address) const;
  bool IsPaused(const std::string& address) const;
  void ForgetClosed();
  // Forgets closed ones only until there is room, and looks at a few only.
  void LookForRoom(const std::string& address);
  // If so, another stands in its place.
  bool ForgetIfClosed(size_t index);
  // How long until the next look.
  std::chrono::milliseconds EndFloods();
  void EndPauses();
  void Report();

  const ListenerOptions options_;
  const int64_t connections_max_;
  int port_ = 0;
  std::vector<int> sockets_;
  int stop_ = -1;     // an eventfd
  int reserve_ = -1;  // given up to accept, and reset, when no other descriptor is left
  Take take_;
  Floods floods_;
  std::vector<Connection> connections_;
  std::map<std::string, int> by_address_;
  std::map<std::string, std::chrono::steady_clock::time_point> paused_until_;  // by address
  size_t next_look_ = 0;                                                       // for room
  std::atomic<int64_t> open_ = 0;
  std::atomic<int64_t> refused_ = 0;
  std::atomic<int64_t> flooded_ = 0;
  int64_t refused_reported_ = 0;
  int64_t flooded_reported_ = 0;
  std::thread thread_;
};

}  // namespace strata::server
