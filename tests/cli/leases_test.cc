// Claims about lease and the leases of writes: what they send and what they print.
#include <gmock/gmock.h>

#include <cstdlib>
#include <string>

#include "google/protobuf/util/json_util.h"
#include "tests/cli/command_line.h"
#include "tests/support/environment_variable.h"

namespace strata::cli {
namespace {

using testing::HasSubstr;

v1::Lease ParseLease(const std::string& json) {
  v1::Lease lease;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &lease).ok()) << json;
  return lease;
}

class LeaseCommands : public CommandLine {
 protected:
  LeaseCommands() {
    server_.leases.leases = {
        ParseLease(R"({"name": "jobs", "holder": "worker-1", "token": "17", "ttl": "10s",
                       "expire_time": "2026-01-31T12:00:00Z", "metadata": {"address": "here"},
                       "position": "900", "index": 3})"),
        ParseLease(R"({"name": "nightly", "token": "18"})")};
  }

  static constexpr char kLease[] = R"({"name":"jobs","token":"17"})";
};

TEST_F(LeaseCommands, AcquirePrintsWhatWritesTake) {
  const Outcome outcome = Run({"lease", "acquire", "jobs", "worker-1", "--ttl", "1.5s", "--wait",
                               "20", "--metadata", "address=here"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(outcome.out, std::string(kLease) + "\n");
  const v1::AcquireRequest& sent = server_.leases.last_acquire;
  EXPECT_EQ(sent.name(), "jobs");
  EXPECT_EQ(sent.holder(), "worker-1");
  EXPECT_EQ(sent.ttl().seconds(), 1);
  EXPECT_EQ(sent.ttl().nanos(), 500'000'000);
  EXPECT_EQ(sent.wait().seconds(), 20);
  EXPECT_EQ(sent.metadata().at("address"), "here");
  ASSERT_EQ(Run({"lease", "acquire", "jobs", "worker-1"}).status, kExitOk);
  EXPECT_FALSE(server_.leases.last_acquire.has_ttl());
  EXPECT_FALSE(server_.leases.last_acquire.has_wait());
}

TEST_F(LeaseCommands, RenewAndReleaseTakeIt) {
  const Outcome renewed = Run({"lease", "renew", kLease, "--ttl", "30s", "--position", "900"});
  EXPECT_EQ(renewed.status, kExitOk) << renewed.err;
  EXPECT_EQ(server_.leases.last_renew.name(), "jobs");
  EXPECT_EQ(server_.leases.last_renew.token(), 17);
  EXPECT_EQ(server_.leases.last_renew.ttl().seconds(), 30);
  EXPECT_EQ(server_.leases.last_renew.position(), 900);
  EXPECT_EQ(renewed.out,
            "NAME  HOLDER    TOKEN  EXPIRES              POSITION\n"
            "jobs  worker-1     17  2026-01-31 12:00:00  900, event 3\n"
            "    address=here\n");
  const Outcome released = Run({"lease", "release", kLease});
  EXPECT_EQ(released.status, kExitOk) << released.err;
  EXPECT_EQ(server_.leases.last_release.name(), "jobs");
  EXPECT_EQ(server_.leases.last_release.token(), 17);
}

TEST_F(LeaseCommands, GetAndListShowWhoHasThem) {
  const Outcome found = Run({"lease", "get", "jobs", "--json"});
  EXPECT_EQ(found.status, kExitOk) << found.err;
  EXPECT_EQ(server_.leases.last_get.name(), "jobs");
  EXPECT_THAT(found.out, HasSubstr(R"("ttl":"10s")"));
  EXPECT_THAT(found.out, HasSubstr(R"("position":"900")"));
  const Outcome listed = Run({"lease", "list", "j"});
  EXPECT_EQ(listed.status, kExitOk) << listed.err;
  EXPECT_EQ(server_.leases.last_list.prefix(), "j");
  EXPECT_THAT(listed.out, HasSubstr("jobs  worker-1     17"));
  EXPECT_THAT(listed.out, HasSubstr("nightly  -"));
}

TEST_F(LeaseCommands, WritesShowTheLease) {
  ASSERT_EQ(Run({"create", "books", "moby", "{}", "--lease", kLease}).status, kExitOk);
  EXPECT_EQ(server_.last_create.lease().name(), "jobs");
  EXPECT_EQ(server_.last_create.lease().token(), 17);
  const std::string placed =
      R"({"name": "jobs", "token": 17, "position": "900", "index": 3, "after_position": "899"})";
  ASSERT_EQ(Run({"update", "books", "moby", "{}", "--lease", placed}).status, kExitOk);
  EXPECT_EQ(server_.last_update.lease().position(), 900);
  EXPECT_EQ(server_.last_update.lease().index(), 3);
  EXPECT_EQ(server_.last_update.lease().after_position(), 899);
  ASSERT_EQ(Run({"restore", "books", "moby", "--version", "1", "--lease", kLease}).status, kExitOk);
  EXPECT_EQ(server_.last_restore.lease().token(), 17);
  ASSERT_EQ(Run({"delete", "books", "moby", "--lease", kLease}).status, kExitOk);
  EXPECT_EQ(server_.last_delete.lease().token(), 17);
  ASSERT_EQ(Run({"commit", "-", "--lease", kLease}, R"({"writes": []})").status, kExitOk);
  EXPECT_EQ(server_.transactions.last_commit.lease().token(), 17);
  ASSERT_EQ(Run({"create", "books", "emma", "{}"}).status, kExitOk);
  EXPECT_FALSE(server_.last_create.has_lease());
}

TEST_F(LeaseCommands, TheEnvironmentShowsItToo) {
  const test_support::EnvironmentVariable lease("STRATA_LEASE", kLease);
  ASSERT_EQ(Run({"create", "books", "moby", "{}"}).status, kExitOk);
  EXPECT_EQ(server_.last_create.lease().token(), 17);
  ASSERT_EQ(Run({"lease", "renew"}).status, kExitOk);
  EXPECT_EQ(server_.leases.last_renew.token(), 17);
}

TEST_F(LeaseCommands, WhatIsNoLeaseIsNotSent) {
  for (const char* const lease : {"jobs", "[]", R"({"nam": "jobs"})", R"({"token": "x"})"}) {
    const Outcome outcome = Run({"create", "books", "moby", "{}", "--lease", lease});
    EXPECT_EQ(outcome.status, kExitUsage) << lease;
    EXPECT_THAT(outcome.err, HasSubstr("no LeaseToken"));
    EXPECT_EQ(Run({"lease", "renew", lease}).status, kExitUsage) << lease;
    EXPECT_EQ(Run({"lease", "release", lease}).status, kExitUsage) << lease;
  }
  EXPECT_EQ(Run({"lease", "acquire", "jobs"}).status, kExitUsage);
  EXPECT_EQ(Run({"lease", "acquire", "jobs", "a", "--ttl", "long"}).status, kExitUsage);
  EXPECT_EQ(Run({"lease", "renew", kLease, "--position", "0"}).status, kExitUsage);
  EXPECT_EQ(Run({"lease"}).status, kExitUsage);
  EXPECT_TRUE(server_.received_calls().empty());
}

TEST_F(LeaseCommands, ARefusalIsToldWithItsReason) {
  server_.leases.end = grpc::Status(grpc::StatusCode::ABORTED, "worker-2 has the lease");
  const Outcome outcome = Run({"lease", "acquire", "jobs", "worker-1"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("worker-2 has the lease"));
}

}  // namespace
}  // namespace strata::cli
