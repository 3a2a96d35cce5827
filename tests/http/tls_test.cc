// TLS by the files that the gRPC port is served by, and by the newest of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "tests/http/http_world.h"

namespace strata::http_test {
namespace {

using rpc_test::SecuredServer;
using test_support::Certificate;
using test_support::TestCa;

std::function<void(app::ServerOptions&)> Serving(const std::string& client) {
  return [client](app::ServerOptions& options) {
    options.http.listen = "127.0.0.1:0";
    options.security.tls_client = client;
  };
}

void Replace(const std::string& path, const std::string& text) {
  std::ofstream(path + ".new", std::ios::binary) << text;
  ASSERT_EQ(chmod((path + ".new").c_str(), 0600), 0);
  ASSERT_EQ(rename((path + ".new").c_str(), path.c_str()), 0);
}

TEST(Tls, IsAllThatIsSpoken) {
  SecuredServer server("", {"ann"}, "", 1, false, Serving("optional"));
  const int port = server.server().http_port();
  EXPECT_THAT(server.server().http_address(), testing::StartsWith("https://127.0.0.1:"));
  EXPECT_EQ(CallOnce(port, Get("/version")).status, 0);
  EXPECT_EQ(CallOnce({.port = port, .ca = server.ca().pem()}, Get("/version")).status, 200);
  EXPECT_FALSE(HttpClient({.port = port, .ca = TestCa("another").pem()}).connected());
  // Of this very host, but what a page in the clear asks for may be anybody's on the way.
  EXPECT_EQ(CallOnce({.port = port, .ca = server.ca().pem()},
                     Get("/version", {{"Origin", "http://localhost"}}))
                .status,
            403);
}

TEST(Tls, ClientsNeedACertificateWhereGrpcWantsOne) {
  SecuredServer server("", {"ann"}, "", 1, false, Serving("required"));
  const Target without{.port = server.server().http_port(), .ca = server.ca().pem()};
  EXPECT_EQ(CallOnce(without, Get("/version")).status, 0);
  Target with = without;
  with.certificate = server.ca().IssueForUri("spiffe://test/ann");
  EXPECT_EQ(CallOnce(with, Get("/version")).status, 200);
  with.certificate = TestCa("another").IssueForUri("spiffe://test/ann");
  EXPECT_EQ(CallOnce(with, Get("/version")).status, 0) << "of another authority";
}

TEST(Tls, NewConnectionsAreServedByWhatWasReloaded) {
  SecuredServer server("", {"ann"}, "", 1, false, Serving("optional"));
  const Target target{.port = server.server().http_port(), .ca = server.ca().pem()};
  HttpClient old(target);
  ASSERT_TRUE(old.connected());
  const std::string before = old.server_certificate();
  const Certificate next = server.ca().IssueForServer();
  Replace(server.Path("server.key"), next.key_pem);
  Replace(server.Path("server.pem"), next.chain_pem);
  server.server().Reload();
  HttpClient fresh(target);
  EXPECT_NE(fresh.server_certificate(), before);
  EXPECT_EQ(fresh.Call(Get("/version")).status, 200);
  EXPECT_EQ(old.Call(Get("/version")).status, 200) << "connections go on as they are";
  // And so are the authorities of clients.
  const TestCa clients("clients");
  Target of_new = target;
  of_new.certificate = clients.IssueForUri("spiffe://test/owner");
  EXPECT_EQ(CallOnce(of_new, Get("/version")).status, 0);
  Replace(server.Path("clients.pem"), clients.pem());
  server.server().Reload();
  EXPECT_EQ(CallOnce(of_new, Post(PathOf("CollectionService/ListCollections"), "{}")).status, 200);
}

TEST(Tls, AHandshakeHasItsTime) {
  SecuredServer server("", {"ann"}, "", 1, false, [](app::ServerOptions& options) {
    options.http.listen = "127.0.0.1:0";
    options.http.limits.request = std::chrono::milliseconds(200);
  });
  HttpClient silent(server.server().http_port());
  EXPECT_TRUE(silent.IsClosed());
}

}  // namespace
}  // namespace strata::http_test
