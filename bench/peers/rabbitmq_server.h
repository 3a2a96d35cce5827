// A server of RabbitMQ in a temporary folder of its own, with all that Erlang keeps beside it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/peers/rabbitmq_c.h"
#include "tests/fault/child_process.h"
#include "tests/support/temporary_directory.h"

namespace strata::bench {

struct DestroyAmqpConnection {
  void operator()(amqp_connection_state_t connection) const { amqp_destroy_connection(connection); }
};
using AmqpConnection = std::unique_ptr<amqp_connection_state_t_, DestroyAmqpConnection>;

// Throws std::runtime_error if the status is that of a failure; the reply to a call likewise.
void RequireAmqp(int status, const char* what);
void RequireAmqp(const amqp_rpc_reply_t& reply, const char* what);

// Runs, on loopback only, until the object goes.
class RabbitmqServer {
 public:
  // Throws std::runtime_error if it cannot be started.
  RabbitmqServer();
  RabbitmqServer(const RabbitmqServer&) = delete;
  RabbitmqServer& operator=(const RabbitmqServer&) = delete;

  pid_t pid() const { return process_.pid(); }
  // With so many open channels, from 1 on. Throws std::runtime_error if it is refused.
  AmqpConnection Connect(int channels) const;

 private:
  std::vector<std::string> PortMapperArguments() const;
  std::vector<std::string> Arguments() const;
  void WriteSettings() const;
  AmqpConnection TryToConnect() const;

  const test_support::TemporaryDirectory folder_;
  const std::string log_ = folder_.Join("log");
  const std::vector<int> ports_;  // the server's, that of Erlang's nodes, that of their mapper
  const std::string password_;
  // Else Erlang starts one by itself, which outlives it.
  fault::ChildProcess port_mapper_;
  fault::ChildProcess process_;
};

}  // namespace strata::bench
