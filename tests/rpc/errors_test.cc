// The reasons that a call can meet in the state of documents, store and server: code, details.
// Those of bad input are in bad_input_test.cc.
#include <gmock/gmock.h>
#include <google/protobuf/util/time_util.h>
#include <gtest/gtest.h>

#include <set>

#include "service/engines/engines.h"
#include "tests/rpc/test_server.h"
#include "tests/support/single_record_store.h"

namespace strata::rpc_test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::unique_ptr<store::Store> MemoryStore() {
  return *engines::OpenEngine("memory", engines::OpenOptions());
}

grpc::StatusCode CodeOf(ErrorReason reason) {
  return static_cast<grpc::StatusCode>(ReasonCode(reason));
}

// What every error has, and what goes with its code.
void ExpectError(const grpc::Status& status, ErrorReason reason, const std::string& field = "") {
  const Details details = DetailsOf(status);
  EXPECT_EQ(details.reason, ReasonName(reason)) << status.error_message();
  EXPECT_EQ(details.domain, "strata");
  EXPECT_EQ(details.field(), field) << status.error_message();
  EXPECT_EQ(status.error_code(), CodeOf(reason));
  EXPECT_FALSE(status.error_message().empty());
  EXPECT_EQ(details.types.at(0), "google.rpc.ErrorInfo");
  const grpc::StatusCode code = status.error_code();
  EXPECT_EQ(details.Has("google.rpc.BadRequest"), code == grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(details.Has("google.rpc.PreconditionFailure"),
            code == grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(details.Has("google.rpc.ResourceInfo"),
            code == grpc::StatusCode::NOT_FOUND || code == grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(details.Has("google.rpc.RetryInfo"),
            code == grpc::StatusCode::UNAVAILABLE || reason == ErrorReason::kOverloaded ||
                reason == ErrorReason::kDiskFull || reason == ErrorReason::kRetriesExhausted);
  const bool named = code == grpc::StatusCode::INVALID_ARGUMENT;
  EXPECT_EQ(details.violation_field, named ? field : "");
}

struct Case {
  const char* method;  // of DocumentService, unless it has a slash
  std::string request;
  ErrorReason reason;
  const char* field = "";
};

std::string Text(size_t size) { return std::string(size, 'x'); }

class Errors : public testing::Test {
 protected:
  Errors() {
    Must(server_.Create(R"({"collection": "books", "id": "moby", "request_id": "first",
                            "content": {"json": {"title": "Moby", "stock": 3, "list": []}}})"));
    Must(server_.Update(R"({"collection": "books", "id": "moby",
                            "patch": {"operations": [{"path": "/stock", "set": 2}]}})"));
    Must(server_.Create(R"({"collection": "books", "id": "gone", "content": {"json": {}}})"));
    Must(server_.Delete(R"({"collection": "books", "id": "gone"})"));
  }

  template <typename Response>
  static void Must(const Outcome<Response>& outcome) {
    ASSERT_TRUE(outcome.ok()) << outcome.status.error_message();
  }

  void Check(const std::vector<Case>& cases) {
    for (const Case& each : cases) {
      SCOPED_TRACE(std::string(each.method) + " " + each.request.substr(0, 300));
      std::string method = each.method;
      if (method.find('/') == std::string::npos) method = "strata.v1.DocumentService/" + method;
      ExpectError(server_.CallByName(method, each.request), each.reason, each.field);
    }
  }

  static std::string Moby(const std::string& rest) {
    return R"({"collection": "books", "id": "moby", )" + rest + "}";
  }
  static std::string Op(const std::string& operation) {
    return Moby(R"("patch": {"operations": [{"path": "/stock", "increment": 1}, )" + operation +
                "]}");
  }

  TestServer server_;
};

TEST_F(Errors, OfTheStateNameWhatIs) {
  Check({
      {"Update", Moby(R"("precondition": {"version": 1}, "patch": {})"),
       ErrorReason::kVersionConflict},
      {"Delete", Moby(R"("precondition": {"version": 3})"), ErrorReason::kVersionConflict},
      {"Restore", Moby(R"("version": 1, "precondition": {"exists": false})"),
       ErrorReason::kVersionConflict},
      {"Update", Moby(R"("precondition": {"filter": {"stock": 3}}, "patch": {})"),
       ErrorReason::kFilterNotMatched},
      {"Update", R"({"collection": "books", "id": "none", "patch": {}, "allow_missing": true,
                     "precondition": {"filter": {}}})",
       ErrorReason::kFilterNotMatched},
      {"Delete", Moby(R"("precondition": {"filter": {"title": "Emma"}})"),
       ErrorReason::kFilterNotMatched},
      {"Create", Moby(R"("content": {"json": {}})"), ErrorReason::kDocumentExists},
      {"Get", R"({"collection": "books", "id": "none"})", ErrorReason::kDocumentNotFound},
      {"Delete", R"({"collection": "books", "id": "none"})", ErrorReason::kDocumentNotFound},
      {"Restore", R"({"collection": "books", "id": "none", "version": 1})",
       ErrorReason::kDocumentNotFound},
      {"Update", R"({"collection": "books", "id": "none", "patch": {}})",
       ErrorReason::kDocumentNotFound},
      {"History", R"({"collection": "books", "id": "none"})", ErrorReason::kDocumentNotFound},
      {"Diff", R"({"collection": "books", "id": "none", "from_version": 1})",
       ErrorReason::kDocumentNotFound},
      {"Get", R"({"collection": "books", "id": "gone"})", ErrorReason::kDocumentDeleted},
      {"Get", R"({"collection": "books", "id": "gone", "version": 2})",
       ErrorReason::kDocumentDeleted},
      {"Delete", R"({"collection": "books", "id": "gone"})", ErrorReason::kDocumentDeleted},
      {"Update", R"({"collection": "books", "id": "gone", "patch": {}})",
       ErrorReason::kDocumentDeleted},
      {"Restore", R"({"collection": "books", "id": "gone", "version": 2})",
       ErrorReason::kDocumentDeleted},
      {"Get", Moby(R"("version": 9)"), ErrorReason::kVersionNotFound},
      {"Get", Moby(R"("at_time": "1980-01-01T00:00:00Z")"), ErrorReason::kVersionNotFound},
      {"Restore", Moby(R"("version": 9)"), ErrorReason::kVersionNotFound},
      {"Diff", Moby(R"("from_version": 1, "to_version": 9)"), ErrorReason::kVersionNotFound},
      {"Get", R"({"collection": "none", "id": "x"})", ErrorReason::kCollectionNotFound},
      {"List", R"({"collection": "none"})", ErrorReason::kCollectionNotFound},
      {"BatchGet", R"({"collection": "none", "ids": ["x"]})", ErrorReason::kCollectionNotFound},
      {"strata.v1.CollectionService/GetCollection", R"({"name": "none"})",
       ErrorReason::kCollectionNotFound},
      {"strata.v1.CollectionService/DeleteCollection", R"({"name": "none"})",
       ErrorReason::kCollectionNotFound},
      {"strata.v1.CollectionService/CreateCollection", R"({"name": "books"})",
       ErrorReason::kCollectionExists},
      {"strata.v1.CollectionService/DeleteCollection", R"({"name": "books"})",
       ErrorReason::kCollectionNotEmpty},
      {"strata.v1.CollectionService/DeleteCollection",
       R"({"name": "books", "force": true, "incarnation": 99})", ErrorReason::kIncarnationMismatch},
      {"grpc.health.v1.Health/Check", R"({"service": "strata.v1.NoService"})",
       ErrorReason::kServiceNotFound},
  });
}

TEST_F(Errors, OfAnUnknownServiceNameIt) {
  const Details details = DetailsOf(
      server_.CallByName("grpc.health.v1.Health/Check", R"({"service": "strata.v1.NoService"})"));
  EXPECT_EQ(details.resource_type, "service");
  EXPECT_EQ(details.resource_name, "strata.v1.NoService");
  EXPECT_EQ(details.metadata.at("service"), "strata.v1.NoService");
  EXPECT_EQ(server_.Get(R"({"collection": "none", "id": "x"})").details().resource_type,
            "strata.v1.Collection");
}

TEST_F(Errors, OfBytesThatAreNoMessageNameTheMessage) {
  for (const auto& [method, message] : std::map<std::string, std::string>{
           {"strata.v1.DocumentService/Get", "strata.v1.GetRequest"},
           {"strata.v1.CollectionService/Verify", "strata.v1.VerifyRequest"},
           {"grpc.health.v1.Health/Check", "grpc.health.v1.HealthCheckRequest"},
           {"grpc.health.v1.Health/Watch", "grpc.health.v1.HealthCheckRequest"}}) {
    EXPECT_THAT(server_.CallRaw(method, "\x01").error_message(), testing::HasSubstr(message));
  }
}

TEST_F(Errors, CarryWhatTheCallerNeedsNext) {
  const auto conflict =
      server_.Update(Moby(R"("precondition": {"version": 1}, "patch": {})")).details();
  EXPECT_EQ(conflict.metadata.at("expected"), "1");
  EXPECT_EQ(conflict.metadata.at("actual"), "2");
  const auto deleted = server_.Get(R"({"collection": "books", "id": "gone"})").details();
  EXPECT_EQ(deleted.metadata.at("version"), "2");
  EXPECT_EQ(deleted.resource_name, "books/gone");
  const auto missing = server_.Get(Moby(R"("version": 9)")).details();
  EXPECT_EQ(missing.metadata.at("version"), "9");
  EXPECT_EQ(missing.metadata.at("actual"), "2");
  const auto early = server_.Get(Moby(R"("at_time": "1980-01-01T00:00:00.25Z")"));
  EXPECT_EQ(early.details().metadata.at("time"), "1980-01-01T00:00:00.25Z");
  EXPECT_EQ(early.details().metadata.at("actual"), "2");
  EXPECT_EQ(early.details().metadata.count("version"), 0u);
  const auto first = server_.Get(Moby(R"("version": 1)")).response.document().update_time();
  google::protobuf::Timestamp first_time;
  ASSERT_TRUE(google::protobuf::util::TimeUtil::FromString(
      early.details().metadata.at("first_time"), &first_time));
  EXPECT_EQ(first_time, first);
  EXPECT_THAT(early.status.error_message(), HasSubstr("first written at 2"));
  EXPECT_THAT(early.status.error_message(), Not(HasSubstr("version 0")));
  const auto path = server_.Update(Op(R"({"path": "/title", "increment": 1})")).details();
  EXPECT_EQ(path.metadata.at("path"), "/title");
}

TEST_F(Errors, OfAHealthCheckThatIsNone) {
  ExpectError(server_.CallRaw("grpc.health.v1.Health/Check", "\x0A\xFF"),
              ErrorReason::kInvalidMessage);
}

TEST_F(Errors, OfMethodsThatDoNotExist) {
  for (const char* method : {"strata.v1.DocumentService/Put", "strata.v1.Nothing/Get",
                             "strata.wire.v1.DocumentService/Get"}) {
    const grpc::Status status = server_.CallRaw(method, "");
    ExpectError(status, ErrorReason::kUnknownMethod);
    EXPECT_EQ(DetailsOf(status).metadata.at("method"), std::string("/") + method);
  }
}

TEST(EngineErrors, KeepTheirReason) {
  auto owned = std::make_unique<InterposedStore>(MemoryStore());
  InterposedStore& store = *owned;
  TestServer server(TestOptions(), std::move(owned));
  const std::string create = R"({"collection": "books", "id": "x", "content": {"json": {}}})";
  ASSERT_TRUE(server.Create(create).ok());
  const auto fail_with = [&](const absl::Status& status) {
    store.set_interposer([status](const store::WriteBatch&) {
      store::CommitResult result;
      result.status = status;
      return result;
    });
    return server.Update(R"({"collection": "books", "id": "x", "replace": {"json": {"a": 1}}})")
        .status;
  };
  ExpectError(fail_with(Error(ErrorReason::kStoreUnavailable, "storage is full")),
              ErrorReason::kStoreUnavailable);
  ExpectError(fail_with(Error(ErrorReason::kOutcomeUnknown, "storage failed")),
              ErrorReason::kOutcomeUnknown);
  ExpectError(fail_with(Error(ErrorReason::kOverloaded, "too many commits wait")),
              ErrorReason::kOverloaded);
  const grpc::Status internal = fail_with(absl::InternalError("the driver's secret"));
  ExpectError(internal, ErrorReason::kInternal);
  EXPECT_THAT(internal.error_message(), Not(HasSubstr("secret")));
  EXPECT_THAT(internal.error_details(), Not(HasSubstr("secret")));
  store.set_interposer([](const store::WriteBatch&) { return store::CommitResult(); });
  const grpc::Status lost =
      server
          .Update(R"({"collection": "books", "id": "x", "replace": {"json": {"a": 1}},
                      "max_attempts": 3})")
          .status;
  ExpectError(lost, ErrorReason::kRetriesExhausted);
  EXPECT_EQ(DetailsOf(lost).metadata.at("attempts"), "3");
}

TEST(EngineErrors, DamageIsNeverServed) {
  auto owned = MemoryStore();
  store::Store& store = *owned;
  TestServer server(TestOptions(), std::move(owned));
  ASSERT_TRUE(server.Create(R"({"collection": "books", "id": "x", "content": {"json": {}}})").ok());
  const auto cursor = store.Scan(store::Keyspace::kHeads, store::Range());
  ASSERT_TRUE(cursor->Valid());
  store::WriteBatch batch;
  batch.Put(store::Keyspace::kHeads, std::string(cursor->key()), std::string("\5\0\0\0\0", 5));
  store.Commit(std::move(batch),
               [](const store::CommitResult& result) { EXPECT_TRUE(result.committed); });
  ExpectError(server.Get(R"({"collection": "books", "id": "x"})").status,
              ErrorReason::kRecordCorrupt);
  ExpectError(server.List(R"({"collection": "books"})").status, ErrorReason::kRecordCorrupt);
}

TEST(EngineErrors, AnEngineWithoutPositionsHasNoLedger) {
  const std::unique_ptr<store::Store> memory = MemoryStore();
  TestServer server(TestOptions(), std::make_unique<test_support::SingleRecordStore>(*memory));
  ASSERT_TRUE(server.Create(R"({"collection": "books", "id": "x", "content": {"json": {}}})").ok());
  ExpectError(server.Audit("{}").status, ErrorReason::kUnsupportedByEngine);
  EXPECT_TRUE(server.Audit(R"({"collection": "books", "id": "x"})").ok());
}

TEST(LayoutLimit, IsNamedByTheStrategyThatHasIt) {
  TestServer server;
  ASSERT_TRUE(
      server.CreateCollection(R"({"name": "c", "strategy": "STRATEGY_EMBEDDED_HISTORY"})").ok());
  for (int i = 0;; ++i) {
    ASSERT_LT(i, 20);
    std::string text = Text(1'000'000);
    text[0] = static_cast<char>('a' + i);
    const auto made =
        server.Update(R"({"collection": "c", "id": "x", "allow_missing": true, "omit_content": true,
                          "replace": {"json": {"a": ")" +
                      text + R"("}}})");
    if (made.ok()) continue;
    ExpectError(made.status, ErrorReason::kLayoutLimit);
    EXPECT_GT(i, 5);
    break;
  }
  EXPECT_TRUE(server.Get(R"({"collection": "c", "id": "x"})").ok());
}

}  // namespace
}  // namespace strata::rpc_test
