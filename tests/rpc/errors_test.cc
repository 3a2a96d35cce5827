// Every reason that a call can meet: its code, its field, its details.
#include <gmock/gmock.h>
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
  EXPECT_EQ(details.Has("google.rpc.RetryInfo"), code == grpc::StatusCode::UNAVAILABLE ||
                                                     reason == ErrorReason::kOverloaded ||
                                                     reason == ErrorReason::kRetriesExhausted);
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
      {"grpc.health.v1.Health/Check", R"({"service": "strata.v1.QueueService"})",
       ErrorReason::kServiceNotFound},
  });
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
  const auto path = server_.Update(Op(R"({"path": "/title", "increment": 1})")).details();
  EXPECT_EQ(path.metadata.at("path"), "/title");
}

TEST_F(Errors, OfNamesAndPathsNameTheField) {
  const std::string long_name = Text(257);
  Check({
      {"Get", R"({"id": "x"})", ErrorReason::kInvalidName, "collection"},
      {"Get", R"({"collection": "books"})", ErrorReason::kInvalidName, "id"},
      {"Get", R"({"collection": "books", "id": ")" + long_name + R"("})", ErrorReason::kInvalidName,
       "id"},
      {"Get", R"({"collection": "a\nb", "id": "x"})", ErrorReason::kInvalidName, "collection"},
      {"Create", R"({"content": {"json": {}}})", ErrorReason::kInvalidName, "collection"},
      {"Update", R"({"collection": "books", "patch": {}})", ErrorReason::kInvalidName, "id"},
      {"Delete", R"({"collection": "books"})", ErrorReason::kInvalidName, "id"},
      {"Restore", R"({"collection": "books", "version": 1})", ErrorReason::kInvalidName, "id"},
      {"History", R"({"collection": "books"})", ErrorReason::kInvalidName, "id"},
      {"Diff", R"({"collection": "books", "from_version": 1})", ErrorReason::kInvalidName, "id"},
      {"List", "{}", ErrorReason::kInvalidName, "collection"},
      {"BatchGet", R"({"collection": "books", "ids": ["a", ""]})", ErrorReason::kInvalidName,
       "ids[1]"},
      {"Audit", R"({"collection": ")" + long_name + R"("})", ErrorReason::kInvalidName,
       "collection"},
      {"strata.v1.CollectionService/CreateCollection", "{}", ErrorReason::kInvalidName, "name"},
      {"strata.v1.CollectionService/GetCollection", "{}", ErrorReason::kInvalidName, "name"},
      {"strata.v1.CollectionService/DeleteCollection", "{}", ErrorReason::kInvalidName, "name"},
      {"Get", Moby(R"("fields": ["/a", "b"])"), ErrorReason::kInvalidPath, "fields[1]"},
      {"List", R"({"collection": "books", "fields": ["/~2"]})", ErrorReason::kInvalidPath,
       "fields[0]"},
      {"Update", Op(R"({"path": "stock", "set": 1})"), ErrorReason::kInvalidPath,
       "patch.operations[1].path"},
  });
}

TEST_F(Errors, OfFiltersNameTheField) {
  const auto list = [](const std::string& filter) {
    return R"({"collection": "books", "filter": )" + filter + "}";
  };
  Check({
      {"List", list(R"({"stock": {"$more": 1}})"), ErrorReason::kInvalidFilter, "filter"},
      {"List", list(R"({"stock": {"$gt": 9007199254740993}})"), ErrorReason::kInvalidFilter,
       "filter"},
      {"List", list(R"({"at": {"$gt": {"$date": "yesterday"}}})"), ErrorReason::kInvalidFilter,
       "filter"},
      {"List", list(R"({"title": {"$regex": "("}})"), ErrorReason::kInvalidFilter, "filter"},
      {"History", Moby(R"("filter": {"$and": []})"), ErrorReason::kInvalidFilter, "filter"},
      {"Update", Moby(R"("patch": {}, "precondition": {"filter": {"a..b": 1}})"),
       ErrorReason::kInvalidFilter, "precondition.filter"},
      {"List", R"({"collection": "books", "at_time": "9000-01-01T00:00:00Z"})",
       ErrorReason::kInvalidField, "at_time"},
  });
}

TEST_F(Errors, OfPatchesAndContentNameTheField) {
  Check({
      {"Update", Op(R"({"path": "/title", "increment": 1})"), ErrorReason::kInvalidPatch,
       "patch.operations[1]"},
      {"Update", Op(R"({"path": "/title", "append": [1]})"), ErrorReason::kInvalidPatch,
       "patch.operations[1]"},
      {"Update", Op(R"({"path": "/title/x", "set": 1})"), ErrorReason::kInvalidPatch,
       "patch.operations[1]"},
      {"Update", Op(R"({"path": "/stock", "increment": "1"})"), ErrorReason::kInvalidPatch,
       "patch.operations[1]"},
      {"Update", Op(R"({"path": "/a", "set": {"$oid": 1}})"), ErrorReason::kInvalidContent,
       "patch.operations[1].set"},
      {"Update", Op(R"({"path": "/a", "append": [9007199254740993]})"),
       ErrorReason::kInvalidContent, "patch.operations[1].append"},
      {"Update", Moby(R"("patch": {"merge": {"json": {"$date": 1}}})"),
       ErrorReason::kInvalidContent, "patch.merge"},
      {"Create", R"({"collection": "books", "content": {"json": {"n": 9007199254740993}}})",
       ErrorReason::kInvalidContent, "content"},
      {"Create", R"({"collection": "books", "content": {"bson": "AAAA"}})",
       ErrorReason::kInvalidContent, "content"},
      {"Update", Moby(R"("replace": {"bson": "AAAA"})"), ErrorReason::kInvalidContent, "replace"},
      {"Create",
       R"({"collection": "books", "content": {"json": {"a": ")" + Text(1 << 20) + R"("}}})",
       ErrorReason::kDocumentTooLarge, "content"},
      {"Update", Moby(R"("replace": {"json": {"a": ")" + Text(1 << 20) + R"("}})"),
       ErrorReason::kDocumentTooLarge, "replace"},
  });
}

// The result of a patch keeps the limits too.
TEST_F(Errors, OfAPatchsResultNameThePatch) {
  for (int i = 0; i < 2; ++i) {
    const auto status = server_.Update(
        Op(R"({"path": "/text)" + std::to_string(i) + R"(", "set": ")" + Text(600'000) + R"("})"));
    if (i == 0) Must(status);
    if (i == 1) ExpectError(status.status, ErrorReason::kDocumentTooLarge, "patch");
  }
  std::string deep = "1";
  for (int i = 0; i < 20; ++i) deep = R"({"a": )" + deep + "}";
  ExpectError(server_.Update(Op(R"({"path": "/1/2/3/4/5", "set": )" + deep + "}")).status,
              ErrorReason::kInvalidContent, "patch");
}

TEST_F(Errors, OfOtherFieldsNameTheField) {
  std::string many_fields = R"("fields": [)";
  for (int i = 0; i < 101; ++i) many_fields += (i == 0 ? "" : ",") + std::string(R"("/a")");
  many_fields += "]";
  std::string many_ids = R"("ids": [)";
  for (int i = 0; i < 1001; ++i) {
    many_ids += std::string(i == 0 ? "" : ",") + "\"" + std::to_string(i) + "\"";
  }
  many_ids += "]";
  std::string many_operations = R"("patch": {"operations": [)";
  for (int i = 0; i < 1001; ++i) {
    many_operations += std::string(i == 0 ? "" : ",") + R"({"path": "/a", "unset": true})";
  }
  many_operations += "]}";
  std::string many_labels = R"("change": {"labels": {)";
  for (int i = 0; i < 33; ++i) {
    many_labels += std::string(i == 0 ? "" : ",") + "\"" + std::to_string(i) + R"(": "")";
  }
  many_labels += "}}";
  const std::string content = R"("content": {"json": {}})";
  Check({
      {"Create", R"({"collection": "books"})", ErrorReason::kInvalidField, "content"},
      {"Create", R"({"collection": "books", "content": {}})", ErrorReason::kInvalidField,
       "content"},
      {"Create", R"({"collection": "books", "encoding": 7, )" + content + "}",
       ErrorReason::kInvalidField, "encoding"},
      {"Create", R"({"collection": "books", "request_id": "a b", )" + content + "}",
       ErrorReason::kInvalidField, "request_id"},
      {"Create", R"({"collection": "books", "request_id": ")" + Text(129) + "\", " + content + "}",
       ErrorReason::kInvalidField, "request_id"},
      {"Create",
       R"({"collection": "books", "change": {"actor": ")" + Text(257) + "\"}, " + content + "}",
       ErrorReason::kInvalidField, "change.actor"},
      {"Create",
       R"({"collection": "books", "change": {"reason": ")" + Text(1025) + "\"}, " + content + "}",
       ErrorReason::kInvalidField, "change.reason"},
      {"Create", R"({"collection": "books", )" + many_labels + ", " + content + "}",
       ErrorReason::kInvalidField, "change.labels"},
      {"Get", Moby(R"("version": 0)"), ErrorReason::kInvalidField, "version"},
      {"Get", Moby(R"("version": -1)"), ErrorReason::kInvalidField, "version"},
      {"Get", Moby(R"("at_time": "9999-01-01T00:00:00Z")"), ErrorReason::kInvalidField, "at_time"},
      {"Get", Moby(R"("encoding": 3)"), ErrorReason::kInvalidField, "encoding"},
      {"Get", Moby(many_fields), ErrorReason::kInvalidField, "fields"},
      {"BatchGet", R"({"collection": "books"})", ErrorReason::kInvalidField, "ids"},
      {"BatchGet", R"({"collection": "books", )" + many_ids + "}", ErrorReason::kInvalidField,
       "ids"},
      {"BatchGet", R"({"collection": "books", "ids": ["b", "a", "b"]})", ErrorReason::kInvalidField,
       "ids[2]"},
      {"Update", Moby(R"("max_attempts": 1)"), ErrorReason::kInvalidField, "new_content"},
      {"Update", Moby(R"("max_attempts": 101, "patch": {})"), ErrorReason::kInvalidField,
       "max_attempts"},
      {"Update", Moby(R"("max_attempts": -1, "patch": {})"), ErrorReason::kInvalidField,
       "max_attempts"},
      {"Update", Moby(R"("precondition": {"version": -1}, "patch": {})"),
       ErrorReason::kInvalidField, "precondition.version"},
      {"Update", Moby(R"("replace": {})"), ErrorReason::kInvalidField, "replace"},
      {"Update", Moby(R"("patch": {"merge": {}})"), ErrorReason::kInvalidField, "patch.merge"},
      {"Update", Moby(many_operations), ErrorReason::kInvalidField, "patch.operations"},
      {"Update", Op(R"({"path": "/a"})"), ErrorReason::kInvalidField, "patch.operations[1]"},
      {"Update", Op(R"({"path": "/a", "unset": false})"), ErrorReason::kInvalidField,
       "patch.operations[1].unset"},
      {"Restore", Moby(R"("encoding": 0)"), ErrorReason::kInvalidField, "version"},
      {"Restore", Moby(R"("version": -1)"), ErrorReason::kInvalidField, "version"},
      {"History", Moby(R"("page_size": 1001)"), ErrorReason::kInvalidField, "page_size"},
      {"History", Moby(R"("page_size": -1)"), ErrorReason::kInvalidField, "page_size"},
      {"History", Moby(R"("from_version": 0)"), ErrorReason::kInvalidField, "from_version"},
      {"History", Moby(R"("to_version": -5)"), ErrorReason::kInvalidField, "to_version"},
      {"Diff", Moby(R"("to_version": 1)"), ErrorReason::kInvalidField, "from_version"},
      {"Diff", Moby(R"("from_version": 1, "to_version": -1)"), ErrorReason::kInvalidField,
       "to_version"},
      {"Audit", R"({"id": "moby"})", ErrorReason::kInvalidField, "collection"},
      {"Audit", R"({"kinds": ["VERSION_KIND_CREATED", "VERSION_KIND_UNSPECIFIED"]})",
       ErrorReason::kInvalidField, "kinds[1]"},
      {"Audit", R"({"kinds": [9]})", ErrorReason::kInvalidField, "kinds[0]"},
      {"Audit", R"({"page_size": 2000})", ErrorReason::kInvalidField, "page_size"},
      {"List", R"({"collection": "books", "page_size": 5000})", ErrorReason::kInvalidField,
       "page_size"},
      {"strata.v1.CollectionService/ListCollections", R"({"page_size": -1})",
       ErrorReason::kInvalidField, "page_size"},
      {"strata.v1.CollectionService/ListCollections", R"({"page_token": "x"})",
       ErrorReason::kInvalidPageToken, "page_token"},
      {"History", Moby(R"("page_token": "x")"), ErrorReason::kInvalidPageToken, "page_token"},
      {"Audit", R"({"page_token": "x"})", ErrorReason::kInvalidPageToken, "page_token"},
      {"strata.v1.CollectionService/CreateCollection", R"({"name": "n", "strategy": 9})",
       ErrorReason::kInvalidField, "strategy"},
      {"strata.v1.CollectionService/CreateCollection",
       R"({"name": "n", "options": {"keyframe_interval": 1001}})", ErrorReason::kInvalidField,
       "options.keyframe_interval"},
      {"strata.v1.CollectionService/CreateCollection",
       R"({"name": "n", "strategy": 1, "options": {"keyframe_interval": 2}})",
       ErrorReason::kInvalidField, "options.keyframe_interval"},
      {"Create", Moby(R"("request_id": "first", "content": {"json": {}})"),
       ErrorReason::kRequestIdReused, "request_id"},
  });
}

// JSON cannot say such a time, but bytes can.
TEST_F(Errors, OfTimesOutOfRangeNameTheField) {
  auto get = Parse<v1::GetRequest>(R"({"collection": "books", "id": "moby"})");
  get.mutable_at_time()->set_nanos(1'000'000'000);
  ExpectError(server_.CallRaw("strata.v1.DocumentService/Get", get.SerializeAsString()),
              ErrorReason::kInvalidField, "at_time");
  v1::AuditRequest audit;
  audit.mutable_end_time()->set_seconds(int64_t{1} << 50);
  ExpectError(server_.CallRaw("strata.v1.DocumentService/Audit", audit.SerializeAsString()),
              ErrorReason::kInvalidField, "end_time");
}

TEST_F(Errors, OfBytesThatAreNoMessage) {
  for (const char* method : {"Create", "Get", "BatchGet", "Update", "Delete", "Restore", "History",
                             "Diff", "Audit", "List"}) {
    ExpectError(server_.CallRaw(std::string("strata.v1.DocumentService/") + method, "\x0A\xFF"),
                ErrorReason::kInvalidMessage);
  }
  // Text that is not UTF-8.
  ExpectError(server_.CallRaw("strata.v1.DocumentService/Get", "\x0A\x01\xFF"),
              ErrorReason::kInvalidMessage);
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

TEST(Overload, IsRefusedBeforeWorkIsDone) {
  app::ServerOptions options = TestOptions();
  options.loop.bytes_in_flight_max = 1000;
  TestServer server(options);
  const auto large =
      server.Create(R"({"collection": "c", "content": {"json": {"a": ")" + Text(2000) + R"("}}})");
  ExpectError(large.status, ErrorReason::kOverloaded);
  EXPECT_TRUE(server.Create(R"({"collection": "c", "content": {"json": {}}})").ok());
  EXPECT_TRUE(server.CallByName("grpc.health.v1.Health/Check", "{}").ok());
}

}  // namespace
}  // namespace strata::rpc_test
