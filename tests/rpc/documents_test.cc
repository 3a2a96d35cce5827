// Each RPC of DocumentService does what its proto says, in both encodings and on every engine.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "tests/rpc/test_server.h"
#include "tests/support/temporary_directory.h"

namespace strata::rpc_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

struct Way {
  std::string engine;
  std::string encoding;
};

class Documents : public testing::TestWithParam<Way> {
 protected:
  Documents() : server_(Options(directory_)) {}

  static app::ServerOptions Options(const test_support::TemporaryDirectory& directory) {
    app::ServerOptions options = TestOptions();
    options.engine = GetParam().engine;
    options.data = directory.Join("data");
    return options;
  }

  // The request with the encoding of this run.
  static std::string In(std::string json) {
    return json.insert(1, "\"encoding\": \"ENCODING_" + GetParam().encoding + "\", ");
  }
  // A document's content as bytes, whichever encoding it came in.
  static std::string BsonOf(const v1::Content& content) {
    EXPECT_EQ(content.has_bson(), GetParam().encoding == "BSON");
    EXPECT_EQ(content.has_json(), GetParam().encoding == "JSON");
    if (content.has_bson()) return content.bson();
    std::string json;
    EXPECT_TRUE(google::protobuf::util::MessageToJsonString(content.json(), &json).ok());
    return Bson(json);
  }
  // A request with content in the encoding of this run.
  template <typename Request>
  static Request WithContent(const std::string& json, v1::Content* (Request::*member)(),
                             const std::string& content) {
    auto request = Parse<Request>(In(json));
    if (GetParam().encoding == "BSON") {
      (request.*member)()->set_bson(Bson(content));
    } else {
      ParseInto(content, *(request.*member)()->mutable_json());
    }
    return request;
  }

  void Create(const std::string& id, const std::string& content) {
    const auto made = server_.Create(R"({"collection": "books", "id": ")" + id +
                                     R"(", "content": {"json": )" + content + "}}");
    ASSERT_TRUE(made.ok()) << made.status.error_message();
  }
  void Patch(const std::string& id, const std::string& operation) {
    const auto made = server_.Update(R"({"collection": "books", "id": ")" + id +
                                     R"(", "patch": {"operations": [)" + operation + "]}}");
    ASSERT_TRUE(made.ok()) << made.status.error_message();
  }

  test_support::TemporaryDirectory directory_;
  TestServer server_;
};

TEST_P(Documents, CreateWritesVersionOne) {
  const auto request = WithContent<v1::CreateRequest>(
      R"({"collection": "books", "id": "moby", "change": {"actor": "ann", "reason": "catalogue"}})",
      &v1::CreateRequest::mutable_content, R"({"title": "Moby Dick", "stock": 3})");
  const auto made = server_.Call<v1::CreateResponse>(server_.documents(),
                                                     &v1::DocumentService::Stub::Create, request);
  ASSERT_TRUE(made.ok()) << made.status.error_message();
  EXPECT_EQ(made.response.document().version(), 1);
  EXPECT_EQ(made.response.document().id(), "moby");
  EXPECT_EQ(made.response.attempts(), 1);
  EXPECT_TRUE(made.response.changed());
  EXPECT_FALSE(made.response.replayed());
  EXPECT_GT(made.response.commit_position(), 0);
  EXPECT_GT(made.response.document().create_time().seconds(), 0);
  EXPECT_EQ(BsonOf(made.response.document().content()),
            Bson(R"({"title": "Moby Dick", "stock": 3})"));
}

TEST_P(Documents, CreateMakesAnIdIfThereIsNone) {
  const auto made =
      server_.Create(R"({"collection": "books", "content": {"json": {}}, "omit_content": true})");
  ASSERT_TRUE(made.ok());
  EXPECT_THAT(made.response.document().id(), SizeIs(32));
  EXPECT_FALSE(made.response.document().has_content());
}

TEST_P(Documents, GetReadsTheCurrentVersionAnOldOneAndThatOfATime) {
  Create("moby", R"({"stock": 3, "title": "Moby Dick"})");
  const auto first = server_.Get(In(R"({"collection": "books", "id": "moby"})"));
  Patch("moby", R"({"path": "/stock", "increment": -1})");
  const auto current = server_.Get(In(R"({"collection": "books", "id": "moby"})"));
  const auto old = server_.Get(In(R"({"collection": "books", "id": "moby", "version": 1})"));
  auto at = Parse<v1::GetRequest>(In(R"({"collection": "books", "id": "moby"})"));
  *at.mutable_at_time() = current.response.document().update_time();
  const auto then =
      server_.Call<v1::GetResponse>(server_.documents(), &v1::DocumentService::Stub::Get, at);
  ASSERT_TRUE(then.ok()) << then.status.error_message();
  EXPECT_EQ(BsonOf(current.response.document().content()),
            Bson(R"({"stock": 2, "title": "Moby Dick"})"));
  EXPECT_EQ(current.response.document().version(), 2);
  EXPECT_EQ(then.response.document().version(), 2);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(old.response.document(),
                                                                 first.response.document()));
}

TEST_P(Documents, GetReturnsTheFieldsAskedFor) {
  Create("moby", R"({"a": 1, "b": {"c": 2, "d": 3}, "e": 4})");
  const auto got =
      server_.Get(In(R"({"collection": "books", "id": "moby", "fields": ["/b/d", "/e"]})"));
  EXPECT_EQ(BsonOf(got.response.document().content()), Bson(R"({"b": {"d": 3}, "e": 4})"));
}

TEST_P(Documents, BatchGetReadsManyAndNamesTheMissing) {
  Create("a", R"({"n": 1})");
  Create("c", R"({"n": 3})");
  ASSERT_TRUE(server_.Delete(R"({"collection": "books", "id": "c"})").ok());
  const auto got =
      server_.BatchGet(In(R"({"collection": "books", "ids": ["c", "b", "a"], "fields": ["/n"]})"));
  ASSERT_TRUE(got.ok()) << got.status.error_message();
  ASSERT_THAT(got.response.documents(), SizeIs(1));
  EXPECT_EQ(BsonOf(got.response.documents(0).content()), Bson(R"({"n": 1})"));
  EXPECT_THAT(got.response.missing_ids(), ElementsAre("c", "b"));
  EXPECT_THAT(got.response.remaining_ids(), IsEmpty());
}

TEST_P(Documents, UpdateReplacesPatchesAndTellsANoOp) {
  Create("moby", R"({"a": 1})");
  const auto replace = WithContent<v1::UpdateRequest>(
      R"({"collection": "books", "id": "moby", "precondition": {"version": 1}})",
      &v1::UpdateRequest::mutable_replace, R"({"b": [1]})");
  const auto replaced = server_.Call<v1::UpdateResponse>(
      server_.documents(), &v1::DocumentService::Stub::Update, replace);
  EXPECT_EQ(BsonOf(replaced.response.document().content()), Bson(R"({"b": [1]})"));
  const auto patched = server_.Update(In(R"({"collection": "books", "id": "moby", "patch": {
      "merge": {"json": {"c": {"d": 1}, "gone": null}},
      "operations": [{"path": "/c/e", "set": "text"}, {"path": "/b", "append": [2, 3]},
                     {"path": "/b", "append_missing": [3, 4]}, {"path": "/b", "remove_all": [1]},
                     {"path": "/n", "increment": 2.5}, {"path": "/c/d", "unset": true},
                     {"path": "/null", "set": null}]}})"));
  ASSERT_TRUE(patched.ok()) << patched.status.error_message();
  EXPECT_EQ(patched.response.document().version(), 3);
  const auto again =
      server_.Get(R"({"collection": "books", "id": "moby", "encoding": "ENCODING_JSON"})");
  const auto expected = Parse<google::protobuf::Struct>(
      R"({"b": [2, 3, 4], "c": {"e": "text"}, "n": 2.5, "null": null})");
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(
      again.response.document().content().json(), expected));
  const auto same = server_.Update(
      In(R"({"collection": "books", "id": "moby", "patch": {"merge": {"json": {"n": 2.5}}}})"));
  EXPECT_FALSE(same.response.changed());
  EXPECT_EQ(same.response.attempts(), 0);
  EXPECT_EQ(same.response.document().version(), 3);
  const auto kept = server_.Update(In(R"({"collection": "books", "id": "moby",
      "patch": {"merge": {"json": {"n": 2.5}}}, "keep_unchanged": true})"));
  EXPECT_TRUE(kept.response.changed());
  EXPECT_EQ(kept.response.document().version(), 4);
}

TEST_P(Documents, AnUpsertCreates) {
  const auto made = server_.Update(In(R"({"collection": "books", "id": "new",
      "allow_missing": true, "patch": {"operations": [{"path": "/a/b", "set": 1}]}})"));
  ASSERT_TRUE(made.ok()) << made.status.error_message();
  EXPECT_EQ(made.response.document().version(), 1);
  EXPECT_EQ(BsonOf(made.response.document().content()), Bson(R"({"a": {"b": 1}})"));
}

TEST_P(Documents, ValidateOnlyWritesNothing) {
  Create("moby", R"({"a": 1})");
  const auto tried = server_.Update(In(R"({"collection": "books", "id": "moby",
      "patch": {"operations": [{"path": "/a", "increment": 1}]}, "validate_only": true})"));
  EXPECT_EQ(BsonOf(tried.response.document().content()), Bson(R"({"a": 2})"));
  EXPECT_EQ(server_.Get(R"({"collection": "books", "id": "moby"})").response.document().version(),
            1);
}

TEST_P(Documents, DeleteAndRestoreGoOnNumbering) {
  Create("moby", R"({"a": 1})");
  const auto deleted =
      server_.Delete(R"({"collection": "books", "id": "moby", "change": {"reason": "sold"}})");
  ASSERT_TRUE(deleted.ok()) << deleted.status.error_message();
  EXPECT_EQ(deleted.response.document().version(), 2);
  EXPECT_TRUE(deleted.response.changed());
  EXPECT_FALSE(deleted.response.document().has_content());
  const auto restored =
      server_.Restore(In(R"({"collection": "books", "id": "moby", "version": 1})"));
  ASSERT_TRUE(restored.ok()) << restored.status.error_message();
  EXPECT_EQ(restored.response.document().version(), 3);
  EXPECT_EQ(BsonOf(restored.response.document().content()), Bson(R"({"a": 1})"));
}

TEST_P(Documents, HistoryTellsEachVersion) {
  ASSERT_TRUE(server_
                  .Create(R"({"collection": "books", "id": "moby", "content": {"json": {"a": 1}},
                  "request_id": "r1", "change": {"actor": "ann", "on_behalf_of": "bob",
                  "reason": "why", "labels": {"ticket": "7"}}})")
                  .ok());
  Patch("moby", R"({"path": "/a", "set": 2})");
  ASSERT_TRUE(server_.Delete(R"({"collection": "books", "id": "moby"})").ok());
  const auto history = server_.History(In(R"({"collection": "books", "id": "moby",
      "include_content": true, "include_changes": true, "oldest_first": true})"));
  ASSERT_TRUE(history.ok()) << history.status.error_message();
  ASSERT_THAT(history.response.versions(), SizeIs(3));
  const v1::Version& first = history.response.versions(0);
  EXPECT_EQ(first.kind(), v1::VERSION_KIND_CREATED);
  EXPECT_EQ(first.request_id(), "r1");
  EXPECT_EQ(first.change().actor(), "ann");
  EXPECT_EQ(first.change().on_behalf_of(), "bob");
  EXPECT_EQ(first.change().reason(), "why");
  EXPECT_EQ(first.change().labels().at("ticket"), "7");
  EXPECT_THAT(first.content_hash(), SizeIs(32));
  EXPECT_THAT(first.chain_hash(), SizeIs(32));
  EXPECT_EQ(BsonOf(first.content()), Bson(R"({"a": 1})"));
  const v1::Version& second = history.response.versions(1);
  ASSERT_THAT(second.changes(), SizeIs(1));
  EXPECT_EQ(second.changes(0).path(), "/a");
  EXPECT_EQ(second.changes(0).type(), v1::CHANGE_TYPE_CHANGED);
  EXPECT_EQ(second.changes(0).before().number_value(), 1);
  EXPECT_EQ(second.changes(0).after().number_value(), 2);
  const v1::Version& third = history.response.versions(2);
  EXPECT_EQ(third.kind(), v1::VERSION_KIND_DELETED);
  EXPECT_FALSE(third.has_content());
  EXPECT_THAT(history.response.next_page_token(), IsEmpty());
}

TEST_P(Documents, HistoryKeepsToItsBounds) {
  Create("moby", R"({"a": 1})");
  for (int i = 2; i <= 6; ++i) Patch("moby", R"({"path": "/a", "increment": 1})");
  const auto versions = [&](const std::string& bounds) {
    std::vector<int64_t> numbers;
    const auto history =
        server_.History(R"({"collection": "books", "id": "moby", )" + bounds + "}");
    EXPECT_TRUE(history.ok()) << history.status.error_message();
    for (const auto& version : history.response.versions()) numbers.push_back(version.version());
    return numbers;
  };
  EXPECT_THAT(versions(R"("from_version": 3, "to_version": 5)"), ElementsAre(5, 4, 3));
  EXPECT_THAT(versions(R"("to_version": 2, "oldest_first": true)"), ElementsAre(1, 2));
  EXPECT_THAT(versions(R"("from_version": 6, "to_version": 100)"), ElementsAre(6));
  EXPECT_THAT(versions(R"("from_version": 7)"), IsEmpty());
  EXPECT_THAT(versions(R"("from_time": "9999-01-01T00:00:00Z")"), IsEmpty());
  EXPECT_THAT(versions(R"("to_time": "1970-01-01T00:00:00Z")"), IsEmpty());
  EXPECT_THAT(versions(R"("from_time": "0001-01-01T00:00:00Z", "to_version": 1)"), ElementsAre(1));
}

TEST_P(Documents, DiffComparesTwoVersions) {
  Create("moby", R"({"a": 1, "b": 1})");
  Patch("moby", R"({"path": "/b", "unset": true}, {"path": "/c", "set": {"d": null}})");
  const auto diff = server_.Diff(R"({"collection": "books", "id": "moby", "from_version": 1})");
  ASSERT_TRUE(diff.ok()) << diff.status.error_message();
  EXPECT_EQ(diff.response.from_version(), 1);
  EXPECT_EQ(diff.response.to_version(), 2);
  ASSERT_THAT(diff.response.changes(), SizeIs(2));
  EXPECT_EQ(diff.response.changes(0).type(), v1::CHANGE_TYPE_REMOVED);
  EXPECT_TRUE(diff.response.changes(0).has_before());
  EXPECT_FALSE(diff.response.changes(0).has_after());
  EXPECT_EQ(diff.response.changes(1).type(), v1::CHANGE_TYPE_ADDED);
  EXPECT_FALSE(diff.response.changes(1).has_before());
}

TEST_P(Documents, AuditTellsWhoDidWhatInCommitOrder) {
  Create("a", R"({"n": 1})");
  ASSERT_TRUE(server_
                  .Create(R"({"collection": "films", "id": "x", "content": {"json": {}},
                              "change": {"actor": "ann"}, "request_id": "r7"})")
                  .ok());
  Patch("a", R"({"path": "/n", "set": 2})");
  const auto names = [&](const std::string& json) {
    std::vector<std::string> found;
    const auto audit = server_.Audit(json);
    EXPECT_TRUE(audit.ok()) << audit.status.error_message();
    int64_t position = 0;
    for (const v1::AuditEntry& entry : audit.response.entries()) {
      found.push_back(entry.collection() + "/" + entry.id() + "@" +
                      std::to_string(entry.version().version()));
      EXPECT_GT(entry.commit_position(), position);
      position = entry.commit_position();
    }
    return found;
  };
  EXPECT_THAT(names("{}"), ElementsAre("books/a@1", "films/x@1", "books/a@2"));
  EXPECT_THAT(names(R"({"collection": "books"})"), ElementsAre("books/a@1", "books/a@2"));
  EXPECT_THAT(names(R"({"collection": "books", "id": "a", "kinds": ["VERSION_KIND_UPDATED"]})"),
              ElementsAre("books/a@2"));
  EXPECT_THAT(names(R"({"actor": "ann"})"), ElementsAre("films/x@1"));
  EXPECT_THAT(names(R"({"request_id": "r7"})"), ElementsAre("films/x@1"));
  EXPECT_THAT(names(R"({"end_time": "1980-01-01T00:00:00Z"})"), IsEmpty());
  EXPECT_THAT(names(R"({"start_time": "9999-01-01T00:00:00Z"})"), IsEmpty());
  const auto changes = server_.Audit(
      R"({"collection": "books", "kinds": ["VERSION_KIND_UPDATED"], "include_changes": true})");
  ASSERT_THAT(changes.response.entries(), SizeIs(1));
  EXPECT_EQ(changes.response.entries(0).version().changes(0).after().number_value(), 2);
}

TEST_P(Documents, ListGoesThroughTheCurrentDocuments) {
  Create("a/1", R"({"n": 1, "m": 1})");
  Create("b/1", R"({"n": 2})");
  Create("a/2", R"({"n": 3})");
  ASSERT_TRUE(server_.Delete(R"({"collection": "books", "id": "a/2"})").ok());
  const auto all = server_.List(In(R"({"collection": "books", "fields": ["/n"]})"));
  ASSERT_TRUE(all.ok()) << all.status.error_message();
  ASSERT_THAT(all.response.documents(), SizeIs(2));
  EXPECT_EQ(all.response.documents(0).id(), "a/1");
  EXPECT_EQ(BsonOf(all.response.documents(0).content()), Bson(R"({"n": 1})"));
  EXPECT_EQ(all.response.documents(1).id(), "b/1");
  EXPECT_EQ(all.response.examined(), 3);
  EXPECT_THAT(all.response.next_page_token(), IsEmpty());
  const auto deleted =
      server_.List(In(R"({"collection": "books", "id_prefix": "a/", "show_deleted": true})"));
  ASSERT_THAT(deleted.response.documents(), SizeIs(2));
  EXPECT_EQ(deleted.response.documents(1).id(), "a/2");
  EXPECT_FALSE(deleted.response.documents(1).has_content());
}

TEST_P(Documents, ListFindsWhatAFilterSays) {
  Create("a", R"({"stock": 0, "tags": ["sea"], "size": {"a.b": 1}})");
  Create("b", R"({"stock": 4, "tags": ["sea", "whale"], "size": {"a.b": 2}})");
  Create("c", R"({"stock": 9, "title": "Emma"})");
  const auto ids = [&](const std::string& filter) {
    const auto found = server_.List(In(R"({"collection": "books", "filter": )" + filter + "}"));
    EXPECT_TRUE(found.ok()) << found.status.error_message();
    EXPECT_EQ(found.response.examined(), 3);
    std::string all;
    for (const auto& document : found.response.documents()) all += document.id();
    return all;
  };
  EXPECT_EQ(ids("{}"), "abc");
  EXPECT_EQ(ids(R"({"stock": {"$gt": 0}})"), "bc");
  EXPECT_EQ(ids(R"({"stock": {"$gt": 0, "$lt": 9}})"), "b");
  EXPECT_EQ(ids(R"({"stock": {"$numberLong": "4"}})"), "b");
  EXPECT_EQ(ids(R"({"tags": "sea"})"), "ab");
  EXPECT_EQ(ids(R"({"tags": {"$size": 2}})"), "b");
  EXPECT_EQ(ids(R"({"/size/a.b": 2})"), "b");
  EXPECT_EQ(ids(R"({"title": {"$regex": "^em", "$options": "i"}})"), "c");
  EXPECT_EQ(ids(R"({"$or": [{"stock": 0}, {"title": {"$exists": true}}]})"), "ac");
}

TEST_P(Documents, ListAnswersAsOfATime) {
  Create("a", R"({"n": 1})");
  Create("b", R"({"n": 1})");
  const auto then = server_.Get(R"({"collection": "books", "id": "b"})");
  Patch("a", R"({"path": "/n", "set": 2})");
  ASSERT_TRUE(server_.Delete(R"({"collection": "books", "id": "b"})").ok());
  Create("c", R"({"n": 1})");
  auto request = Parse<v1::ListRequest>(In(R"({"collection": "books", "filter": {"n": 1}})"));
  const auto ids = [&] {
    const auto found = server_.Call<v1::ListResponse>(server_.documents(),
                                                      &v1::DocumentService::Stub::List, request);
    EXPECT_TRUE(found.ok()) << found.status.error_message();
    std::string all;
    for (const auto& document : found.response.documents()) {
      all += document.id() + std::to_string(document.version());
    }
    return all;
  };
  EXPECT_EQ(ids(), "c1");
  *request.mutable_at_time() = then.response.document().update_time();
  EXPECT_EQ(ids(), "a1b1");
}

TEST_P(Documents, GetAndListAnswerAsOfACommit) {
  Create("a", R"({"n": 1})");
  Create("b", R"({"n": 1})");
  Create("c", R"({"n": 1})");
  const auto changed = server_.Update(
      R"({"collection": "books", "id": "a", "patch": {"operations": [{"path": "/n", "set": 2}]}})");
  const std::string position = std::to_string(changed.response.commit_position());
  Patch("a", R"({"path": "/n", "set": 3})");
  ASSERT_TRUE(server_.Delete(R"({"collection": "books", "id": "b"})").ok());
  Create("d", R"({"n": 1})");
  const std::string at = R"("collection": "books", "at_position": )" + position;
  const auto got = server_.Get(In("{" + at + R"(, "id": "a"})"));
  ASSERT_TRUE(got.ok()) << got.status.error_message();
  EXPECT_EQ(got.response.document().version(), 2);
  EXPECT_EQ(BsonOf(got.response.document().content()), Bson(R"({"n": 2})"));
  EXPECT_EQ(server_.Get(In("{" + at + R"(, "id": "b"})")).response.document().version(), 1);
  EXPECT_EQ(server_.Get(In("{" + at + R"(, "id": "d"})")).details().reason, "VERSION_NOT_FOUND");
  // Pages stay as they are while documents change.
  std::string all;
  std::string token;
  do {
    const auto page =
        server_.List(In("{" + at + R"(, "page_size": 1, "page_token": ")" + token + R"("})"));
    ASSERT_TRUE(page.ok()) << page.status.error_message();
    for (const auto& document : page.response.documents()) {
      all += document.id() + std::to_string(document.version());
    }
    token = page.response.next_page_token();
    Patch("c", R"({"path": "/n", "increment": 1})");
  } while (!token.empty());
  EXPECT_EQ(all, "a2b1c1");
}

TEST_P(Documents, HistoryTellsWhichVersionsMatched) {
  Create("moby", R"({"stock": 3})");
  for (int i = 0; i < 3; ++i) Patch("moby", R"({"path": "/stock", "increment": -1})");
  const auto low = server_.History(In(R"({"collection": "books", "id": "moby",
      "filter": {"stock": {"$lte": 1}}, "include_changes": true})"));
  ASSERT_TRUE(low.ok()) << low.status.error_message();
  ASSERT_THAT(low.response.versions(), SizeIs(2));
  EXPECT_EQ(low.response.versions(0).version(), 4);
  EXPECT_EQ(low.response.versions(1).version(), 3);
  EXPECT_EQ(low.response.versions(1).changes(0).before().number_value(), 2);
  EXPECT_FALSE(low.response.versions(0).has_content());
}

TEST_P(Documents, AWriteTakesPlaceIfTheContentMatchesAFilter) {
  Create("moby", R"({"stock": 1})");
  const std::string sell = R"({"collection": "books", "id": "moby",
      "patch": {"operations": [{"path": "/stock", "increment": -1}]},
      "precondition": {"filter": {"stock": {"$gt": 0}}}})";
  EXPECT_TRUE(server_.Update(sell).ok());
  const auto refused = server_.Update(sell);
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(refused.details().reason, "FILTER_NOT_MATCHED");
  EXPECT_EQ(refused.details().metadata.at("actual"), "2");
  const auto kept = server_.Delete(R"({"collection": "books", "id": "moby",
      "precondition": {"filter": {"stock": {"$gt": 0}}}})");
  EXPECT_EQ(kept.details().reason, "FILTER_NOT_MATCHED");
  EXPECT_TRUE(server_
                  .Delete(R"({"collection": "books", "id": "moby",
      "precondition": {"filter": {}}})")
                  .ok());
}

std::string WayName(const testing::TestParamInfo<Way>& info) {
  return info.param.engine + "_" + info.param.encoding;
}
INSTANTIATE_TEST_SUITE_P(Ways, Documents,
                         testing::Values(Way{"memory", "JSON"}, Way{"memory", "BSON"},
                                         Way{"rocksdb", "JSON"}, Way{"rocksdb", "BSON"}),
                         WayName);

}  // namespace
}  // namespace strata::rpc_test
