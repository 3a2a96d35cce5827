// The channel, and the token that goes with each of its calls.
#include "clients/cpp/connection.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_interceptor.h>

#include <utility>
#include <vector>

namespace strata::client {
namespace {

using grpc::experimental::InterceptionHookPoints;

// Adds the header to a call, whichever kind it is. Not gRPC's own call credentials, because those
// refuse to go without TLS, also on this machine.
class Presenter : public grpc::experimental::Interceptor {
 public:
  explicit Presenter(const std::string& authorization) : authorization_(authorization) {}
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace("authorization", authorization_);
    }
    methods->Proceed();
  }

 private:
  const std::string& authorization_;
};

// Lives as long as the channel.
class PresenterFactory : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit PresenterFactory(std::string authorization) : authorization_(std::move(authorization)) {}
  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    return new Presenter(authorization_);
  }

 private:
  const std::string authorization_;
};

std::shared_ptr<grpc::Channel> Open(const std::string& server, const Credentials& credentials,
                                    std::chrono::milliseconds connect_timeout) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // How long connecting may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(connect_timeout.count()));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A server that is gone or stands still without a word is noticed, however long a stream is
  // silent otherwise. By itself gRPC stops after two such pings.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A proxy does not know this machine's own addresses, and would take a token elsewhere, where
  // nothing hides it.
  if (IsLoopback(server)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto channel_credentials = ChannelCredentialsOf(credentials);
  if (credentials.token.empty()) {
    return grpc::CreateCustomChannel(server, channel_credentials, arguments);
  }
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<PresenterFactory>(credentials.authorization()));
  return grpc::experimental::CreateCustomChannelWithInterceptors(server, channel_credentials,
                                                                 arguments, std::move(factories));
}

}  // namespace

Connection Connect(const std::string& server, const Credentials& credentials,
                   std::chrono::milliseconds connect_timeout) {
  const std::shared_ptr<grpc::Channel> channel = Open(server, credentials, connect_timeout);
  return {.channel = channel,
          .documents = v1::DocumentService::NewStub(channel),
          .collections = v1::CollectionService::NewStub(channel),
          .enrollments = v1::EnrollmentService::NewStub(channel),
          .transactions = v1::TransactionService::NewStub(channel),
          .leases = v1::LeaseService::NewStub(channel),
          .feed = v1::FeedService::NewStub(channel),
          .queues = v1::QueueService::NewStub(channel),
          .servers = v1::ServerService::NewStub(channel)};
}

}  // namespace strata::client
