// Those who follow a table of PostgreSQL by position. They poll it, and are woken by LISTEN and
// NOTIFY instead of by the clock.
#pragma once

#include <libpq-fe.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/load/followers.h"
#include "bench/peers/postgres_server.h"

namespace strata::bench {

// Adds a position to the table "versions", which is empty.
extern const char* const kAddPositions;
// From now on each statement that writes to it notifies those who listen. The notification is part
// of the commit, and PostgreSQL lets one commit with notifications happen at a time.
extern const char* const kNotify;

// Each over a connection of its own, with a process of the server behind it; all in one thread of
// this process. What they read is all columns; the rows are counted and not looked at.
class PostgresFollowers final : public Followers {
 public:
  // Once it returns, all of them follow what is committed from now on, or from the beginning.
  // Throws std::runtime_error if the server refuses it.
  PostgresFollowers(std::vector<PostgresConnection> connections, bool from_beginning);
  ~PostgresFollowers() override;

 private:
  struct Follower {
    PostgresConnection connection;
    // Of the last row that it has read, and what had been committed when it began: in PostgreSQL's
    // binary forms, as it is told them and tells them.
    std::string xid{};
    std::string number{};
    std::string seen{};
    bool is_asking = false;
    bool is_woken = false;  // since it last asked
    bool has_ended = false;
    Clock::time_point asked{};
  };

  void Begin(Follower& follower, bool from_beginning);
  void Run();
  void Ask(Follower& follower);
  // Takes in what its socket brought.
  void Receive(size_t index);
  // Whether there may be more.
  bool Take(size_t index, const PGresult* rows);
  void End(Follower& follower, const std::string& why);

  std::vector<Follower> followers_;
  const int poll_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace strata::bench
