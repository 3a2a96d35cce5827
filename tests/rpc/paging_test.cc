// Pages: nothing is missing, nothing comes twice, and a token comes exactly if something follows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "schemas/document/bson_builder.h"
#include "strata/v1/enrollment_service.pb.h"
#include "tests/rpc/test_server.h"

namespace strata::rpc_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kItems = 12;

class Paging : public testing::Test {
 protected:
  Paging() {
    for (int i = 0; i < kItems; ++i) {
      const std::string id(1, static_cast<char>('a' + i));
      Must(server_.Create(R"({"collection": "books", "id": ")" + id +
                          R"(", "content": {"json": {}}})"));
    }
    for (int i = 1; i < kItems; ++i) {
      Must(server_.Update(R"({"collection": "books", "id": "a",
                              "patch": {"operations": [{"path": "/n", "increment": 1}]}})"));
    }
  }

  template <typename Response>
  static void Must(const Outcome<Response>& outcome) {
    ASSERT_TRUE(outcome.ok()) << outcome.status.error_message();
  }

  // All pages of a request (JSON without its closing brace), and how many there are.
  template <typename Call, typename Visit>
  int AllPages(const std::string& request, int page_size, Call&& call, Visit&& visit) {
    std::string token;
    int pages = 0;
    do {
      const auto page = call(request + R"(, "page_size": )" + std::to_string(page_size) +
                             R"(, "page_token": ")" + token + R"("})");
      EXPECT_TRUE(page.ok()) << page.status.error_message();
      if (!page.ok()) break;
      visit(page.response);
      token = page.response.next_page_token();
      ++pages;
    } while (!token.empty());
    return pages;
  }

  static int PagesFor(int page_size) { return (kItems + page_size - 1) / page_size; }

  TestServer server_;
};

TEST_F(Paging, OfAListIsExact) {
  for (const int page_size : {1, 3, 5, kItems, kItems + 1}) {
    std::string ids;
    const int pages = AllPages(R"({"collection": "books")", page_size,
                               [&](const std::string& json) { return server_.List(json); },
                               [&](const v1::ListResponse& page) {
                                 for (const auto& document : page.documents()) ids += document.id();
                               });
    EXPECT_EQ(ids, "abcdefghijkl") << page_size;
    EXPECT_EQ(pages, PagesFor(page_size)) << page_size;
  }
}

TEST_F(Paging, OfAHistoryIsExactInBothDirections) {
  for (const bool oldest_first : {false, true}) {
    for (const int page_size : {1, 4, 5, kItems}) {
      std::vector<int64_t> versions;
      const int pages = AllPages(
          std::string(R"({"collection": "books", "id": "a", "oldest_first": )") +
              (oldest_first ? "true" : "false"),
          page_size, [&](const std::string& json) { return server_.History(json); },
          [&](const v1::HistoryResponse& page) {
            for (const auto& version : page.versions()) versions.push_back(version.version());
          });
      ASSERT_THAT(versions, SizeIs(kItems));
      for (int i = 0; i < kItems; ++i) {
        EXPECT_EQ(versions[static_cast<size_t>(i)], oldest_first ? i + 1 : kItems - i);
      }
      EXPECT_EQ(pages, PagesFor(page_size)) << page_size;
    }
  }
}

TEST_F(Paging, OfTheLedgerIsExact) {
  for (const char* scope : {R"({"collection": "")", R"({"collection": "books", "id": "a")"}) {
    std::vector<std::string> whole;
    for (const int page_size : {1000, 1, 4, 6}) {
      std::vector<std::string> entries;
      AllPages(
          scope, page_size, [&](const std::string& json) { return server_.Audit(json); },
          [&](const v1::AuditResponse& page) {
            for (const auto& entry : page.entries()) entries.push_back(entry.SerializeAsString());
          });
      if (whole.empty()) whole = entries;
      EXPECT_EQ(entries, whole) << page_size;
      std::vector<std::string> backward;
      AllPages(
          std::string(scope) + R"(, "newest_first": true)", page_size,
          [&](const std::string& json) { return server_.Audit(json); },
          [&](const v1::AuditResponse& page) {
            for (const auto& entry : page.entries()) backward.push_back(entry.SerializeAsString());
          });
      std::reverse(backward.begin(), backward.end());
      EXPECT_EQ(backward, whole) << page_size;
    }
    EXPECT_GE(whole.size(), static_cast<size_t>(kItems));
  }
}

TEST_F(Paging, OfADiffIsExactAndStaysBetweenTheSameVersions) {
  std::string members;
  for (int i = 0; i < kItems; ++i) {
    members += (i == 0 ? "\"" : ", \"") + std::to_string(i) + "\": " + std::to_string(i);
  }
  Must(server_.Create(R"({"collection": "books", "id": "wide", "content": {"json": {}}})"));
  Must(server_.Update(R"({"collection": "books", "id": "wide", "replace": {"json": {)" + members +
                      "}}}"));
  const std::string scope = R"({"collection": "books", "id": "wide", "from_version": 1)";
  for (const int page_size : {1, 5, kItems, kItems + 1}) {
    std::vector<std::string> whole;
    const auto current = server_.Diff(scope + "}");
    for (const auto& change : current.response.changes()) whole.push_back(change.path());
    ASSERT_THAT(whole, SizeIs(kItems));
    EXPECT_THAT(current.response.next_page_token(), IsEmpty());
    const int64_t to_version = current.response.to_version();
    std::vector<std::string> paths;
    const int pages = AllPages(
        scope, page_size,
        [&](const std::string& json) {
          const auto page = server_.Diff(json);
          // What is current moves on between the pages.
          Must(server_.Update(R"({"collection": "books", "id": "wide", "keep_unchanged": true,
                                  "patch": {}})"));
          return page;
        },
        [&](const v1::DiffResponse& page) {
          EXPECT_EQ(page.to_version(), to_version);
          for (const auto& change : page.changes()) paths.push_back(change.path());
        });
    EXPECT_EQ(paths, whole);
    EXPECT_EQ(pages, PagesFor(page_size)) << page_size;
  }
}

// A collection that is deleted and made again shares nothing with its predecessor.
TEST_F(Paging, OfACollectionDoesNotGoOnInItsSuccessor) {
  const std::string list = R"({"collection": "books", "page_size": 2)";
  const std::string history = R"({"collection": "books", "id": "a", "page_size": 2)";
  const std::string diff =
      R"({"collection": "books", "id": "wide", "from_version": 1, "page_size": 2)";
  const std::string roster = R"({"collection": "books", "class_name": "CS", "page_size": 1)";
  const auto list_roster = [&](const std::string& json) {
    Outcome<v1::ListRosterResponse> page;
    std::string bytes;
    page.status = server_.CallRaw("strata.v1.EnrollmentService/ListRoster",
                                  Parse<v1::ListRosterRequest>(json).SerializeAsString(), &bytes);
    EXPECT_TRUE(page.response.ParseFromString(bytes));
    return page;
  };
  const auto fill = [&] {
    Must(server_.Create(R"({"collection": "books", "id": "wide", "content": {"json": {}}})"));
    Must(server_.Update(R"({"collection": "books", "id": "wide",
                            "replace": {"json": {"a": 1, "b": 2, "c": 3}}})"));
    for (const char* student : {"s1", "s2", "s3"}) {
      const grpc::Status enrolled =
          server_.CallByName("strata.v1.EnrollmentService/Enroll",
                             R"({"collection": "books", "class_name": "CS", "sequence_number": 1,
                              "student_id": ")" +
                                 std::string(student) + "\"}");
      ASSERT_TRUE(enrolled.ok()) << enrolled.error_message();
    }
  };
  fill();
  const auto token = [](const auto& page) {
    EXPECT_FALSE(page.response.next_page_token().empty());
    return R"(, "page_token": ")" + page.response.next_page_token() + "\"}";
  };
  const std::string listed = token(server_.List(list + "}"));
  const std::string read = token(server_.History(history + "}"));
  const std::string compared = token(server_.Diff(diff + "}"));
  const std::string enrolled = token(list_roster(roster + "}"));
  const auto audited = server_.Audit(history + "}");
  const std::string audit_token = token(audited);
  Must(server_.List(list + listed));
  Must(server_.DeleteCollection(R"({"name": "books", "force": true})"));
  for (int i = 0; i < kItems; ++i) {
    Must(server_.Update(R"({"collection": "books", "id": "a", "allow_missing": true,
                            "patch": {"operations": [{"path": "/new", "increment": 1}]}})"));
  }
  fill();
  const auto expect_gone = [](const auto& page) {
    EXPECT_EQ(page.details().reason, "COLLECTION_NOT_FOUND");
  };
  expect_gone(server_.List(list + listed));
  expect_gone(server_.History(history + read));
  expect_gone(server_.Diff(diff + compared));
  expect_gone(list_roster(roster + enrolled));
  // What was done outlives the collection: the audit goes on in the ledger, from where it was.
  const auto rest = server_.Audit(history + audit_token);
  Must(rest);
  ASSERT_THAT(rest.response.entries(), SizeIs(2));
  EXPECT_EQ(rest.response.entries(0).version().version(), 3);
  EXPECT_GT(rest.response.entries(0).commit_position(),
            audited.response.entries(1).commit_position());
  EXPECT_LT(rest.response.entries(1).commit_position(),
            server_.Audit(history + "}").response.entries(0).commit_position());
}

TEST_F(Paging, StaysStableWhileWritersGoOn) {
  const auto first = server_.List(R"({"collection": "books", "page_size": 6})");
  Must(server_.Delete(R"({"collection": "books", "id": "b"})"));
  Must(server_.Create(R"({"collection": "books", "id": "bb", "content": {"json": {}}})"));
  const auto second = server_.List(R"({"collection": "books", "page_size": 6, "page_token": ")" +
                                   first.response.next_page_token() + R"("})");
  ASSERT_THAT(second.response.documents(), SizeIs(6));
  EXPECT_EQ(second.response.documents(0).id(), "g");
  EXPECT_THAT(second.response.next_page_token(), IsEmpty());
}

TEST_F(Paging, OfTheLedgerStaysStableWhileWritersGoOn) {
  for (const char* scope : {R"({"collection": "")", R"({"collection": "books")",
                            R"({"collection": "books", "id": "a")"}) {
    std::vector<int64_t> before;
    const auto whole = server_.Audit(scope + std::string("}"));
    for (const auto& entry : whole.response.entries()) before.push_back(entry.commit_position());
    std::vector<int64_t> paged;
    AllPages(
        scope, 5,
        [&](const std::string& json) {
          const auto page = server_.Audit(json);
          if (paged.size() < before.size()) {
            Must(server_.Update(R"({"collection": "books", "id": "a", "allow_missing": true,
                "patch": {"operations": [{"path": "/n", "increment": 1}]}})"));
          }
          return page;
        },
        [&](const v1::AuditResponse& page) {
          for (const auto& entry : page.entries()) paged.push_back(entry.commit_position());
        });
    ASSERT_GT(paged.size(), before.size());  // what was written meanwhile comes after
    EXPECT_TRUE(std::equal(before.begin(), before.end(), paged.begin()));
    EXPECT_TRUE(std::is_sorted(paged.begin(), paged.end()));
  }
}

TEST_F(Paging, ATokenBelongsToItsRequest) {
  const std::string token =
      server_.List(R"({"collection": "books", "page_size": 1})").response.next_page_token();
  const auto reason = [&](const std::string& rest, const std::string& page_token) {
    const auto list =
        server_.List(R"({"collection": "books", "page_token": ")" + page_token + "\"" + rest + "}");
    EXPECT_TRUE(list.ok() || list.details().field() == "page_token");
    return list.details().reason;
  };
  EXPECT_EQ(reason("", token), "");
  EXPECT_EQ(reason(R"(, "page_size": 7)", token), "");  // another size is no other request
  EXPECT_EQ(reason(R"(, "id_prefix": "a")", token), "INVALID_PAGE_TOKEN");
  EXPECT_EQ(reason(R"(, "show_deleted": true)", token), "INVALID_PAGE_TOKEN");
  EXPECT_EQ(reason("", token + "A"), "INVALID_PAGE_TOKEN");
  EXPECT_EQ(reason("", token.substr(1)), "INVALID_PAGE_TOKEN");
  EXPECT_EQ(reason("", " " + token), "INVALID_PAGE_TOKEN");
  EXPECT_EQ(reason("", "no token"), "INVALID_PAGE_TOKEN");
  for (size_t i = 0; i < token.size(); ++i) {
    std::string damaged = token;
    damaged[i] = damaged[i] == 'Q' ? 'R' : 'Q';
    EXPECT_EQ(reason("", damaged), "INVALID_PAGE_TOKEN") << i;
  }
  const auto history =
      server_.History(R"({"collection": "books", "id": "a", "page_token": ")" + token + R"("})");
  EXPECT_EQ(history.details().reason, "INVALID_PAGE_TOKEN");
}

// Libraries write the members of a Struct in any order, so the same filter may come as other bytes.
TEST_F(Paging, ATokenKnowsItsFilterWhateverTheOrderOfItsMembers) {
  const auto list = [&](const std::string& filter_bytes, const std::string& token) {
    // ListRequest {collection = 1, page_size = 5, page_token = 6, filter = 8}, by hand.
    v1::ListRequest rest;
    rest.set_collection("books");
    rest.set_page_size(1);
    rest.set_page_token(token);
    std::string bytes = rest.SerializeAsString();
    bytes += '\x42';
    bytes += static_cast<char>(filter_bytes.size());
    bytes += filter_bytes;
    return server_.CallRawFor<v1::ListResponse>("strata.v1.DocumentService/List", bytes);
  };
  // {"y": null} and {"z": null} as entries of Struct.fields: key = 1, value = 2 {null_value = 1}.
  const std::string y("\x0a\x07\x0a\x01y\x12\x02\x08\x00", 9);
  const std::string z("\x0a\x07\x0a\x01z\x12\x02\x08\x00", 9);
  const auto first = list(y + z, "");
  ASSERT_TRUE(first.ok()) << first.status.error_message();
  const std::string token = first.response.next_page_token();
  ASSERT_FALSE(token.empty());
  EXPECT_TRUE(list(y + z, token).ok());
  EXPECT_TRUE(list(z + y, token).ok());
  EXPECT_EQ(list(y, token).details().reason, "INVALID_PAGE_TOKEN");
  EXPECT_EQ(list("", token).details().reason, "INVALID_PAGE_TOKEN");
}

TEST_F(Paging, ATokenBelongsToItsFilterAndTime) {
  const std::string filter = R"("filter": {"n": null})";
  const std::string token =
      server_.List(R"({"collection": "books", "page_size": 1, )" + filter + "}")
          .response.next_page_token();
  const auto reason = [&](const std::string& rest) {
    const auto list =
        server_.List(R"({"collection": "books", "page_token": ")" + token + "\"" + rest + "}");
    return list.details().reason;
  };
  EXPECT_EQ(reason(", " + filter), "");
  EXPECT_EQ(reason(""), "INVALID_PAGE_TOKEN");
  EXPECT_EQ(reason(R"(, "filter": {"n": 1})"), "INVALID_PAGE_TOKEN");
  EXPECT_EQ(reason(", " + filter + R"(, "at_time": "2020-01-01T00:00:00Z")"), "INVALID_PAGE_TOKEN");
  const auto versions = server_.History(
      R"({"collection": "books", "id": "a", "page_size": 1, "filter": {"n": {"$gt": 0}}})");
  const auto history = [&](const std::string& rest) {
    return server_
        .History(R"({"collection": "books", "id": "a", "page_token": ")" +
                 versions.response.next_page_token() + "\"" + rest + "}")
        .details()
        .reason;
  };
  EXPECT_EQ(history(R"(, "filter": {"n": {"$gt": 0}})"), "");
  EXPECT_EQ(history(R"(, "filter": {"n": {"$gt": 1}})"), "INVALID_PAGE_TOKEN");
  EXPECT_EQ(history(""), "INVALID_PAGE_TOKEN");
}

// 3 MiB in the encoding of the answer; an answer that a usual client takes.
TEST(PageBytes, EndAPage) {
  TestServer server;
  auto create = Parse<v1::CreateRequest>(R"({"collection": "books"})");
  (*create.mutable_content()->mutable_json()->mutable_fields())["text"].set_string_value(
      std::string(1'000'000, 'x'));
  for (const char* id : {"a", "b", "c", "d", "e", "f", "g"}) {
    create.set_id(id);
    v1::CreateResponse response;
    grpc::ClientContext context;
    ASSERT_TRUE(server.documents().Create(&context, create, &response).ok());
  }
  for (const char* encoding : {"ENCODING_JSON", "ENCODING_BSON"}) {
    std::string ids;
    std::string token;
    std::vector<int> sizes;
    do {
      const auto page = server.List(std::string(R"({"collection": "books", "encoding": ")") +
                                    encoding + R"(", "page_token": ")" + token + R"("})");
      ASSERT_TRUE(page.ok()) << page.status.error_message();
      EXPECT_LE(page.response.ByteSizeLong(), size_t{3} << 20);
      for (const auto& document : page.response.documents()) ids += document.id();
      sizes.push_back(page.response.documents_size());
      token = page.response.next_page_token();
    } while (!token.empty());
    EXPECT_EQ(ids, "abcdefg");
    EXPECT_THAT(sizes, ElementsAre(3, 3, 1));
  }
  const auto batch =
      server.BatchGet(R"({"collection": "books", "ids": ["g", "x", "f", "e", "d", "y"]})");
  EXPECT_THAT(batch.response.documents(), SizeIs(3));
  EXPECT_THAT(batch.response.missing_ids(), ElementsAre("x"));
  EXPECT_THAT(batch.response.remaining_ids(), ElementsAre("d", "y"));
}

constexpr size_t kMessageMax = size_t{4} << 20;  // that a client takes unless it asks for more

// A client that does not ask for more.
class UsualClient {
 public:
  explicit UsualClient(TestServer& server)
      : server_(server),
        stub_(v1::DocumentService::NewStub(
            grpc::CreateChannel(server.server().address(), grpc::InsecureChannelCredentials()))) {}

  Outcome<v1::DiffResponse> Diff(const std::string& json) {
    return server_.Call<v1::DiffResponse>(*stub_, &v1::DocumentService::Stub::Diff,
                                          Parse<v1::DiffRequest>(json));
  }
  Outcome<v1::HistoryResponse> History(const std::string& json) {
    return server_.Call<v1::HistoryResponse>(*stub_, &v1::DocumentService::Stub::History,
                                             Parse<v1::HistoryRequest>(json));
  }
  Outcome<v1::AuditResponse> Audit(const std::string& json) {
    return server_.Call<v1::AuditResponse>(*stub_, &v1::DocumentService::Stub::Audit,
                                           Parse<v1::AuditRequest>(json));
  }

 private:
  TestServer& server_;
  const std::unique_ptr<v1::DocumentService::Stub> stub_;
};

// Writes a document's content over whatever there is.
template <typename Fill>
grpc::Status Upsert(TestServer& server, const Fill& fill) {
  v1::UpdateRequest update;
  update.set_collection("books");
  update.set_id("big");
  update.set_allow_missing(true);
  update.set_omit_content(true);
  fill(update);
  v1::UpdateResponse response;
  grpc::ClientContext context;
  return server.documents().Update(&context, update, &response);
}

// 10,000 members below a name of 430 bytes: 109 KB, whose changes take 4.7 MB.
void WriteWide(TestServer& server, double value) {
  ASSERT_TRUE(Upsert(server, [&](v1::UpdateRequest& update) {
                auto& fields = *update.mutable_replace()->mutable_json()->mutable_fields();
                auto& members = *fields[std::string(430, 'n')].mutable_struct_value();
                for (int i = 0; i < 10'000; ++i) {
                  (*members.mutable_fields())[std::to_string(i)].set_number_value(value);
                }
              }).ok());
}

TEST(ChangesBytes, OfOneDiffGoOnAsManyPagesAsTheyTake) {
  TestServer server;
  UsualClient client(server);
  WriteWide(server, 0.5);
  WriteWide(server, 1.5);
  const std::string scope =
      R"({"collection": "books", "id": "big", "from_version": 1, "page_token": ")";
  std::set<std::string> paths;
  std::string token;
  int pages = 0;
  do {
    const auto page = client.Diff(scope + token + R"("})");
    ASSERT_TRUE(page.ok()) << page.status.error_message();
    EXPECT_LT(page.response.ByteSizeLong(), kMessageMax);
    for (const auto& change : page.response.changes()) {
      EXPECT_TRUE(paths.insert(change.path()).second);
      EXPECT_EQ(change.before().number_value(), 0.5);
      EXPECT_EQ(change.after().number_value(), 1.5);
    }
    token = page.response.next_page_token();
    ++pages;
  } while (!token.empty());
  EXPECT_EQ(paths.size(), 10'000u);
  EXPECT_EQ(pages, 2);
}

TEST(ChangesBytes, OfAVersionAreCutWithAMark) {
  TestServer server;
  UsualClient client(server);
  WriteWide(server, 0.5);
  WriteWide(server, 1.5);
  for (const char* page_size : {"1", "1000"}) {
    const std::string rest =
        R"(, "id": "big", "include_changes": true, "page_size": )" + std::string(page_size) + "}";
    const auto history = client.History(R"({"collection": "books")" + rest);
    ASSERT_TRUE(history.ok()) << history.status.error_message();
    const auto audit = client.Audit(R"({"collection": "books")" + rest);
    ASSERT_TRUE(audit.ok()) << audit.status.error_message();
    ASSERT_FALSE(history.response.versions().empty() || audit.response.entries().empty());
    const v1::Version& newest = history.response.versions(0);
    EXPECT_TRUE(newest.changes_truncated());
    EXPECT_GT(newest.ByteSizeLong(), 1'000'000u);
    EXPECT_LT(newest.ByteSizeLong(), 1'060'000u);
    // The first version adds one member: that is a single change.
    const v1::Version& first = audit.response.entries(0).version();
    EXPECT_FALSE(first.changes_truncated());
    EXPECT_EQ(first.changes_size(), 1);
  }
  const auto everything = client.Audit(R"({"include_changes": true})");
  ASSERT_TRUE(everything.ok()) << everything.status.error_message();
  EXPECT_TRUE(everything.response.entries(1).version().changes_truncated());
}

// The largest of everything that a version can say.
void SayAll(size_t number, v1::UpdateRequest& update) {
  v1::ChangeInfo& change = *update.mutable_change();
  change.set_actor(std::string(256, 'a'));
  change.set_on_behalf_of(std::string(256, 'b'));
  change.set_reason(std::string(1024, 'c'));
  std::string text(125, 'd');
  text += "100";
  for (int i = 0; i < 32; ++i, ++text.back()) {
    (*change.mutable_labels())[text] = std::string(256, 'e');
  }
  text.back() = static_cast<char>('a' + number);
  update.set_request_id(text);
}

// Contents of 2 MiB, the most that a server can be told to take, in one encoding or the other, that
// change as a whole, in one member or in many.
std::vector<std::string> LargestContents(char fill) {
  using document::BsonBuilder;
  constexpr size_t kMax = size_t{2} << 20;
  BsonBuilder many;
  for (int i = 0; i < 40'000; ++i) many.String(std::to_string(i), std::string(30, fill));
  return {BsonBuilder().String("a", std::string(kMax - 100, fill)).Take(),
          // Three bytes of BSON become four in JSON.
          BsonBuilder().Binary("a", std::string(kMax / 4 * 3 - 200, fill)).Take(), many.Take()};
}

TEST(ChangesBytes, TogetherWithTheLargestContentStayBelowWhatAClientTakes) {
  app::ServerOptions options = TestOptions();
  options.document_bytes_max = size_t{2} << 20;
  TestServer server(options);
  UsualClient client(server);
  std::vector<std::string> contents = LargestContents('x');
  for (std::string& content : LargestContents('y')) contents.push_back(std::move(content));
  for (size_t i = 0; i < contents.size(); ++i) {
    const grpc::Status status = Upsert(server, [&](v1::UpdateRequest& update) {
      update.mutable_replace()->set_bson(contents[i % 2 * 3 + i / 2]);
      SayAll(i, update);
    });
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  const auto versions = static_cast<int64_t>(contents.size());
  size_t largest = 0;
  const auto took = [&](const auto& page) {
    EXPECT_TRUE(page.ok()) << page.status.error_message();
    largest = std::max(largest, page.response.ByteSizeLong());
    return page.ok();
  };
  for (const std::string encoding : {"ENCODING_BSON", "ENCODING_JSON"}) {
    std::string token;
    int64_t seen = 0;
    do {
      const auto page = client.History(
          R"({"collection": "books", "id": "big", "include_content": true, "encoding": ")" +
          encoding + R"(", "include_changes": true, "page_token": ")" + token + R"("})");
      ASSERT_TRUE(took(page));
      seen += page.response.versions_size();
      token = page.response.next_page_token();
    } while (!token.empty());
    EXPECT_EQ(seen, versions);
  }
  int omitted = 0;
  for (int64_t from = 1; from <= versions; ++from) {
    for (int64_t to = 1; to <= versions; ++to) {
      std::string token;
      do {
        const auto page = client.Diff(
            R"({"collection": "books", "id": "big", "from_version": )" + std::to_string(from) +
            R"(, "to_version": )" + std::to_string(to) + R"(, "page_token": ")" + token + R"("})");
        ASSERT_TRUE(took(page));
        for (const auto& change : page.response.changes()) {
          omitted += change.values_omitted() ? 1 : 0;
          EXPECT_EQ(change.values_omitted(), !change.has_before() && !change.has_after());
        }
        token = page.response.next_page_token();
      } while (!token.empty());
    }
  }
  EXPECT_GT(omitted, 0);
  ASSERT_TRUE(took(client.Audit(R"({"collection": "books", "include_changes": true})")));
  std::printf("largest answer: %zu bytes\n", largest);
  EXPECT_GT(largest, size_t{3} << 20);
  EXPECT_LT(largest, kMessageMax);
}

// A cursor of bytes: an id with every oddity still is a place to go on from.
TEST(PageTokens, TakeAnyId) {
  TestServer server;
  const std::vector<std::string> ids = {"!", "a/b.c", "a b", "ä", "日本", "~", "😀"};
  for (const std::string& id : ids) {
    v1::CreateRequest create;
    create.set_collection("books");
    create.set_id(id);
    create.mutable_content()->mutable_json();
    v1::CreateResponse response;
    grpc::ClientContext context;
    ASSERT_TRUE(server.documents().Create(&context, create, &response).ok());
  }
  std::set<std::string> found;
  std::string token;
  do {
    const auto page =
        server.List(R"({"collection": "books", "page_size": 1, "page_token": ")" + token + R"("})");
    ASSERT_TRUE(page.ok());
    found.insert(page.response.documents(0).id());
    token = page.response.next_page_token();
  } while (!token.empty());
  EXPECT_EQ(found, std::set<std::string>(ids.begin(), ids.end()));
}

}  // namespace
}  // namespace strata::rpc_test
