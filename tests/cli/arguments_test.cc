// Claims about arguments, tables, answers as JSON, refusals and their repetition.
#include "clients/cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "clients/cli/message_json.h"
#include "clients/cli/progress.h"
#include "clients/cli/render.h"
#include "clients/cpp/extended_json.h"
#include "clients/cpp/refusal.h"
#include "google/protobuf/util/json_util.h"
#include "strata/v1/document_service.pb.h"
#include "tests/cli/status_of.h"

namespace strata::cli {
namespace {

using ::testing::HasSubstr;

std::string ValueJson(const std::string& text) {
  const auto value = ValueProto(text);
  return value.ok() ? MessageJson(*value) : "refused";
}

TEST(PathValue, IsSplitAtTheFirstEqualsSign) {
  EXPECT_EQ(SplitPathValue("/a/b=c=d")->path, "/a/b");
  EXPECT_EQ(SplitPathValue("/a/b=c=d")->value, "c=d");
  EXPECT_EQ(SplitPathValue("/a=")->value, "");
  EXPECT_EQ(SplitPathValue("={}")->path, "");
  EXPECT_FALSE(SplitPathValue("/a").ok());
  EXPECT_FALSE(SplitPathValue("a=1").ok());
}

TEST(Value, IsJsonOrElseAString) {
  EXPECT_EQ(ValueJson("2"), "2");
  EXPECT_EQ(ValueJson("\"2\""), "\"2\"");
  EXPECT_EQ(ValueJson("Moby Dick"), "\"Moby Dick\"");
  EXPECT_EQ(ValueJson(""), "\"\"");
  EXPECT_EQ(ValueJson("007"), "\"007\"");
  EXPECT_EQ(ValueJson("\"[draft] one\""), "\"[draft] one\"");
  EXPECT_EQ(ValueJson("null"), "null");
  EXPECT_EQ(ValueJson(R"({"b":[1,true],"a":{}})"), R"({"a":{},"b":[1,true]})");
}

TEST(Value, IsRefusedIfItWasMeantAsJson) {
  EXPECT_EQ(ValueJson("{\"a\":}"), "refused");
  EXPECT_EQ(ValueJson("[1,]"), "refused");
  for (const char* broken : {"{a:1}", "{", "[1,2", "[draft] one", "\"open", "\""}) {
    EXPECT_EQ(ValueJson(broken), "refused") << broken;
  }
  EXPECT_EQ(ValueJson("9223372036854775808"), "refused");
  EXPECT_EQ(ValueJson("\xff"), "refused");
}

TEST(Value, LosesNoNumber) {
  EXPECT_EQ(ValueJson("9007199254740993"), R"({"$numberLong":"9007199254740993"})");
  // The server refuses a plain one, since it is what the number above is rounded to.
  EXPECT_EQ(ValueJson("9007199254740992"), R"({"$numberLong":"9007199254740992"})");
  EXPECT_EQ(ValueJson("-9007199254740992"), R"({"$numberLong":"-9007199254740992"})");
  EXPECT_EQ(ValueJson("1.0"), R"({"$numberDouble":"1.0"})");
  EXPECT_EQ(ValueJson("0.1"), "0.1");
}

TEST(Condition, IsAFilterInShortFormOrInBraces) {
  const auto filter = [](const std::string& text) {
    const auto parsed = FilterProto(text);
    if (!parsed.ok()) return std::string("refused");
    google::protobuf::Value value;
    *value.mutable_struct_value() = *parsed;
    return MessageJson(value);
  };
  EXPECT_EQ(filter("stock>0"), R"({"stock":{"$gt":0}})");
  EXPECT_EQ(filter("stock>=0"), R"({"stock":{"$gte":0}})");
  EXPECT_EQ(filter("stock<-1.5"), R"({"stock":{"$lt":-1.5}})");
  EXPECT_EQ(filter("stock<=9"), R"({"stock":{"$lte":9}})");
  EXPECT_EQ(filter("title=Moby Dick"), R"({"title":{"$eq":"Moby Dick"}})");
  EXPECT_EQ(filter("title==x"), R"({"title":{"$eq":"x"}})");
  EXPECT_EQ(filter("title=a=b"), R"({"title":{"$eq":"a=b"}})");
  EXPECT_EQ(filter("/a.b/18.6!=null"), R"({"/a.b/18.6":{"$ne":null}})");
  EXPECT_EQ(filter("n=9007199254740993"), R"({"n":{"$eq":{"$numberLong":"9007199254740993"}}})");
  EXPECT_EQ(filter("size={\"$gt\":1}"), R"({"size":{"$eq":{"$gt":1}}})");
  EXPECT_EQ(filter("title~^Mo=b"), R"({"title":{"$regex":"^Mo=b"}})");
  EXPECT_EQ(filter("stock > 0"), R"({"stock":{"$gt":0}})");
  EXPECT_EQ(filter("  stock  >=  0 "), R"({"stock":{"$gte":0}})");
  EXPECT_EQ(filter("title = Moby Dick"), R"({"title":{"$eq":"Moby Dick"}})");
  EXPECT_EQ(filter("title = \" x\""), R"({"title":{"$eq":" x"}})");
  EXPECT_EQ(filter("first name != x"), R"({"first name":{"$ne":"x"}})");
  EXPECT_EQ(filter("title ~ ^Mo"), R"({"title":{"$regex":"^Mo"}})");
  EXPECT_EQ(filter(" isbn "), R"({"isbn":{"$exists":true}})");
  EXPECT_EQ(filter("! isbn"), R"({"isbn":{"$exists":false}})");
  EXPECT_EQ(filter("isbn"), R"({"isbn":{"$exists":true}})");
  EXPECT_EQ(filter("!isbn"), R"({"isbn":{"$exists":false}})");
  EXPECT_EQ(filter(R"( {"stock": {"$in": [1, 2]}})"), R"({"stock":{"$in":[1,2]}})");
  EXPECT_EQ(filter("tag="), R"({"tag":{"$eq":""}})");
  EXPECT_EQ(filter("tag=\"<b>\""), R"({"tag":{"$eq":"<b>"}})");
  EXPECT_EQ(filter("title~=b"), R"({"title":{"$regex":"=b"}})");
  for (const char* wrong :
       {"",      "!",     ">1",       "!a=1",  "a!1",  "$gt=1", " ",    "stock > = 3",
        " > 1",  "{",     "{\"a\":}", "\xff",  "a<>1", "a=<1",  "a=>1", "a=~b",
        "a===1", "a!==1", "a>>1",     "a<=>1", "a<!1", "a > <1"}) {
    EXPECT_EQ(filter(wrong), "refused") << wrong;
  }
  EXPECT_THAT(FilterProto("v<>1").status().message(), HasSubstr("there is no operator <>"));
}

TEST(Increment, TakesNumbersOnly) {
  EXPECT_TRUE(NumberProto("-1").ok());
  EXPECT_TRUE(NumberProto("9007199254740993").ok());
  EXPECT_FALSE(NumberProto("one").ok());
  EXPECT_FALSE(NumberProto("\"1\"").ok());
  EXPECT_FALSE(NumberProto("{}").ok());
}

TEST(Names, AreTheEnumsInLowerCaseWithHyphens) {
  EXPECT_EQ(StrategyName(v1::STRATEGY_FULL_COPIES), "full-copies");
  EXPECT_EQ(ParseStrategy("shadow-collection").value(), v1::STRATEGY_SHADOW_COLLECTION);
  EXPECT_FALSE(ParseStrategy("unspecified").ok());
  EXPECT_FALSE(ParseStrategy("FULL_COPIES").ok());
  EXPECT_EQ(ParseKind("deleted").value(), v1::VERSION_KIND_DELETED);
  EXPECT_FALSE(ParseKind("erased").ok());
}

TEST(Label, NeedsAKey) {
  EXPECT_EQ(SplitLabel("a=b=c")->second, "b=c");
  EXPECT_EQ(SplitLabel("a=")->second, "");
  EXPECT_FALSE(SplitLabel("=b").ok());
  EXPECT_FALSE(SplitLabel("a").ok());
}

TEST(Table, IsAligned) {
  Table table({"ID", "VERSION", "REASON"}, Palette(false));
  table.AlignRight(1);
  table.AddRow({"é", "1", "first"});
  table.AddRow({"日本", "10", ""});
  table.AddNote({"+ /a 1"});
  std::ostringstream out;
  table.Flush(out);
  table.AddRow({"a longer id", "2", "x\ny"});
  table.Flush(out);
  EXPECT_EQ(out.str(),
            "ID    VERSION  REASON\n"
            "é           1  first\n"
            "日本       10\n"
            "    + /a 1\n"
            "a longer id        2  x y\n");
}

TEST(Table, OfNothingHasNoHeader) {
  std::ostringstream out;
  Table({"ID"}, Palette(true)).Flush(out);
  EXPECT_EQ(out.str(), "");
}

v1::FieldChange Change(const std::string& json) {
  v1::FieldChange change;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &change).ok());
  return change;
}

TEST(Change, IsOneLine) {
  const Palette plain(false);
  EXPECT_EQ(
      ChangeLine(Change(R"({"path":"/a","type":"CHANGE_TYPE_ADDED","after":{"b":[1]}})"), plain),
      R"(+ /a {"b":[1]})");
  EXPECT_EQ(
      ChangeLine(Change(R"({"path":"/a","type":"CHANGE_TYPE_REMOVED","before":"x\u001b"})"), plain),
      R"(- /a "x\u001b")");
  EXPECT_EQ(ChangeLine(Change(R"({"path":"/a","type":"CHANGE_TYPE_CHANGED",
                               "before":{"$numberDouble":"1.0"},"after":1.5})"),
                       plain),
            "~ /a 1.0 -> 1.5");
  EXPECT_EQ(ChangeLine(Change(R"({"path":"/a","type":"CHANGE_TYPE_CHANGED",
                               "values_omitted":true})"),
                       plain),
            "~ /a (too large) -> (too large)");
  EXPECT_EQ(
      ChangeLine(Change(R"({"path":"/a","type":"CHANGE_TYPE_ADDED","after":1})"), Palette(true)),
      "\x1b[32m+ /a 1\x1b[0m");
}

TEST(MessageJson, HasEveryNameAndTheOrderOfTheContent) {
  v1::UpdateResponse response;
  response.mutable_document()->set_collection("books");
  response.mutable_document()->mutable_content()->set_bson(
      client::BsonFromJson(R"({"b":1.0,"a":9007199254740993})").value());
  response.mutable_document()->mutable_create_time()->set_seconds(1769860800);
  EXPECT_EQ(MessageJson(response),
            R"({"document":{"collection":"books","id":"","version":"0","content":{"json":)"
            R"({"b":{"$numberDouble":"1.0"},"a":{"$numberLong":"9007199254740993"}}},)"
            R"("create_time":"2026-01-31T12:00:00Z","pending_transaction_id":""},)"
            R"("attempts":0,"changed":false,"replayed":false,)"
            R"("commit_position":"0","stale":false})");
}

TEST(MessageJson, IsProtobufsMapping) {
  v1::AuditEntry entry;
  entry.set_commit_position(7);
  entry.set_id("a\"b\nc");
  v1::Version& version = *entry.mutable_version();
  version.set_kind(v1::VERSION_KIND_RESTORED);
  version.set_content_hash("\x01\xff");
  version.mutable_commit_time()->set_nanos(1000);
  (*version.mutable_change()->mutable_labels())["b"] = "2";
  (*version.mutable_change()->mutable_labels())["a"] = "1";
  *version.add_changes() =
      Change(R"({"path":"/a","type":"CHANGE_TYPE_CHANGED","before":null,"after":[{"x":1.5},{}]})");
  v1::AuditEntry read;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(MessageJson(entry), &read).ok());
  EXPECT_EQ(read.DebugString(), entry.DebugString());
}

TEST(Refusal, SaysReasonMessageAndMetadata) {
  const auto refusal =
      client::RefusalOf(StatusOf(grpc::StatusCode::ABORTED, "VERSION_CONFLICT",
                                 "version is 4, not 3", {{"expected", "3"}, {"actual", "4"}}));
  EXPECT_EQ(refusal.ToString(), "VERSION_CONFLICT: version is 4, not 3 (actual=4 expected=3)");
  EXPECT_FALSE(refusal.Advice().empty());
  EXPECT_FALSE(refusal.IsRetryable());
}

TEST(Refusal, WithoutDetailsSaysTheCode) {
  const auto refusal =
      client::RefusalOf(grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone\x1b", "not a status"));
  EXPECT_EQ(refusal.ToString(), "UNAVAILABLE: gone\\x1b");
  EXPECT_TRUE(refusal.IsRetryable());
}

TEST(Refusal, IsRepeatedOnlyIfThatMayHelp) {
  const auto retryable = [](grpc::StatusCode code, const std::string& reason, int64_t retry_ms) {
    return client::RefusalOf(StatusOf(code, reason, "", {}, retry_ms)).IsRetryable();
  };
  EXPECT_TRUE(retryable(grpc::StatusCode::UNAVAILABLE, "DRAINING", 50));
  EXPECT_TRUE(retryable(grpc::StatusCode::DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", -1));
  EXPECT_TRUE(retryable(grpc::StatusCode::ABORTED, "RETRIES_EXHAUSTED", 50));
  EXPECT_TRUE(retryable(grpc::StatusCode::RESOURCE_EXHAUSTED, "OVERLOADED", 50));
  EXPECT_FALSE(retryable(grpc::StatusCode::RESOURCE_EXHAUSTED, "DOCUMENT_TOO_LARGE", -1));
  EXPECT_FALSE(retryable(grpc::StatusCode::ABORTED, "VERSION_CONFLICT", -1));
  EXPECT_FALSE(retryable(grpc::StatusCode::INVALID_ARGUMENT, "INVALID_CONTENT", -1));
  EXPECT_FALSE(retryable(grpc::StatusCode::DATA_LOSS, "CHAIN_BROKEN", -1));
}

TEST(Refusal, IsRepeatedLaterEachTime) {
  client::Refusal refusal;
  EXPECT_EQ(client::RetryDelayMs(refusal, 1, 0), 50);
  EXPECT_EQ(client::RetryDelayMs(refusal, 1, 1), 100);
  EXPECT_EQ(client::RetryDelayMs(refusal, 3, 1), 400);
  EXPECT_EQ(client::RetryDelayMs(refusal, 1000, 1), 5000);
  refusal.retry_delay_ms = 700;
  EXPECT_EQ(client::RetryDelayMs(refusal, 1, 1), 700);
}

TEST(Progress, SaysHowFarAndHowLong) {
  EXPECT_EQ(ProgressLine(5000, "versions", 0.5, 2),
            "[############            ]  50 %  5,000 versions  2,500/s  2 s left");
  EXPECT_EQ(ProgressLine(5000, "versions", 0, 2), "5,000 versions  2,500/s");
  EXPECT_EQ(WithCommas(-1234567), "-1,234,567");
  EXPECT_EQ(WithCommas(123), "123");
}

}  // namespace
}  // namespace strata::cli
