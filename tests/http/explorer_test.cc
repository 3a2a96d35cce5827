// The page: every file of the folder, as a browser needs it, under a policy that lets in nothing
// else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/http/http_world.h"
#include "tests/support/places.h"

namespace strata::http_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace fs = std::filesystem;

std::string Contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST(Explorer, EveryFileIsServedAsItIs) {
  HttpWorld world;
  HttpClient client(world.port());
  const fs::path folder = test_support::SourcePath("service/http/explorer");
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = "/" + fs::relative(entry.path(), folder).string();
    SCOPED_TRACE(path);
    const Response response = client.Call(Get(path));
    EXPECT_EQ(response.status, 200);
    EXPECT_TRUE(response.body == Contents(entry.path()));
    EXPECT_THAT(response.header("content-type"), Not(HasSubstr("octet-stream")))
        << "a kind of file that explorer.cc does not know";
    ++files;
  }
  EXPECT_GT(files, 0);
  const Response index = client.Call(Get("/"));
  EXPECT_EQ(index.body, Contents(folder / "index.html"));
  EXPECT_EQ(index.header("content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(client.Call(Get("/?q=1")).body, index.body);
}

TEST(Explorer, ItsAdviceIsThatOfTheProto) {
  HttpWorld world;
  const Response response = CallOnce(world.port(), Get("/advice.js"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("content-type"), "text/javascript; charset=utf-8");
  EXPECT_THAT(response.body, StartsWith("export const ADVICE = {\n"));
  EXPECT_THAT(response.body, HasSubstr("POSITION_UNKNOWN: \"No commit has that number yet.\",\n"));
  EXPECT_THAT(response.body, Not(HasSubstr("ALREADY_ACKNOWLEDGED"))) << "which has none";
}

TEST(Explorer, ACopyIsAskedForAgainAndNotSentAgain) {
  HttpWorld world;
  HttpClient client(world.port());
  const Response first = client.Call(Get("/"));
  EXPECT_EQ(first.header("cache-control"), "no-cache");
  const std::string tag = first.header("etag");
  ASSERT_THAT(tag, StartsWith("\""));
  const Response again = client.Call(Get("/", {{"If-None-Match", "\"x\", W/" + tag}}));
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.header("etag"), tag);
  EXPECT_EQ(again.header("content-length"), "");
  EXPECT_EQ(client.Call(Get("/", {{"If-None-Match", "\"x\""}})).status, 200);
}

TEST(Explorer, AHeadIsThatOfAGet) {
  HttpWorld world;
  HttpClient client(world.port());
  const Response got = client.Call(Get("/"));
  client.Send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const Response head = client.Read(/*head=*/true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers, got.headers);
  EXPECT_EQ(client.Call(Get("/version")).status, 200) << "no body came";
}

TEST(Explorer, EveryAnswerLetsInNothingButItsOwn) {
  HttpWorld world;
  for (const std::string& request :
       {Get("/"), Get("/version"), Get("/nowhere"),
        Post(PathOf("ServerService/GetServerInfo"), "{}"),
        Post(PathOf("DocumentService/Get"), "{}"), Get("/", {{"Host", "evil.example"}}),
        std::string("nonsense\r\n\r\n"), Get("/", {{"If-None-Match", "*"}})}) {
    SCOPED_TRACE(request);
    const Response response = CallOnce(world.port(), request);
    EXPECT_EQ(response.header("content-security-policy"),
              "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
              "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    EXPECT_EQ(response.header("x-content-type-options"), "nosniff");
    EXPECT_EQ(response.header("x-frame-options"), "DENY");
    EXPECT_EQ(response.header("referrer-policy"), "no-referrer");
    EXPECT_EQ(response.header("cross-origin-resource-policy"), "same-origin");
    EXPECT_EQ(response.header("cross-origin-opener-policy"), "same-origin");
    EXPECT_EQ(response.headers.count("strict-transport-security"), 0U);
    EXPECT_EQ(response.headers.count("server"), 0U);
  }
  EXPECT_EQ(CallOnce(world.port(), Get("/version")).header("cache-control"), "no-store");
}

// Neither a range nor a compressed copy, whatever is asked for: there is one form of each answer.
TEST(Explorer, AnAnswerIsWholeAndUncompressed) {
  HttpWorld world;
  const Response response = CallOnce(
      world.port(),
      Get("/", {{"Range", "bytes=0-1,2-3,0-1"}, {"Accept-Encoding", "gzip, br, deflate"}}));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.count("content-encoding"), 0U);
  EXPECT_EQ(response.body,
            Contents(fs::path(test_support::SourcePath("service/http/explorer")) / "index.html"));
}

}  // namespace
}  // namespace strata::http_test
