#include "service/server/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "service/observability/log.h"
#include "service/server/caller.h"

namespace strata::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookInterval{1000};
// After an error that accepting again at once would only repeat.
constexpr std::chrono::milliseconds kPause{10};
// Of those inside, for each that finds no room: a flood must not make the thread do nothing else.
constexpr int kLooksForRoom = 64;
constexpr int kBacklog = SOMAXCONN;
constexpr int kAcceptsInARow = 64;

int64_t DescriptorsMax() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return INT32_MAX;
  return static_cast<int64_t>(limit.rlim_cur);
}

std::optional<uint64_t> CookieOf(int descriptor) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

std::string AddressOf(const sockaddr_storage& peer) {
  char text[INET6_ADDRSTRLEN] = "";
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  } else if (peer.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  }
  // An address of IPv4 that comes through a socket of IPv6 is the same caller's, to gRPC too.
  constexpr std::string_view kMapped = "::ffff:";
  const std::string_view address = text;
  const bool mapped = address.starts_with(kMapped) && address.find('.') != std::string_view::npos;
  return std::string(mapped ? address.substr(kMapped.size()) : address);
}

int PortOf(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return PortOf(address);
}

// Of "ipv4:10.0.0.7:51234", or 0.
int PortOfPeer(std::string_view peer) {
  int port = 0;
  const size_t colon = peer.rfind(':');
  if (colon != std::string_view::npos) {
    std::from_chars(peer.data() + colon + 1, peer.data() + peer.size(), port);
  }
  return port;
}

void SetPort(int port, addrinfo& address) {
  const auto network = htons(static_cast<uint16_t>(port));
  if (address.ai_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address.ai_addr)->sin6_port = network;
  } else {
    reinterpret_cast<sockaddr_in*>(address.ai_addr)->sin_port = network;
  }
}

void SetOption(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

// A listening socket, or -1 with errno.
int ListenOn(const addrinfo& address) {
  const int made = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  // A restart need not wait for the connections of before; a second server is refused all the same.
  SetOption(made, SOL_SOCKET, SO_REUSEADDR, 1);
  // What is accepted inherits it.
  SetOption(made, IPPROTO_TCP, TCP_NODELAY, 1);
  // "[::]" stands for all addresses of the machine, those of IPv4 too.
  if (address.ai_family == AF_INET6) SetOption(made, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(made, address.ai_addr, address.ai_addrlen) == 0 && listen(made, kBacklog) == 0) {
    return made;
  }
  const int error = errno;
  close(made);
  errno = error;
  return -1;
}

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// Null if the name stands for none.
Addresses Resolve(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  if (colon == std::string::npos) return nullptr;
  std::string host = listen.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), listen.c_str() + colon + 1, &wanted, &found) != 0) return nullptr;
  return Addresses(found);
}

// Without an orderly end, which would keep the descriptor's state for minutes.
void Reset(int socket) {
  const linger at_once = {1, 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close(socket);
}

// Resets a connection that is somebody else's to close. What has arrived and was not read yet is
// dropped, unlike with shutdown(): it may be megabytes of what is to end. The descriptor may be
// another file's by now; a duplicate stays what it is.
bool ResetOfOther(int descriptor, uint64_t cookie) {
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);  // NOLINT
  if (own < 0) return false;
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  const bool done = CookieOf(own) == cookie && connect(own, &nobody, sizeof nobody) == 0;
  close(own);
  return done;
}

}  // namespace

Listener::Listener(const ListenerOptions& options)
    : options_(options),
      connections_max_(std::min<int64_t>(options.connections_max, DescriptorsMax() / 2)) {}

Listener::~Listener() { Stop(); }

absl::StatusOr<std::unique_ptr<Listener>> Listener::Open(const ListenerOptions& options) {
  std::unique_ptr<Listener> listener(new Listener(options));
  RETURN_IF_ERROR(listener->Bind());
  return listener;
}

absl::Status Listener::Bind() {
  const auto failure = [&](const std::string& why) {
    return Error(ErrorReason::kStoreUnavailable, "cannot listen on " + options_.listen + ": " + why)
        .ToStatus();
  };
  const Addresses addresses = Resolve(options_.listen);
  if (addresses == nullptr) return failure("no address of this name, or not HOST:PORT");
  for (addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    // All of them listen on the same port.
    if (port_ != 0) SetPort(port_, *address);
    const int socket = ListenOn(*address);
    if (socket < 0) {
      // A name may stand for more than the machine has, such as IPv6 where there is none.
      if (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT) continue;
      return failure(std::strerror(errno));
    }
    sockets_.push_back(socket);
    port_ = PortOf(socket);
  }
  if (sockets_.empty()) return failure("the address is not of this machine");
  stop_ = eventfd(0, EFD_CLOEXEC);
  reserve_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);  // NOLINT
  if (stop_ < 0 || reserve_ < 0) return failure(std::strerror(errno));
  return absl::OkStatus();
}

void Listener::Start(Take take, Floods floods) {
  take_ = std::move(take);
  floods_ = std::move(floods);
  thread_ = std::thread([this] { Run(); });
}

void Listener::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    if (write(stop_, &one, sizeof one) != sizeof one) std::abort();
    thread_.join();
  }
  for (const int socket : std::exchange(sockets_, {})) close(socket);
  for (int* const descriptor : {&stop_, &reserve_}) {
    if (*descriptor >= 0) close(std::exchange(*descriptor, -1));
  }
}

void Listener::Run() {
  std::vector<pollfd> waits = {{stop_, POLLIN, 0}};
  for (const int socket : sockets_) waits.push_back({socket, POLLIN, 0});
  Clock::time_point look = Clock::now() + kLookInterval;
  Clock::time_point flood_look = Clock::now();
  while (true) {
    const bool watches = floods_ != nullptr && !connections_.empty();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        (watches ? std::min(look, flood_look) : look) - Clock::now());
    const int ready =
        poll(waits.data(), waits.size(), static_cast<int>(std::max<int64_t>(0, left.count())));
    if (waits.front().revents != 0) return;
    for (size_t i = 1; ready > 0 && i < waits.size(); ++i) {
      if (waits[i].revents != 0) AcceptAll(waits[i].fd);
    }
    const Clock::time_point now = Clock::now();
    if (watches && now >= flood_look) flood_look = now + EndFloods();
    if (now < look) continue;
    look = now + kLookInterval;
    ForgetClosed();
    EndPauses();
    Report();
  }
}

// All that wait now, but for a flood, which must not keep the thread from looking and stopping.
void Listener::AcceptAll(int listening) {
  for (int i = 0; i < kAcceptsInARow; ++i) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    const int socket =
        accept4(listening, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      AcceptOne(socket, AddressOf(peer), PortOf(peer));
      continue;
    }
    switch (errno) {
      case EAGAIN:
        return;
      case EMFILE:
      case ENFILE:
        RefuseWithoutDescriptors(listening);
        break;
      case ENOBUFS:
      case ENOMEM:
        poll(nullptr, 0, static_cast<int>(kPause.count()));
        return;
      default:  // of that one connection
        break;
    }
  }
}

void Listener::AcceptOne(int socket, std::string address, int port) {
  if (IsPaused(address)) return Refuse(socket);
  LookForRoom(address);
  const std::optional<uint64_t> cookie = CookieOf(socket);
  if (IsFull(address) || !cookie) return Refuse(socket);
  ++by_address_[address];
  connections_.push_back({socket, *cookie, std::move(address), port});
  open_ = static_cast<int64_t>(connections_.size());
  take_(socket);
}

void Listener::Refuse(int socket) {
  ++refused_;
  Reset(socket);
}

void Listener::RefuseWithoutDescriptors(int listening) {
  close(std::exchange(reserve_, -1));
  const int socket = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket >= 0) Refuse(socket);
  reserve_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);  // NOLINT
  // Another thread took what was free: nothing can be accepted, nor refused, for a moment.
  if (reserve_ < 0 || socket < 0) poll(nullptr, 0, static_cast<int>(kPause.count()));
}

bool Listener::IsFull(const std::string& address) const {
  if (static_cast<int64_t>(connections_.size()) >= connections_max_) return true;
  if (options_.connections_per_address_max == 0) return false;
  const auto found = by_address_.find(address);
  return found != by_address_.end() && found->second >= options_.connections_per_address_max;
}

void Listener::ForgetClosed() {
  for (size_t i = 0; i < connections_.size();) {
    if (!ForgetIfClosed(i)) ++i;
  }
  open_ = static_cast<int64_t>(connections_.size());
}

void Listener::LookForRoom(const std::string& address) {
  for (int i = 0; i < kLooksForRoom && IsFull(address) && !connections_.empty(); ++i) {
    if (next_look_ >= connections_.size()) next_look_ = 0;
    if (!ForgetIfClosed(next_look_)) ++next_look_;
  }
}

bool Listener::ForgetIfClosed(size_t index) {
  Connection& connection = connections_[index];
  if (CookieOf(connection.descriptor) == connection.cookie) return false;
  const auto counted = by_address_.find(connection.address);
  if (--counted->second == 0) by_address_.erase(counted);
  std::swap(connection, connections_.back());
  connections_.pop_back();
  return true;
}

bool Listener::IsPaused(const std::string& address) const {
  const auto found = paused_until_.find(address);
  return found != paused_until_.end() && Clock::now() < found->second;
}

// Whoever was reset would begin again at once, and most of the time would pass until he is found
// out again.
std::chrono::milliseconds Listener::EndFloods() {
  const FloodLook look = floods_();
  for (const std::string& peer : look.peers) {
    const std::string address = AddressOfPeer(peer);
    const int port = PortOfPeer(peer);
    for (const Connection& each : connections_) {
      if (each.port != port || each.address != address) continue;
      if (!ResetOfOther(each.descriptor, each.cookie)) continue;
      ++flooded_;
      paused_until_[address] = Clock::now() + options_.flood_pause;
    }
  }
  return look.next;
}

void Listener::EndPauses() {
  std::erase_if(paused_until_,
                [now = Clock::now()](const auto& entry) { return entry.second <= now; });
}

void Listener::Report() {
  using observability::Log;
  using observability::LogLevel;
  const int64_t refused = refused_;
  if (const int64_t more = refused - std::exchange(refused_reported_, refused); more > 0) {
    Log(LogLevel::kWarning, "connections were refused",
        {{"refused", more},
         {"open", static_cast<int64_t>(connections_.size())},
         {"connections_max", connections_max_}});
  }
  const int64_t flooded = flooded_;
  if (const int64_t more = flooded - std::exchange(flooded_reported_, flooded); more > 0) {
    Log(LogLevel::kWarning,
        "connections were reset, as they began thousands of calls only to give them up",
        {{"reset", more}, {"addresses_paused", static_cast<int64_t>(paused_until_.size())}});
  }
}

}  // namespace strata::server
