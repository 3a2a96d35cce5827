#include "service/server/server_loop.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <chrono>
#include <limits>
#include <map>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "service/observability/log.h"
#include "service/server/event_queue.h"
#include "service/server/flood_watch.h"

namespace strata::server {
namespace {

// How long streams have to take in how they end.
constexpr std::chrono::milliseconds kStreamGrace{500};

// Room for connections, and for messages on their way in, however little may be in flight.
constexpr size_t kArrivingBytesMin = size_t{64} << 20;

// gRPC's own log is for those who debug gRPC.
void LogOfGrpc(gpr_log_func_args* args) {
  observability::Log(observability::LogLevel::kDebug, "grpc", {{"message", args->message}});
}

// Protobuf's, too.
void LogOfProtobuf(google::protobuf::LogLevel /*level*/, const char* /*file*/, int /*line*/,
                   const std::string& message) {
  observability::Log(observability::LogLevel::kDebug, "protobuf", {{"message", message}});
}

// A client, or a proxy before it, may ping so often, whether it has calls or not. gRPC's own limit
// is five minutes: a watcher that nothing happens to, and that pings more often to learn whether
// the server is still there, would have all its calls ended as a flood.
constexpr std::chrono::milliseconds kPingIntervalMin{2'000};

class LoopServer final : public ServerLoop {
 public:
  LoopServer(const LoopOptions& options, std::vector<Method> methods, const LoopParts& parts)
      : state_(std::make_shared<LoopState>(options, parts)) {
    for (Method& method : methods) AddEndpoint(std::move(method));
  }
  ~LoopServer() override {
    if (server_ != nullptr && !stopped_) Shutdown(std::chrono::milliseconds(0), nullptr);
  }

  absl::Status Listen();
  int port() const override { return listener_->port(); }
  void Shutdown(std::chrono::milliseconds grace,
                const std::function<void()>& before_cutting) override;
  const std::shared_ptr<LoopState>& calls() const override { return state_; }

 private:
  void AddEndpoint(Method method);
  void Configure(grpc::ServerBuilder& builder) const;

  const std::shared_ptr<LoopState> state_;
  std::map<std::string, std::unique_ptr<RawService>> services_;
  grpc::AsyncGenericService unknown_methods_;
  std::vector<std::unique_ptr<EventQueue>> queues_;
  // One EMFILE ends gRPC's own listener for ever, and nothing caps its connections.
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  bool stopped_ = false;
};

void LoopServer::AddEndpoint(Method method) {
  auto endpoint = std::make_unique<Endpoint>();
  endpoint->path = method.path();
  endpoint->log_name = endpoint->path.substr(1);
  std::unique_ptr<RawService>& service = services_[method.service];
  if (service == nullptr) service = std::make_unique<RawService>();
  endpoint->service = service.get();
  endpoint->index = service->Add(endpoint->path.c_str(), method.streams());
  endpoint->method = std::move(method);
  state_->endpoints.push_back(std::move(endpoint));
}

void LoopServer::Configure(grpc::ServerBuilder& builder) const {
  const LoopOptions& options = state_->options;
  const auto millis = [](std::chrono::seconds time) {
    return static_cast<int>(time.count()) * 1000;
  };
  // A compressed message of a megabyte may hold a gigabyte, and is unpacked before its size is
  // checked.
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  // What is counted in flight has arrived whole; what is arriving, gRPC bounds itself: past this it
  // grants no more, and then resets calls, which their callers see as RESOURCE_EXHAUSTED without a
  // reason. It picks from all that are open, so that one which is being handled may be among them.
  grpc::ResourceQuota quota("strata");
  quota.Resize(kArrivingBytesMin + options.bytes_in_flight_max);
  builder.SetResourceQuota(quota);
  // gRPC looks at a message's size when it has taken it in whole, and what it then says is
  // RESOURCE_EXHAUSTED without a reason, as when it resets a call: a caller that repeats what may
  // have taken effect would repeat it for ever. So Admission looks, and gives the reason.
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 1);  // what FloodWatch looks at
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE,
                             static_cast<int>(options.metadata_bytes_max));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.streams_per_connection_max);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, millis(options.keepalive_time));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, millis(options.keepalive_timeout));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             static_cast<int>(kPingIntervalMin.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, millis(options.connection_idle_max));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             millis(options.handshake_timeout));
  if (options.connection_age_max.count() > 0) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, millis(options.connection_age_max));
    // Calls that are under way then end by themselves: gRPC would cut a stream off, as if its
    // caller had died, and tell nobody why.
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
                               std::numeric_limits<int>::max());
  }
}

absl::Status LoopServer::Listen() {
  // Debian's Abseil is a debug build in this one respect: it keeps a graph of who waits for which
  // mutex, at 3 % of a call's CPU.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  gpr_set_log_function(LogOfGrpc);
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  google::protobuf::SetLogHandler(LogOfProtobuf);
  ASSIGN_OR_RETURN(listener_, Listener::Open(state_->options.listener));
  grpc::ServerBuilder builder;
  Configure(builder);
  const std::shared_ptr<grpc::ServerCredentials>& credentials = state_->options.credentials;
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      credentials ? credentials : grpc::InsecureServerCredentials());
  for (const auto& [name, service] : services_) builder.RegisterService(service.get());
  builder.RegisterAsyncGenericService(&unknown_methods_);
  for (int i = 0; i < state_->options.threads; ++i) {
    queues_.push_back(
        std::make_unique<EventQueue>(state_, unknown_methods_, builder.AddCompletionQueue()));
  }
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return Error(ErrorReason::kInternal, "gRPC does not start");
  for (const auto& queue : queues_) queue->Start();
  listener_->Start(
      [this](int socket) {
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
        connection.fd = socket;
        acceptor_->HandleNewConnection(&connection);
      },
      [watch = std::make_shared<FloodWatch>()] {
        std::vector<std::string> peers = watch->Look(std::chrono::steady_clock::now());
        return Listener::FloodLook{std::move(peers), watch->interval()};
      });
  return absl::OkStatus();
}

// In steps: calls in progress get their answers; whatever is left hears why it ends, and is
// cancelled if it does not listen.
void LoopServer::Shutdown(std::chrono::milliseconds grace,
                          const std::function<void()>& before_cutting) {
  stopped_ = true;
  state_->admission.Drain();
  state_->AwaitUnaryCalls(grace);
  for (const auto& queue : queues_) queue->EndUnaryCalls();
  state_->EndCalls();
  listener_->Stop();
  if (before_cutting != nullptr) before_cutting();
  server_->Shutdown(std::chrono::system_clock::now() + kStreamGrace);
  for (const auto& queue : queues_) queue->Stop();
  state_->turns->Stop();  // what waits there holds calls that are over
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerLoop>> ServerLoop::Start(const LoopOptions& options,
                                                              std::vector<Method> methods,
                                                              const LoopParts& parts) {
  auto server = std::make_unique<LoopServer>(options, std::move(methods), parts);
  if (absl::Status status = server->Listen(); !status.ok()) return status;
  return std::unique_ptr<ServerLoop>(std::move(server));
}

}  // namespace strata::server
