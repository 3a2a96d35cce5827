// Finds connections that flood: they begin calls only to give them up. That costs their caller
// nothing. It costs gRPC, before any of our code sees a call, more than it can clear away.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace strata::server {

// By what gRPC counts (its "channelz"). Not thread-safe.
class FloodWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // A connection floods if more than kFailedMax of its calls come to nothing within kWindow: were
  // given up by their caller before they were answered. A client whose 100 allowed calls all pass
  // their deadlines would need a deadline of 20 ms to get there.
  static constexpr std::chrono::milliseconds kWindow{200};
  static constexpr int64_t kFailedMax = 1'000;
  // It floods also with this number of open calls: more than a client that respects SETTINGS can
  // open.
  static constexpr int64_t kOpenMax = 4'000;

  // Watches the gRPC server of this process that was made last.
  FloodWatch();

  // The other ends of the connections that flood ("ipv4:10.0.0.7:51234"). Takes some 3 us while
  // calls are answered, else as much for each connection, up to kLooksMax of them.
  std::vector<std::string> Look(Time now);

  // How long after a look to have the next. Longer while no call begins: gRPC gives its counts as a
  // text with dates, which takes 0.15 ms on an otherwise idle core. A flood that begins then is
  // found that much later.
  std::chrono::milliseconds interval() const { return idle_ ? kIdleInterval : kInterval; }

 private:
  static constexpr int kLooksMax = 1'000;
  // This many more unanswered calls since the last look are a reason to look at connections, ...
  static constexpr int64_t kSuspicious = 40;
  // ... for this time.
  static constexpr std::chrono::milliseconds kSuspicion{1'000};
  static constexpr std::chrono::milliseconds kInterval{
      25};  // a flood brings some 2,000 calls in it
  static constexpr std::chrono::milliseconds kIdleInterval{100};

  struct Seen {
    int64_t failed = 0;
    Time since{};
    int64_t round = 0;  // in which it was last looked at
  };

  // What gRPC counted since the start.
  struct Calls {
    int64_t begun = 0;
    int64_t unanswered = 0;  // those answered with an error among them
  };

  Calls Count() const;
  std::vector<std::string> LookAtConnections(Time now);
  bool Floods(int64_t socket, Time now);
  void EndRound();

  const int64_t server_;
  Calls calls_;
  bool idle_ = false;
  Time suspect_until_{};

  // Of the time since something became suspicious. All connections are looked at in a round of one
  // look or, if there are many, several.
  std::unordered_map<int64_t, Seen> seen_;
  int64_t next_ = 0;  // the socket to go on with
  int64_t round_ = 0;
  Time round_began_{};
  Time round_before_began_{};
};

}  // namespace strata::server
