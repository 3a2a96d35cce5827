// Whether the server serves, and who wants to know when that changes.
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

  // Knows "" (the whole server) and `services`; not serving until SetServing.
  explicit Health(const std::vector<std::string>& services);

  // Tells the listeners, one after the other, if it is news.
  void SetServing(bool serving);
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

  mutable std::mutex mutex_;
  std::set<std::string, std::less<>> services_;
  bool serving_ = false;
  int64_t next_ = 1;
  std::map<int64_t, Subscription> subscriptions_;
};

}  // namespace strata::observability
