// What is refused before anything is done for it: each with its status and its body, and nothing
// written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/http/http_world.h"

namespace strata::http_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kCreate[] = "/strata.v1.DocumentService/Create";
constexpr char kBook[] = R"({"collection": "books", "id": "moby", "content": {"json": {}}})";

struct Refused {
  std::string what;
  std::string request;
  int status = 0;
  std::string code;
  std::string message;  // a part of it
};

// A write, but for one header.
Refused Header(const std::string& name, const std::string& value, int status,
               const std::string& code, const std::string& message) {
  return {name + ": " + value, Post(kCreate, kBook, {{name, value}}), status, code, message};
}

std::vector<Refused> All() {
  const std::string chunked = "POST " + std::string(kCreate) +
                              " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                              "Transfer-Encoding: chunked\r\n\r\n";
  return {
      // DNS rebinding: a site of any name that is pointed at this machine.
      Header("Host", "evil.example", 421, "invalid_argument", "--http-host"),
      Header("Host", "evil.example:80", 421, "invalid_argument", "--http-host"),
      Header("Host", "localhost.evil.example", 421, "invalid_argument", "--http-host"),
      Header("Host", "localhost:x", 421, "invalid_argument", "--http-host"),
      Header("Host", "10.0.0.1", 421, "invalid_argument", "--http-host"),
      Header("Host", "127.0.0.1@evil.example", 421, "invalid_argument", "--http-host"),
      Header("Host", "%6cocalhost", 421, "invalid_argument", "--http-host"),
      Header("Host", "[::1", 421, "invalid_argument", "--http-host"),
      Header("Host", "", 400, "invalid_argument", "one Host header"),
      // Another site's page, whatever it tries.
      Header("Origin", "http://evil.example", 403, "permission_denied", "Origin"),
      Header("Origin", "http://localhost:1", 403, "permission_denied", "Origin"),
      Header("Origin", "http://localhost.evil.example", 403, "permission_denied", "Origin"),
      Header("Origin", "null", 403, "permission_denied", "Origin"),
      Header("Origin", "ftp://localhost", 403, "permission_denied", "Origin"),
      Header("Sec-Fetch-Site", "cross-site", 403, "permission_denied", "Sec-Fetch-Site"),
      Header("Sec-Fetch-Site", "same-site", 403, "permission_denied", "Sec-Fetch-Site"),
      {"a navigation that posts",
       Post(kCreate, kBook,
            {{"Sec-Fetch-Site", "cross-site"},
             {"Sec-Fetch-Mode", "navigate"},
             {"Sec-Fetch-Dest", "document"}}),
       403, "permission_denied", "Sec-Fetch-Site"},
      // What a form can send without asking first.
      Header("Content-Type", "text/plain", 415, "invalid_argument", "Content-Type"),
      Header("Content-Type", "application/x-www-form-urlencoded", 415, "invalid_argument",
             "Content-Type"),
      Header("Content-Type", "multipart/form-data; boundary=x", 415, "invalid_argument",
             "Content-Type"),
      Header("Content-Type", "", 415, "invalid_argument", "Content-Type"),
      Header("Content-Type", "application/json; charset=utf-16", 415, "invalid_argument",
             "Content-Type"),
      Header("Content-Type", "application/connect+json", 415, "invalid_argument",
             "application/json"),
      Header("Content-Type", "application/grpc", 415, "invalid_argument", "application/json"),
      {"two content types",
       Post(kCreate, kBook, {{"Content-Type", "application/json"}, {"Content-type", "text/plain"}}),
       415, "invalid_argument", "Content-Type"},
      // Bombs.
      Header("Content-Encoding", "gzip", 415, "invalid_argument", "not compressed"),
      Header("Content-Encoding", "br", 415, "invalid_argument", "not compressed"),
      Header("Content-Encoding", "identity, gzip", 415, "invalid_argument", "not compressed"),
      // Sizes.
      {"a byte too much", Post(kCreate, std::string((4 << 20) + 1, ' ')), 413, "invalid_argument",
       "4194305 bytes, at most 4194304"},
      {"a length of terabytes", Post(kCreate, "", {{"Content-Length", "5000000000000"}}), 413,
       "invalid_argument", "at most 4194304"},
      {"chunks that are too much", chunked + "400001\r\n", 413, "invalid_argument",
       "at most 4194304"},
      {"a chunk that is too much", chunked + "ffffffff\r\n", 413, "invalid_argument",
       "at most 4194304"},
      {"a long head", Get("/", {{"X-Long", std::string(70'000, 'x')}}), 431, "invalid_argument",
       "65536"},
      // Bodies that two programs could read differently.
      {"two lengths", Post(kCreate, kBook, {{"Content-Length", "1"}, {"content-length", "1"}}), 400,
       "invalid_argument", "more than once"},
      {"a length and chunks", Post(kCreate, kBook, {{"Transfer-Encoding", "chunked"}}), 400,
       "invalid_argument", "more than once"},
      {"a chunk's length in doubt", chunked + "0x5\r\n", 400, "invalid_argument", "chunks"},
      {"a chunk's length below zero", chunked + "-5\r\n", 400, "invalid_argument", "chunks"},
      {"a chunk's extension", chunked + "2;a=b\r\n{}\r\n0\r\n\r\n", 400, "invalid_argument",
       "chunks"},
      {"a chunk without its end", chunked + "2\r\n{}0\r\n\r\n", 400, "invalid_argument", "chunks"},
      {"a trailer", chunked + "2\r\n{}\r\n0\r\nHost: b\r\n\r\n", 400, "invalid_argument", "chunks"},
      // Methods and paths.
      {"no such method of a service", Post("/strata.v1.DocumentService/Nope", "{}"), 404,
       "unimplemented", "no method /strata.v1.DocumentService/Nope"},
      {"no such service", Post("/strata.v1.Nope/Get", "{}"), 404, "unimplemented", "no method"},
      {"another path", Post("/a", "{}"), 404, "unimplemented", "no method"},
      {"a path that climbs", Get("/../etc/passwd"), 404, "not_found", "no such page"},
      {"a path that climbs, in code", Get("/%2e%2e/etc/passwd"), 404, "not_found", "no such page"},
      {"a call by GET", Get(kCreate), 405, "unimplemented", "POST"},
      {"Connect's own GET", Get(std::string(kCreate) + "?connect=v1&encoding=json&message=%7B%7D"),
       405, "unimplemented", "POST"},
      {"a page by POST", Post("/", "{}"), 405, "unimplemented", "GET"},
      {"a preflight",
       "OPTIONS " + std::string(kCreate) +
           " HTTP/1.1\r\nHost: localhost\r\nAccess-Control-Request-Method: POST\r\n\r\n",
       405, "unimplemented", "POST"},
      {"a preflight of everything", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 405,
       "unimplemented", "POST"},
      {"DELETE", "DELETE " + std::string(kCreate) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 405,
       "unimplemented", "POST"},
      {"TRACE", "TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "unimplemented", "GET"},
      // Protocols.
      {"chunks in HTTP/1.0",
       "POST " + std::string(kCreate) +
           " HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400, "invalid_argument", "Transfer-Encoding"},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "unimplemented", "HTTP/1.1"},
      {"TLS", std::string("\x16\x03\x01\x02", 4), 400, "invalid_argument", "without TLS"},
      Header("Connect-Protocol-Version", "2", 400, "invalid_argument", "Connect-Protocol-Version"),
      Header("Connect-Timeout-Ms", "12345678901", 400, "invalid_argument", "10 digits"),
      Header("Connect-Timeout-Ms", "-1", 400, "invalid_argument", "10 digits"),
      Header("Authorization", "Bearer \xC3\xA4", 400, "invalid_argument", "printable ASCII"),
      {"a stream in both directions", Post("/strata.v1.QueueService/Receive", "{}"), 501,
       "unimplemented", "call it by gRPC"},
      {"a stream of requests", Post("/strata.v1.EnrollmentService/Apply", "{}"), 501,
       "unimplemented", "call it by gRPC"},
  };
}

TEST(Refusals, EachHasItsStatusAndItsBodyAndNothingIsWritten) {
  HttpWorld world;
  ASSERT_TRUE(world.grpc().CreateCollection(R"({"name": "books"})").ok());
  const int64_t before = world.commits();
  for (const Refused& refused : All()) {
    SCOPED_TRACE(refused.what);
    HttpClient client(world.port());
    client.Send(refused.request);
    const Response response = client.Read();
    EXPECT_EQ(response.status, refused.status);
    EXPECT_EQ(JsonText(response.body, "code"), refused.code) << response.body;
    EXPECT_THAT(JsonText(response.body, "message"), HasSubstr(refused.message));
    EXPECT_THAT(response.body, HasSubstr(R"("details":[)"));
    EXPECT_EQ(response.header("content-type"), "application/json");
    for (const auto& [name, value] : response.headers) {
      EXPECT_THAT(name, Not(StartsWith("access-control"))) << "no other site may read answers";
    }
  }
  EXPECT_EQ(world.commits(), before);
  // What the requests would have written, had they been taken.
  EXPECT_EQ(world.Call("DocumentService/Create", kBook).status, 200);
  EXPECT_GT(world.commits(), before);
}

TEST(Refusals, WhatWasNotReadIsNotTakenForAnotherRequest) {
  HttpWorld world;
  const std::string hidden = Post(kCreate, kBook);
  const std::string requests[] = {
      Post(kCreate, hidden, {{"Content-Type", "text/plain"}}),
      Post(kCreate, hidden, {{"Host", "evil.example"}}),
      Post("/nowhere", hidden),
      Post(kCreate, "0\r\n\r\n" + hidden, {{"Transfer-Encoding", "chunked"}}),
      Get("/version", {{"Content-Length", std::to_string(hidden.size())}}) + hidden,
      "POST " + std::string(kCreate) + " HTTP/1.1\nHost: localhost\n\n" + hidden,
  };
  for (const std::string& request : requests) {
    HttpClient client(world.port());
    client.Send(request);
    const Response response = client.Read();
    EXPECT_EQ(response.header("connection"), "close") << request.substr(0, 200);
    EXPECT_TRUE(client.IsClosed());
  }
  const auto found = world.grpc().Get(R"({"collection": "books", "id": "moby"})");
  EXPECT_EQ(found.details().reason, "COLLECTION_NOT_FOUND") << "a hidden request was served";
}

TEST(Refusals, TellOfOtherWays) {
  HttpWorld world;
  EXPECT_EQ(CallOnce(world.port(), Get(kCreate)).header("allow"), "POST");
  EXPECT_EQ(CallOnce(world.port(), Post("/", "")).header("allow"), "GET, HEAD");
  EXPECT_EQ(CallOnce(world.port(), Post(kCreate, "{}", {{"Content-Type", "text/plain"}}))
                .header("accept-post"),
            "application/json, application/proto");
}

// Both ways in which what is refused may be meant: by who runs the port, or by whom it is run.
TEST(Refusals, NotOfThoseWhoAreMeant) {
  app::ServerOptions options = HttpOptions();
  options.http.hosts = {"strata.example.org", "Other"};
  HttpWorld world(options);
  const std::string port = std::to_string(world.port());
  for (const std::string& host :
       {std::string("localhost"), "localhost:" + port, std::string("LOCALHOST:9"),
        "127.0.0.1:" + port, std::string("[::1]:8080"), std::string("strata.example.org"),
        std::string("Strata.Example.Org:443"), std::string("other")}) {
    EXPECT_EQ(CallOnce(world.port(), Get("/version", {{"Host", host}})).status, 200) << host;
    const RequestHeaders of_page = {
        {"Host", host}, {"Origin", "http://" + host}, {"Sec-Fetch-Site", "same-origin"}};
    EXPECT_EQ(world.Call("ServerService/GetServerInfo", "{}", of_page).status, 200) << host;
  }
  EXPECT_EQ(world.Call("ServerService/GetServerInfo", "{}", {{"Sec-Fetch-Site", "none"}}).status,
            200);
  // A proxy in front speaks TLS with the browser.
  EXPECT_EQ(world
                .Call("ServerService/GetServerInfo", "{}",
                      {{"Host", "strata.example.org"}, {"Origin", "https://strata.example.org"}})
                .status,
            200);
  // A link to the page, from anywhere; but nothing else of another site.
  RequestHeaders link = {{"Sec-Fetch-Site", "cross-site"},
                         {"Sec-Fetch-Mode", "navigate"},
                         {"Sec-Fetch-Dest", "document"}};
  EXPECT_EQ(CallOnce(world.port(), Get("/", link)).status, 200);
  EXPECT_EQ(CallOnce(world.port(), Get("/version", link)).status, 403);
  link.back().second = "iframe";
  EXPECT_EQ(CallOnce(world.port(), Get("/", link)).status, 403);
}

TEST(Refusals, OneConnectionServesManyRequestsInTheirOrder) {
  HttpWorld world;
  HttpClient client(world.port());
  const std::string chunked =
      "POST " + std::string(kCreate) +
      " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json;charset=UTF-8\r\n"
      "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"col\r\n" +
      [] {
        const std::string rest = R"(lection": "books", "id": "a", "content": {"json": {}}})";
        char size[16];
        std::snprintf(size, sizeof size, "%zX", rest.size());
        return std::string(size) + "\r\n" + rest + "\r\n0\r\n\r\n";
      }();
  client.Send(chunked +
              Post(PathOf("DocumentService/Get"), R"({"collection": "books", "id": "b"})") +
              Get("/version") +
              Post(PathOf("DocumentService/Get"), R"({"collection": "books", "id": "a"})"));
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(client.Read().status, 404);
  EXPECT_EQ(client.Read().status, 200);
  const Response last = client.Read();
  EXPECT_THAT(last.body, HasSubstr(R"("id":"a")"));
  EXPECT_EQ(last.header("connection"), "");
}

TEST(Refusals, ABodyWaitsForTheWordToGoOn) {
  HttpWorld world;
  const std::string request = Post(kCreate, kBook, {{"Expect", "100-continue"}});
  HttpClient client(world.port());
  client.Send(request.substr(0, request.size() - std::string_view(kBook).size()));
  ASSERT_TRUE(client.HasMore(kPatience)) << "it is told to go on";
  client.Send(kBook);
  EXPECT_EQ(client.Read().status, 200);
  // Who would be refused anyhow is not.
  HttpClient other(world.port());
  other.Send("POST " + std::string(kCreate) +
             " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
             "5000000\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(other.Read().status, 413);
}

}  // namespace
}  // namespace strata::http_test
