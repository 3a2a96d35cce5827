// What requests need: the option (resource) names it or, where their parts do, an overload of
// AddParts finds it. What they name lives as long as the request.
#pragma once

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

using security::Demands;
using security::Permission;

// All that a request needs, first what its option names.
template <typename Request>
void AddDemands(const Request& request, Permission permission, Demands& demands);

inline std::string_view NameOr(std::string_view name, std::string_view otherwise) {
  return name.empty() ? otherwise : name;
}

enum class Idempotency { kNoSideEffects, kIdempotent, kIdempotencyUnknown };

// The options of the RPC that takes such requests (options.proto). Other messages have none.
template <typename Request>
struct OptionsOf;

#define METHOD(Request, rpc, permission, level)                                        \
  template <>                                                                          \
  struct OptionsOf<wire::Request> {                                                    \
    static constexpr std::string_view kName = rpc;                                     \
    static constexpr Permission kPermission = Permission::permission;                  \
    static constexpr bool kWrites = Idempotency::level != Idempotency::kNoSideEffects; \
  };
#define RESOURCE(Request, kind, name)                                                           \
  inline void AddResource([[maybe_unused]] const wire::Request& request, Permission permission, \
                          Demands& demands) {                                                   \
    demands.push_back({permission, {security::ResourceKind::kind, name}});                      \
  }
#include "strata/methods.def"
#undef METHOD
#undef RESOURCE

inline security::Demand OnCollection(Permission permission, std::string_view name) {
  return {permission, {security::ResourceKind::kCollection, name}};
}

inline security::Demand OnLease(Permission permission, std::string_view name) {
  return {permission, {security::ResourceKind::kLease, name}};
}

inline security::Demand OnSubscription(Permission permission, std::string_view name) {
  return {permission, {security::ResourceKind::kSubscription, name}};
}

inline security::Demand OnQueue(Permission permission, std::string_view name) {
  return {permission, {security::ResourceKind::kQueue, name}};
}

// What a write needs besides, to show that it holds a lease. Whose a lease of a subscription's
// partition is, is known only when it has been read: JoinFence asks for that.
inline void AddFenced(const wire::LeaseToken& lease, Permission permission, Demands& demands) {
  if (feed::IncarnationOfPartitionLease(lease.name())) return;
  demands.push_back(OnLease(permission, lease.name()));
}

inline std::string_view CollectionOr(std::string_view collection) {
  return NameOr(collection, enrollment::kDefaultCollection);
}

// As many as PurgeTombstones takes.
inline constexpr int kPurgedQueuesMax = 100;

inline void AddParts(const wire::PurgeTombstonesRequest& request, Permission /*permission*/,
                     Demands& demands) {
  const int queues = std::min(request.queues_size(), kPurgedQueuesMax);
  for (int i = 0; i < queues; ++i) {
    demands.push_back(OnQueue(Permission::kRead, request.queues(i)));
  }
}

// Once for neighbours of one resource; and the first ones alone, since a request with more than
// it may have is refused whatever those name.
inline void AddDemand(const security::Demand& demand, Demands& demands) {
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
                        Demands& demands) {
  thread_local std::deque<std::string> names;
  names.clear();
  const int count = std::min(tokens.size(), static_cast<int>(queue::kBatchMax));
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<queue::Token> token = queue::Token::FromText("tokens", tokens[i]);
    if (!token.ok() || (!names.empty() && names.back() == token->queue)) continue;
    names.push_back(std::move(token->queue));
    AddDemand(OnQueue(Permission::kWrite, names.back()), demands);
  }
}

// What a write of a transaction changes, as the call of its kind would ask for it.
inline void AddParts(const wire::Write& write, Permission permission, Demands& demands) {
  switch (write.write_case()) {
    case wire::Write::kCreate:
      return AddDemands(write.create(), permission, demands);
    case wire::Write::kUpdate:
      return AddDemands(write.update(), permission, demands);
    case wire::Write::kDelete:
      return AddDemands(write.delete_(), permission, demands);
    case wire::Write::kRestore:
      return AddDemands(write.restore(), permission, demands);
    case wire::Write::kEnroll:
      return AddDemands(write.enroll(), permission, demands);
    case wire::Write::kUnenroll:
      return AddDemands(write.unenroll(), permission, demands);
    case wire::Write::WRITE_NOT_SET:
      return demands.push_back(OnCollection(permission, ""));  // as one that names none
  }
}

inline void AddParts(const wire::CommitRequest& request, Permission permission, Demands& demands) {
  const int writes = std::min(request.writes_size(), static_cast<int>(transaction::kWritesMax));
  for (int i = 0; i < writes; ++i) {
    Demands of_write;
    AddParts(request.writes(i), permission, of_write);
    for (const security::Demand& demand : of_write) AddDemand(demand, demands);
  }
  const int reads = std::min(request.reads_size(), static_cast<int>(transaction::kReadsMax));
  for (int i = 0; i < reads; ++i) {
    AddDemand(OnCollection(Permission::kRead, request.reads(i).collection()), demands);
  }
  AddQueuesOf(request.acknowledge(), demands);
  const int pushes = std::min(request.pushes_size(), static_cast<int>(queue::kBatchMax));
  for (int i = 0; i < pushes; ++i) {
    AddDemand(OnQueue(permission, request.pushes(i).queue()), demands);
  }
}

// As many as Read takes.
inline constexpr int kReadDocumentsMax = 1000;

inline void AddParts(const wire::ReadRequest& request, Permission permission, Demands& demands) {
  const int documents = std::min(request.documents_size(), kReadDocumentsMax);
  for (int i = 0; i < documents; ++i) {
    AddDemand(OnCollection(permission, request.documents(i).collection()), demands);
  }
}

// As many as Watch takes.
inline constexpr int kWatchedCollectionsMax = 100;

// What it takes to follow the events of these collections; of all, if there are none.
inline void AddWatched(const google::protobuf::RepeatedPtrField<std::string>& collections,
                       Demands& demands) {
  const int count = std::min(collections.size(), kWatchedCollectionsMax);
  for (int i = 0; i < count; ++i) {
    AddDemand(OnCollection(Permission::kRead, collections[i]), demands);
  }
  if (count == 0) demands.push_back(OnCollection(Permission::kRead, security::kEvery));
}

inline void AddParts(const wire::WatchRequest& request, Permission /*permission*/,
                     Demands& demands) {
  AddWatched(request.collections(), demands);
}

inline void AddParts(const wire::CreateSubscriptionRequest& request, Permission /*permission*/,
                     Demands& demands) {
  AddWatched(request.collections(), demands);
}

// Only the first message says of what; for the others the handler asks again, and for what the
// subscription's events are of.
inline void AddParts(const wire::ConsumeRequest& request, Permission /*permission*/,
                     Demands& demands) {
  if (!request.has_open()) return;
  demands.push_back(OnSubscription(Permission::kWrite, request.open().subscription()));
}

// What a queue does by itself, as it was told to, its owner has to be allowed to do.
template <typename Request>
requires std::same_as<Request, wire::CreateQueueRequest> ||
    std::same_as<Request, wire::UpdateQueueRequest>
void AddParts(const Request& request, Permission /*permission*/, Demands& demands) {
  const wire::QueueSettings& settings = request.settings();
  if (!settings.dead_letter_queue().empty()) {
    demands.push_back(OnQueue(Permission::kWrite, settings.dead_letter_queue()));
  }
  if (settings.has_enrollments()) {
    demands.push_back(OnCollection(Permission::kWrite, settings.enrollments().collection()));
  }
}

template <typename Request>
requires std::same_as<Request, wire::AcknowledgeRequest> ||
    std::same_as<Request, wire::RollbackRequest> || std::same_as<Request, wire::ExtendRequest>
void AddParts(const Request& request, Permission /*permission*/, Demands& demands) {
  AddQueuesOf(request.tokens(), demands);
}

inline void AddParts(const wire::MoveRequest& request, Permission permission, Demands& demands) {
  google::protobuf::RepeatedPtrField<std::string> tokens;
  *tokens.Add() = request.token();
  AddQueuesOf(tokens, demands);
  AddDemand(OnQueue(permission, request.queue()), demands);
}

inline void AddParts(const wire::ReplayRequest& request, Permission permission, Demands& demands) {
  if (!request.target_queue().empty()) {
    AddDemand(OnQueue(permission, request.target_queue()), demands);
  }
}

// A message that names nothing is about the queue that the stream was opened for: the handler asks
// for that again.
inline void AddParts(const wire::ReceiveRequest& request, Permission /*permission*/,
                     Demands& demands) {
  switch (request.message_case()) {
    case wire::ReceiveRequest::kOpen:
      return demands.push_back(OnQueue(Permission::kWrite, request.open().queue()));
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

// expect_head covers every collection; repair needs *manage*.
inline void AddParts(const wire::VerifyRequest& request, Permission permission, Demands& demands) {
  const Permission needed = request.repair() ? Permission::kManage : permission;
  if (!request.collection().empty()) demands.push_back(OnCollection(needed, request.collection()));
  if (request.collection().empty() || request.has_expect_head()) {
    demands.push_back(OnCollection(needed, security::kEvery));
  }
}

template <typename Request>
void AddDemands(const Request& request, Permission permission, Demands& demands) {
  constexpr bool kNamed = requires { AddResource(request, permission, demands); };
  constexpr bool kOfParts = requires { AddParts(request, permission, demands); };
  static_assert(kNamed || kOfParts || OptionsOf<Request>::kPermission == Permission::kPrincipal,
                "a permission is on something: set (resource), or write AddParts");
  if constexpr (kNamed) AddResource(request, permission, demands);
  if constexpr (kOfParts) AddParts(request, permission, demands);
  if constexpr (requires { request.has_lease(); }) {
    if (request.has_lease()) AddFenced(request.lease(), permission, demands);
  }
}

}  // namespace strata::rpc
