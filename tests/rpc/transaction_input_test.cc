// Transactions that are refused: each row says what is asked for, which reason and field the answer
// must name, and what it must say. After each, what is stored is as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "schemas/store/single_record_store.h"
#include "service/engines/engines.h"
#include "strata/v1/transaction_service.pb.h"
#include "tests/rpc/stored.h"
#include "tests/rpc/test_server.h"

namespace strata::rpc_test {
namespace {

using testing::HasSubstr;

struct Row {
  std::string request;
  ErrorReason reason;
  std::string field;
  std::string says;
  std::string method = "Commit";
  bool raw = false;  // `request` is bytes on the wire, not JSON
};
using Rows = std::vector<Row>;

constexpr ErrorReason kName = ErrorReason::kInvalidName;
constexpr ErrorReason kField = ErrorReason::kInvalidField;
constexpr ErrorReason kConflict = ErrorReason::kVersionConflict;

// A CommitRequest of these writes, and what else.
std::string Of(const std::string& writes, const std::string& rest = "") {
  return R"({"writes": [)" + writes + "]" + (rest.empty() ? "" : ", " + rest) + "}";
}
std::string Update(const std::string& id, const std::string& rest = "") {
  return R"({"update": {"collection": "books", "id": ")" + id +
         R"(", "patch": {"operations": [{"path": "/stock", "increment": 1}]})" +
         (rest.empty() ? "" : ", " + rest) + "}}";
}
std::string Patch(const std::string& operation) {
  return R"({"update": {"collection": "books", "id": "moby", "patch": {"operations": [)" +
         operation + "]}}}";
}
std::string Create(const std::string& rest) {
  return R"({"create": {"collection": "books")" + (rest.empty() ? "" : ", " + rest) + "}}";
}
std::string Read(const std::string& id, const std::string& version) {
  return R"({"collection": "books", "id": ")" + id + R"(", "version": )" + version + "}";
}
// `count` elements, each with its number in place of "#".
std::string Numbered(int count, const std::string& element) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    std::string one = element;
    one.replace(one.find('#'), 1, std::to_string(i));
    all += (i == 0 ? "" : ",") + one;
  }
  return all;
}
// What JSON cannot say.
template <typename Change>
std::string Bytes(const std::string& json, Change&& change) {
  auto request = Parse<v1::CommitRequest>(json);
  change(request);
  return request.SerializeAsString();
}

// The memory engine, or what is left of it where it writes one record at a time: there a mode that
// is not said is two phases.
std::unique_ptr<store::Store> Engine(bool single_record) {
  auto engine = *engines::OpenEngine("memory", engines::OpenOptions());
  if (!single_record) return engine;
  return std::make_unique<store::SingleRecordStore>(std::move(engine));
}

class TransactionTable : public testing::Test {
 protected:
  explicit TransactionTable(std::unique_ptr<store::Store> store)
      : store_(*store), server_(TestOptions(), std::move(store)) {
    Must(server_.Create(R"({"collection": "books", "id": "moby",
                            "content": {"json": {"title": "Moby", "stock": 3}}})"));
    for (const char* const id : {"emma", "walden", "gone"}) {
      Must(server_.Create(std::string(R"({"collection": "books", "id": ")") + id +
                          R"(", "content": {"json": {"stock": 1}}})"));
    }
    Must(server_.Delete(R"({"collection": "books", "id": "gone"})"));
    Must(server_.Create(R"({"collection": "students", "id": "odd",
                            "content": {"json": {"classes": "none"}}})"));
    before_ = HashOfAll(store_);
  }
  ~TransactionTable() override { std::printf("refused transactions: %d\n", rows_); }

  template <typename Response>
  static void Must(const Outcome<Response>& outcome) {
    ASSERT_TRUE(outcome.ok()) << outcome.status.error_message();
  }

  void Check(const Rows& rows) {
    for (const Row& row : rows) CheckRow(row);
  }

  void CheckRow(const Row& row) {
    SCOPED_TRACE(row.method + " " + (row.raw ? "(bytes)" : row.request.substr(0, 300)));
    const std::string method = "strata.v1.TransactionService/" + row.method;
    const grpc::Status status =
        row.raw ? server_.CallRaw(method, row.request) : server_.CallByName(method, row.request);
    const Details details = DetailsOf(status);
    EXPECT_EQ(details.reason, ReasonName(row.reason)) << status.error_message();
    EXPECT_EQ(status.error_code(), static_cast<grpc::StatusCode>(ReasonCode(row.reason)));
    EXPECT_EQ(details.field(), row.field) << status.error_message();
    EXPECT_EQ(details.violation_field,
              status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ? row.field : "");
    EXPECT_THAT(status.error_message(), HasSubstr(row.says));
    EXPECT_TRUE(HashOfAll(store_) == before_) << "something was written";
    ++rows_;
  }

  store::Store& store_;  // the server's
  TestServer server_;
  document::Hash before_{};
  int rows_ = 0;
};

class TransactionInput : public TransactionTable, public testing::WithParamInterface<bool> {
 protected:
  TransactionInput() : TransactionTable(Engine(GetParam())) {}
};
INSTANTIATE_TEST_SUITE_P(Engines, TransactionInput, testing::Bool(), [](const auto& single_record) {
  return std::string(single_record.param ? "OfSingleRecords" : "OfBatches");
});

TEST_P(TransactionInput, HasAsManyPartsAsItMay) {
  Check({
      {"{}", kField, "writes", "1 to 100"},
      {Of("", R"("reads": [)" + Read("moby", "1") + "]"), kField, "writes", "is required"},
      {Of(Numbered(101, Update("n#"))), kField, "writes", "has 101 elements, at most 100"},
      {Of(Update("moby"), R"("reads": [)" + Numbered(101, Read("n#", "0")) + "]"), kField, "reads",
       "has 101 elements, at most 100"},
      {Of(Update("moby"), R"("mode": 2, "reads": [)" + Numbered(20, Read("n#", "0")) + "]"), kField,
       "reads", "20"},
      {Of(Numbered(21, Update("n#", R"("allow_missing": true)")), R"("mode": 2)"), kField, "writes",
       "20"},
      {Of("{}"), kField, "writes[0]", "has no write"},
      {Of(Update("moby") + ", {}"), kField, "writes[1]", "has no write"},
  });
}

TEST_P(TransactionInput, NamesEachDocumentOnce) {
  Check({
      {Of(Update("moby") + "," + Update("moby")), kField, "writes[1]", "a second time"},
      {Of(Update("moby") + "," + Update("emma") +
          R"(, {"delete": {"collection": "books", "id": "moby"}})"),
       kField, "writes[2]", "a second time"},
      {Of(Update("moby"), R"("reads": [)" + Read("moby", "1") + "]"), kField, "reads[0]",
       "a second time"},
      {Of(Update("moby"), R"("reads": [)" + Read("emma", "1") + "," + Read("emma", "1") + "]"),
       kField, "reads[1]", "a second time"},
      {Of(R"({"enroll": {"student_id": "s", "class_name": "c", "sequence_number": 1}},
            {"unenroll": {"collection": "students", "student_id": "s", "class_name": "d",
                          "sequence_number": 2}})"),
       kField, "writes[1]", "a second time"},
  });
}

TEST_P(TransactionInput, SaysOfTheWholeNothingInAPart) {
  const std::string content = R"("content": {"json": {}}, "id": "x", )";
  const auto part = [](const std::string& kind, const std::string& rest) {
    return Of(R"({")" + kind + R"(": {"collection": "books", "id": "moby", )" + rest + "}}");
  };
  const std::string patch = R"("patch": {}, )";
  const std::string version = R"("version": 1, )";
  const std::string whole = "belongs to the whole";
  Check({
      {Of(Create(content + R"("request_id": "r")")), kField, "writes[0].create.request_id", whole},
      {Of(Create(content + R"("validate_only": true)")), kField, "writes[0].create.validate_only",
       whole},
      {Of(Create(content + R"("encoding": "ENCODING_BSON")")), kField, "writes[0].create.encoding",
       whole},
      {Of(Create(content + R"("omit_content": true)")), kField, "writes[0].create.omit_content",
       whole},
      {Of(Update("emma") + "," + Update("moby", R"("request_id": "r")")), kField,
       "writes[1].update.request_id", whole},
      {part("update", patch + R"("validate_only": true)"), kField, "writes[0].update.validate_only",
       whole},
      {part("update", patch + R"("max_attempts": 3)"), kField, "writes[0].update.max_attempts",
       whole},
      {part("update", patch + R"("encoding": 1)"), kField, "writes[0].update.encoding", whole},
      {part("update", patch + R"("omit_content": true)"), kField, "writes[0].update.omit_content",
       whole},
      {part("delete", R"("request_id": "r")"), kField, "writes[0].delete.request_id", whole},
      {part("delete", R"("validate_only": true)"), kField, "writes[0].delete.validate_only", whole},
      {part("delete", R"("max_attempts": 1)"), kField, "writes[0].delete.max_attempts", whole},
      {part("restore", version + R"("request_id": "r")"), kField, "writes[0].restore.request_id",
       whole},
      {part("restore", version + R"("validate_only": true)"), kField,
       "writes[0].restore.validate_only", whole},
      {part("restore", version + R"("max_attempts": 1)"), kField, "writes[0].restore.max_attempts",
       whole},
      {part("restore", version + R"("encoding": 2)"), kField, "writes[0].restore.encoding", whole},
      {part("restore", version + R"("omit_content": true)"), kField,
       "writes[0].restore.omit_content", whole},
  });
}

TEST_P(TransactionInput, OfTheWholeIsWhatItMayBe) {
  const auto with = [](const std::string& rest) { return Of(Update("moby"), rest); };
  const auto unknown = [](auto change) { return Bytes(Of(Update("moby")), change); };
  Check({
      {with(R"("request_id": "transfer/2")"), kField, "request_id", "/"},
      {with(R"("request_id": "a/b/17")"), kField, "request_id", "/"},
      {with(R"("request_id": "with space")"), kField, "request_id", "printable ASCII"},
      {with(R"("request_id": "z\u00fcrich")"), kField, "request_id", "printable ASCII"},
      {with(R"("request_id": ")" + std::string(129, 'x') + R"(")"), kField, "request_id", "128"},
      {with(R"("max_attempts": -1)"), kField, "max_attempts", "1 to 100"},
      {with(R"("max_attempts": 101)"), kField, "max_attempts", "1 to 100"},
      {with(R"("change": {"actor": ")" + std::string(257, 'x') + R"("})"), kField, "change.actor",
       "256"},
      {with(R"("change": {"reason": ")" + std::string(1025, 'x') + R"("})"), kField,
       "change.reason", "1024"},
      {unknown([](v1::CommitRequest& request) {
         request.set_mode(static_cast<v1::TransactionMode>(7));
       }),
       kField, "mode", "is 7", "Commit", true},
      {unknown(
           [](v1::CommitRequest& request) { request.set_encoding(static_cast<v1::Encoding>(7)); }),
       kField, "encoding", "is 7", "Commit", true},
      {"\x0A\xFF", ErrorReason::kInvalidMessage, "", "not a strata.v1.CommitRequest", "Commit",
       true},
      {Of(Create(R"("id": "x", "content": {"json": {"a": ")" + std::string(1'000'000, 'x') +
                 R"("}})") +
          "," +
          Create(R"("id": "y", "content": {"json": {"a": ")" + std::string(1'000'000, 'x') +
                 R"("}})") +
          "," +
          Create(R"("id": "z", "content": {"json": {"a": ")" + std::string(1'000'000, 'x') +
                 R"("}})") +
          "," +
          Create(R"("id": "w", "content": {"json": {"a": ")" + std::string(200'000, 'x') +
                 R"("}})")),
       kField, "writes", "at most 3145728"},
  });
}

TEST_P(TransactionInput, OfHostileValuesIsRefusedByName) {
  const auto with = [](const std::string& rest) { return Of(Update("moby"), rest); };
  const auto labels = [&](const std::string& of) {
    return with(R"("change": {"labels": {)" + of + "}}");
  };
  const auto filter = [](const std::string& of) {
    return Of(Update("moby", R"("precondition": {"filter": )" + of + "}"));
  };
  const auto nested = [](int levels) {
    std::string made = R"({"stock": 1})";
    for (int i = 0; i < levels; ++i) made = R"({"$and": [)" + made + "]}";
    return made;
  };
  const std::string kFilterField = "writes[0].update.precondition.filter";
  const std::string long_label(129, 'x');
  Check({
      {with(R"("request_id": "a\u0000b")"), kField, "request_id", "printable ASCII"},
      {with(R"("request_id": "0/0")"), kField, "request_id", "/"},
      {with(R"("max_attempts": 2147483647)"), kField, "max_attempts", "1 to 100"},
      {with(R"("max_attempts": -2147483648)"), kField, "max_attempts", "1 to 100"},
      {with(R"("change": {"on_behalf_of": ")" + std::string(257, 'x') + R"("})"), kField,
       "change.on_behalf_of", "256"},
      {labels(Numbered(33, R"("#": "")")), kField, "change.labels", "33 entries, at most 32"},
      {labels(R"("": "x")"), kField, "change.labels", ""},
      {labels(R"(")" + long_label + R"(": "")"), kField, "change.labels", "at most 128"},
      {labels(R"("x": ")" + std::string(257, 'x') + R"(")"), kField, "change.labels",
       "at most 256"},
      {Of(Update("moby", R"("change": {"labels": {"": "x"}})")), kField,
       "writes[0].update.change.labels", ""},
      {with(R"("reads": [)" + Read("emma", "-9223372036854775808") + "]"), kField,
       "reads[0].version", "negative"},
      {with(R"("reads": [)" + Read("emma", "9223372036854775807") + "]"), kConflict,
       "reads[0].version", "not 9223372036854775807"},
      {with(R"("reads": [)" + Read("a\\u0000b", "0") + "]"), kName, "reads[0].id",
       "control character"},
      {with(R"("reads": [{"collection": ")" + std::string(1'000'000, 'c') + R"(", "id": "x"}])"),
       kName, "reads[0].collection", "at most 256"},
      {with(R"("reads": [)" + Read(std::string(1'000'000, 'i'), "0") + "]"), kName, "reads[0].id",
       "at most 256"},
      {Of(Update("moby", R"("precondition": {"version": 9223372036854775807})")), kConflict,
       "writes[0].precondition", "not 9223372036854775807"},
      {Of(R"({"restore": {"collection": "books", "id": "emma", "version": 9223372036854775807}})"),
       ErrorReason::kVersionNotFound, "writes[0]", "no version"},
      {filter(R"({"$or": [)" + Numbered(1001, R"({"stock": #})") + "]}"),
       ErrorReason::kInvalidFilter, kFilterField, "1000"},
      {filter(nested(17)), ErrorReason::kInvalidFilter, kFilterField, ""},
      {filter(R"({"title": {"$regex": "(a"}})"), ErrorReason::kInvalidFilter, kFilterField, ""},
      {filter(R"({"title": {"$regex": ")" + std::string(1025, 'x') + R"("}})"),
       ErrorReason::kInvalidFilter, kFilterField, ""},
      {filter(R"({"title": ")" + std::string(65'537, 'x') + R"("})"), ErrorReason::kInvalidFilter,
       kFilterField, ""},
      {Of(Patch(Numbered(1001, R"({"path": "/n#", "set": 1})"))), kField,
       "writes[0].update.patch.operations", "at most 1000"},
      {Bytes(Of(Update("moby")),
             [](v1::CommitRequest& request) {
               request.set_mode(static_cast<v1::TransactionMode>(-1));
             }),
       kField, "mode", "is -1", "Commit", true},
  });
}

TEST_P(TransactionInput, NamesAreAsEverywhere) {
  const std::string long_name(257, 'x');
  const auto write = [](const std::string& collection, const std::string& id) {
    return Of(R"({"delete": {"collection": ")" + collection + R"(", "id": ")" + id + R"("}})");
  };
  const auto read = [](const std::string& collection, const std::string& id) {
    return Of(Update("moby"),
              R"("reads": [{"collection": ")" + collection + R"(", "id": ")" + id + R"("}])");
  };
  const auto enroll = [](const std::string& rest) { return Of(R"({"enroll": {)" + rest + "}}"); };
  Check({
      {write("", "x"), kName, "writes[0].delete.collection", "is empty"},
      {write("books", ""), kName, "writes[0].delete.id", "is empty"},
      {write(long_name, "x"), kName, "writes[0].delete.collection", "at most 256"},
      {write("books", long_name), kName, "writes[0].delete.id", "at most 256"},
      {write("a\\nb", "x"), kName, "writes[0].delete.collection", "control character"},
      {write("books", "a\\u0000b"), kName, "writes[0].delete.id", "control character"},
      {Of(Create(R"("content": {"json": {}})")), kName, "writes[0].create.id", "is empty"},
      {Of(Update("moby") + "," + Update("")), kName, "writes[1].update.id", "is empty"},
      {Of(R"({"restore": {"collection": "books", "version": 1}})"), kName, "writes[0].restore.id",
       "is empty"},
      {read("", "x"), kName, "reads[0].collection", "is empty"},
      {read("books", ""), kName, "reads[0].id", "is empty"},
      {read("books", long_name), kName, "reads[0].id", "at most 256"},
      {read("a\\u007f", "x"), kName, "reads[0].collection", "control character"},
      {enroll(R"("class_name": "c", "sequence_number": 1)"), kName, "writes[0].enroll.student_id",
       "is empty"},
      {enroll(R"("student_id": "s", "sequence_number": 1)"), kName, "writes[0].enroll.class_name",
       "is empty"},
      {enroll(R"("student_id": "s", "class_name": "c")"), kField,
       "writes[0].enroll.sequence_number", "at least 1"},
      {enroll(R"("student_id": "s", "class_name": "c", "sequence_number": 1, "set": "a b")"),
       kField, "writes[0].enroll.set", ""},
      // writes[0].delete.id = "\xC3("
      {std::string("\x0A\x0D\x1A\x0B\x0A\x05"
                   "books"
                   "\x12\x02\xC3(",
                   15),
       ErrorReason::kInvalidMessage, "", "not a strata.v1.CommitRequest", "Commit", true},
  });
}

TEST_P(TransactionInput, PartsAreCheckedAsTheirOwnCallsWould) {
  Check({
      {Of(Create(R"("id": "x")")), kField, "writes[0].create.content", "json or bson"},
      {Of(Create(R"("id": "x", "content": {"json": {"a": {"$numberLong": "x"}}})")),
       ErrorReason::kInvalidContent, "writes[0].create.content", "$numberLong"},
      {Of(R"({"update": {"collection": "books", "id": "moby"}})"), kField,
       "writes[0].update.new_content", "replace or patch"},
      {Of(Update("emma") + "," + Patch(R"({"path": "stock", "set": 1})")),
       ErrorReason::kInvalidPath, "writes[1].update.patch.operations[0].path", "JSON Pointer"},
      {Of(Patch(R"({"path": "/stock"})")), kField, "writes[0].update.patch.operations[0]",
       "has no operation"},
      {Of(Update("moby", R"("precondition": {"filter": {"stock": {"$gte2": 1}}})")),
       ErrorReason::kInvalidFilter, "writes[0].update.precondition.filter", "$gte2"},
      {Of(Update("moby", R"("precondition": {"version": -1})")), kField,
       "writes[0].update.precondition.version", "negative"},
      {Of(R"({"restore": {"collection": "books", "id": "moby"}})"), kField,
       "writes[0].restore.version", "from 1"},
      {Of(R"({"restore": {"collection": "books", "id": "moby", "version": -3}})"), kField,
       "writes[0].restore.version", "from 1"},
      {Of(Update("moby"), R"("reads": [)" + Read("emma", "-1") + "]"), kField, "reads[0].version",
       "negative"},
      {Of(Update("moby", R"("change": {"reason": ")" + std::string(1025, 'x') + R"("})")), kField,
       "writes[0].update.change.reason", "1024"},
  });
}

// What is refused when it meets what is stored.
TEST_P(TransactionInput, IsRefusedAsAWholeForAnyPart) {
  const std::string stale = R"("precondition": {"version": 9})";
  const std::string matches_none = R"("precondition": {"filter": {"stock": 99}})";
  const std::string large =
      R"("patch": {"merge": {"json": {"t": ")" + std::string(1'048'550, 'x') + R"("}}})";
  Check({
      {Of(Update("moby", stale) + "," + Update("emma") + "," + Update("walden")), kConflict,
       "writes[0].precondition", "version is 1, not 9"},
      {Of(Update("moby") + "," + Update("emma", stale) + "," + Update("walden")), kConflict,
       "writes[1].precondition", "version is 1, not 9"},
      {Of(Update("moby") + "," + Update("emma") + "," + Update("walden", stale)), kConflict,
       "writes[2].precondition", "version is 1, not 9"},
      {Of(Update("moby") + "," + Update("emma", R"("precondition": {"exists": false})")), kConflict,
       "writes[1].precondition", ""},
      {Of(Update("moby") + "," + Update("emma", matches_none)), ErrorReason::kFilterNotMatched,
       "writes[1].precondition", "does not match"},
      {Of(Update("moby"), R"("reads": [)" + Read("emma", "1") + "," + Read("walden", "7") + "]"),
       kConflict, "reads[1].version", "version is 1, not 7"},
      {Of(Update("moby"), R"("reads": [)" + Read("emma", "0") + "]"), kConflict, "reads[0].version",
       "version is 1, not 0"},
      {Of(Update("moby") + "," + Create(R"("id": "emma", "content": {"json": {}})")),
       ErrorReason::kDocumentExists, "writes[1]", "exists"},
      {Of(Update("moby") + "," + Update("none")), ErrorReason::kDocumentNotFound, "writes[1]",
       "no such document"},
      {Of(Update("moby") + "," + Update("gone")), ErrorReason::kDocumentDeleted, "writes[1]",
       "deleted"},
      {Of(Update("moby") + R"(, {"delete": {"collection": "books", "id": "gone"}})"),
       ErrorReason::kDocumentDeleted, "writes[1]", "deleted"},
      {Of(Update("moby") + R"(, {"restore": {"collection": "books", "id": "emma", "version": 5}})"),
       ErrorReason::kVersionNotFound, "writes[1]", "no version 5"},
      {Of(Update("emma") + "," + Patch(R"({"path": "/title", "increment": 1})")),
       ErrorReason::kInvalidPatch, "writes[1].update.patch.operations[0]", "/title"},
      {Of(Update("emma") + R"(, {"update": {"collection": "books", "id": "moby", )" + large + "}}"),
       ErrorReason::kDocumentTooLarge, "writes[1].update.patch", "1048576"},
      {Of(Update("moby") +
          R"(, {"enroll": {"student_id": "odd", "class_name": "c", "sequence_number": 1}})"),
       ErrorReason::kEnrollmentShape, "writes[1]", ""},
      {Of(Update("moby") + R"(, {"delete": {"collection": "nowhere", "id": "x"}})"),
       ErrorReason::kCollectionNotFound, "writes[1]", ""},
  });
}

TEST_P(TransactionInput, OfReadsAndIdsIsRefusedByName) {
  const auto documents = [](const std::string& list) { return R"({"documents": [)" + list + "]}"; };
  const std::string moby = R"({"collection": "books", "id": "moby"})";
  Check({
      {"{}", kField, "documents", "1 to 1000", "Read"},
      {documents(Numbered(1001, R"({"collection": "books", "id": "#"})")), kField, "documents",
       "has 1001 elements, at most 1000", "Read"},
      {documents(moby + R"(, {"collection": "books", "id": "emma"}, )" + moby), kField,
       "documents[2]", "the same as documents[0]", "Read"},
      {documents(R"({"id": "x"})"), kName, "documents[0].collection", "is empty", "Read"},
      {documents(moby + R"(, {"collection": "books"})"), kName, "documents[1].id", "is empty",
       "Read"},
      {documents(moby + R"(], "encoding": 9, "documents": [)" + moby), kField, "encoding", "is 9",
       "Read"},
      {documents(R"({"collection": "books", "id": ")" + std::string(257, 'x') + R"("})"), kName,
       "documents[0].id", "at most 256", "Read"},
      {documents(R"({"collection": "books", "id": "a\u0000b"})"), kName, "documents[0].id",
       "control character", "Read"},
      {documents(R"({"collection": ")" + std::string(100'000, 'c') + R"(", "id": "x"})"), kName,
       "documents[0].collection", "at most 256", "Read"},
      {"{}", kField, "id", "must be", "GetTransaction"},
      {R"({"id": "a\u0000b"})", kField, "id", "printable ASCII", "GetTransaction"},
      {R"({"id": "z\u00fcrich"})", kField, "id", "printable ASCII", "ResumeTransaction"},
      {R"({"id": ")" + std::string(158, 'x') + R"("})", kField, "id", "1 to 157 bytes",
       "CancelTransaction"},
      {R"({"id": ")" + std::string(144, 'x') + R"("})", ErrorReason::kTransactionNotFound, "",
       "no such transaction", "CancelTransaction"},
      {R"({"id": "a b"})", kField, "id", "printable ASCII", "CancelTransaction"},
      {R"({"id": ")" + std::string(1000, 'x') + R"("})", kField, "id", "", "ResumeTransaction"},
      {R"({"id": "none"})", ErrorReason::kTransactionNotFound, "", "no such transaction",
       "GetTransaction"},
      {R"({"id": "none"})", ErrorReason::kTransactionNotFound, "", "no such transaction",
       "CancelTransaction"},
      {R"({"id": "none"})", ErrorReason::kTransactionNotFound, "", "no such transaction",
       "ResumeTransaction"},
      {R"({"page_size": -1})", kField, "page_size", "1 to 1000", "ListTransactions"},
      {R"({"page_size": 1001})", kField, "page_size", "1 to 1000", "ListTransactions"},
      {R"({"page_token": "x"})", ErrorReason::kInvalidPageToken, "page_token", "",
       "ListTransactions"},
      {R"({"page_token": ")" + std::string(100'000, 'A') + R"("})", ErrorReason::kInvalidPageToken,
       "page_token", "", "ListTransactions"},
      {R"({"page_token": "\u0000\u0000"})", ErrorReason::kInvalidPageToken, "page_token", "",
       "ListTransactions"},
      {R"({"page_size": 2147483647})", kField, "page_size", "1 to 1000", "ListTransactions"},
      {R"({"status": 9})", kField, "status", "is 9", "ListTransactions"},
      {R"({"status": -1})", kField, "status", "is -1", "ListTransactions"},
  });
}

// Of one that is there: who cancels and why is checked before anything is done about it.
TEST_P(TransactionInput, OfACancellationIsAsOfAnyChange) {
  Must(server_.Commit(Of(Update("moby"), R"("request_id": "t1")")));
  Must(server_.ResumeTransaction(R"({"id": "t1"})"));
  before_ = HashOfAll(store_);
  const auto cancel = [](const std::string& change) {
    return R"({"id": "t1", "change": {)" + change + "}}";
  };
  Check({
      {cancel(R"("actor": ")" + std::string(257, 'x') + R"(")"), kField, "change.actor", "256",
       "CancelTransaction"},
      {cancel(R"("reason": ")" + std::string(1025, 'x') + R"(")"), kField, "change.reason", "1024",
       "CancelTransaction"},
      {cancel(R"("labels": {"": "x"})"), kField, "change.labels", "", "CancelTransaction"},
      {cancel(R"("reason": "late")"), ErrorReason::kTransactionApplied, "", "taken effect",
       "CancelTransaction"},
  });
}

class TransactionInputOfOneRecord : public TransactionTable {
 protected:
  TransactionInputOfOneRecord() : TransactionTable(Engine(/*single_record=*/true)) {}
};

TEST_F(TransactionInputOfOneRecord, OneCommitIsNotToBeHad) {
  const ErrorReason unsupported = ErrorReason::kUnsupportedByEngine;
  Check({
      {Of(Update("moby") + "," + Update("emma"), R"("mode": "TRANSACTION_MODE_ONE_COMMIT")"),
       unsupported, "", "several records at once"},
      {Of(Update("moby"), R"("mode": "TRANSACTION_MODE_ONE_COMMIT", "request_id": "r")"),
       unsupported, "", "several records at once"},
      {Of(Numbered(21, Update("n#"))), kField, "writes", "20"},
      {Of(Update("moby"), R"("reads": [)" + Numbered(20, Read("n#", "0")) + "]"), kField, "reads",
       "20"},
      {Of(Update("moby"),
          R"("reads": [{"collection": "nowhere", "id": "x"}], "validate_only": true)"),
       ErrorReason::kCollectionNotFound, "reads[0]", ""},
  });
}

TEST(TransactionsOfAServer, ThatMakesNoCollectionsGoIntoThoseThatAreThere) {
  app::ServerOptions options = TestOptions();
  options.create_collections = false;
  auto owned = *engines::OpenEngine("memory", engines::OpenOptions());
  const store::Store& store = *owned;
  TestServer server(options, std::move(owned));
  ASSERT_TRUE(server.CreateCollection(R"({"name": "books"})").ok());
  const document::Hash before = HashOfAll(store);
  const auto refused = server.Commit(R"({"writes": [
      {"create": {"collection": "books", "id": "a", "content": {"json": {}}}},
      {"create": {"collection": "nowhere", "id": "a", "content": {"json": {}}}}]})");
  EXPECT_EQ(refused.details().reason, "COLLECTION_NOT_FOUND");
  EXPECT_EQ(refused.details().field(), "writes[1]");
  EXPECT_TRUE(HashOfAll(store) == before);
}

}  // namespace
}  // namespace strata::rpc_test
