// A server of PostgreSQL with an empty database, in a temporary folder of its own.
#pragma once

#include <libpq-fe.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/fault/child_process.h"
#include "tests/support/temporary_directory.h"

namespace strata::bench {

using PostgresConnection = std::unique_ptr<PGconn, decltype(&PQfinish)>;

// Throws std::runtime_error with what the library says of the connection.
[[noreturn]] void FailPostgres(PGconn* connection);

// Runs, durable, until the object goes.
class PostgresServer {
 public:
  // Throws std::runtime_error if it cannot be started.
  explicit PostgresServer(int port);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  pid_t pid() const { return process_.pid(); }
  // Throws std::runtime_error if it is refused.
  PostgresConnection Connect() const;

 private:
  std::vector<std::string> InUsersName(const std::vector<std::string>& arguments) const;
  std::string PrepareData() const;
  std::vector<std::string> Arguments() const;

  const test_support::TemporaryDirectory folder_;
  const std::string log_ = folder_.Join("log");
  const std::string port_;
  const std::string password_;
  fault::ChildProcess process_;
};

}  // namespace strata::bench
