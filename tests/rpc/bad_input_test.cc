// Bad input over all RPCs: each row says what is called, which reason and field the answer must
// name, and what it must say to the one who has to correct it. After each, what is stored is as it
// was.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include "service/engines/engines.h"
#include "strata/v1/enrollment_service.pb.h"
#include "tests/rpc/stored.h"
#include "tests/rpc/test_server.h"

namespace strata::rpc_test {
namespace {

using testing::HasSubstr;

struct Row {
  std::string method;  // "Get", or "CollectionService/GetCollection"
  std::string request;
  ErrorReason reason;
  std::string field;
  std::string says;  // in the message: the value's problem, the limit, or what to do instead
  bool raw = false;  // `request` is bytes on the wire, not JSON
};
using Rows = std::vector<Row>;

constexpr ErrorReason kName = ErrorReason::kInvalidName;
constexpr ErrorReason kPath = ErrorReason::kInvalidPath;
constexpr ErrorReason kPatch = ErrorReason::kInvalidPatch;
constexpr ErrorReason kContent = ErrorReason::kInvalidContent;
constexpr ErrorReason kFilter = ErrorReason::kInvalidFilter;
constexpr ErrorReason kToken = ErrorReason::kInvalidPageToken;
constexpr ErrorReason kField = ErrorReason::kInvalidField;
constexpr ErrorReason kMessage = ErrorReason::kInvalidMessage;
constexpr ErrorReason kTooLarge = ErrorReason::kDocumentTooLarge;

std::string Text(size_t size) { return std::string(size, 'x'); }
std::string Quoted(const std::string& text) { return '"' + text + '"'; }
// `count` times `item`, with commas between.
std::string Repeated(int count, const std::string& item) {
  std::string all;
  for (int i = 0; i < count; ++i) all += (i == 0 ? "" : ",") + item;
  return all;
}
// As Repeated, each with its number in place of "#".
std::string Numbered(int count, const std::string& item) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    std::string one = item;
    one.replace(one.find('#'), 1, std::to_string(i));
    all += (i == 0 ? "" : ",") + one;
  }
  return all;
}
std::string Nested(int levels, std::string inside) {
  for (int i = 0; i < levels; ++i) inside = R"({"a": )" + inside + "}";
  return inside;
}

std::string Moby(const std::string& rest) {
  return R"({"collection": "books", "id": "moby")" + (rest.empty() ? "" : ", " + rest) + "}";
}
std::string Books(const std::string& rest) {
  return R"({"collection": "books")" + (rest.empty() ? "" : ", " + rest) + "}";
}
std::string CreateJson(const std::string& json) {
  return Books(R"("content": {"json": )" + json + "}");
}
std::string PatchWith(const std::string& operation) {
  return Moby(R"("patch": {"operations": [{"path": "/stock", "increment": 1}, )" + operation +
              "]}");
}

// A request with what JSON cannot say.
template <typename Request, typename Change>
std::string Bytes(const std::string& json, Change&& change) {
  auto request = Parse<Request>(json);
  change(request);
  return request.SerializeAsString();
}

// BSON by hand.
std::string Int(int32_t number) {
  std::string bytes(4, '\0');
  for (size_t i = 0; i < 4; ++i)
    bytes[i] = static_cast<char>(static_cast<uint32_t>(number) >> (8 * i));
  return bytes;
}
std::string Element(int type, const std::string& name, const std::string& value) {
  return static_cast<char>(type) + name + '\0' + value;
}
std::string Document(const std::string& elements) {
  return Int(static_cast<int32_t>(elements.size()) + 5) + elements + '\0';
}
std::string String(const std::string& text) {
  return Int(static_cast<int32_t>(text.size()) + 1) + text + '\0';
}
std::string Double(double number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof number);
}
std::string CreateBson(const std::string& bson) {
  return Bytes<v1::CreateRequest>(R"({"collection": "books"})", [&](v1::CreateRequest& request) {
    request.mutable_content()->set_bson(bson);
  });
}

class BadInput : public testing::Test {
 protected:
  BadInput() : BadInput(*engines::OpenEngine("memory", engines::OpenOptions())) {
    Must(server_.Create(R"({"collection": "books", "id": "moby", "request_id": "first",
        "content": {"json": {"title": "Moby", "stock": 3, "list": [1],
                             "most": {"$numberLong": "9223372036854775807"}}}})"));
    Must(server_.Update(R"({"collection": "books", "id": "moby",
        "patch": {"operations": [{"path": "/stock", "set": 2}]}})"));
    Must(server_.Create(R"({"collection": "books", "id": "gone", "content": {"json": {}}})"));
    Must(server_.Delete(R"({"collection": "books", "id": "gone"})"));
  }
  ~BadInput() override {
    std::printf("bad input:");
    for (const auto& [method, count] : counts_) std::printf(" %s %d,", method.c_str(), count);
    std::printf(" together %d\n", cases_);
  }

  void Check(const Rows& rows) {
    for (const Row& row : rows) CheckRow(row);
  }

  void CheckRow(const Row& row) {
    const bool document = row.method.find('/') == std::string::npos;
    const std::string method =
        (document ? "strata.v1.DocumentService/" : "strata.v1.") + row.method;
    SCOPED_TRACE(method + " " + (row.raw ? "(bytes)" : row.request.substr(0, 200)));
    const grpc::Status status =
        row.raw ? server_.CallRaw(method, row.request) : server_.CallByName(method, row.request);
    const Details details = DetailsOf(status);
    EXPECT_EQ(details.reason, ReasonName(row.reason)) << status.error_message();
    EXPECT_EQ(status.error_code(), static_cast<grpc::StatusCode>(ReasonCode(row.reason)));
    EXPECT_EQ(details.field(), row.field) << status.error_message();
    EXPECT_EQ(details.violation_field,
              status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ? row.field : "");
    EXPECT_THAT(status.error_message(), HasSubstr(row.says));
    EXPECT_EQ(Stored(), before_) << "something was written";
    ++cases_;
    ++counts_[row.method.substr(row.method.find('/') + 1)];
  }

  template <typename Response>
  void Must(const Outcome<Response>& outcome) {
    ASSERT_TRUE(outcome.ok()) << outcome.status.error_message();
    before_ = Stored();
  }

  TestServer& server() { return server_; }

 private:
  explicit BadInput(std::unique_ptr<store::Store> store)
      : store_(*store), server_(TestOptions(), std::move(store)) {}

  document::Hash Stored() const { return HashOfAll(store_); }

  store::Store& store_;  // the server's
  TestServer server_;
  document::Hash before_{};
  int cases_ = 0;
  std::map<std::string, int> counts_;
};

TEST_F(BadInput, Names) {
  const std::string long_name = Text(257);
  const std::string no_utf8("\x0A\x02\xC3\x28", 4);  // collection = "\xC3("
  Check({
      {"Get", R"({"id": "x"})", kName, "collection", "is empty"},
      {"Get", Books(""), kName, "id", "is empty"},
      {"Get", Books(R"("id": )" + Quoted(long_name)), kName, "id", "257 bytes, at most 256"},
      {"Get", R"({"collection": "a\nb", "id": "x"})", kName, "collection",
       "control character at byte 1"},
      {"Get", R"({"collection": "a\u0085b", "id": "x"})", kName, "collection", "control character"},
      {"Get", R"({"collection": "books", "id": "\u007f"})", kName, "id", "control character"},
      {"Get", no_utf8, kMessage, "", "not a strata.v1.GetRequest", true},
      {"Create", R"({"content": {"json": {}}})", kName, "collection", "is empty"},
      {"Create", R"({"collection": "books", "id": "a\u0000b", "content": {"json": {}}})", kName,
       "id", "control character at byte 1"},
      {"Update", Books(R"("patch": {})"), kName, "id", "is empty"},
      {"Delete", Books(""), kName, "id", "is empty"},
      {"Restore", Books(R"("version": 1)"), kName, "id", "is empty"},
      {"History", Books(""), kName, "id", "is empty"},
      {"Diff", Books(R"("from_version": 1)"), kName, "id", "is empty"},
      {"List", "{}", kName, "collection", "is empty"},
      {"BatchGet", Books(R"("ids": ["a", ""])"), kName, "ids[1]", "is empty"},
      {"Audit", R"({"collection": )" + Quoted(long_name) + "}", kName, "collection", "at most 256"},
      {"CollectionService/CreateCollection", "{}", kName, "name", "is empty"},
      {"CollectionService/CreateCollection", R"({"name": )" + Quoted(long_name) + "}", kName,
       "name", "at most 256"},
      {"CollectionService/GetCollection", "{}", kName, "name", "is empty"},
      {"CollectionService/DeleteCollection", R"({"name": "a\tb"})", kName, "name",
       "control character"},
  });
}

TEST_F(BadInput, Paths) {
  const std::string deep = "\"" + Repeated(65, "/a") + "\"";
  std::string no_commas;
  for (const char c : deep) no_commas += c == ',' ? "" : std::string(1, c);
  Check({
      {"Get", Moby(R"("fields": ["/a", "b"])"), kPath, "fields[1]", "does not begin with \"/\""},
      {"Get", Moby(R"("fields": ["/~2"])"), kPath, "fields[0]", "~0"},
      {"Get", Moby(R"("fields": ["/a~"])"), kPath, "fields[0]", "~1"},
      {"Get", Moby(R"("fields": [)" + no_commas + "]"), kPath, "fields[0]",
       "more than 64 segments"},
      {"Get", Moby(R"("fields": ["/a\u0000"])"), kPath, "fields[0]", "zero byte"},
      {"List", Books(R"("fields": ["a.b"])"), kPath, "fields[0]", "JSON Pointer"},
      {"BatchGet", Books(R"("ids": ["a"], "fields": ["x"])"), kPath, "fields[0]", "JSON Pointer"},
      {"Update", PatchWith(R"({"path": "stock", "set": 1})"), kPath, "patch.operations[1].path",
       "JSON Pointer"},
      {"Get", Moby(R"("fields": [)" + Repeated(101, R"("/a")") + "]"), kField, "fields",
       "has 101 elements, at most 100"},
  });
}

TEST_F(BadInput, ContentsInJson) {
  const auto number = [](double value) {
    return Bytes<v1::CreateRequest>(
        R"({"collection": "books", "content": {"json": {"n": 0}}})",
        [&](v1::CreateRequest& request) {
          (*request.mutable_content()->mutable_json()->mutable_fields())["n"].set_number_value(
              value);
        });
  };
  const double infinity = std::numeric_limits<double>::infinity();
  Rows rows = {
      {"Create", Books(""), kField, "content", "is required: json or bson"},
      {"Create", Books(R"("content": {})"), kField, "content", "is required: json or bson"},
      {"Create", number(std::nan("")), kContent, "content", "NaN", true},
      {"Create", number(infinity), kContent, "content", "infinite", true},
      {"Create", number(-infinity), kContent, "content", "infinite", true},
      {"Create", CreateJson(R"({"n": 9007199254740992})"), kContent, "content", "$numberLong"},
      {"Create", CreateJson(R"({"n": -9007199254740993})"), kContent, "content", "$numberDouble"},
      {"Create", CreateJson(R"({"a": {"b": [1e300]}})"), kContent, "content", "/a/b/0"},
      {"Create", CreateJson(R"({"$date": "2026-01-31T12:00:00Z"})"), kContent, "content",
       "member of its own"},
      {"Create", CreateJson(Nested(25, "1")), kContent, "content", "24"},
      {"Create", CreateJson(R"({"a": [)" + Repeated(50'001, "1") + "]}"), kContent, "content",
       "50000"},
      {"Create", CreateJson(R"({"a\u0000b": 1})"), kContent, "content", "zero byte"},
      {"Create", CreateJson(R"({"a": )" + Quoted(Text(1 << 20)) + "}"), kTooLarge, "content",
       "1048576"},
      {"Update", Moby(R"("replace": {"json": {"a": )" + Quoted(Text(1 << 20)) + "}}"), kTooLarge,
       "replace", "1048576"},
      {"Update", Moby(R"("replace": {})"), kField, "replace", "is required: json or bson"},
      {"Create",
       Bytes<v1::CreateRequest>(CreateJson("{}"),
                                [](v1::CreateRequest& request) {
                                  auto& fields =
                                      *request.mutable_content()->mutable_json()->mutable_fields();
                                  fields["nothing"] = google::protobuf::Value();
                                }),
       kContent, "content", "nothing", true},
  };
  // Each wrapper, wrong in one way: the answer shows the right form.
  const std::pair<const char*, const char*> wrappers[] = {
      {R"({"$oid": "123"})", "24 hex digits"},
      {R"({"$oid": 5})", "24 hex digits"},
      {R"({"$oid": "507f1f77bcf86cd799439011", "x": 1})", "$oid"},
      {R"({"$date": "yesterday"})", "2026-01-31T12:00:00.000Z"},
      {R"({"$date": {"$numberLong": "x"}})", "$date"},
      {R"({"$date": 0})", "$date"},
      {R"({"$numberInt": "2147483648"})", "32 bits"},
      {R"({"$numberInt": 1})", "32 bits"},
      {R"({"$numberLong": "9223372036854775808"})", "64 bits"},
      {R"({"$numberLong": "1.5"})", "64 bits"},
      {R"({"$numberLong": ""})", "64 bits"},
      {R"({"$numberDouble": "-Infinity"})", "is NaN or infinite"},
      {R"({"$numberDouble": "NaN"})", "is NaN or infinite"},
      {R"({"$numberDouble": "1e999"})", "a finite number"},
      {R"({"$numberDecimal": "NaN"})", "is NaN or infinite"},
      {R"({"$numberDecimal": "1234567890123456789012345678901234567890"})", "34 digits"},
      {R"({"$binary": {"base64": "AA=="}})", "subType"},
      {R"({"$binary": {"base64": "A", "subType": "00"}})", "base64"},
      {R"({"$binary": {"base64": "AA==", "subType": "zz"}})", "2 hex digits"},
      {R"({"$uuid": "not a uuid"})", "8-4-4-4-12"},
      {R"({"$regularExpression": {"pattern": "a"}})", "options"},
      {R"({"$regularExpression": {"pattern": "a\u0000", "options": ""}})", "pattern"},
      {R"({"$regularExpression": {"pattern": "a", "options": "xi"}})", "ilmsux"},
      {R"({"$timestamp": {"t": -1, "i": 0}})", "32 bits"},
      {R"({"$timestamp": {"t": 1}})", "increment"},
      {R"({"$minKey": 2})", "$minKey"},
      {R"({"$maxKey": true})", "$maxKey"},
  };
  for (const auto& [wrapper, says] : wrappers) {
    rows.push_back({"Create", CreateJson(R"({"w": )" + std::string(wrapper) + "}"), kContent,
                    "content", says});
  }
  Check(rows);
}

TEST_F(BadInput, ContentsInBson) {
  const auto one = [](int type, const std::string& value) {
    return CreateBson(Document(Element(type, "a", value)));
  };
  const std::string nothing = Document("");
  std::string deep = nothing;
  for (int i = 0; i < 24; ++i) deep = Document(Element(3, "a", deep));
  std::string many;
  for (int i = 0; i < 50'001; ++i) many += Element(10, "n" + std::to_string(i), "");
  const std::string decimal_nan = std::string(15, '\0') + '\x7C';
  const std::string oid_number = Document(Element(16, "$oid", Int(1)));
  Check({
      {"Create", CreateBson("abc"), kContent, "content", "5 bytes", true},
      {"Create", CreateBson(nothing + "x"), kContent, "content", "another length", true},
      {"Create", CreateBson(Int(5) + "x"), kContent, "content", "zero byte", true},
      {"Create", CreateBson(Document("\x10no name ends")), kContent, "content", "does not end",
       true},
      {"Create", one(6, ""), kContent, "content", "deprecated", true},
      {"Create", one(12, String("x") + Text(12)), kContent, "content", "deprecated", true},
      {"Create", one(13, String("x")), kContent, "content", "deprecated", true},
      {"Create", one(14, String("x")), kContent, "content", "deprecated", true},
      {"Create", one(15, Int(4)), kContent, "content", "deprecated", true},
      {"Create", one(0x20, ""), kContent, "content", "unknown", true},
      {"Create", one(8, "\x02"), kContent, "content", "neither 0 nor 1", true},
      {"Create", one(2, String("\xC3\x28")), kContent, "content", "not UTF-8", true},
      {"Create", one(2, Int(100) + "x"), kContent, "content", "room", true},
      {"Create", one(2, Int(2) + "xy"), kContent, "content", "zero byte", true},
      {"Create", CreateBson(Document(Element(10, "\xC3\x28", ""))), kContent, "content", "UTF-8",
       true},
      {"Create", CreateBson(Document(Element(10, "a", "") + Element(16, "a", Int(1)))), kContent,
       "content", "twice", true},
      {"Create", one(4, Document(Element(10, "1", ""))), kContent, "content", "\"0\"", true},
      {"Create", one(4, Document(Element(10, "", ""))), kContent, "content", "\"0\"", true},
      {"Create", one(1, Double(std::nan(""))), kContent, "content", "NaN", true},
      {"Create", one(1, Double(-std::numeric_limits<double>::infinity())), kContent, "content",
       "infinite", true},
      {"Create", one(0x13, decimal_nan), kContent, "content", "NaN", true},
      {"Create", one(5, Int(8) + '\x02' + Int(5) + Text(4)), kContent, "content", "subtype 2",
       true},
      {"Create", one(3, oid_number), kContent, "content", "wrapper", true},
      {"Create", one(0x0B, std::string("a\0xi\0", 5)), kContent, "content", "ilmsux", true},
      {"Create", CreateBson(oid_number), kContent, "content", "member of its own", true},
      {"Create", CreateBson(deep), kContent, "content", "24", true},
      {"Create", CreateBson(Document(many)), kContent, "content", "50000", true},
      {"Create", one(2, String(Text(1 << 20))), kTooLarge, "content", "1048576", true},
  });
}

// One document with a member of every kind, cut at every byte.
TEST_F(BadInput, BsonCutAtEveryByte) {
  const std::string inner =
      Document(Element(2, "b", String("text")) + Element(1, "c", Double(0.5)));
  const std::string whole =
      Document(Element(2, "string", String("text")) + Element(3, "object", inner) +
               Element(4, "array", Document(Element(16, "0", Int(1)) + Element(10, "1", ""))) +
               Element(5, "binary", Int(3) + '\0' + "abc") + Element(7, "oid", Text(12)) +
               Element(8, "bool", "\x01") + Element(9, "date", Text(8)) +
               Element(11, "regex", std::string("p\0i\0", 4)) + Element(17, "timestamp", Text(8)) +
               Element(18, "long", Text(8)) + Element(0xFF, "min", "") + Element(0x7F, "max", ""));
  ASSERT_TRUE(
      server()
          .CallRaw("strata.v1.DocumentService/Create",
                   Bytes<v1::CreateRequest>(R"({"collection": "books", "validate_only": true})",
                                            [&](v1::CreateRequest& request) {
                                              request.mutable_content()->set_bson(whole);
                                            }))
          .ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    // As it is, and with a length that agrees.
    CheckRow({"Create", CreateBson(whole.substr(0, size)), kContent, "content", "", true});
    if (size < 5) continue;
    std::string corrected = whole.substr(0, size);
    corrected.replace(0, 4, Int(static_cast<int32_t>(size)));
    CheckRow({"Create", CreateBson(corrected), kContent, "content", "", true});
  }
}

TEST_F(BadInput, Patches) {
  const std::string at = "patch.operations[1]";
  Check({
      {"Update", Moby(R"("max_attempts": 1)"), kField, "new_content", "replace or patch"},
      {"Update", PatchWith(R"({"path": "/a"})"), kField, at, "increment"},
      {"Update", PatchWith(R"({"path": "/a", "unset": false})"), kField, at + ".unset",
       "true removes"},
      {"Update", PatchWith(R"({"path": "/title", "increment": 1})"), kPatch, at, "/title"},
      {"Update", PatchWith(R"({"path": "/most", "increment": 1})"), kPatch, at, "beyond 64 bits"},
      {"Update", PatchWith(R"({"path": "/stock", "increment": "1"})"), kPatch, at,
       "int32, int64, double or decimal128"},
      {"Update", PatchWith(R"({"path": "/title", "append": [1]})"), kPatch, at, "array"},
      {"Update", PatchWith(R"({"path": "/title", "append_missing": [1]})"), kPatch, at, "array"},
      {"Update", PatchWith(R"({"path": "/title", "remove_all": [1]})"), kPatch, at, "array"},
      {"Update", PatchWith(R"({"path": "/title/x", "set": 1})"), kPatch, at, "/title"},
      {"Update", PatchWith(R"({"path": "/list/5", "set": 1})"), kPatch, at, "/list"},
      {"Update", PatchWith(R"({"path": "/list/x", "set": 1})"), kPatch, at, "index"},
      {"Update", PatchWith(R"({"path": "", "set": 1})"), kPatch, at, "object"},
      {"Update", PatchWith(R"({"path": "", "unset": true})"), kPatch, at, ""},
      {"Update", PatchWith(R"({"path": "/a", "set": {"$oid": 1}})"), kContent, at + ".set",
       "24 hex digits"},
      {"Update", PatchWith(R"({"path": "/a", "append": [9007199254740993]})"), kContent,
       at + ".append", "$numberLong"},
      {"Update", PatchWith(R"({"path": "/1/2/3/4/5", "set": )" + Nested(20, "1") + "}"), kContent,
       "patch", "24"},
      {"Update",
       Moby(R"("patch": {"operations": [)" +
            Numbered(2, R"({"path": "/t#", "set": )" + Quoted(Text(600'000)) + "}") + "]}"),
       kTooLarge, "patch", "1048576"},
      {"Update",
       Moby(R"("patch": {"operations": [)" + Repeated(1001, R"({"path": "/a", "unset": true})") +
            "]}"),
       kField, "patch.operations", "1001 elements, at most 1000"},
      {"Update", Moby(R"("patch": {"merge": {}})"), kField, "patch.merge", "json or bson"},
      {"Update", Moby(R"("patch": {"merge": {"json": {"$date": 1}}})"), kContent, "patch.merge",
       "$date"},
      {"Update", Moby(R"("patch": {"operations": [{"path": "/w", "set": {}},
                                                  {"path": "/w/$date", "set": 1}]})"),
       kContent, "patch", "wrapper"},
  });
}

TEST_F(BadInput, Filters) {
  const auto list = [](const std::string& filter) { return Books(R"("filter": )" + filter); };
  Check({
      {"List", list(R"({"stock": {"$more": 1}})"), kFilter, "filter", "$more"},
      {"List", list(R"({"$where": "true"})"), kFilter, "filter", "$where"},
      {"List", list(R"({"$and": []})"), kFilter, "filter", "$and"},
      {"List", list(R"({"$or": {"a": 1}})"), kFilter, "filter", "$or"},
      {"List", list(R"({"a": {"$in": 1}})"), kFilter, "filter", "$in"},
      {"List", list(R"({"a": {"$size": -1}})"), kFilter, "filter", "$size"},
      {"List", list(R"({"a": {"$type": "text"}})"), kFilter, "filter", "$type"},
      {"List", list(R"({"a": {"$exists": {"b": 1}, "$not": 3}})"), kFilter, "filter", ""},
      {"List", list(R"({"a": {"$regex": "("}})"), kFilter, "filter", "RE2's syntax"},
      {"List", list(R"-({"a": {"$regex": "(?=x)"}})-"), kFilter, "filter", "RE2's syntax"},
      {"List", list(R"({"a": {"$regex": "x", "$options": "q"}})"), kFilter, "filter", "i, m and s"},
      {"List", list(R"({"a": {"$regex": )" + Quoted(Text(1025)) + "}}"), kFilter, "filter", "1024"},
      {"List", list(R"({"a": {"$in": [)" + Repeated(1001, "1") + "]}}"), kFilter, "filter", "1000"},
      {"List", list(R"({"a..b": 1})"), kFilter, "filter", "empty"},
      {"List", list(R"({"/a~2": 1})"), kFilter, "filter", "~"},
      {"List", list(R"({"a": {"$gt": 9007199254740993}})"), kFilter, "filter", "$numberLong"},
      {"List", list(R"({"a": {"$gt": {"$date": "yesterday"}}})"), kFilter, "filter", "$date"},
      {"List", list(R"({"a": )" + Quoted(Text(70'000)) + "}"), kFilter, "filter", "65536"},
      {"History", Moby(R"("filter": {"a": {"$elemMatch": 1}})"), kFilter, "filter", "$elemMatch"},
      {"Update", Moby(R"("patch": {}, "precondition": {"filter": {"a": {"$gte2": 1}}})"), kFilter,
       "precondition.filter", "$gte2"},
      {"Delete", Moby(R"("precondition": {"filter": {"$nor": 1}})"), kFilter, "precondition.filter",
       "$nor"},
  });
}

TEST_F(BadInput, PageTokens) {
  Must(server().Create(R"({"collection": "books", "id": "other", "content": {"json": {}}})"));
  const std::string token =
      server().List(R"({"collection": "books", "page_size": 1})").response.next_page_token();
  const std::string history =
      server()
          .History(R"({"collection": "books", "id": "moby", "page_size": 1})")
          .response.next_page_token();
  Must(server().Create(R"({"collection": "books", "id": "new", "content": {"json": {}}})"));
  Must(server().Update(R"({"collection": "books", "id": "new",
                           "replace": {"json": {"a": 1, "b": 2}}})"));
  const auto new_diff = [](const std::string& rest) {
    return R"({"collection": "books", "id": "new", "from_version": 1, )" + rest + "}";
  };
  const std::string diff = server().Diff(new_diff(R"("page_size": 1)")).response.next_page_token();
  ASSERT_FALSE(token.empty() || history.empty() || diff.empty());
  const auto with = [](const std::string& text) { return R"("page_token": )" + Quoted(text); };
  Check({
      {"List", Books(with("x")), kToken, "page_token", "damaged"},
      {"List", Books(with(token + "A")), kToken, "page_token", "damaged"},
      {"List", Books(with(token.substr(1))), kToken, "page_token", "damaged"},
      {"List", Books(with(history)), kToken, "page_token", "another request"},
      {"List", Books(with(token) + R"(, "show_deleted": true)"), kToken, "page_token",
       "another request"},
      {"List", Books(with(token) + R"(, "filter": {"a": 1})"), kToken, "page_token",
       "another request"},
      {"List", Books(with(token) + R"(, "at_time": "2020-01-01T00:00:00Z")"), kToken, "page_token",
       "another request"},
      {"List", R"({"collection": "films", )" + with(token) + "}", kToken, "page_token",
       "another request"},
      {"History", Moby(with(token)), kToken, "page_token", "another request"},
      {"History", Moby(with(history) + R"(, "oldest_first": true)"), kToken, "page_token",
       "another request"},
      {"Diff", new_diff(with("x")), kToken, "page_token", "damaged"},
      {"Diff", new_diff(with(history)), kToken, "page_token", "another request"},
      {"Diff", new_diff(with(diff) + R"(, "to_version": 2)"), kToken, "page_token",
       "another request"},
      {"Diff", Moby(R"("from_version": 1, )" + with(diff)), kToken, "page_token",
       "another request"},
      {"Audit", Books(with(token)), kToken, "page_token", "another request"},
      {"CollectionService/ListCollections", "{" + with("x") + "}", kToken, "page_token", "damaged"},
      {"EnrollmentService/ListRoster", R"({"class_name": "x", )" + with(token) + "}", kToken,
       "page_token", "another request"},
      {"EnrollmentService/PurgeTombstones", R"({"through_sequence_number": 1, )" + with("x") + "}",
       kToken, "page_token", "damaged"},
  });
}

TEST_F(BadInput, WhoAndWhyAndHow) {
  const std::string content = R"("content": {"json": {}})";
  const auto create = [&](const std::string& rest) { return Books(rest + ", " + content); };
  Check({
      {"Create", create(R"("request_id": "a b")"), kField, "request_id", "printable ASCII"},
      {"Create", create(R"("request_id": "ä")"), kField, "request_id", "printable ASCII"},
      {"Create", create(R"("request_id": )" + Quoted(Text(129))), kField, "request_id", "128"},
      {"Audit", R"({"request_id": "a\nb"})", kField, "request_id", "printable ASCII"},
      {"Audit", R"({"transaction_id": "a\nb"})", kField, "transaction_id", "printable ASCII"},
      {"Audit", R"({"transaction_id": )" + Quoted(Text(158)) + "}", kField, "transaction_id",
       "157"},
      {"Create", Moby(R"("request_id": "first", )" + content), ErrorReason::kRequestIdReused,
       "request_id", "version 1"},
      {"Update", Moby(R"("request_id": "first", "patch": {})"), ErrorReason::kRequestIdReused,
       "request_id", "another request"},
      {"Delete", Moby(R"("request_id": "first")"), ErrorReason::kRequestIdReused, "request_id",
       "another request"},
      {"Restore", Moby(R"("version": 1, "request_id": "first")"), ErrorReason::kRequestIdReused,
       "request_id", "another request"},
      {"Create", create(R"("change": {"actor": )" + Quoted(Text(257)) + "}"), kField,
       "change.actor", "257 bytes, at most 256"},
      {"Update", Moby(R"("patch": {}, "change": {"on_behalf_of": )" + Quoted(Text(257)) + "}"),
       kField, "change.on_behalf_of", "at most 256"},
      {"Delete", Moby(R"("change": {"reason": )" + Quoted(Text(1025)) + "}"), kField,
       "change.reason", "1025 bytes, at most 1024"},
      {"Restore", Moby(R"("version": 1, "change": {"reason": "a\u0000"})"), kField, "change.reason",
       "zero byte"},
      {"Create", create(R"("change": {"labels": {)" + Numbered(33, R"("#": "")") + "}}"), kField,
       "change.labels", "33 entries, at most 32"},
      {"Create", create(R"("change": {"labels": {"": "x"}})"), kField, "change.labels",
       "without a name"},
      {"Create", create(R"("change": {"labels": {"x": )" + Quoted(Text(257)) + "}}"), kField,
       "change.labels", "at most 256"},
      {"Create", create(R"("change": {"labels": {)" + Quoted(Text(129)) + R"(: ""}})"), kField,
       "change.labels", "at most 128"},
      {"Create", create(R"("encoding": 7)"), kField, "encoding", "ENCODING_BSON"},
      {"Get", Moby(R"("encoding": 3)"), kField, "encoding", "ENCODING_BSON"},
      {"Update", Moby(R"("max_attempts": 101, "patch": {})"), kField, "max_attempts", "1 to 100"},
      {"Update", Moby(R"("max_attempts": -1, "patch": {})"), kField, "max_attempts", "1 to 100"},
      {"Update", Moby(R"("precondition": {"version": -1}, "patch": {})"), kField,
       "precondition.version", "negative"},
      {"Delete", Moby(R"("precondition": {"version": -9})"), kField, "precondition.version",
       "negative"},
  });
}

TEST_F(BadInput, NumbersThatHaveToGrow) {
  constexpr ErrorReason kNumber = ErrorReason::kNumberExpected;
  const auto newer = [](const std::string& path, const std::string& rest = R"("patch": {}, )") {
    return Moby(rest + R"("precondition": {"newer": {"path": )" + Quoted(path) +
                R"(, "value": "9223372036854775807"}})");
  };
  const std::string at = "precondition.newer.path";
  const std::string plain = R"("change": {"reason": "x"}, )";
  const std::string label = R"("change": {"labels": {"newer:/stock": "9"}})";
  Check({
      {"Update", newer(""), kPath, at, "names no member"},
      {"Update", newer("stock"), kPath, at, "JSON Pointer"},
      {"Update", newer("/~2"), kPath, at, "~0"},
      {"Update", newer("/" + Text(120)), kPath, at, "at most 120"},
      {"Delete", newer("", plain), kPath, at, "names no member"},
      {"Delete", newer("/" + Text(120), plain), kPath, at, "at most 120"},
      {"Update", newer("/title"), kNumber, "", "/title is no integer in version 2"},
      {"Delete", newer("/title", plain), kNumber, "", "/title is no integer"},
      {"Update", newer("/list"), kNumber, "", "no integer"},
      {"Update", newer("/list/0"), kNumber, "", "through an array"},
      {"Delete", newer("/title/x", plain), kNumber, "", "no object"},
      {"Update", newer("/new/x", R"("replace": {"json": {"new": 1}}, )"), kPath, at, "no object"},
      {"Update", newer("/new/0", R"("replace": {"json": {"new": []}}, )"), kPath, at, "array"},
      {"Update", newer("/$date"), kPath, at, "invalid content"},
      {"Restore", newer("/stock", R"("version": 1, )"), kField, "precondition.newer",
       "Update and Delete"},
      {"Create", Books(R"("content": {"json": {}}, )" + label), kField, "change.labels", "newer:"},
      {"Update", Moby(R"("patch": {}, )" + label), kField, "change.labels", "newer:"},
      {"Delete", Moby(label), kField, "change.labels", "newer:"},
      {"Restore", Moby(R"("version": 1, )" + label), kField, "change.labels", "newer:"},
      {"EnrollmentService/Enroll",
       R"({"student_id": "1", "class_name": "x", "sequence_number": 1, )" + label + "}", kField,
       "change.labels", "newer:"},
  });
}

TEST_F(BadInput, VersionsTimesAndPages) {
  const auto late = [](const std::string& member) {
    return '"' + member + R"(": "9999-01-01T00:00:00Z")";
  };
  const auto nanos = [](auto request, auto* (decltype(request)::*time)()) {
    (request.*time)()->set_nanos(1'000'000'000);
    return request.SerializeAsString();
  };
  const auto seconds = [](auto request, auto* (decltype(request)::*time)(), int64_t value) {
    (request.*time)()->set_seconds(value);
    return request.SerializeAsString();
  };
  const auto get = Parse<v1::GetRequest>(Moby(""));
  const auto list = Parse<v1::ListRequest>(Books(""));
  const auto history = Parse<v1::HistoryRequest>(Moby(""));
  Check({
      {"Get", Moby(R"("version": 0)"), kField, "version", "below 1"},
      {"Get", Moby(R"("version": -1)"), kField, "version", "below 1"},
      {"Get", Moby(late("at_time")), kField, "at_time", "future"},
      {"List", Books(late("at_time")), kField, "at_time", "future"},
      {"Get", Moby(R"("at_position": -1)"), kField, "at_position", "from 1"},
      {"List", Books(R"("at_position": -1)"), kField, "at_position", "from 1"},
      {"List", Books(R"("at_position": 1, "at_time": "2020-01-01T00:00:00Z")"), kField,
       "at_position", "at_time"},
      {"EnrollmentService/ListRoster",
       R"({"collection": "books", "class_name": "x", )" + late("at_time") + "}", kField, "at_time",
       "future"},
      {"Get", nanos(get, &v1::GetRequest::mutable_at_time), kField, "at_time", "9999", true},
      {"Get", seconds(get, &v1::GetRequest::mutable_at_time, int64_t{1} << 50), kField, "at_time",
       "9999", true},
      {"List", seconds(list, &v1::ListRequest::mutable_at_time, -(int64_t{1} << 50)), kField,
       "at_time", "years 1", true},
      {"History", nanos(history, &v1::HistoryRequest::mutable_from_time), kField, "from_time",
       "9999", true},
      {"History", seconds(history, &v1::HistoryRequest::mutable_to_time, int64_t{1} << 60), kField,
       "to_time", "9999", true},
      {"Audit",
       seconds(v1::AuditRequest(), &v1::AuditRequest::mutable_start_time, int64_t{1} << 60), kField,
       "start_time", "9999", true},
      {"Audit", R"({"start_time": "2026-02-01T00:00:00Z", "end_time": "2026-01-01T00:00:00Z"})",
       kField, "start_time", "not before end_time"},
      {"History", Moby(R"("from_version": 0)"), kField, "from_version", "below 1"},
      {"History", Moby(R"("to_version": -5)"), kField, "to_version", "below 1"},
      {"History", Moby(R"("from_version": 2, "to_version": 1)"), kField, "from_version",
       "newer than to_version"},
      {"History", Moby(R"("from_time": "2026-02-01T00:00:00Z", "to_time": "2026-01-01T00:00:00Z")"),
       kField, "from_time", "later than to_time"},
      {"Restore", Moby(""), kField, "version", "1"},
      {"Restore", Moby(R"("version": -1)"), kField, "version", "1"},
      {"Diff", Moby(R"("to_version": 1)"), kField, "from_version", "1"},
      {"Diff", Moby(R"("from_version": 1, "to_version": -1)"), kField, "to_version", ""},
      {"Diff", Moby(R"("from_version": 1, "page_size": 1001)"), kField, "page_size", "1 to 1000"},
      {"Diff", Moby(R"("from_version": 1, "page_size": -1)"), kField, "page_size", "1 to 1000"},
      {"History", Moby(R"("page_size": 1001)"), kField, "page_size", "1 to 1000"},
      {"History", Moby(R"("page_size": -1)"), kField, "page_size", "1 to 1000"},
      {"List", Books(R"("page_size": 5000)"), kField, "page_size", "1 to 1000"},
      {"Audit", R"({"page_size": 2000})", kField, "page_size", "1 to 1000"},
      {"CollectionService/ListCollections", R"({"page_size": -1})", kField, "page_size",
       "1 to 1000"},
      {"EnrollmentService/ListRoster", R"({"class_name": "x", "page_size": 1001})", kField,
       "page_size", "1 to 1000"},
      {"BatchGet", Books(""), kField, "ids", "required"},
      {"BatchGet", Books(R"("ids": [)" + Numbered(1001, R"("#")") + "]"), kField, "ids", "1000"},
      {"BatchGet", Books(R"("ids": ["b", "a", "b"])"), kField, "ids[2]", "the same as ids[0]"},
      {"Audit", R"({"id": "moby"})", kField, "collection", "required with id"},
      {"Audit", R"({"kinds": ["VERSION_KIND_CREATED", "VERSION_KIND_UNSPECIFIED"]})", kField,
       "kinds[1]", "no kind"},
      {"Audit", R"({"kinds": [9]})", kField, "kinds[0]", "no kind"},
  });
}

TEST_F(BadInput, Collections) {
  const std::string create = "CollectionService/CreateCollection";
  const std::string remove = "CollectionService/DeleteCollection";
  Check({
      {create, R"({"name": "n", "strategy": 9})", kField, "strategy", ""},
      {create, R"({"name": "n", "options": {"keyframe_interval": 1001}})", kField,
       "options.keyframe_interval", "1000"},
      {create, R"({"name": "n", "options": {"keyframe_interval": -1}})", kField,
       "options.keyframe_interval", "1"},
      {create, R"({"name": "n", "strategy": 1, "options": {"keyframe_interval": 2}})", kField,
       "options.keyframe_interval", "is for deltas, and not for full-copies"},
      {remove, R"({"name": "books", "force": true, "request_id": "a b"})", kField, "request_id",
       "printable ASCII"},
      {remove, R"({"name": "books", "force": true, "request_id": "a\u0000b"})", kField,
       "request_id", "printable ASCII"},
      {remove, R"({"name": "books", "force": true, "request_id": )" + Quoted(Text(129)) + "}",
       kField, "request_id", "1 to 128 bytes"},
      {remove, R"({"name": "books", "force": true, "incarnation": -1})", kField, "incarnation",
       "is -1, but counts from 1"},
  });
}

TEST_F(BadInput, Enrollments) {
  const auto message = [](const std::string& student, const std::string& class_name,
                          const std::string& rest) {
    return R"({"student_id": )" + Quoted(student) + R"(, "class_name": )" + Quoted(class_name) +
           rest + "}";
  };
  const std::string first = R"(, "sequence_number": 1)";
  Rows rows;
  for (const std::string method : {"EnrollmentService/Enroll", "EnrollmentService/Unenroll"}) {
    for (const Row& row : Rows{
             {method, message("", "CS 101", first), kName, "student_id", "is empty"},
             {method, message(Text(257), "CS 101", first), kName, "student_id", "at most 256"},
             {method, message("1", "", first), kName, "class_name", "is empty"},
             {method, message("1", Text(257), first), kName, "class_name", "at most 256"},
             {method, message("1", "a\\nb", first), kName, "class_name", "control character"},
             {method, message("1", "CS 101", ""), kField, "sequence_number", "at least 1"},
             {method, message("1", "CS 101", R"(, "sequence_number": -3)"), kField,
              "sequence_number", "-3, at least 1"},
             {method, message("1", "CS 101", first + R"(, "set": "a.b")"), kField, "set",
              "letters"},
             {method, message("1", "CS 101", first + R"(, "set": "student_id")"), kField, "set",
              "student_id"},
             {method, message("1", "CS 101", first + R"(, "set": "deleted_classes")"), kField,
              "set", "deleted_"},
             {method, message("1", "CS 101", first + R"(, "collection": "a\tb")"), kName,
              "collection", "control character"},
             {method,
              message("1", "CS 101", first + R"(, "change": {"actor": )" + Quoted(Text(257)) + "}"),
              kField, "change.actor", "at most 256"},
         }) {
      rows.push_back(row);
    }
  }
  rows.push_back({"EnrollmentService/GetEnrollments", "{}", kName, "student_id", "is empty"});
  rows.push_back({"EnrollmentService/GetEnrollments", R"({"student_id": "1", "set": ".."})", kField,
                  "set", "letters"});
  rows.push_back({"EnrollmentService/ListRoster", "{}", kName, "class_name", "is empty"});
  rows.push_back(
      {"EnrollmentService/PurgeTombstones", "{}", kField, "through_sequence_number", "at least 1"});
  Check(rows);
}

TEST_F(BadInput, BytesThatAreNoMessage) {
  Rows rows;
  for (const char* service : {"DocumentService", "CollectionService", "EnrollmentService"}) {
    const auto* const descriptor =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
            std::string("strata.v1.") + service);
    ASSERT_NE(descriptor, nullptr) << service;
    for (int i = 0; i < descriptor->method_count(); ++i) {
      const auto* const method = descriptor->method(i);
      if (method->client_streaming() || method->server_streaming()) continue;
      rows.push_back({std::string(service) + "/" + method->name(), "\x0A\xFF", kMessage, "",
                      "not a " + method->input_type()->full_name(), true});
    }
  }
  Check(rows);
}

}  // namespace
}  // namespace strata::rpc_test
