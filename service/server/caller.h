// Whom calls are counted for.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace strata::server {

// One caller, as long as any of its calls is there. Thread-safe.
class Caller {
 public:
  explicit Caller(std::string address) : address_(std::move(address)) {}

  // "10.0.0.7", "::1"; what the connection tells, if that is no address of a host.
  const std::string& address() const { return address_; }
  // By which turns and shares are counted, and which people read.
  const std::string& name() const { return address_; }

  // Requests being handled and answers being sent, of all its calls together; those of operational
  // methods apart, so that whoever runs the server is not refused for what comes the same way.
  std::atomic<size_t> bytes_in_flight = 0;
  std::atomic<size_t> operational_bytes_in_flight = 0;

 private:
  const std::string address_;
};

// All that there are. Thread-safe.
class Callers {
 public:
  std::shared_ptr<Caller> Of(std::string_view address);

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Caller>, std::less<>> callers_;
  size_t forget_at_ = 1024;  // those who are gone, when there are so many
};

// What one thread remembers of them, by what gRPC says of a connection's other end
// ("ipv4:10.0.0.7:51234"). Not thread-safe.
class CallersSeen {
 public:
  explicit CallersSeen(Callers& callers) : callers_(callers) {}
  const std::shared_ptr<Caller>& Of(std::string_view peer);

 private:
  static constexpr size_t kSeenMax = 4096;
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  Callers& callers_;
  std::unordered_map<std::string, std::shared_ptr<Caller>, Hash, std::equal_to<>> seen_;
};

// "10.0.0.7" of "ipv4:10.0.0.7:51234", "::1" of "ipv6:%5B::1%5D:51234"; anything else as it is.
std::string AddressOfPeer(std::string_view peer);

}  // namespace strata::server
