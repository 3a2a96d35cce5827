// The real server, as a process that a test can kill.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/fault/child_process.h"

namespace strata::fault {

// Where a server keeps its data and its log, and what it is told besides.
struct ServerSettings {
  std::string data;
  std::string log;
  std::string listen = "127.0.0.1:0";
  std::vector<std::string> flags;
  int open_files_max = 0;  // 0: as many as this process may have open
  std::string binary{};    // empty: the server that was built with this program
};

class ServerProcess {
 public:
  // Returns when the server serves. Aborts, with its log, if it does not within a minute.
  explicit ServerProcess(const ServerSettings& settings);

  // HOST:PORT.
  const std::string& address() const { return address_; }
  pid_t pid() const { return process_.pid(); }
  // A connection of its own, shared with nobody.
  std::shared_ptr<grpc::Channel> Connect() const;

  // kill -9.
  void Kill();
  // SIGTERM, and the exit status.
  int Stop();

 private:
  ChildProcess process_;
  std::string address_;
};

// The path of the command line tool.
std::string StrataBinary();

}  // namespace strata::fault
