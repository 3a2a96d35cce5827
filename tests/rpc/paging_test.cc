// Pages: nothing is missing, nothing comes twice, and a token comes exactly if something follows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

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
    }
    EXPECT_GE(whole.size(), static_cast<size_t>(kItems));
  }
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
    ASSERT_GT(paged.size(), before.size());  // what was written meanwhile comes behind
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
