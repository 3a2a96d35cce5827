// LeaseService and fenced writes over the wire: who waits is served, let go and told when the
// server goes; what a zombie writes is refused, also among many.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "strata/v1/lease_service.pb.h"
#include "tests/rpc/test_server.h"

namespace strata::rpc_test {
namespace {

using testing::ElementsAre;

class LeaseRpcs : public testing::Test {
 protected:
  v1::Lease Acquire(const std::string& holder, const std::string& name = "jobs") {
    const auto acquired =
        server_.Acquire(R"({"name": ")" + name + R"(", "holder": ")" + holder + "\"}");
    EXPECT_TRUE(acquired.ok()) << acquired.status.error_message();
    return acquired.response.lease();
  }
  static std::string Shown(const v1::Lease& lease, const std::string& rest = "") {
    return R"("lease": {"name": ")" + lease.name() + R"(", "token": )" +
           std::to_string(lease.token()) + rest + "}";
  }
  // A call of Acquire that is under way. The server has it when it has answered the next call: they
  // share a connection.
  class Waiting {
   public:
    Waiting(LeaseRpcs& test, const std::string& holder) {
      call_ = test.server_.leases().AsyncAcquire(
          &context_,
          Parse<v1::AcquireRequest>(R"({"name": "jobs", "wait": "20s", "holder": ")" + holder +
                                    "\"}"),
          &queue_);
      call_->Finish(&outcome_.response, &outcome_.status, this);
      test.CallTo();
    }
    void Cancel() { context_.TryCancel(); }
    const Outcome<v1::AcquireResponse>& Await() {
      void* tag = nullptr;
      bool ok = false;
      EXPECT_TRUE(queue_.Next(&tag, &ok));
      return outcome_;
    }

   private:
    grpc::ClientContext context_;
    grpc::CompletionQueue queue_;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::AcquireResponse>> call_;
    Outcome<v1::AcquireResponse> outcome_;
  };
  // And back.
  void CallTo() {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(server_.GetLease(R"({"name": "jobs"})").ok());
  }
  int64_t LastPosition() {
    const auto head = server_.GetLedgerHead("{}");
    EXPECT_TRUE(head.ok()) << head.status.error_message();
    return head.response.head().position();
  }

  TestServer server_;
};

TEST_F(LeaseRpcs, ALeaseIsToldAsItStands) {
  const auto acquired = server_.Acquire(R"({"name": "jobs", "holder": "anna", "ttl": "7.5s",
                                            "metadata": {"address": "here"}})");
  ASSERT_TRUE(acquired.ok());
  const v1::Lease& lease = acquired.response.lease();
  EXPECT_EQ(lease.holder(), "anna");
  EXPECT_GT(lease.token(), 0);
  EXPECT_EQ(lease.ttl().seconds(), 7);
  EXPECT_EQ(lease.ttl().nanos(), 500'000'000);
  EXPECT_TRUE(lease.has_expire_time());
  EXPECT_EQ(lease.metadata().at("address"), "here");
  EXPECT_EQ(lease.position(), 0);
  EXPECT_FALSE(lease.has_index());
  EXPECT_EQ(server_.GetLease(R"({"name": "jobs"})").response.lease().SerializeAsString(),
            lease.SerializeAsString());
  const std::string token = std::to_string(lease.token());
  const auto renewed = server_.Renew(R"({"name": "jobs", "ttl": "60s", "token": )" + token + "}");
  ASSERT_TRUE(renewed.ok());
  EXPECT_EQ(renewed.response.lease().ttl().seconds(), 60);
  EXPECT_GT(renewed.response.lease().expire_time().seconds(), lease.expire_time().seconds() + 40);
  const auto released = server_.Release(R"({"name": "jobs", "token": )" + token + "}");
  ASSERT_TRUE(released.ok());
  EXPECT_EQ(released.response.lease().holder(), "");
  EXPECT_GT(released.response.lease().token(), lease.token());
}

TEST_F(LeaseRpcs, LeasesAreListedInPages) {
  for (const char* const name : {"b", "a/2", "a/1", "c"}) Acquire("anna", name);
  std::vector<std::string> names;
  std::string token;
  do {
    const auto page =
        server_.ListLeases(R"({"page_size": 1, "prefix": "a/", "page_token": ")" + token + "\"}");
    ASSERT_TRUE(page.ok()) << page.status.error_message();
    for (const v1::Lease& lease : page.response.leases()) names.push_back(lease.name());
    token = page.response.next_page_token();
  } while (!token.empty());
  EXPECT_THAT(names, ElementsAre("a/1", "a/2"));
  EXPECT_EQ(server_.ListLeases("{}").response.leases_size(), 4);
}

TEST_F(LeaseRpcs, WhoWaitsGetsALeaseThatIsReleased) {
  const v1::Lease lease = Acquire("anna");
  Waiting bob(*this, "bob");
  ASSERT_TRUE(
      server_.Release(R"({"name": "jobs", "token": )" + std::to_string(lease.token()) + "}").ok());
  const auto& outcome = bob.Await();
  ASSERT_TRUE(outcome.ok()) << outcome.status.error_message();
  EXPECT_GT(outcome.response.lease().token(), lease.token());
}

TEST_F(LeaseRpcs, WhoGaveUpGetsNone) {
  const v1::Lease lease = Acquire("anna");
  Waiting bob(*this, "bob");
  bob.Cancel();
  EXPECT_EQ(bob.Await().status.error_code(), grpc::StatusCode::CANCELLED);
  CallTo();
  ASSERT_TRUE(
      server_.Release(R"({"name": "jobs", "token": )" + std::to_string(lease.token()) + "}").ok());
  EXPECT_EQ(server_.GetLease(R"({"name": "jobs"})").response.lease().holder(), "");
}

TEST_F(LeaseRpcs, WhoWaitsIsToldWhenTheServerGoes) {
  Acquire("anna");
  Waiting bob(*this, "bob");
  server_.server().Shutdown();
  EXPECT_EQ(bob.Await().details().reason, "DRAINING");
}

TEST_F(LeaseRpcs, AWriteMovesThePlaceOnceAndAZombieNever) {
  ASSERT_TRUE(server_
                  .Create(R"({"collection": "books", "id": "moby",
                                 "content": {"json": {"n": 1}}})")
                  .ok());
  const int64_t event = LastPosition();
  const v1::Lease lease = Acquire("anna");
  const std::string done = R"(, "position": )" + std::to_string(event) + R"(, "index": 0)";
  const std::string update = R"({"collection": "books", "id": "moby", "request_id": "r1",
                                 "replace": {"json": {"n": 2}}, )" +
                             Shown(lease, done) + "}";
  const auto first = server_.Update(update);
  ASSERT_TRUE(first.ok()) << first.status.error_message();
  const v1::Lease moved = server_.GetLease(R"({"name": "jobs"})").response.lease();
  EXPECT_EQ(moved.position(), event);
  EXPECT_EQ(moved.index(), 0);
  EXPECT_TRUE(moved.has_index());
  const auto next = Acquire("anna");
  const auto again = server_.Update(update);
  ASSERT_TRUE(again.ok()) << again.status.error_message();
  EXPECT_TRUE(again.response.replayed());
  const std::string moby = R"({"collection": "books", "id": "moby", )";
  for (const auto& status :
       {server_.Create(R"({"collection": "books", "content": {"json": {}}, )" + Shown(lease) + "}")
            .status,
        server_.Update(moby + R"("replace": {"json": {"n": 3}}, )" + Shown(lease) + "}").status,
        server_.Delete(moby + Shown(lease) + "}").status,
        server_.Restore(moby + R"("version": 1, )" + Shown(lease) + "}").status,
        server_
            .Commit(R"({"writes": [{"delete": {"collection": "books", "id": "moby"}}], )" +
                    Shown(lease) + "}")
            .status}) {
    const Details details = DetailsOf(status);
    EXPECT_EQ(details.reason, "LEASE_LOST");
    EXPECT_EQ(details.metadata.at("lease"), "jobs");
    EXPECT_EQ(details.metadata.at("actual"), std::to_string(next.token()));
  }
  // What changes nothing says all the same that it was done.
  const std::string same =
      moby + R"("patch": {}, )" + Shown(next, R"(, "position": )" + std::to_string(event)) + "}";
  ASSERT_TRUE(server_.Update(same).ok());
  EXPECT_FALSE(server_.GetLease(R"({"name": "jobs"})").response.lease().has_index());
  EXPECT_EQ(server_.Update(same).details().reason, "ALREADY_ACKNOWLEDGED");
  const auto commit = server_.Commit(
      R"({"writes": [{"delete": {"collection": "books", "id": "moby"}}], )" + Shown(next) + "}");
  EXPECT_TRUE(commit.ok()) << commit.status.error_message();
}

// Sixty-four write one document at once, and a zombie among them.
TEST_F(LeaseRpcs, AZombieAmongManyIsRefusedAlone) {
  constexpr int kWriters = 64;
  ASSERT_TRUE(server_
                  .Create(R"({"collection": "books", "id": "moby",
                                 "content": {"json": {"n": 0}}})")
                  .ok());
  const v1::Lease zombie = Acquire("anna");
  Acquire("anna");
  const std::string increment = R"({"collection": "books", "id": "moby",
                                    "patch": {"operations": [{"path": "/n", "increment": 1}]})";
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  std::atomic<int> attempts_max = 0;
  std::atomic<int> refused = 0;
  for (int i = 0; i < kWriters; ++i) {
    threads.emplace_back([&, i] {
      const auto written = server_.Update(increment + "}");
      failed += written.ok() ? 0 : 1;
      int seen = attempts_max;
      while (seen < written.response.attempts() &&
             !attempts_max.compare_exchange_weak(seen, written.response.attempts())) {
      }
      if (i % 8 != 0) return;
      const auto late = server_.Update(increment + ", " + Shown(zombie) + "}");
      refused += late.details().reason == "LEASE_LOST" ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_LE(attempts_max, 2);
  EXPECT_EQ(refused, kWriters / 8);
  const auto found = server_.Get(R"({"collection": "books", "id": "moby"})");
  EXPECT_EQ(found.response.document().version(), kWriters + 1);
}

}  // namespace
}  // namespace strata::rpc_test
