// Every RPC, by everybody, on what is theirs, on what is not, and on nothing.
//
// What each RPC asks for is written down here once more, by hand. Whatever is allowed goes to a
// second server too, which nobody guards, and both have to say the same; whatever is not, changes
// no byte of what is stored.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/queue/message.h"
#include "schemas/transaction/attempt.h"
#include "service/rpc/registry.h"
#include "service/security/permission.h"
#include "strata/v1/enrollment_service.pb.h"
#include "strata/v1/feed_service.pb.h"
#include "strata/v1/lease_service.pb.h"
#include "strata/v1/queue_service.pb.h"
#include "strata/v1/server_service.pb.h"
#include "strata/v1/transaction_service.pb.h"
#include "tests/rpc/secured_server.h"
#include "tests/rpc/test_server.h"

namespace strata::rpc_test {
namespace {

using security::Permission;
using test_support::TestCa;

// What a method asks for, with a request to ask by: $C stands for a collection's name, $I for the
// incarnation of the subscription of that name, $T for a token of a message of the queue of it.
struct Asked {
  std::string_view method;
  Permission permission;
  std::string_view json;
  // Whether the request is about every collection, whatever $C stands for.
  enum class About {
    kCollection,
    kCollectionOrStudents,
    kCollectionOrAll,
    kAll,
    kLease,         // the lease of that name
    kSubscription,  // the subscription of that name
    kPartition,     // the same, found by the lease of its partition
    kQueue,         // the queue of that name
    kToken,         // the same, found by a token; where $C is empty there is none
    kMoved,         // the same, and the queue "own"
    kTransaction,   // one about a document of the collection; of none where $C is empty
  } about = About::kCollection;
};

constexpr auto kOrStudents = Asked::About::kCollectionOrStudents;
constexpr auto kOrAll = Asked::About::kCollectionOrAll;
constexpr auto kAll = Asked::About::kAll;
constexpr auto kLease = Asked::About::kLease;
constexpr auto kSubscription = Asked::About::kSubscription;
constexpr auto kPartition = Asked::About::kPartition;
constexpr auto kQueue = Asked::About::kQueue;
constexpr auto kMoved = Asked::About::kMoved;
constexpr auto kToken = Asked::About::kToken;
constexpr auto kTransaction = Asked::About::kTransaction;

constexpr Asked kAsked[] = {
    {"strata.v1.DocumentService/Create", Permission::kWrite,
     R"({"collection": "$C", "id": "new", "content": {"json": {"n": 1}}})"},
    {"strata.v1.DocumentService/Get", Permission::kRead, R"({"collection": "$C", "id": "a"})"},
    {"strata.v1.DocumentService/BatchGet", Permission::kRead,
     R"({"collection": "$C", "ids": ["a", "b"]})"},
    {"strata.v1.DocumentService/Update", Permission::kWrite,
     R"({"collection": "$C", "id": "a", "replace": {"json": {"n": 7}}})"},
    {"strata.v1.DocumentService/Delete", Permission::kWrite,
     R"({"collection": "$C", "id": "gone"})"},
    {"strata.v1.DocumentService/Restore", Permission::kWrite,
     R"({"collection": "$C", "id": "a", "version": 1})"},
    {"strata.v1.DocumentService/History", Permission::kRead, R"({"collection": "$C", "id": "a"})"},
    {"strata.v1.DocumentService/Diff", Permission::kRead,
     R"({"collection": "$C", "id": "a", "from_version": 1, "to_version": 2})"},
    {"strata.v1.DocumentService/Audit", Permission::kAudit, R"({"collection": "$C"})", kOrAll},
    {"strata.v1.DocumentService/List", Permission::kRead, R"({"collection": "$C"})"},
    {"strata.v1.CollectionService/CreateCollection", Permission::kManage, R"({"name": "$C"})"},
    {"strata.v1.CollectionService/GetCollection", Permission::kRead, R"({"name": "$C"})"},
    {"strata.v1.CollectionService/ListCollections", Permission::kPrincipal, "{}"},
    {"strata.v1.CollectionService/GetLedgerHead", Permission::kAudit, "{}", kAll},
    {"strata.v1.CollectionService/DeleteCollection", Permission::kManage, R"({"name": "$C"})"},
    {"strata.v1.CollectionService/Verify", Permission::kRead, R"({"collection": "$C"})", kOrAll},
    {"strata.v1.CollectionService/Verify", Permission::kManage,
     R"({"collection": "$C", "repair": true})", kOrAll},
    {"strata.v1.CollectionService/Verify", Permission::kRead,
     R"({"collection": "$C", "expect_head":
         {"position": 1, "hash": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}})",
     kAll},
    {"strata.v1.EnrollmentService/Enroll", Permission::kWrite,
     R"({"collection": "$C", "student_id": "s", "class_name": "c", "sequence_number": 5})",
     kOrStudents},
    {"strata.v1.EnrollmentService/Unenroll", Permission::kWrite,
     R"({"collection": "$C", "student_id": "s", "class_name": "c", "sequence_number": 6})",
     kOrStudents},
    {"strata.v1.EnrollmentService/GetEnrollments", Permission::kRead,
     R"({"collection": "$C", "student_id": "s"})", kOrStudents},
    {"strata.v1.EnrollmentService/ListRoster", Permission::kRead,
     R"({"collection": "$C", "class_name": "c"})", kOrStudents},
    {"strata.v1.EnrollmentService/Apply", Permission::kWrite,
     R"({"collection": "$C", "student_id": "s", "class_name": "d", "sequence_number": 5,
         "operation": "ENROLLMENT_OPERATION_ENROLL"})",
     kOrStudents},
    {"strata.v1.EnrollmentService/PurgeTombstones", Permission::kManage,
     R"({"collection": "$C", "through_sequence_number": 1})", kOrStudents},
    {"strata.v1.TransactionService/Commit", Permission::kWrite,
     R"({"writes": [{"update": {"collection": "$C", "id": "a",
                                "patch": {"operations": [{"path": "/n", "increment": 1}]}}}]})"},
    {"strata.v1.TransactionService/Commit", Permission::kWrite,
     R"({"writes": [{"enroll": {"collection": "$C", "student_id": "t", "class_name": "c",
                                "sequence_number": 5}}]})",
     kOrStudents},
    {"strata.v1.TransactionService/Commit", Permission::kWrite,
     R"({"mode": "TRANSACTION_MODE_TWO_PHASE", "reads": [{"collection": "$C", "id": "b"}],
         "writes": [{"update": {"collection": "$C", "id": "a",
                                "patch": {"operations": [{"path": "/n", "increment": 1}]}}}]})"},
    {"strata.v1.TransactionService/Read", Permission::kRead,
     R"({"documents": [{"collection": "$C", "id": "a"}]})"},
    {"strata.v1.TransactionService/GetTransaction", Permission::kRead, R"({"id": "of-$C$P"})",
     kTransaction},
    {"strata.v1.TransactionService/ListTransactions", Permission::kPrincipal, "{}"},
    {"strata.v1.TransactionService/CancelTransaction", Permission::kWrite, R"({"id": "of-$C$P"})",
     kTransaction},
    {"strata.v1.TransactionService/ResumeTransaction", Permission::kWrite, R"({"id": "of-$C$P"})",
     kTransaction},
    {"strata.v1.LeaseService/Acquire", Permission::kWrite, R"({"name": "$C", "holder": "owner"})",
     kLease},
    {"strata.v1.LeaseService/Renew", Permission::kWrite, R"({"name": "$C", "token": 1})", kLease},
    {"strata.v1.LeaseService/Release", Permission::kWrite, R"({"name": "$C", "token": 1})", kLease},
    {"strata.v1.LeaseService/GetLease", Permission::kRead, R"({"name": "$C"})", kLease},
    {"strata.v1.LeaseService/ListLeases", Permission::kPrincipal, "{}"},
    // The lease of a write, besides the collection.
    {"strata.v1.DocumentService/Create", Permission::kWrite,
     R"({"collection": "own", "content": {"json": {}}, "lease": {"name": "$C", "token": 1}})",
     kLease},
    {"strata.v1.DocumentService/Update", Permission::kWrite,
     R"({"collection": "own", "id": "a", "patch": {}, "lease": {"name": "$C", "token": 1}})",
     kLease},
    {"strata.v1.DocumentService/Delete", Permission::kWrite,
     R"({"collection": "own", "id": "a", "lease": {"name": "$C", "token": 1}})", kLease},
    {"strata.v1.DocumentService/Restore", Permission::kWrite,
     R"({"collection": "own", "id": "a", "version": 1, "lease": {"name": "$C", "token": 1}})",
     kLease},
    {"strata.v1.TransactionService/Commit", Permission::kWrite,
     R"({"writes": [{"update": {"collection": "own", "id": "a", "patch": {}}}],
         "lease": {"name": "$C", "token": 1}})",
     kLease},
    {"strata.v1.FeedService/Watch", Permission::kRead, R"({"collections": ["$C"]})"},
    {"strata.v1.FeedService/Watch", Permission::kRead, "{}", kAll},
    {"strata.v1.FeedService/GetFeed", Permission::kRead, "{}", kAll},
    {"strata.v1.FeedService/CreateSubscription", Permission::kManage,
     R"({"name": "$C", "collections": ["own"]})", kSubscription},
    // What it is to follow, besides.
    {"strata.v1.FeedService/CreateSubscription", Permission::kManage,
     R"({"name": "own", "collections": ["$C"]})"},
    {"strata.v1.FeedService/CreateSubscription", Permission::kManage, R"({"name": "own"})", kAll},
    {"strata.v1.FeedService/GetSubscription", Permission::kRead, R"({"name": "$C"})",
     kSubscription},
    {"strata.v1.FeedService/ListSubscriptions", Permission::kPrincipal, "{}"},
    {"strata.v1.FeedService/Consume", Permission::kWrite,
     R"({"open": {"subscription": "$C", "consumer": "c"}})", kSubscription},
    {"strata.v1.FeedService/ListParked", Permission::kRead, R"({"subscription": "$C"})",
     kSubscription},
    {"strata.v1.FeedService/ReplayParked", Permission::kManage, R"({"subscription": "$C"})",
     kSubscription},
    {"strata.v1.FeedService/DiscardParked", Permission::kManage, R"({"subscription": "$C"})",
     kSubscription},
    // The lease of a delivery, besides the collection.
    {"strata.v1.DocumentService/Create", Permission::kWrite,
     R"({"collection": "own", "content": {"json": {}},
         "lease": {"name": "$sub/$I/0", "token": 1}})",
     kPartition},
    {"strata.v1.DocumentService/Update", Permission::kWrite,
     R"({"collection": "own", "id": "a", "patch": {}, "lease": {"name": "$sub/$I/0", "token": 1}})",
     kPartition},
    {"strata.v1.DocumentService/Delete", Permission::kWrite,
     R"({"collection": "own", "id": "a", "lease": {"name": "$sub/$I/0", "token": 1}})", kPartition},
    {"strata.v1.DocumentService/Restore", Permission::kWrite,
     R"({"collection": "own", "id": "a", "version": 1,
         "lease": {"name": "$sub/$I/0", "token": 1}})",
     kPartition},
    {"strata.v1.TransactionService/Commit", Permission::kWrite,
     R"({"writes": [{"update": {"collection": "own", "id": "a", "patch": {}}}],
         "lease": {"name": "$sub/$I/0", "token": 1}})",
     kPartition},
    {"strata.v1.FeedService/DeleteSubscription", Permission::kManage, R"({"name": "$C"})",
     kSubscription},
    {"strata.v1.QueueService/CreateQueue", Permission::kManage, R"({"name": "$C"})", kQueue},
    {"strata.v1.QueueService/GetQueue", Permission::kRead, R"({"name": "$C"})", kQueue},
    {"strata.v1.QueueService/ListQueues", Permission::kPrincipal, "{}"},
    {"strata.v1.QueueService/UpdateQueue", Permission::kManage,
     R"({"name": "$C", "settings": {"paused": true, "max_tries": 7},
         "update_mask": "paused,maxTries"})",
     kQueue},
    {"strata.v1.QueueService/Push", Permission::kWrite, R"({"queue": "$C", "messages": [{}]})",
     kQueue},
    {"strata.v1.QueueService/Pop", Permission::kWrite, R"({"queue": "$C"})", kQueue},
    {"strata.v1.QueueService/Reserve", Permission::kWrite, R"({"queue": "$C"})", kQueue},
    {"strata.v1.QueueService/Acknowledge", Permission::kWrite, R"({"tokens": ["$T"]})", kToken},
    {"strata.v1.QueueService/Rollback", Permission::kWrite, R"({"tokens": ["$T"]})", kToken},
    {"strata.v1.QueueService/Extend", Permission::kWrite, R"({"tokens": ["$T"]})", kToken},
    {"strata.v1.QueueService/Move", Permission::kWrite, R"({"token": "$T", "queue": "own"})",
     kMoved},
    {"strata.v1.QueueService/Move", Permission::kWrite, R"({"token": "$T", "queue": "$C"})",
     kQueue},
    {"strata.v1.QueueService/Receive", Permission::kWrite,
     R"({"open": {"queue": "$C", "credits": 1}})", kQueue},
    {"strata.v1.QueueService/Receive", Permission::kWrite, R"({"acknowledge": {"tokens": ["$T"]}})",
     kToken},
    {"strata.v1.QueueService/Receive", Permission::kWrite, R"({"rollback": {"tokens": ["$T"]}})",
     kToken},
    {"strata.v1.QueueService/Receive", Permission::kWrite, R"({"extend": {"tokens": ["$T"]}})",
     kToken},
    {"strata.v1.QueueService/GetMessage", Permission::kRead,
     R"({"queue": "$C", "message_id": "00000000000000000000000000000000"})", kQueue},
    {"strata.v1.QueueService/ListMessages", Permission::kRead, R"({"queue": "$C"})", kQueue},
    {"strata.v1.QueueService/Replay", Permission::kManage,
     R"({"queue": "$C", "states": ["MESSAGE_STATE_DEAD"]})", kQueue},
    {"strata.v1.QueueService/PurgeMessages", Permission::kManage,
     R"({"queue": "$C", "states": ["MESSAGE_STATE_READY"]})", kQueue},
    {"strata.v1.QueueService/CreateSchedule", Permission::kManage,
     R"({"queue": "$C", "name": "yearly", "cron": "0 0 29 2 *"})", kQueue},
    {"strata.v1.QueueService/ListSchedules", Permission::kRead, R"({"queue": "$C"})", kQueue},
    {"strata.v1.QueueService/DeleteSchedule", Permission::kManage,
     R"({"queue": "$C", "name": "yearly"})", kQueue},
    // The queues of a commit, besides the collections, or without any.
    {"strata.v1.TransactionService/Commit", Permission::kWrite, R"({"acknowledge": ["$T"]})",
     kQueue},
    {"strata.v1.TransactionService/Commit", Permission::kWrite,
     R"({"pushes": [{"queue": "$C", "message": {}}]})", kQueue},
    {"strata.v1.TransactionService/Commit", Permission::kWrite,
     R"({"writes": [{"update": {"collection": "own", "id": "a", "patch": {}}}],
         "pushes": [{"queue": "$C", "message": {}}]})",
     kQueue},
    // Those that a purge heeds.
    {"strata.v1.EnrollmentService/PurgeTombstones", Permission::kManage,
     R"({"collection": "own", "through_sequence_number": 1, "queues": ["$C"]})", kQueue},
    {"strata.v1.QueueService/PurgeMessages", Permission::kManage,
     R"({"queue": "$C", "states": ["MESSAGE_STATE_READY"]})", kQueue},
    {"strata.v1.QueueService/DeleteQueue", Permission::kManage, R"({"name": "$C"})", kQueue},
    {"strata.v1.ServerService/GetServerInfo", Permission::kPrincipal, "{}"},
    {"grpc.health.v1.Health/Check", Permission::kOpen, "{}"},
    {"grpc.health.v1.Health/Watch", Permission::kOpen, "{}"},
    {"grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Permission::kOpen,
     R"({"list_services": ""})"},
    {"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Permission::kOpen,
     R"({"list_services": ""})"},
};

// What the grants of the policy below let a caller do, and where.
struct Caller {
  std::string_view name;
  // On "own" and "students"; on the lease, the subscription and the queue "own" too.
  std::set<Permission> permissions;
  // How every call of it ends, unless it asks for nothing; kept apart from those who never get as
  // far as a call.
  std::optional<std::string_view> refusal = std::nullopt;
  bool connects = true;
  bool collections_only = false;
};

constexpr char kGrants[] = R"(
  {"principals": ["spiffe://test/reader"], "role": "reader",
   "resources": ["collection/own", "collection/students", "lease/own", "subscription/own",
                 "queue/own"]},
  {"principals": ["spiffe://test/auditor"], "role": "auditor",
   "resources": ["collection/own", "collection/students", "lease/own", "subscription/own",
                 "queue/own"]},
  {"principals": ["spiffe://test/writer", "user:batch", "user:late"], "role": "writer",
   "resources": ["collection/own", "collection/students", "lease/own", "subscription/own",
                 "queue/own"]},
  {"principals": ["spiffe://test/admin"], "role": "admin",
   "resources": ["collection/own", "collection/students", "lease/own", "subscription/own",
                 "queue/own"]},
  {"principals": ["spiffe://test/scribe"], "role": "writer",
   "resources": ["collection/own", "collection/students"]},
  {"principals": ["spiffe://test/operator"], "role": "operator", "resources": ["server"]})";

const std::vector<Caller>& Callers() {
  static const auto& callers = *new std::vector<Caller>{
      {"nobody", {}, "CREDENTIALS_MISSING"},
      {"of another authority", {}, std::nullopt, false},
      {"expired", {}, std::nullopt, false},
      {"self-signed", {}, std::nullopt, false},
      {"reader", {Permission::kRead}},
      {"auditor", {Permission::kRead, Permission::kAudit}},
      {"writer", {Permission::kRead, Permission::kWrite}},
      {"scribe", {Permission::kRead, Permission::kWrite}, std::nullopt, true, true},
      {"operator", {}},
      {"token", {Permission::kRead, Permission::kWrite}},
      {"expired token", {}, "CREDENTIALS_INVALID"},
      {"wrong token beside a good certificate", {}, "CREDENTIALS_INVALID"},
      {"two SPIFFE ids", {}, "CREDENTIALS_MISSING"},
      {"common name only", {}, "CREDENTIALS_MISSING"},
      // Last, as it deletes the subscription and the queue.
      {"admin",
       {Permission::kRead, Permission::kAudit, Permission::kWrite, Permission::kManage,
        Permission::kErase}},
  };
  return callers;
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Of one server's subscriptions, by their names.
using Incarnations = std::map<std::string, int64_t, std::less<>>;

std::string For(std::string_view collection, std::string_view json,
                const Incarnations& incarnations = {}) {
  const auto found = incarnations.find(collection);
  const int64_t incarnation = found == incarnations.end() ? 99'999 : found->second;  // of none
  const std::string text =
      Replaced(Replaced(std::string(json), "$C", collection), "$I", std::to_string(incarnation));
  // What the server puts after the request ids of the owner.
  const std::string with_owner = Replaced(text, "$P", transaction::IdOf("", "spiffe://test/owner"));
  // Of a message that there is not. What names no queue is no token.
  const queue::Token token{std::string(collection), queue::MessageId(), 1, 0};
  return Replaced(with_owner, "$T", token.ToText());
}

// How one call ended.
struct End {
  int code = 0;
  std::string reason;
  friend bool operator==(const End&, const End&) = default;
  friend std::ostream& operator<<(std::ostream& out, const End& end) {
    return out << end.code << " " << end.reason;
  }
};

End EndOf(const Asked& asked, const Answered& answered) {
  if (!answered.status.ok()) {
    return {answered.status.error_code(), DetailsOf(answered.status).reason};
  }
  // A message of Apply that is refused answers for itself.
  v1::ApplyResponse applied;
  if (asked.method == "strata.v1.EnrollmentService/Apply" &&
      applied.ParseFromString(answered.messages.at(0)) && applied.has_error()) {
    return {applied.error().code(), applied.error().reason()};
  }
  return {};
}

// What it asks for, of the policy's resources; "*" for all of them.
std::string_view ResourceOf(const Asked& asked, std::string_view collection) {
  switch (asked.about) {
    case Asked::About::kCollection:
    case Asked::About::kLease:
    case Asked::About::kSubscription:
    case Asked::About::kPartition:
    case Asked::About::kQueue:
    case Asked::About::kToken:
    case Asked::About::kTransaction:
      return collection;
    case Asked::About::kMoved:
      return collection.empty() ? "own" : collection;
    case Asked::About::kCollectionOrStudents:
      return collection.empty() ? "students" : collection;
    case Asked::About::kCollectionOrAll:
      return collection.empty() ? "*" : collection;
    case Asked::About::kAll:
      return "*";
  }
  return "";
}

// How the call has to end; nothing: as if nobody guarded the server.
std::optional<End> Expected(const Asked& asked, const Caller& caller, std::string_view collection) {
  if (!caller.connects) return End{grpc::StatusCode::UNAVAILABLE, ""};
  if (asked.permission == Permission::kOpen) return std::nullopt;
  if (caller.refusal) {
    return End{grpc::StatusCode::UNAUTHENTICATED, std::string(*caller.refusal)};
  }
  if (asked.permission == Permission::kPrincipal) return std::nullopt;
  const std::string_view resource = ResourceOf(asked, collection);
  const bool of_collection =
      asked.about != Asked::About::kLease && asked.about != Asked::About::kSubscription &&
      asked.about != Asked::About::kPartition && asked.about != Asked::About::kQueue &&
      asked.about != Asked::About::kMoved && asked.about != Asked::About::kToken;
  // Of a subscription that there is not the lease is lost, for all who may write the document.
  const bool of_none = asked.about == Asked::About::kPartition && collection.empty();
  if (of_none && caller.permissions.count(asked.permission) != 0) return std::nullopt;
  if (asked.about == Asked::About::kToken && collection.empty()) return std::nullopt;
  const bool granted = (resource == "own" || resource == "students") &&
                       (of_collection || !caller.collections_only) &&
                       caller.permissions.count(asked.permission) != 0;
  if (granted) return std::nullopt;
  // What is not the caller's is to it as if it were not there.
  if (asked.about == Asked::About::kTransaction) {
    return End{grpc::StatusCode::NOT_FOUND, "TRANSACTION_NOT_FOUND"};
  }
  return End{grpc::StatusCode::PERMISSION_DENIED, "PERMISSION_DENIED"};
}

class AccessMatrix : public testing::Test {
 protected:
  AccessMatrix() {
    for (const std::string_view name : {"own", "other"}) {
      Fill(name, "strata.v1.FeedService/CreateSubscription",
           R"({"name": "$C", "partitions": 1, "collections": ["own"]})");
      // Nothing of it is handed out, so nothing is written for it when nobody calls.
      Fill(name, "strata.v1.QueueService/CreateQueue",
           R"({"name": "$C", "settings": {"paused": true}})");
      of_guarded_.emplace(name, IncarnationOf(guarded_.Connect(OfOwner()), name));
      of_open_.emplace(name, IncarnationOf(open_.channel(), name));
    }
    for (const std::string_view collection : {"own", "other", "students"}) {
      Fill(collection, "strata.v1.DocumentService/Create",
           R"({"collection": "$C", "id": "a", "content": {"json": {"n": 1}}})");
      Fill(collection, "strata.v1.DocumentService/Update",
           R"({"collection": "$C", "id": "a", "replace": {"json": {"n": 2}}})");
      Fill(collection, "strata.v1.DocumentService/Create",
           R"({"collection": "$C", "id": "gone", "content": {"json": {}}})");
      Fill(collection, "strata.v1.TransactionService/Commit",
           R"({"request_id": "of-$C", "writes": [{"update": {"collection": "$C", "id": "a",
               "patch": {"operations": [{"path": "/t", "set": 1}]}}}]})",
           R"({"request_id": "of-$C$P", "writes": [{"update": {"collection": "$C", "id": "a",
               "patch": {"operations": [{"path": "/t", "set": 1}]}}}]})");
    }
  }

  Presented OfOwner() { return guarded_.Uri("spiffe://test/owner"); }

  static int64_t IncarnationOf(const std::shared_ptr<grpc::Channel>& channel,
                               std::string_view name) {
    const Answered got = CallAnything(channel, "strata.v1.FeedService/GetSubscription",
                                      For(name, R"({"name": "$C"})"));
    v1::GetSubscriptionResponse response;
    EXPECT_TRUE(got.status.ok() && response.ParseFromString(got.messages.at(0)));
    return response.subscription().incarnation();
  }

  // On either side; on the open one with `open_json`, if there is one.
  void Fill(std::string_view collection, std::string_view method, std::string_view json,
            std::string_view open_json = "") {
    const std::string of_guarded = For(collection, json);
    const std::string of_open = For(collection, open_json.empty() ? json : open_json);
    for (const Answered& answered : {CallAnything(guarded_.Connect(OfOwner()), method, of_guarded),
                                     CallAnything(open_.channel(), method, of_open)}) {
      ASSERT_TRUE(answered.status.ok()) << method << ": " << answered.status.error_message();
    }
  }

  Presented Present(std::string_view caller) {
    const auto uri = [&](const char* name) { return guarded_.Uri(name); };
    if (caller == "nobody") return {};
    if (caller == "token") return {.authorization = "Bearer " + guarded_.token("batch")};
    if (caller == "expired token") return {.authorization = "Bearer " + guarded_.token("late")};
    if (caller == "wrong token beside a good certificate") {
      Presented presented = uri("spiffe://test/admin");
      presented.authorization = "Bearer strata_of_nobody";
      return presented;
    }
    if (caller == "of another authority") {
      return {.certificate = TestCa("other").IssueForUri("spiffe://test/admin")};
    }
    if (caller == "expired") {
      return {.certificate = guarded_.ca().Issue({.uris = {"spiffe://test/admin"},
                                                  .not_before = -std::chrono::hours(2),
                                                  .not_after = -std::chrono::hours(1)})};
    }
    if (caller == "self-signed") {
      return {.certificate = test_support::SelfSigned({.uris = {"spiffe://test/admin"}})};
    }
    if (caller == "two SPIFFE ids") {
      return {.certificate =
                  guarded_.ca().Issue({.uris = {"spiffe://test/admin", "spiffe://test/writer"}})};
    }
    if (caller == "common name only") {
      return {.certificate = guarded_.ca().Issue({.common_name = "spiffe://test/admin"})};
    }
    return uri(("spiffe://test/" + std::string(caller)).c_str());
  }

  SecuredServer guarded_{kGrants, {"batch", "late"}};
  TestServer open_;
  Incarnations of_guarded_;
  Incarnations of_open_;
};

TEST_F(AccessMatrix, IsOfEveryRpcThatThereIs) {
  std::set<std::string> served;
  for (const std::string& service : rpc::ServiceNames()) {
    const auto* const descriptor =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
    ASSERT_NE(descriptor, nullptr) << service;
    for (int i = 0; i < descriptor->method_count(); ++i) {
      served.insert(service + "/" + descriptor->method(i)->name());
    }
  }
  std::set<std::string> asked;
  for (const Asked& each : kAsked) asked.emplace(each.method);
  EXPECT_EQ(asked, served);
}

TEST_F(AccessMatrix, EachIsAllowedWhatIsGrantedAndNothingElse) {
  guarded_.LetTokensEnd();
  int cells = 0;
  // What is allowed comes last: what is deleted is swept in the background afterwards, beside the
  // next calls.
  const auto before = guarded_.StoredBytes();
  for (const bool allowed : {false, true}) {
    for (const Caller& caller : Callers()) {
      const auto [channel, authorization] = guarded_.Dial(Present(caller.name));
      for (const Asked& asked : kAsked) {
        for (const std::string_view collection : {"own", "other", ""}) {
          const std::optional<End> denied = Expected(asked, caller, collection);
          if (denied.has_value() == allowed) continue;
          SCOPED_TRACE(std::string(caller.name) + ": " + std::string(asked.method) + " of \"" +
                       std::string(collection) + "\", " + std::string(asked.json));
          const std::string request = For(collection, asked.json, of_guarded_);
          const End end = EndOf(asked, CallAnything(channel, asked.method, request, authorization));
          if (denied) {
            EXPECT_EQ(end, *denied);
            ASSERT_TRUE(guarded_.StoredBytes() == before) << "what is denied changed something";
          } else {
            const std::string same = For(collection, asked.json, of_open_);
            EXPECT_EQ(end, EndOf(asked, CallAnything(open_.channel(), asked.method, same)));
          }
          ++cells;
        }
      }
    }
  }
  std::printf("%d cells\n", cells);
}

}  // namespace
}  // namespace strata::rpc_test
