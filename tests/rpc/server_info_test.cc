// What a server says of itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "schemas/base/error.h"
#include "schemas/store/forwarding_store.h"
#include "service/engines/engines.h"
#include "strata/v1/server_service.grpc.pb.h"
#include "tests/rpc/test_server.h"
#include "tests/support/temporary_directory.h"

namespace strata::rpc_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Not;
using testing::StartsWith;

v1::GetServerInfoResponse InfoOf(const TestServer& server) {
  const auto stub = v1::ServerService::NewStub(server.channel());
  grpc::ClientContext context;
  v1::GetServerInfoResponse response;
  const grpc::Status status = stub->GetServerInfo(&context, {}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

TEST(ServerInfo, TellsWhatTheServerIsAndTakes) {
  app::ServerOptions options = TestOptions();
  options.document_bytes_max = 123'456;
  options.loop.request_bytes_max = 2'345'678;
  options.loop.unary_deadline = std::chrono::milliseconds(12'345);
  const int64_t before = Clock::System().Now() / 1'000'000;
  const TestServer server(options);
  const v1::GetServerInfoResponse info = InfoOf(server);
  EXPECT_THAT(info.version(), testing::MatchesRegex("[0-9]+[.][0-9]+[.][0-9]+"));
  EXPECT_THAT(info.commit(), testing::MatchesRegex("([0-9a-f]{12}(-dirty)?)?"));
  EXPECT_EQ(info.engine(), "memory");
  EXPECT_EQ(info.storage_format(), 0);
  EXPECT_GE(info.start_time().seconds(), before);
  EXPECT_LE(info.start_time().seconds(), before + 60);
  EXPECT_TRUE(info.writable());
  EXPECT_EQ(info.limits().document_bytes(), 123'456);
  EXPECT_EQ(info.limits().document_depth(), 24);
  EXPECT_EQ(info.limits().document_nodes(), 50'000);
  EXPECT_EQ(info.limits().message_bytes(), 2'345'678);
  EXPECT_EQ(info.limits().page_size(), 1000);
  EXPECT_EQ(info.limits().batch_size(), 1000);
  EXPECT_EQ(info.limits().deadline().seconds(), 12);
  EXPECT_EQ(info.limits().deadline().nanos(), 345'000'000);
  EXPECT_TRUE(std::is_sorted(info.services().begin(), info.services().end()));
  EXPECT_THAT(info.services(),
              AllOf(Contains("strata.v1.DocumentService"), Contains("strata.v1.ServerService"),
                    Contains("grpc.reflection.v1.ServerReflection")));
}

TEST(ServerInfo, TellsOfStoredDataAndOfNoReflection) {
  const test_support::TemporaryDirectory directory;
  app::ServerOptions options = TestOptions();
  options.engine = "rocksdb";
  options.data = (directory.path() / "store").string();
  options.reflection = false;
  const TestServer server(options);
  const v1::GetServerInfoResponse info = InfoOf(server);
  EXPECT_EQ(info.engine(), "rocksdb");
  EXPECT_GE(info.storage_format(), 3);
  EXPECT_THAT(info.services(), Each(Not(StartsWith("grpc.reflection"))));
}

class FullStore final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  absl::Status Ready() const override { return Error(ErrorReason::kDiskFull, "no room"); }
};

TEST(ServerInfo, TellsThatWritesAreRefused) {
  engines::OpenOptions open;
  const TestServer server(TestOptions(),
                          std::make_unique<FullStore>(*engines::OpenEngine("memory", open)));
  EXPECT_FALSE(InfoOf(server).writable());
}

}  // namespace
}  // namespace strata::rpc_test
