// The channel: unencrypted, since encryption is the mesh's.
#include "clients/client/connection.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

namespace strata::client {

Connection Connect(const std::string& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
  return {.documents = v1::DocumentService::NewStub(channel),
          .collections = v1::CollectionService::NewStub(channel),
          .enrollments = v1::EnrollmentService::NewStub(channel)};
}

}  // namespace strata::client
