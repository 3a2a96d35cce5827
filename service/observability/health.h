// Whether the server serves, whether it takes writes, and who wants to know when that changes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace strata::observability {

// Thread-safe.
class Health {
 public:
  enum class State { kServing, kNotServing, kUnknownService };
  using Listener = std::function<void(State state)>;

  // A service that is none: writes. It serves while the server does and takes them.
  static constexpr std::string_view kWrites = "strata.writes";

  // Knows "" (the whole server), `services` and kWrites; not serving until SetServing.
  explicit Health(const std::vector<std::string>& services);

  // Each tells the listeners, one after the other, what is news to them.
  void SetServing(bool serving);
  // True until it is said.
  void SetWritable(bool writable);
  State Of(std::string_view service) const;

  // Calls `listener` now with the state of `service` and then at each change, never after
  // Unsubscribe has returned. The listener must not call this object.
  int64_t Subscribe(std::string_view service, Listener listener);
  void Unsubscribe(int64_t subscription);

 private:
  struct Subscription {
    std::string service;
    Listener listener;
  };
  State StateOf(std::string_view service) const;
  void Set(bool& fact, bool value);

  mutable std::mutex mutex_;
  std::set<std::string, std::less<>> services_;
  bool serving_ = false;
  bool writable_ = true;
  int64_t next_ = 1;
  std::map<int64_t, Subscription> subscriptions_;
};

}  // namespace strata::observability
