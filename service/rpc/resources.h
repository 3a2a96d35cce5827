// What requests concern: one overload for each, so that none is forgotten. What they name lives as
// long as the request.
#pragma once

#include <grpc/health/v1/health.pb.h>
#include <grpc/reflection/v1/reflection.pb.h>
#include <strata/wire/v1/collection_service.pb.h>
#include <strata/wire/v1/document_service.pb.h>
#include <strata/wire/v1/enrollment_service.pb.h>
#include <strata/wire/v1/feed_service.pb.h>
#include <strata/wire/v1/lease_service.pb.h>
#include <strata/wire/v1/queue_service.pb.h>
#include <strata/wire/v1/server_service.pb.h>
#include <strata/wire/v1/transaction_service.pb.h>

#include <algorithm>
#include <concepts>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "schemas/enrollment/enrollments.h"
#include "schemas/feed/subscription.h"
#include "schemas/queue/queues.h"
#include "schemas/transaction/transactions.h"
#include "service/security/permission.h"

namespace strata::rpc {

namespace wire = ::strata::wire::v1;

// Requests about one collection, which they have to name.
template <typename Request>
concept OfACollection = std::same_as<Request, wire::CreateRequest> ||
    std::same_as<Request, wire::GetRequest> || std::same_as<Request, wire::BatchGetRequest> ||
    std::same_as<Request, wire::UpdateRequest> || std::same_as<Request, wire::DeleteRequest> ||
    std::same_as<Request, wire::RestoreRequest> || std::same_as<Request, wire::HistoryRequest> ||
    std::same_as<Request, wire::DiffRequest> || std::same_as<Request, wire::ListRequest>;

// Requests about one collection, which has a default.
template <typename Request>
concept OfStudents = std::same_as<Request, wire::EnrollRequest> ||
    std::same_as<Request, wire::UnenrollRequest> || std::same_as<Request, wire::ApplyRequest> ||
    std::same_as<Request, wire::GetEnrollmentsRequest> ||
    std::same_as<Request, wire::ListRosterRequest> ||
    std::same_as<Request, wire::PurgeTombstonesRequest>;

// Requests that say themselves of which collection, by its name.
template <typename Request>
concept OfANamedCollection = std::same_as<Request, wire::CreateCollectionRequest> ||
    std::same_as<Request, wire::GetCollectionRequest> ||
    std::same_as<Request, wire::DeleteCollectionRequest>;

// Requests about a transaction, which concern the collections of all its documents: the handler
// asks for those once it has found it (handlers/transaction/permitted.h).
template <typename Request>
concept OfATransaction = std::same_as<Request, wire::GetTransactionRequest> ||
    std::same_as<Request, wire::CancelTransactionRequest> ||
    std::same_as<Request, wire::ResumeTransactionRequest>;

// Requests about one lease.
template <typename Request>
concept OfALease =
    std::same_as<Request, wire::AcquireRequest> || std::same_as<Request, wire::RenewRequest> ||
    std::same_as<Request, wire::ReleaseRequest> || std::same_as<Request, wire::GetLeaseRequest>;

// Requests about one subscription: by its own name, or as that which they are a part of.
template <typename Request>
concept OfASubscription = std::same_as<Request, wire::GetSubscriptionRequest> ||
    std::same_as<Request, wire::DeleteSubscriptionRequest>;
template <typename Request>
concept OfWhatIsParked = std::same_as<Request, wire::ListParkedRequest> ||
    std::same_as<Request, wire::ReplayParkedRequest> ||
    std::same_as<Request, wire::DiscardParkedRequest>;

// Requests about one queue: by its own name, or as that which they are a part of.
template <typename Request>
concept OfAQueue =
    std::same_as<Request, wire::GetQueueRequest> || std::same_as<Request, wire::DeleteQueueRequest>;
template <typename Request>
concept OfWhatAQueueHas =
    std::same_as<Request, wire::PushRequest> || std::same_as<Request, wire::PopRequest> ||
    std::same_as<Request, wire::ReserveRequest> || std::same_as<Request, wire::GetMessageRequest> ||
    std::same_as<Request, wire::ListMessagesRequest> ||
    std::same_as<Request, wire::PurgeMessagesRequest> ||
    std::same_as<Request, wire::CreateScheduleRequest> ||
    std::same_as<Request, wire::ListSchedulesRequest> ||
    std::same_as<Request, wire::DeleteScheduleRequest>;
// Requests that say how a queue is to work.
template <typename Request>
concept OfQueueSettings = std::same_as<Request, wire::CreateQueueRequest> ||
    std::same_as<Request, wire::UpdateQueueRequest>;
// Requests about messages that were handed out, by their tokens alone.
template <typename Request>
concept OfTokens = std::same_as<Request, wire::AcknowledgeRequest> ||
    std::same_as<Request, wire::RollbackRequest> || std::same_as<Request, wire::ExtendRequest>;

// Requests that concern nothing that anybody could be kept from.
template <typename Request>
concept OfNothing = std::same_as<Request, wire::GetServerInfoRequest> ||
    std::same_as<Request, grpc::health::v1::HealthCheckRequest> ||
    std::same_as<Request, grpc::reflection::v1::ServerReflectionRequest>;

inline security::Demand OnCollection(security::Permission permission, std::string_view name) {
  return {permission, {security::ResourceKind::kCollection, name}};
}

inline security::Demand OnLease(security::Permission permission, std::string_view name) {
  return {permission, {security::ResourceKind::kLease, name}};
}

inline security::Demand OnSubscription(security::Permission permission, std::string_view name) {
  return {permission, {security::ResourceKind::kSubscription, name}};
}

inline security::Demand OnQueue(security::Permission permission, std::string_view name) {
  return {permission, {security::ResourceKind::kQueue, name}};
}

// What a write needs besides, to show that it holds a lease. Whose a lease of a subscription's
// partition is, is known only when it has been read: JoinFence asks for that.
inline void AddFenced(const wire::LeaseToken& lease, security::Permission permission,
                      security::Demands& demands) {
  if (feed::IncarnationOfPartitionLease(lease.name())) return;
  demands.push_back(OnLease(permission, lease.name()));
}

inline std::string_view CollectionOr(std::string_view collection) {
  return collection.empty() ? std::string_view(enrollment::kDefaultCollection) : collection;
}

template <OfACollection Request>
void ResourcesOf(const Request& request, security::Permission permission,
                 security::Demands& demands) {
  demands.push_back(OnCollection(permission, request.collection()));
  if constexpr (requires { request.has_lease(); }) {
    if (request.has_lease()) AddFenced(request.lease(), permission, demands);
  }
}

// As many as PurgeTombstones takes.
inline constexpr int kPurgedQueuesMax = 100;

template <OfStudents Request>
void ResourcesOf(const Request& request, security::Permission permission,
                 security::Demands& demands) {
  demands.push_back(OnCollection(permission, CollectionOr(request.collection())));
  if constexpr (requires { request.queues(); }) {
    const int queues = std::min(request.queues_size(), kPurgedQueuesMax);
    for (int i = 0; i < queues; ++i) {
      demands.push_back(OnQueue(security::Permission::kRead, request.queues(i)));
    }
  }
}

template <OfANamedCollection Request>
void ResourcesOf(const Request& request, security::Permission permission,
                 security::Demands& demands) {
  demands.push_back(OnCollection(permission, request.name()));
}

template <OfALease Request>
void ResourcesOf(const Request& request, security::Permission permission,
                 security::Demands& demands) {
  demands.push_back(OnLease(permission, request.name()));
}

template <OfNothing Request>
void ResourcesOf(const Request& /*request*/, security::Permission /*permission*/,
                 security::Demands& /*demands*/) {}

template <OfATransaction Request>
void ResourcesOf(const Request& /*request*/, security::Permission /*permission*/,
                 security::Demands& /*demands*/) {}

// What a write of a transaction changes, as the call of its kind would ask for it.
inline void ResourcesOf(const wire::Write& write, security::Permission permission,
                        security::Demands& demands) {
  switch (write.write_case()) {
    case wire::Write::kCreate:
      return ResourcesOf(write.create(), permission, demands);
    case wire::Write::kUpdate:
      return ResourcesOf(write.update(), permission, demands);
    case wire::Write::kDelete:
      return ResourcesOf(write.delete_(), permission, demands);
    case wire::Write::kRestore:
      return ResourcesOf(write.restore(), permission, demands);
    case wire::Write::kEnroll:
      return ResourcesOf(write.enroll(), permission, demands);
    case wire::Write::kUnenroll:
      return ResourcesOf(write.unenroll(), permission, demands);
    case wire::Write::WRITE_NOT_SET:
      return demands.push_back(OnCollection(permission, ""));  // as one that names none
  }
}

// Once for neighbours of one resource; and the first ones alone, since a request with more than
// it may have is refused whatever those name.
inline void AddDemand(const security::Demand& demand, security::Demands& demands) {
  if (!demands.empty() && demands.back().permission == demand.permission &&
      demands.back().resource.kind == demand.resource.kind &&
      demands.back().resource.name == demand.resource.name) {
    return;
  }
  demands.push_back(demand);
}

// To write the queues that tokens name; what is no token names nothing. A request has no such name
// as it is: the thread keeps them, until it is asked for those of another request.
inline void AddQueuesOf(const google::protobuf::RepeatedPtrField<std::string>& tokens,
                        security::Demands& demands) {
  thread_local std::deque<std::string> names;
  names.clear();
  const int count = std::min(tokens.size(), static_cast<int>(queue::kBatchMax));
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<queue::Token> token = queue::Token::FromText("tokens", tokens[i]);
    if (!token.ok() || (!names.empty() && names.back() == token->queue)) continue;
    names.push_back(std::move(token->queue));
    AddDemand(OnQueue(security::Permission::kWrite, names.back()), demands);
  }
}

inline void ResourcesOf(const wire::CommitRequest& request, security::Permission permission,
                        security::Demands& demands) {
  const int writes = std::min(request.writes_size(), static_cast<int>(transaction::kWritesMax));
  for (int i = 0; i < writes; ++i) {
    security::Demands of_write;
    ResourcesOf(request.writes(i), permission, of_write);
    for (const security::Demand& demand : of_write) AddDemand(demand, demands);
  }
  const int reads = std::min(request.reads_size(), static_cast<int>(transaction::kReadsMax));
  for (int i = 0; i < reads; ++i) {
    AddDemand(OnCollection(security::Permission::kRead, request.reads(i).collection()), demands);
  }
  AddQueuesOf(request.acknowledge(), demands);
  const int pushes = std::min(request.pushes_size(), static_cast<int>(queue::kBatchMax));
  for (int i = 0; i < pushes; ++i) {
    AddDemand(OnQueue(permission, request.pushes(i).queue()), demands);
  }
  if (request.has_lease()) AddFenced(request.lease(), permission, demands);
}

// As many as Read takes.
inline constexpr int kReadDocumentsMax = 1000;

inline void ResourcesOf(const wire::ReadRequest& request, security::Permission permission,
                        security::Demands& demands) {
  const int documents = std::min(request.documents_size(), kReadDocumentsMax);
  for (int i = 0; i < documents; ++i) {
    AddDemand(OnCollection(permission, request.documents(i).collection()), demands);
  }
}

// Transactions, leases, subscriptions, queues and collections that may not be read are left out of
// the answer instead.
inline void ResourcesOf(const wire::ListTransactionsRequest& /*request*/,
                        security::Permission /*permission*/, security::Demands& /*demands*/) {}
inline void ResourcesOf(const wire::ListLeasesRequest& /*request*/,
                        security::Permission /*permission*/, security::Demands& /*demands*/) {}
inline void ResourcesOf(const wire::ListSubscriptionsRequest& /*request*/,
                        security::Permission /*permission*/, security::Demands& /*demands*/) {}
inline void ResourcesOf(const wire::ListQueuesRequest& /*request*/,
                        security::Permission /*permission*/, security::Demands& /*demands*/) {}
inline void ResourcesOf(const wire::ListCollectionsRequest& /*request*/,
                        security::Permission /*permission*/, security::Demands& /*demands*/) {}

inline void ResourcesOf(const wire::AuditRequest& request, security::Permission permission,
                        security::Demands& demands) {
  demands.push_back(OnCollection(
      permission, request.collection().empty() ? security::kEvery : request.collection()));
}

inline void ResourcesOf(const wire::GetLedgerHeadRequest& /*request*/,
                        security::Permission permission, security::Demands& demands) {
  demands.push_back(OnCollection(permission, security::kEvery));
}

// As many as Watch takes.
inline constexpr int kWatchedCollectionsMax = 100;

// What it takes to follow the events of these collections; of all, if there are none.
inline void AddWatched(const google::protobuf::RepeatedPtrField<std::string>& collections,
                       security::Demands& demands) {
  const int count = std::min(collections.size(), kWatchedCollectionsMax);
  for (int i = 0; i < count; ++i) {
    AddDemand(OnCollection(security::Permission::kRead, collections[i]), demands);
  }
  if (count == 0) demands.push_back(OnCollection(security::Permission::kRead, security::kEvery));
}

inline void ResourcesOf(const wire::WatchRequest& request, security::Permission /*permission*/,
                        security::Demands& demands) {
  AddWatched(request.collections(), demands);
}

inline void ResourcesOf(const wire::CreateSubscriptionRequest& request,
                        security::Permission permission, security::Demands& demands) {
  demands.push_back(OnSubscription(permission, request.name()));
  AddWatched(request.collections(), demands);
}

template <OfASubscription Request>
void ResourcesOf(const Request& request, security::Permission permission,
                 security::Demands& demands) {
  demands.push_back(OnSubscription(permission, request.name()));
}

template <OfWhatIsParked Request>
void ResourcesOf(const Request& request, security::Permission permission,
                 security::Demands& demands) {
  demands.push_back(OnSubscription(permission, request.subscription()));
}

// Only the first message says of what; for the others the handler asks again, and for what the
// subscription's events are of.
inline void ResourcesOf(const wire::ConsumeRequest& request, security::Permission /*permission*/,
                        security::Demands& demands) {
  if (!request.has_open()) return;
  demands.push_back(OnSubscription(security::Permission::kWrite, request.open().subscription()));
}

template <OfAQueue Request>
void ResourcesOf(const Request& request, security::Permission permission,
                 security::Demands& demands) {
  demands.push_back(OnQueue(permission, request.name()));
}

template <OfWhatAQueueHas Request>
void ResourcesOf(const Request& request, security::Permission permission,
                 security::Demands& demands) {
  demands.push_back(OnQueue(permission, request.queue()));
}

// What a queue does by itself, as it was told to, its owner has to be allowed to do.
template <OfQueueSettings Request>
void ResourcesOf(const Request& request, security::Permission permission,
                 security::Demands& demands) {
  demands.push_back(OnQueue(permission, request.name()));
  const wire::QueueSettings& settings = request.settings();
  if (!settings.dead_letter_queue().empty()) {
    demands.push_back(OnQueue(security::Permission::kWrite, settings.dead_letter_queue()));
  }
  if (settings.has_enrollments()) {
    demands.push_back(
        OnCollection(security::Permission::kWrite, settings.enrollments().collection()));
  }
}

template <OfTokens Request>
void ResourcesOf(const Request& request, security::Permission /*permission*/,
                 security::Demands& demands) {
  AddQueuesOf(request.tokens(), demands);
}

inline void ResourcesOf(const wire::MoveRequest& request, security::Permission permission,
                        security::Demands& demands) {
  google::protobuf::RepeatedPtrField<std::string> tokens;
  *tokens.Add() = request.token();
  AddQueuesOf(tokens, demands);
  AddDemand(OnQueue(permission, request.queue()), demands);
}

inline void ResourcesOf(const wire::ReplayRequest& request, security::Permission permission,
                        security::Demands& demands) {
  demands.push_back(OnQueue(permission, request.queue()));
  if (!request.target_queue().empty()) {
    AddDemand(OnQueue(permission, request.target_queue()), demands);
  }
}

// A message that names nothing is about the queue that the stream was opened for: the handler asks
// for that again.
inline void ResourcesOf(const wire::ReceiveRequest& request, security::Permission /*permission*/,
                        security::Demands& demands) {
  switch (request.message_case()) {
    case wire::ReceiveRequest::kOpen:
      return demands.push_back(OnQueue(security::Permission::kWrite, request.open().queue()));
    case wire::ReceiveRequest::kAcknowledge:
      return AddQueuesOf(request.acknowledge().tokens(), demands);
    case wire::ReceiveRequest::kRollback:
      return AddQueuesOf(request.rollback().tokens(), demands);
    case wire::ReceiveRequest::kExtend:
      return AddQueuesOf(request.extend().tokens(), demands);
    case wire::ReceiveRequest::kCredits:
    case wire::ReceiveRequest::MESSAGE_NOT_SET:
      return;
  }
}

inline void ResourcesOf(const wire::GetFeedRequest& /*request*/, security::Permission permission,
                        security::Demands& demands) {
  demands.push_back(OnCollection(permission, security::kEvery));
}

// expect_head covers every collection; repair needs *manage*.
inline void ResourcesOf(const wire::VerifyRequest& request, security::Permission permission,
                        security::Demands& demands) {
  const security::Permission needed = request.repair() ? security::Permission::kManage : permission;
  if (!request.collection().empty()) demands.push_back(OnCollection(needed, request.collection()));
  if (request.collection().empty() || request.has_expect_head()) {
    demands.push_back(OnCollection(needed, security::kEvery));
  }
}

}  // namespace strata::rpc
