// The way to one server.
#pragma once

#include <grpcpp/channel.h>

#include <chrono>
#include <memory>
#include <string>

#include "clients/cpp/credentials.h"
#include "strata/v1/collection_service.grpc.pb.h"
#include "strata/v1/document_service.grpc.pb.h"
#include "strata/v1/enrollment_service.grpc.pb.h"
#include "strata/v1/feed_service.grpc.pb.h"
#include "strata/v1/lease_service.grpc.pb.h"
#include "strata/v1/queue_service.grpc.pb.h"
#include "strata/v1/server_service.grpc.pb.h"
#include "strata/v1/transaction_service.grpc.pb.h"

namespace strata::client {

// Stubs over one channel. They are thread-safe, as is the channel.
struct Connection {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::DocumentService::Stub> documents;
  std::unique_ptr<v1::CollectionService::Stub> collections;
  std::unique_ptr<v1::EnrollmentService::Stub> enrollments;
  std::unique_ptr<v1::TransactionService::Stub> transactions;
  std::unique_ptr<v1::LeaseService::Stub> leases;
  std::unique_ptr<v1::FeedService::Stub> feed;
  std::unique_ptr<v1::QueueService::Stub> queues;
  std::unique_ptr<v1::ServerService::Stub> servers;
};

// Names the server, "host:port" (target.h), and presents the credentials with every call; does not
// wait until it is reached. Connections are tried again after a second at most, so that whoever
// repeats calls finds a restarted server soon. A server on this machine is reached without proxies.
// One attempt to connect may take `connect_timeout`.
Connection Connect(const std::string& server, const Credentials& credentials,
                   std::chrono::milliseconds connect_timeout = std::chrono::seconds(10));

}  // namespace strata::client
