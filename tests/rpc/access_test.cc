// What callers that are known may do, and what is kept of who they are.
#include <gmock/gmock.h>
#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "schemas/base/strings.h"
#include "service/observability/log.h"
#include "strata/v1/collection_service.grpc.pb.h"
#include "strata/v1/document_service.pb.h"
#include "strata/v1/enrollment_service.grpc.pb.h"
#include "strata/v1/transaction_service.pb.h"
#include "tests/rpc/secured_server.h"
#include "tests/rpc/test_server.h"

namespace strata::rpc_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr char kGrants[] = R"(
  {"principals": ["user:writer"], "role": "writer", "resources": ["collection/books"]},
  {"principals": ["user:gateway"], "role": "writer", "resources": ["collection/books"],
   "acts_for": ["user-*", "anna"]},
  {"principals": ["user:gateway"], "role": "writer", "resources": ["collection/other"]},
  {"principals": ["user:reader"], "role": "reader", "resources": ["collection/b*"]})";

class AccessTest : public testing::Test {
 protected:
  // A connection of one user, which calls in few words.
  class User {
   public:
    User(const SecuredServer& server, const std::string& name)
        : dialled_(server.Dial(server.User(name))) {}
    User(const SecuredServer& server, const Presented& presented)
        : dialled_(server.Dial(presented)) {}

    Answered Call(std::string_view method, std::string_view json) const {
      return CallAnything(dialled_.channel, method, json, dialled_.authorization);
    }
    template <typename Response>
    Outcome<Response> CallFor(std::string_view method, std::string_view json) const {
      Outcome<Response> outcome;
      const Answered answered = Call(method, json);
      outcome.status = answered.status;
      if (!answered.messages.empty()) {
        EXPECT_TRUE(outcome.response.ParseFromString(answered.messages.front()));
      }
      return outcome;
    }
    // Writes a document of "books", with this as the change.
    Outcome<v1::CreateResponse> Create(const std::string& id, const std::string& change,
                                       const std::string& collection = "books") const {
      return CallFor<v1::CreateResponse>("strata.v1.DocumentService/Create",
                                         R"({"collection": ")" + collection + R"(", "id": ")" + id +
                                             R"(", "content": {"json": {"n": 1}}, "change": )" +
                                             change + "}");
    }

   private:
    SecuredServer::Dialled dialled_;
  };

  User As(const std::string& name) const { return {server_, name}; }
  User Owner() const { return {server_, server_.Uri("spiffe://test/owner")}; }

  // Who is in the history of the document's first version.
  v1::ChangeInfo ChangeOf(const std::string& id) const {
    const auto history = Owner().CallFor<v1::HistoryResponse>(
        "strata.v1.DocumentService/History", R"({"collection": "books", "id": ")" + id + R"("})");
    EXPECT_TRUE(history.ok()) << history.status.error_message();
    return history.response.versions_size() == 0 ? v1::ChangeInfo()
                                                 : history.response.versions(0).change();
  }

  SecuredServer server_{kGrants, {"writer", "gateway", "reader"}};
};

TEST_F(AccessTest, TheCallerIsTheActorOfWhatItWrites) {
  EXPECT_TRUE(As("writer").Create("a", R"({"reason": "why"})").ok());
  EXPECT_TRUE(As("writer").Create("b", R"({"actor": "user:writer"})").ok());
  for (const char* const id : {"a", "b"}) {
    EXPECT_EQ(ChangeOf(id).actor(), "user:writer");
    EXPECT_EQ(ChangeOf(id).on_behalf_of(), "");
  }
  EXPECT_EQ(ChangeOf("a").reason(), "why");
}

TEST_F(AccessTest, NobodyWritesInAnothersNameUnlessItIsGranted) {
  const auto refusal = [&](const char* user, const std::string& change,
                           const std::string& collection = "books") {
    const auto outcome = As(user).Create("x", change, collection);
    EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(outcome.details().reason, "ACT_FOR_DENIED");
    return outcome.details().metadata;
  };
  EXPECT_THAT(refusal("writer", R"({"actor": "anna"})"),
              ElementsAre(Pair("field", "change.actor"), Pair("resource", "collection/books")));
  EXPECT_THAT(refusal("writer", R"({"on_behalf_of": "anna"})"),
              testing::Contains(Pair("field", "change.on_behalf_of")));
  EXPECT_THAT(refusal("gateway", R"({"actor": "bob"})"),
              testing::Contains(Pair("field", "change.actor")));
  EXPECT_THAT(refusal("gateway", R"({"actor": "anna", "on_behalf_of": "bob"})"),
              testing::Contains(Pair("field", "change.on_behalf_of")));
  // Its grant for the other collection says nothing of acting for anybody.
  EXPECT_THAT(refusal("gateway", R"({"actor": "anna"})", "other"),
              testing::Contains(Pair("resource", "collection/other")));
  EXPECT_EQ(As("reader")
                .CallFor<v1::GetResponse>("strata.v1.DocumentService/Get",
                                          R"({"collection": "books", "id": "x"})")
                .details()
                .reason,
            "COLLECTION_NOT_FOUND")
      << "something was written";
}

TEST_F(AccessTest, WhoMayActForOthersIsTheActorOnTheirBehalf) {
  const User gateway = As("gateway");
  EXPECT_TRUE(gateway.Create("actor", R"({"actor": "anna"})").ok());
  EXPECT_TRUE(gateway.Create("behalf", R"({"on_behalf_of": "user-7"})").ok());
  EXPECT_TRUE(gateway.Create("both", R"({"actor": "user-1", "on_behalf_of": "anna"})").ok());
  const auto says = [&](const char* id, const char* on_behalf_of) {
    EXPECT_EQ(ChangeOf(id).actor(), "user:gateway") << id;
    EXPECT_EQ(ChangeOf(id).on_behalf_of(), on_behalf_of) << id;
  };
  says("actor", "anna");
  says("behalf", "user-7");
  says("both", "anna");
}

TEST_F(AccessTest, EveryWriteFollowsTheSameRule) {
  ASSERT_TRUE(As("writer").Create("a", "{}").ok());
  const std::vector<std::pair<std::string_view, std::string_view>> writes = {
      {"strata.v1.DocumentService/Update",
       R"({"collection": "books", "id": "a", "replace": {"json": {}}, "change": {"actor": "x"}})"},
      {"strata.v1.DocumentService/Delete",
       R"({"collection": "books", "id": "a", "change": {"actor": "x"}})"},
      {"strata.v1.DocumentService/Restore",
       R"({"collection": "books", "id": "a", "version": 1, "change": {"actor": "x"}})"},
      {"strata.v1.EnrollmentService/Enroll",
       R"({"collection": "books", "student_id": "s", "class_name": "c", "sequence_number": 1,
           "change": {"actor": "x"}})"},
      {"strata.v1.EnrollmentService/Unenroll",
       R"({"collection": "books", "student_id": "s", "class_name": "c", "sequence_number": 1,
           "change": {"actor": "x"}})"}};
  const auto before = server_.StoredBytes();
  for (const auto& [method, json] : writes) {
    EXPECT_EQ(DetailsOf(As("writer").Call(method, json).status).reason, "ACT_FOR_DENIED") << method;
  }
  const auto applied = As("writer").CallFor<v1::ApplyResponse>(
      "strata.v1.EnrollmentService/Apply",
      R"({"collection": "books", "student_id": "s", "class_name": "c", "sequence_number": 1,
          "operation": "ENROLLMENT_OPERATION_ENROLL", "change": {"actor": "x"}})");
  EXPECT_EQ(applied.response.error().reason(), "ACT_FOR_DENIED");
  EXPECT_TRUE(server_.StoredBytes() == before);
}

TEST_F(AccessTest, AMessageOfAStreamThatIsDeniedAnswersForItselfAndTheStreamGoesOn) {
  const auto [channel, authorization] = server_.Dial(server_.User("writer"));
  const auto stub = v1::EnrollmentService::NewStub(channel);
  grpc::ClientContext context;
  context.AddMetadata("authorization", authorization);
  const auto stream = stub->Apply(&context);
  std::vector<std::string> reasons;
  for (const char* const collection : {"books", "other", "books"}) {
    v1::ApplyRequest request;
    request.set_collection(collection);
    request.set_student_id("s");
    request.set_class_name("c");
    request.set_sequence_number(static_cast<int64_t>(reasons.size()) + 1);
    request.set_operation(v1::ENROLLMENT_OPERATION_ENROLL);
    ASSERT_TRUE(stream->Write(request));
    v1::ApplyResponse response;
    ASSERT_TRUE(stream->Read(&response));
    reasons.push_back(response.error().reason());
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_THAT(reasons, ElementsAre("", "PERMISSION_DENIED", ""));
}

// Where the text of an error is cut, in the middle of a character too.
TEST_F(AccessTest, ADenialOfALongNameStaysText) {
  for (const std::string& shift : {std::string(), std::string("x")}) {
    std::string name = shift;
    for (int i = 0; i < 500; ++i) name += "é";
    const auto get = As("writer").Call("strata.v1.DocumentService/Get",
                                       R"({"collection": ")" + name + R"(", "id": "a"})");
    EXPECT_EQ(DetailsOf(get.status).reason, "PERMISSION_DENIED");
    EXPECT_THAT(DetailsOf(get.status).metadata["resource"],
                testing::StartsWith("collection/" + shift + "éé"));
    const auto applied = As("writer").CallFor<v1::ApplyResponse>(
        "strata.v1.EnrollmentService/Apply",
        R"({"student_id": "s", "class_name": "c", "sequence_number": 1,
            "operation": "ENROLLMENT_OPERATION_ENROLL", "collection": ")" +
            name + R"("})");
    EXPECT_EQ(applied.response.error().reason(), "PERMISSION_DENIED");
    EXPECT_TRUE(applied.ok()) << applied.status.error_message();
  }
}

TEST_F(AccessTest, WhoIsRefusedToActForOthersIsToldOfLikeAnybodyElseWhoIsDenied) {
  const User writer = As("writer");
  ASSERT_TRUE(writer.Create("a", "{}").ok());
  observability::ConfigureLog(observability::LogLevel::kInfo, observability::LogFormat::kText);
  testing::internal::CaptureStderr();
  EXPECT_EQ(writer.Create("b", R"({"actor": "anna"})").details().reason, "ACT_FOR_DENIED");
  const std::string log = testing::internal::GetCapturedStderr();
  observability::ConfigureLog(observability::LogLevel::kWarning, observability::LogFormat::kText);
  EXPECT_THAT(log, HasSubstr("denied principal=user:writer permission=write "
                             "resource=collection/books peer="));
  EXPECT_THAT(log, HasSubstr("reason=ACT_FOR_DENIED"));
}

TEST_F(AccessTest, ListsLeaveOutWhatMayNotBeReadAndTheirTokensDoNotNameIt) {
  for (const char* const name : {"a1", "b1", "b2", "bb", "c1", "c2", "d"}) {
    ASSERT_TRUE(Owner()
                    .Call("strata.v1.CollectionService/CreateCollection",
                          std::string(R"({"name": ")") + name + R"("})")
                    .status.ok());
  }
  const User reader = As("reader");
  std::vector<std::string> names;
  std::string token;
  do {
    const auto page = reader.CallFor<v1::ListCollectionsResponse>(
        "strata.v1.CollectionService/ListCollections",
        R"({"page_size": 1, "page_token": ")" + token + R"("})");
    ASSERT_TRUE(page.ok()) << page.status.error_message();
    for (const v1::Collection& each : page.response.collections()) names.push_back(each.name());
    token = page.response.next_page_token();
    for (const char* const hidden : {"a1", "c1", "c2"}) {
      EXPECT_THAT(token, Not(HasSubstr(hidden)));
    }
  } while (!token.empty());
  EXPECT_THAT(names, ElementsAre("b1", "b2", "bb"));
  EXPECT_EQ(
      As("writer")
          .CallFor<v1::ListCollectionsResponse>("strata.v1.CollectionService/ListCollections", "{}")
          .response.collections_size(),
      0);
}

// Nor is a request id of one principal ever in the way of another's.
TEST_F(AccessTest, RequestIdsOfTwoPrincipalsAreTwo) {
  const auto commit = [](const User& user, const std::string& collection, const char* mode) {
    return user.CallFor<v1::CommitResponse>(
        "strata.v1.TransactionService/Commit",
        R"({"request_id": "pay-1", "mode": "TRANSACTION_MODE_)" + std::string(mode) +
            R"(", "writes": [{"update": {"collection": ")" + collection +
            R"(", "id": "1", "allow_missing": true,
            "patch": {"operations": [{"path": "/n", "increment": 1}]}}}]})");
  };
  const auto find = [](const User& user, const std::string& id) {
    return user.CallFor<v1::GetTransactionResponse>("strata.v1.TransactionService/GetTransaction",
                                                    R"({"id": ")" + id + R"("})");
  };
  for (const char* const mode : {"ONE_COMMIT", "TWO_PHASE"}) {
    SCOPED_TRACE(mode);
    SecuredServer server(kGrants, {"writer", "gateway"});
    const User owner(server, server.Uri("spiffe://test/owner"));
    const User writer(server, "writer");
    const User gateway(server, "gateway");
    const auto first = commit(owner, "secret", mode);
    ASSERT_TRUE(first.ok()) << first.status.error_message();
    EXPECT_EQ(find(writer, "pay-1").status.error_code(), grpc::StatusCode::NOT_FOUND);
    const auto second = commit(writer, "books", mode);
    ASSERT_TRUE(second.ok()) << second.status.error_message();
    EXPECT_FALSE(second.response.replayed());
    EXPECT_NE(second.response.transaction_id(), first.response.transaction_id());
    // Each finds its own, by either id; the other's only where it may read.
    for (const auto& [user, mine, other] :
         {std::tuple(&owner, &first, &second), std::tuple(&writer, &second, &first)}) {
      const std::string& id = mine->response.transaction_id();
      EXPECT_THAT(id, testing::StartsWith("pay-1@"));
      EXPECT_EQ(find(*user, "pay-1").response.transaction().id(), id);
      EXPECT_EQ(find(*user, id).response.transaction().id(), id);
      EXPECT_EQ(find(*user, other->response.transaction_id()).ok(), user == &owner);
    }
    // Neither of them is the gateway's own: by that id it finds what it may read.
    EXPECT_EQ(find(gateway, "pay-1").response.transaction().id(), second.response.transaction_id());
    EXPECT_TRUE(find(gateway, second.response.transaction_id()).ok());
    for (const auto& [id, transaction] : {std::pair(std::string("pay-1"), &first),
                                          std::pair(second.response.transaction_id(), &second)}) {
      const auto audit = owner.CallFor<v1::AuditResponse>("strata.v1.DocumentService/Audit",
                                                          R"({"transaction_id": ")" + id + R"("})");
      ASSERT_TRUE(audit.ok()) << audit.status.error_message();
      ASSERT_EQ(audit.response.entries_size(), 1);
      EXPECT_EQ(audit.response.entries(0).version().transaction_id(),
                transaction->response.transaction_id());
    }
    // Repeated, each is answered with its own.
    const auto again = commit(writer, "books", mode);
    EXPECT_TRUE(again.response.replayed());
    EXPECT_EQ(again.response.transaction_id(), second.response.transaction_id());
  }
}

TEST_F(AccessTest, WhatIsDeniedLooksTheSameWhetherOrNotItIsThere) {
  ASSERT_TRUE(Owner().Create("there", "{}", "secret").ok());
  const auto get = [&](const std::string& collection, const std::string& id) {
    return As("writer")
        .Call("strata.v1.DocumentService/Get",
              R"({"collection": ")" + collection + R"(", "id": ")" + id + R"("})")
        .status;
  };
  const grpc::Status there = get("secret", "there");
  const auto looks_the_same = [&](const grpc::Status& other, const std::string& collection) {
    EXPECT_EQ(other.error_code(), there.error_code());
    std::string message = other.error_message();
    message.replace(message.find(collection), collection.size(), "secret");
    EXPECT_EQ(message, there.error_message());
    EXPECT_EQ(other.error_details().size(), there.error_details().size());
    EXPECT_EQ(DetailsOf(other).types, DetailsOf(there).types);
    auto metadata = DetailsOf(other).metadata;
    EXPECT_EQ(std::exchange(metadata["resource"], "collection/secret"), "collection/" + collection);
    EXPECT_EQ(metadata, DetailsOf(there).metadata);
  };
  EXPECT_EQ(DetailsOf(there).reason, "PERMISSION_DENIED");
  looks_the_same(get("secret", "wrong"), "secret");
  looks_the_same(get("absent", "there"), "absent");
}

TEST_F(AccessTest, OneDenialNamesWhatWasAskedForAndNothingElse) {
  const auto details = As("reader")
                           .CallFor<v1::CreateResponse>("strata.v1.DocumentService/Create",
                                                        R"({"collection": "books", "id": "x"})")
                           .details();
  EXPECT_THAT(details.metadata,
              ElementsAre(Pair("permission", "write"), Pair("resource", "collection/books")));
}

TEST_F(AccessTest, AnImportByWhoMayActForItsAuthorsKeepsThemAndProvesRight) {
  const User gateway = As("gateway");
  constexpr int kAuthors = 5;
  for (int i = 0; i < 50; ++i) {
    const std::string change = R"({"actor": "user-)" + std::to_string(i % kAuthors) + R"("})";
    ASSERT_TRUE(gateway.Create("d" + std::to_string(i), change).ok());
  }
  const auto audit = Owner().CallFor<v1::AuditResponse>(
      "strata.v1.DocumentService/Audit", R"({"collection": "books", "page_size": 100})");
  ASSERT_TRUE(audit.ok());
  ASSERT_EQ(audit.response.entries_size(), 50);
  std::map<std::string, int> authors;
  for (const v1::AuditEntry& entry : audit.response.entries()) {
    EXPECT_EQ(entry.version().change().actor(), "user:gateway");
    ++authors[entry.version().change().on_behalf_of()];
  }
  EXPECT_EQ(authors.size(), static_cast<size_t>(kAuthors));
  for (const auto& [author, documents] : authors) EXPECT_EQ(documents, 50 / kAuthors) << author;
  const Answered verified =
      Owner().Call("strata.v1.CollectionService/Verify", R"({"collection": "books"})");
  EXPECT_TRUE(verified.status.ok()) << verified.status.error_message();
}

// Two authorization headers, and what is no token.
TEST_F(AccessTest, AHeaderThatIsNoTokenIsRefusedByName) {
  const auto message = [&](const std::string& header) {
    const auto [channel, authorization] = server_.Dial({});
    const Answered answered =
        CallAnything(channel, "strata.v1.CollectionService/ListCollections", "{}", header);
    EXPECT_EQ(DetailsOf(answered.status).reason, "CREDENTIALS_INVALID") << header;
    EXPECT_THAT(answered.status.error_message(), Not(HasSubstr(server_.token("writer"))));
    return answered.status.error_message();
  };
  const std::string token = server_.token("writer");
  EXPECT_THAT(message("Basic d3JpdGVyOng="), HasSubstr("Bearer"));
  EXPECT_THAT(message(token), HasSubstr("Bearer"));
  message("Bearer");
  message("Bearer " + token + " x");
  message("Bearer " + token.substr(0, token.size() - 1));
  message("Bearer " + std::string(1000, 'x'));

  const auto [channel, authorization] = server_.Dial({});
  const auto stub = v1::CollectionService::NewStub(channel);
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer " + token);
  context.AddMetadata("authorization", "Bearer " + token);
  v1::ListCollectionsResponse response;
  const grpc::Status twice = stub->ListCollections(&context, {}, &response);
  EXPECT_EQ(DetailsOf(twice).reason, "CREDENTIALS_INVALID");

  // More than any metadata may have: gRPC itself refuses it, and the server goes on.
  grpc::ClientContext large;
  large.AddMetadata("authorization", "Bearer " + std::string(size_t{1} << 20, 'x'));
  EXPECT_FALSE(stub->ListCollections(&large, {}, &response).ok());
  EXPECT_TRUE(As("writer").Create("after", "{}").ok());
}

TEST_F(AccessTest, HealthAndReflectionAskForNothingNotEvenForGoodCredentials) {
  const auto [channel, authorization] = server_.Dial({});
  EXPECT_TRUE(
      CallAnything(channel, "grpc.health.v1.Health/Check", "{}", "Bearer wrong").status.ok());
  EXPECT_TRUE(CallAnything(channel, "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                           R"({"list_services": ""})", "nonsense")
                  .status.ok());
}

class QuotaTest : public testing::Test {
 protected:
  static constexpr char kAll[] =
      R"({"principals": ["user:*"], "role": "writer", "resources": ["collection/*"]})";

  static std::chrono::nanoseconds RetryDelayOf(const grpc::Status& status) {
    google::rpc::Status wire;
    google::rpc::RetryInfo retry;
    EXPECT_TRUE(wire.ParseFromString(status.error_details()));
    bool found = false;
    for (const auto& any : wire.details()) found = found || any.UnpackTo(&retry);
    EXPECT_TRUE(found) << "no RetryInfo";
    return std::chrono::seconds(retry.retry_delay().seconds()) +
           std::chrono::nanoseconds(retry.retry_delay().nanos());
  }
};

TEST_F(QuotaTest, OfCallsIsRefusedWithTheTimeAfterWhichThereIsRoom) {
  const SecuredServer server(kAll, {"batch", "other"},
                             R"({"principals": ["user:batch"], "calls_per_second": 5})");
  const auto list = [&](const char* user) {
    const auto [channel, authorization] = server.Dial(server.User(user));
    return CallAnything(channel, "strata.v1.CollectionService/ListCollections", "{}", authorization)
        .status;
  };
  grpc::Status refused;
  int taken = 0;
  for (; taken < 1000 && (refused = list("batch")).ok(); ++taken) continue;
  EXPECT_GE(taken, 5);
  ASSERT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailsOf(refused).reason, "QUOTA_EXCEEDED");
  EXPECT_THAT(DetailsOf(refused).metadata,
              ElementsAre(Pair("limit", "5"), Pair("quota", "calls_per_second")));
  EXPECT_LE(RetryDelayOf(refused), std::chrono::milliseconds(200));
  EXPECT_GT(RetryDelayOf(refused), std::chrono::nanoseconds(0));
  EXPECT_TRUE(list("other").ok());
  const auto [channel, authorization] = server.Dial(server.User("batch"));
  EXPECT_TRUE(
      CallAnything(channel, "grpc.health.v1.Health/Check", "{}", authorization).status.ok());
}

TEST_F(QuotaTest, OfCallsInFlightCountsStreamsAndGivesRoomWhenTheyEnd) {
  const SecuredServer server(kAll, {"batch"},
                             R"({"principals": ["user:batch"], "calls_in_flight": 2})");
  const auto [channel, authorization] = server.Dial(server.User("batch"));
  const auto stub = v1::EnrollmentService::NewStub(channel);
  const auto list = [&, &channel = channel, &authorization = authorization] {
    return CallAnything(channel, "strata.v1.CollectionService/ListCollections", "{}", authorization)
        .status;
  };
  grpc::ClientContext contexts[2];
  std::vector<std::unique_ptr<grpc::ClientReaderWriter<v1::ApplyRequest, v1::ApplyResponse>>> open;
  for (grpc::ClientContext& context : contexts) {
    context.AddMetadata("authorization", authorization);
    open.push_back(stub->Apply(&context));
    v1::ApplyRequest request;
    v1::ApplyResponse response;
    ASSERT_TRUE(open.back()->Write(request));
    ASSERT_TRUE(open.back()->Read(&response));
  }
  const grpc::Status refused = list();
  EXPECT_EQ(DetailsOf(refused).reason, "QUOTA_EXCEEDED");
  EXPECT_THAT(DetailsOf(refused).metadata,
              ElementsAre(Pair("limit", "2"), Pair("quota", "calls_in_flight")));
  open.front()->WritesDone();
  EXPECT_TRUE(open.front()->Finish().ok());
  // The stream's end is told to its caller before the server has cleared it away.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  grpc::Status status;
  while (!(status = list()).ok()) ASSERT_LT(std::chrono::steady_clock::now(), end);
  open.back()->WritesDone();
  open.back()->Finish();
}

// Of one that has its answer, nothing is under way any more.
TEST_F(QuotaTest, OfOneCallInFlightIsEnoughForOneAfterTheOther) {
  const SecuredServer server(
      kAll, {"batch"}, R"({"principals": ["user:batch"], "calls_in_flight": 1})", /*loops=*/2);
  const SecuredServer::Dialled dialled[] = {server.Dial(server.User("batch")),
                                            server.Dial(server.User("batch"))};
  std::map<std::string, int> refused;
  for (int i = 0; i < 2'000; ++i) {
    for (const char* const method :
         {"strata.v1.CollectionService/ListCollections",
          "strata.v1.EnrollmentService/GetEnrollments", "strata.v1.EnrollmentService/Apply"}) {
      const auto& [channel, authorization] = dialled[i % 2];
      const Answered answered = CallAnything(channel, method, "{}", authorization);
      if (DetailsOf(answered.status).reason == "QUOTA_EXCEEDED") ++refused[method];
    }
  }
  EXPECT_THAT(refused, testing::IsEmpty());
}

TEST_F(QuotaTest, OfBytesCountsMessagesOfStreamsAndAnswers) {
  const SecuredServer server(kAll, {"batch"},
                             R"({"principals": ["user:batch"], "mib_per_second": 0.01})");
  const auto [channel, authorization] = server.Dial(server.User("batch"));
  const auto stub = v1::EnrollmentService::NewStub(channel);
  grpc::ClientContext context;
  context.AddMetadata("authorization", authorization);
  const auto stream = stub->Apply(&context);
  v1::ApplyRequest request;
  request.set_student_id("s");
  request.set_class_name("c");
  request.mutable_change()->set_reason(std::string(1000, 'x'));
  request.set_operation(v1::ENROLLMENT_OPERATION_ENROLL);
  int taken = 0;
  for (; taken < 1000; ++taken) {
    request.set_sequence_number(taken + 1);
    ASSERT_TRUE(stream->Write(request));
    v1::ApplyResponse response;
    ASSERT_TRUE(stream->Read(&response));
    if (response.error().reason() == "QUOTA_EXCEEDED") break;
    ASSERT_EQ(response.error().reason(), "");
  }
  EXPECT_GE(taken, 10);
  EXPECT_LT(taken, 1000);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

}  // namespace
}  // namespace strata::rpc_test
