// Calls about leases, and writes with one, that are refused: each row says what is asked for, which
// reason and field the answer must name, and what it must say. After each, what is stored is as it
// was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "schemas/store/single_record_store.h"
#include "service/engines/engines.h"
#include "strata/v1/lease_service.pb.h"
#include "tests/rpc/stored.h"
#include "tests/rpc/test_server.h"

namespace strata::rpc_test {
namespace {

using testing::HasSubstr;

struct Row {
  std::string method;  // "Acquire"; "DocumentService/Update"
  std::string request;
  ErrorReason reason;
  std::string field;
  std::string says;
};
using Rows = std::vector<Row>;

constexpr ErrorReason kName = ErrorReason::kInvalidName;
constexpr ErrorReason kField = ErrorReason::kInvalidField;
constexpr ErrorReason kLost = ErrorReason::kLeaseLost;
constexpr ErrorReason kUnsupported = ErrorReason::kUnsupportedByEngine;

std::unique_ptr<store::Store> Engine(bool single_record) {
  auto engine = *engines::OpenEngine("memory", engines::OpenOptions());
  if (!single_record) return engine;
  return std::make_unique<store::SingleRecordStore>(std::move(engine));
}

// A server with a document, a lease that anna holds, another of hers, and one that was released.
class LeaseTable : public testing::Test {
 protected:
  explicit LeaseTable(bool single_record) : LeaseTable(Engine(single_record)) {}

  template <typename Response>
  static void Must(const Outcome<Response>& outcome) {
    ASSERT_TRUE(outcome.ok()) << outcome.status.error_message();
  }
  std::string Acquire(const std::string& name) {
    const auto acquired = server_.Acquire(R"({"name": ")" + name + R"(", "holder": "anna"})");
    Must(acquired);
    return std::to_string(acquired.response.lease().token());
  }
  ~LeaseTable() override { std::printf("refused: %d\n", rows_); }

  void Check(const Rows& rows) {
    for (const Row& row : rows) CheckRow(row);
  }
  // A write of each kind, with this lease.
  void CheckWrites(const std::string& lease, ErrorReason reason, const std::string& field,
                   const std::string& says) {
    const std::string moby = R"({"collection": "books", "id": "moby", "lease": )" + lease;
    Check({
        {"DocumentService/Create",
         R"({"collection": "books", "content": {"json": {}}, "lease": )" + lease + "}", reason,
         field, says},
        {"DocumentService/Update", moby + R"(, "replace": {"json": {"n": 2}}})", reason, field,
         says},
        {"DocumentService/Update", moby + R"(, "patch": {}})", reason, field, says},
        {"DocumentService/Update", moby + R"(, "patch": {}, "validate_only": true})", reason, field,
         says},
        {"DocumentService/Delete", moby + "}", reason, field, says},
        {"DocumentService/Restore", moby + R"(, "version": 1})", reason, field, says},
        {"TransactionService/Commit",
         R"({"writes": [{"update": {"collection": "books", "id": "moby",
                                    "replace": {"json": {"n": 2}}}}], "lease": )" +
             lease + "}",
         reason, field, says},
    });
  }
  static std::string Token(const std::string& name, const std::string& token,
                           const std::string& rest = "") {
    return R"({"name": ")" + name + R"(", "token": )" + token + (rest.empty() ? "" : ", " + rest) +
           "}";
  }

 private:
  explicit LeaseTable(std::unique_ptr<store::Store> store)
      : store_(*store), server_(TestOptions(), std::move(store)) {
    Must(server_.Create(R"({"collection": "books", "id": "moby", "content": {"json": {"n": 1}}})"));
    Must(server_.Update(
        R"({"collection": "books", "id": "moby", "replace": {"json": {"n": 1, "m": 1}}})"));
    token_ = Acquire("jobs");
    other_ = Acquire("others");
    former_ = Acquire("released");
    const auto released = server_.Release(R"({"name": "released", "token": )" + former_ + "}");
    Must(released);
    released_ = std::to_string(released.response.lease().token());
    before_ = HashOfAll(store_);
  }

  void CheckRow(const Row& row) {
    SCOPED_TRACE(row.method + " " + row.request.substr(0, 300));
    const bool about_lease = row.method.find('/') == std::string::npos;
    const grpc::Status status = server_.CallByName(
        (about_lease ? "strata.v1.LeaseService/" : "strata.v1.") + row.method, row.request);
    const Details details = DetailsOf(status);
    EXPECT_EQ(details.reason, ReasonName(row.reason)) << status.error_message();
    EXPECT_EQ(status.error_code(), static_cast<grpc::StatusCode>(ReasonCode(row.reason)));
    EXPECT_EQ(details.field(), row.field) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(row.says));
    EXPECT_TRUE(HashOfAll(store_) == before_) << "something was written";
    ++rows_;
  }

  store::Store& store_;  // the server's

 protected:
  TestServer server_;
  std::string token_;     // of "jobs"
  std::string other_;     // of "others"
  std::string former_;    // of "released", before
  std::string released_;  // what GetLease tells of it

 private:
  document::Hash before_{};
  int rows_ = 0;
};

class LeaseInput : public LeaseTable, public testing::WithParamInterface<bool> {
 protected:
  LeaseInput() : LeaseTable(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Engines, LeaseInput, testing::Bool(), [](const auto& single_record) {
  return std::string(single_record.param ? "OfSingleRecords" : "OfBatches");
});

TEST_P(LeaseInput, NamesAreNames) {
  struct Name {
    std::string text;
    std::string says;
  };
  for (const auto& [name, says] : std::vector<Name>{
           {"", "is empty"},
           {std::string(257, 'x'), "has 257 bytes, at most 256"},
           {R"(a\nb)", "control character at byte 1"},
           {"$view/1", "begins with \"$\""},
           {"$sub/1/member/0", "begins with \"$\""},
       }) {
    const std::string start = R"({"name": ")" + name + "\"";
    Check({
        {"Acquire", start + R"(, "holder": "anna"})", kName, "name", says},
        {"Renew", start + R"(, "token": 1})", kName, "name", says},
        {"Release", start + R"(, "token": 1})", kName, "name", says},
        {"GetLease", start + "}", kName, "name", says},
    });
    CheckWrites(Token(name, "1"), kName, "lease.name", says);
    if (name.starts_with("$")) continue;
    const std::string holder = R"({"name": "new", "holder": ")" + name + "\"}";
    Check({{"Acquire", holder, kName, "holder", says}});
    if (name.empty()) continue;
    Check({{"ListLeases", R"({"prefix": ")" + name + "\"}", kName, "prefix", says}});
  }
  // Only writes take the lease of a subscription's partition.
  Check({{"Acquire", R"({"name": "$sub/1/0", "holder": "anna"})", kName, "name", "with \"$\""},
         {"Renew", R"({"name": "$sub/1/0", "token": 1})", kName, "name", "with \"$\""},
         {"Release", R"({"name": "$sub/1/0", "token": 1})", kName, "name", "with \"$\""},
         {"GetLease", R"({"name": "$sub/1/0"})", kName, "name", "with \"$\""}});
  if (!GetParam()) CheckWrites(Token("$sub/1/0", "1"), kLost, "", "was never acquired");
}

TEST_P(LeaseInput, TimesAreWithinTheirLimits) {
  const std::string acquire = R"({"name": "new", "holder": "anna", )";
  const std::string renew = R"({"name": "jobs", "token": )" + token_ + ", ";
  Check({
      {"Acquire", acquire + R"("ttl": "0s"})", kField, "ttl", "1s to 1h"},
      {"Acquire", acquire + R"("ttl": "0.999s"})", kField, "ttl", "999ms"},
      {"Acquire", acquire + R"("ttl": "3601s"})", kField, "ttl", "1h1s"},
      {"Acquire", acquire + R"("ttl": "-1s"})", kField, "ttl", "1s to 1h"},
      {"Acquire", acquire + R"("ttl": "315576000000s"})", kField, "ttl", "1s to 1h"},
      {"Acquire", acquire + R"("wait": "26s"})", kField, "wait", "0 to 25s"},
      {"Acquire", acquire + R"("wait": "-1s"})", kField, "wait", "0 to 25s"},
      {"Renew", renew + R"("ttl": "0s"})", kField, "ttl", "1s to 1h"},
      {"Renew", renew + R"("ttl": "3601s"})", kField, "ttl", "1s to 1h"},
  });
}

TEST_P(LeaseInput, MetadataIsWithinItsLimits) {
  std::string many;
  for (int i = 0; i < 33; ++i) many += (i ? ", \"" : "\"") + std::to_string(i) + R"(": "")";
  const std::string start = R"({"name": "new", "holder": "anna", "metadata": {)";
  Check({
      {"Acquire", start + many + "}}", kField, "metadata", "has 33 entries, at most 32"},
      {"Acquire", start + R"("": "a"}})", kField, "metadata", "without a name"},
      {"Acquire", start + "\"" + std::string(129, 'x') + R"(": "a"}})", kField, "metadata",
       "at most 128"},
      {"Acquire", start + R"("a": ")" + std::string(257, 'x') + "\"}}", kField, "metadata",
       "at most 256"},
      {"Acquire", start + R"("a": "\u0000"}})", kField, "metadata", "zero byte"},
  });
}

TEST_P(LeaseInput, TokensAreOfWhoHasTheLease) {
  const auto request = [](const std::string& name, const std::string& token) {
    return R"({"name": ")" + name + R"(", "token": )" + token + "}";
  };
  for (const char* const method : {"Renew", "Release"}) {
    Check({
        {method, R"({"name": "jobs"})", kField, "token", "is required"},
        {method, request("jobs", "0"), kField, "token", "is required"},
        {method, request("jobs", "-1"), kField, "token", "is required"},
        {method, request("jobs", other_), kLost, "", "has token " + token_ + ", not " + other_},
        {method, request("released", former_), kLost, "", "was released"},
        {method, request("released", released_), kLost, "", "was released"},
        {method, request("none", "1"), kLost, "", "was never acquired"},
    });
  }
  Check({
      {"GetLease", R"({"name": "none"})", ErrorReason::kLeaseNotFound, "", "no such lease"},
      {"Acquire", R"({"name": "jobs", "holder": "bob"})", ErrorReason::kLeaseHeld, "",
       "anna has the lease until 20"},
      {"ListLeases", R"({"page_size": 1001})", kField, "page_size", "1 to 1000"},
      {"ListLeases", R"({"page_token": "x"})", ErrorReason::kInvalidPageToken, "page_token", ""},
  });
  CheckWrites(R"({"name": "jobs"})", kField, "lease.token", "is required");
  CheckWrites(Token("jobs", "0"), kField, "lease.token", "is required");
  CheckWrites(Token("jobs", "-5"), kField, "lease.token", "is required");
}

TEST_P(LeaseInput, PlacesAreWhole) {
  CheckWrites(Token("jobs", token_, R"("index": 1)"), kField, "lease.index",
              "needs lease.position");
  CheckWrites(Token("jobs", token_, R"("after_position": 1)"), kField, "lease.after_position",
              "needs lease.position");
  CheckWrites(Token("jobs", token_, R"("position": 2, "after_index": 1)"), kField,
              "lease.after_index", "needs lease.after_position");
  CheckWrites(Token("jobs", token_, R"("position": 0)"), kField, "lease.position", "at least 1");
  CheckWrites(Token("jobs", token_, R"("position": 2, "index": -1)"), kField, "lease.index",
              "negative");
  CheckWrites(Token("jobs", token_, R"("position": 2, "after_position": -1)"), kField,
              "lease.after_position", "at least 0");
  CheckWrites(Token("jobs", token_, R"("position": 2, "after_position": 1, "after_index": -1)"),
              kField, "lease.after_index", "negative");
}

TEST_P(LeaseInput, PartsOfATransactionHaveNoLeaseOfTheirOwn) {
  const std::string lease = R"("lease": {"name": "jobs", "token": )" + token_ + "}";
  const std::string moby = R"("collection": "books", "id": "moby", )" + lease;
  const auto commit = [](const std::string& write) { return R"({"writes": [{)" + write + "}]}"; };
  const std::string says = "belongs to the whole transaction";
  Check({
      {"TransactionService/Commit", commit(R"("create": {"content": {"json": {}}, )" + moby + "}"),
       kField, "writes[0].create.lease", says},
      {"TransactionService/Commit", commit(R"("update": {"patch": {}, )" + moby + "}"), kField,
       "writes[0].update.lease", says},
      {"TransactionService/Commit", commit(R"("delete": {)" + moby + "}"), kField,
       "writes[0].delete.lease", says},
      {"TransactionService/Commit", commit(R"("restore": {"version": 1, )" + moby + "}"), kField,
       "writes[0].restore.lease", says},
      {"TransactionService/Commit",
       R"({"mode": "TRANSACTION_MODE_TWO_PHASE", "writes": [{"update": {"collection": "books",
           "id": "moby", "replace": {"json": {}}}}], )" +
           lease + "}",
       kUnsupported, "", "two phases"},
  });
}

// Whatever can only be known where batches are atomic and commits are numbered.
class LeaseInputOfBatches : public LeaseTable {
 protected:
  LeaseInputOfBatches() : LeaseTable(false) {}
};

TEST_F(LeaseInputOfBatches, ZombiesWriteNothing) {
  CheckWrites(Token("jobs", other_), kLost, "", "has token " + token_ + ", not " + other_);
  CheckWrites(Token("released", former_), kLost, "", "was released");
  CheckWrites(Token("released", released_), kLost, "", "was released");
  CheckWrites(Token("none", "1"), kLost, "", "was never acquired");
}

TEST_F(LeaseInputOfBatches, PlacesLieBetweenTheLeasesAndTheLast) {
  const std::string above = "9223372036854775807";
  Check({{"Renew", R"({"name": "jobs", "token": )" + token_ + R"(, "position": )" + above + "}",
          ErrorReason::kPositionUnknown, "position", "after the last commit"},
         {"Renew", R"({"name": "jobs", "token": )" + token_ + R"(, "position": -1})", kField,
          "position", "numbered from 1"}});
  CheckWrites(Token("jobs", token_, R"("position": )" + above), ErrorReason::kPositionUnknown,
              "lease.position", "after the last commit");
  CheckWrites(Token("jobs", token_, R"("position": 9, "after_position": 8)"),
              ErrorReason::kEventOutOfOrder, "", "has come to 0, not to 8");
}

class LeaseInputAtAPlace : public testing::Test {};

TEST_F(LeaseInputAtAPlace, ItNeverGoesBack) {
  TestServer server;
  ASSERT_TRUE(
      server.Create(R"({"collection": "books", "id": "moby", "content": {"json": {}}})").ok());
  const auto acquired = server.Acquire(R"({"name": "jobs", "holder": "anna"})");
  ASSERT_TRUE(acquired.ok());
  const std::string lease =
      R"("name": "jobs", "token": )" + std::to_string(acquired.response.lease().token());
  ASSERT_TRUE(server.Renew("{" + lease + R"(, "position": 7})").ok());
  for (const char* const place : {"6", "7", R"(7, "index": 3)"}) {
    const auto refused = server.Update(R"({"collection": "books", "id": "moby", "patch": {},
                                           "lease": {)" +
                                       lease + R"(, "position": )" + place + "}}");
    EXPECT_EQ(refused.details().reason, "ALREADY_ACKNOWLEDGED") << place;
  }
  EXPECT_EQ(server.Renew("{" + lease + R"(, "position": 6})").details().reason,
            "ALREADY_ACKNOWLEDGED");
  EXPECT_EQ(server.GetLease(R"({"name": "jobs"})").response.lease().position(), 7);
}

class LeaseInputOfSingleRecords : public LeaseTable {
 protected:
  LeaseInputOfSingleRecords() : LeaseTable(true) {}
};

TEST_F(LeaseInputOfSingleRecords, NoWriteIsFenced) {
  CheckWrites(Token("jobs", token_), kUnsupported, "", "");
  Check({{"Renew", R"({"name": "jobs", "token": )" + token_ + R"(, "position": 7})", kUnsupported,
          "", "commit positions"}});
}

}  // namespace
}  // namespace strata::rpc_test
