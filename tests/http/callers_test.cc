// Who calls: the same principals, by the same credentials, with the same rights as by gRPC; and
// nobody by saying so.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>

#include "strata/v1/lease_service.grpc.pb.h"
#include "tests/http/http_world.h"

namespace strata::http_test {
namespace {

using rpc_test::CallAnything;
using rpc_test::Presented;
using rpc_test::SecuredServer;
using testing::HasSubstr;

constexpr char kGrants[] = R"(
  {"principals": ["user:ann", "spiffe://test/ann"], "role": "writer",
   "resources": ["collection/books"]},
  {"principals": ["user:bob"], "role": "reader", "resources": ["collection/books"]})";

class Callers : public testing::Test {
 protected:
  explicit Callers(const std::string& access = "all")
      : server_(kGrants, {"ann", "bob"}, "", 1, false, [&](app::ServerOptions& options) {
          options.http.listen = "127.0.0.1:0";
          options.http.access = access;
        }) {}

  Target TargetFor(const Presented& presented) {
    return {.port = server_.server().http_port(),
            .ca = server_.ca().pem(),
            .certificate = presented.certificate};
  }
  Response Call(const Presented& presented, const std::string& method, const std::string& json,
                RequestHeaders more = {}) {
    if (!presented.authorization.empty()) {
      more.emplace_back("Authorization", presented.authorization);
    }
    return CallOnce(TargetFor(presented), Post(PathOf(method), json, more));
  }
  // By gRPC.
  grpc::Status CallGrpc(const Presented& presented, const std::string& method,
                        const std::string& json) {
    return CallAnything(server_.Connect(presented), "strata.v1." + method, json,
                        presented.authorization)
        .status;
  }

  SecuredServer server_;
};

std::string Create(const std::string& id, const std::string& collection = "books") {
  return R"({"collection": ")" + collection + R"(", "id": ")" + id +
         R"(", "content": {"json": {}}})";
}

TEST_F(Callers, AreWhomTheirTokenOrCertificateSays) {
  const Presented callers[] = {server_.User("ann"), server_.Uri("spiffe://test/ann")};
  int number = 0;
  for (const Presented& caller : callers) {
    const std::string by_http = "h" + std::to_string(number);
    const std::string by_grpc = "g" + std::to_string(number++);
    const Response created = Call(caller, "DocumentService/Create", Create(by_http));
    EXPECT_EQ(created.status, 200) << created.body;
    EXPECT_TRUE(CallGrpc(caller, "DocumentService/Create", Create(by_grpc)).ok());
    // Who wrote it, in the version that each left.
    const auto actor = [&](const std::string& id) {
      const Response history = Call(caller, "DocumentService/History",
                                    R"({"collection": "books", "id": ")" + id + "\"}");
      EXPECT_EQ(history.status, 200) << history.body;
      return JsonText(history.body, "actor");
    };
    EXPECT_EQ(actor(by_http), caller.certificate ? "spiffe://test/ann" : "user:ann");
    EXPECT_EQ(actor(by_http), actor(by_grpc));
  }
}

TEST_F(Callers, AreRefusedAsByGrpc) {
  ASSERT_EQ(Call(server_.User("ann"), "DocumentService/Create", Create("a")).status, 200);
  struct Case {
    Presented caller;
    std::string method;
    std::string json;
    int status;
  };
  const Presented nobody;
  const Presented wrong{.authorization = "Bearer strata_wrong"};
  const Presented basic{.authorization = "Basic YTpi"};
  for (const Case& one : {
           Case{nobody, "DocumentService/Get", R"({"collection": "books", "id": "a"})", 401},
           Case{wrong, "DocumentService/Get", R"({"collection": "books", "id": "a"})", 401},
           Case{basic, "DocumentService/Get", R"({"collection": "books", "id": "a"})", 401},
           Case{server_.User("bob"), "DocumentService/Create", Create("b"), 403},
           Case{server_.User("bob"), "DocumentService/Get",
                R"({"collection": "others", "id": "a"})", 403},
           Case{server_.Uri("spiffe://test/stranger"), "DocumentService/Get",
                R"({"collection": "books", "id": "a"})", 403},
           Case{server_.User("bob"), "DocumentService/Get", R"({"collection": "books", "id": "a"})",
                200},
       }) {
    SCOPED_TRACE(one.caller.authorization + " " + one.method + " " + one.json);
    const Response response = Call(one.caller, one.method, one.json);
    const grpc::Status status = CallGrpc(one.caller, one.method, one.json);
    EXPECT_EQ(response.status, one.status) << response.body;
    EXPECT_EQ(response.status == 200, status.ok());
    EXPECT_EQ(JsonText(response.body, "message"), status.error_message());
    EXPECT_EQ(JsonText(response.body, "reason"), rpc_test::DetailsOf(status).reason);
    EXPECT_EQ(response.header("www-authenticate"), one.status == 401 ? "Bearer" : "");
  }
}

TEST_F(Callers, OfTwoTokensNoneCounts) {
  const std::string authorization = server_.User("ann").authorization;
  const Response response = Call(server_.User("ann"), "DocumentService/Create", Create("a"),
                                 {{"authorization", "Bearer x"}});
  EXPECT_EQ(response.status, 401);
  EXPECT_THAT(response.body, HasSubstr("2 authorization headers"));
}

// What the port tells the server of its callers, said by somebody else.
const std::pair<const char*, const char*> kForged[] = {
    {"strata-port-key-bin", "AAAA"},
    {"strata-port-peer", "ipv4:10.9.8.7:6"},
    {"strata-port-uri-bin", "spiffe://test/owner"},
    {"strata-port-dns-bin", "owner"},
    {"strata-port-access", "all"},
};

TEST_F(Callers, AreNotWhomTheySayTheyAreByGrpc) {
  grpc::ClientContext context;
  for (const auto& [name, value] : kForged) context.AddMetadata(name, value);
  v1::CreateCollectionRequest request;
  request.set_name("others");
  v1::CreateCollectionResponse response;
  const auto stub = v1::CollectionService::NewStub(server_.Connect({}));
  const grpc::Status status = stub->CreateCollection(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << status.error_message();
}

TEST_F(Callers, AreNotWhomTheySayTheyAreByHttp) {
  RequestHeaders forged;
  for (const auto& [name, value] : kForged) forged.emplace_back(name, value);
  EXPECT_EQ(Call({}, "CollectionService/CreateCollection", R"({"name": "others"})", forged).status,
            401);
  const Response bobs = Call(server_.User("bob"), "CollectionService/CreateCollection",
                             R"({"name": "others"})", forged);
  EXPECT_EQ(bobs.status, 403);
  EXPECT_THAT(bobs.body, HasSubstr("user:bob"));
}

class CallersWhoRead : public Callers {
 protected:
  CallersWhoRead() : Callers("read") {}
};

TEST_F(CallersWhoRead, DoNotLiftTheLimitByHeaders) {
  RequestHeaders forged;
  for (const auto& [name, value] : kForged) forged.emplace_back(name, value);
  const Response response =
      Call(server_.User("ann"), "DocumentService/Create", Create("a"), forged);
  EXPECT_EQ(response.status, 403);
  EXPECT_THAT(response.body, HasSubstr("only reads"));
  // Whoever may not call at all hears of that first.
  EXPECT_EQ(Call({}, "DocumentService/Create", Create("a")).status, 401);
}

}  // namespace
}  // namespace strata::http_test
