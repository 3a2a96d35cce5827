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

#include "absl/status/status.h"
#include "service/security/access.h"

namespace strata::server {

// One caller, as long as any of its calls is there. Thread-safe.
class Caller {
 public:
  explicit Caller(std::string name, std::shared_ptr<security::Quota> quota = nullptr)
      : name_(std::move(name)), quota_(std::move(quota)) {}

  // The principal or, where nobody is vouched for, the address without a port: "10.0.0.7", "::1".
  // By which turns and shares are counted, and which people read.
  const std::string& name() const { return name_; }
  // Null: it has no name that a policy could know.
  security::Quota* quota() const { return quota_.get(); }

  // Requests being handled and answers being sent, of all its calls together; those of operational
  // methods apart, so that whoever runs the server is not refused for what comes the same way.
  std::atomic<size_t> bytes_in_flight = 0;
  std::atomic<size_t> operational_bytes_in_flight = 0;

 private:
  const std::string name_;
  const std::shared_ptr<security::Quota> quota_;
};

// All that there are. Thread-safe.
class Callers {
 public:
  explicit Callers(security::Access& access) : access_(access) {}

  security::Access& access() const { return access_; }
  // The one of the principal or, if that is empty, of the address.
  std::shared_ptr<Caller> Of(const std::string& principal, std::string_view address);

 private:
  security::Access& access_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Caller>, std::less<>> callers_;
  size_t forget_at_ = 1024;  // those who are gone, when there are so many
};

// Whom a call's credentials stand for.
struct Recognized {
  std::shared_ptr<Caller> caller;                      // whom it counts for; never null
  std::shared_ptr<const security::Identity> identity;  // perhaps nobody; never null
  absl::Status refusal;                                // CREDENTIALS_INVALID, or OK
};

// What one thread remembers of them, by what gRPC says of a connection's other end
// ("ipv4:10.0.0.7:51234") and what the call presents. Not thread-safe.
class CallersSeen {
 public:
  explicit CallersSeen(Callers& callers) : callers_(callers) {}
  Recognized Of(std::string_view peer, const security::Credentials& credentials);

 private:
  static constexpr size_t kSeenMax = 4096;
  static constexpr size_t kKeyBytesMax = 2048;
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  Recognized Recognize(std::string_view peer, const security::Credentials& credentials) const;

  Callers& callers_;
  uint64_t generation_ = 0;  // of the rules by which they were recognised
  std::string key_;
  std::unordered_map<std::string, Recognized, Hash, std::equal_to<>> seen_;
};

// "10.0.0.7" of "ipv4:10.0.0.7:51234", "::1" of "ipv6:%5B::1%5D:51234"; anything else as it is.
std::string AddressOfPeer(std::string_view peer);

}  // namespace strata::server
