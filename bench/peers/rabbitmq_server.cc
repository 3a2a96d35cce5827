#include "bench/peers/rabbitmq_server.h"

#include <fstream>
#include <stdexcept>

#include "bench/peers/server_program.h"

namespace strata::bench {
namespace {

constexpr std::chrono::seconds kRabbitmqStartPatience{120};
constexpr char kHost[] = "127.0.0.1";
constexpr char kRabbitmqUser[] = "bench";
constexpr int kFrameBytesMax = 131'072;

std::string ReasonOf(const amqp_rpc_reply_t& reply) {
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION) {
    return amqp_error_string2(reply.library_error);
  }
  const char* const method = amqp_method_name(reply.reply.id);
  return method == nullptr ? "refused" : method;
}

}  // namespace

void RequireAmqp(int status, const char* what) {
  if (status == AMQP_STATUS_OK) return;
  throw std::runtime_error(std::string("rabbitmq: ") + what + ": " + amqp_error_string2(status));
}

void RequireAmqp(const amqp_rpc_reply_t& reply, const char* what) {
  if (reply.reply_type == AMQP_RESPONSE_NORMAL) return;
  throw std::runtime_error(std::string("rabbitmq: ") + what + ": " + ReasonOf(reply));
}

RabbitmqServer::RabbitmqServer()
    : ports_(FreePorts(3)),
      password_(RandomPassword()),
      port_mapper_(PortMapperArguments(), log_),
      process_(Arguments(), log_) {
  AwaitServer("rabbitmq", log_, kRabbitmqStartPatience, [&] { return TryToConnect() != nullptr; });
}

std::vector<std::string> RabbitmqServer::PortMapperArguments() const {
  RequireDisk(folder_.path().string());
  return {FindProgram("epmd", {"/usr/bin/epmd"}), "-address", kHost, "-port",
          std::to_string(ports_[2])};
}

// As it comes, but for where it is and keeps everything. The script becomes the server: it would
// stay and pass signals on if the server had no input.
std::vector<std::string> RabbitmqServer::Arguments() const {
  const std::string program =
      FindProgram("rabbitmq-server", {"/usr/lib/rabbitmq/bin/rabbitmq-server"});
  WriteSettings();
  const std::string folder = folder_.path().string();
  return {"/usr/bin/env",
          "-i",
          "-C",
          folder,
          "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
          "LANG=C.UTF-8",
          "HOME=" + folder,
          std::string("ERL_EPMD_ADDRESS=") + kHost,
          "ERL_EPMD_PORT=" + std::to_string(ports_[2]),
          "RABBITMQ_ALLOW_INPUT=1",
          "RABBITMQ_NODENAME=bench@localhost",
          "RABBITMQ_DIST_PORT=" + std::to_string(ports_[1]),
          "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-noinput -kernel inet_dist_use_interface "
          "{127,0,0,1}",
          "RABBITMQ_CONF_ENV_FILE=" + folder_.Join("environment"),
          "RABBITMQ_CONFIG_FILE=" + folder_.Join("settings.conf"),
          "RABBITMQ_ADVANCED_CONFIG_FILE=" + folder_.Join("advanced.config"),
          "RABBITMQ_ENABLED_PLUGINS_FILE=" + folder_.Join("plugins"),
          "RABBITMQ_MNESIA_BASE=" + folder_.Join("data"),
          "RABBITMQ_LOG_BASE=" + folder,
          "RABBITMQ_LOGS=" + log_,
          program};
}

void RabbitmqServer::WriteSettings() const {
  std::ofstream(folder_.Join("environment")) << "";
  std::ofstream(folder_.Join("plugins")) << "[].\n";
  std::ofstream(folder_.Join("settings.conf"))
      << "listeners.tcp.1 = " << kHost << ":" << ports_[0] << "\ndefault_user = " << kRabbitmqUser
      << "\ndefault_pass = " << password_ << "\n";
}

// A connection that is refused leaves nothing behind.
AmqpConnection RabbitmqServer::TryToConnect() const {
  AmqpConnection connection(amqp_new_connection());
  amqp_socket_t* const socket = amqp_tcp_socket_new(connection.get());
  if (socket == nullptr || amqp_socket_open(socket, kHost, ports_[0]) != AMQP_STATUS_OK) return {};
  const amqp_rpc_reply_t reply =
      amqp_login(connection.get(), "/", 0, kFrameBytesMax, 0, AMQP_SASL_METHOD_PLAIN, kRabbitmqUser,
                 password_.c_str());
  if (reply.reply_type != AMQP_RESPONSE_NORMAL) return {};
  return connection;
}

AmqpConnection RabbitmqServer::Connect(int channels) const {
  AmqpConnection connection = TryToConnect();
  if (connection == nullptr) throw std::runtime_error("rabbitmq: cannot connect");
  for (int i = 1; i <= channels; ++i) {
    amqp_channel_open(connection.get(), static_cast<amqp_channel_t>(i));
    RequireAmqp(amqp_get_rpc_reply(connection.get()), "open a channel");
  }
  return connection;
}

}  // namespace strata::bench
