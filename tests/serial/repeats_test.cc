// Units that are sent more than once under one request id, over the real server: one effect and
// one answer, whenever the repetition comes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clients/cpp/refusal.h"
#include "tests/fault/server_process.h"
#include "tests/serial/client.h"
#include "tests/support/temporary_directory.h"

namespace strata::serial {
namespace {

constexpr size_t kAtOnce = 16;
constexpr size_t kDocuments = 5;  // one under each strategy

class RepeatsTest : public testing::TestWithParam<v1::TransactionMode> {
 protected:
  RepeatsTest() {
    Start();
    const grpc::Status created = client_->CreateCollections();
    EXPECT_TRUE(created.ok()) << WordsOf(created);
    v1::CommitRequest request;
    for (size_t i = 0; i < 2 * kDocuments; ++i) {
      *request.add_writes() = WriteOf({DocumentAt(i), Action::kSet, 100});
    }
    MustCommit(request);
  }

  void Start() {
    server_ = std::make_unique<fault::ServerProcess>(fault::ServerSettings{
        .data = directory_.Join("data"), .log = directory_.Join("log"), .flags = {}});
    client_ = std::make_unique<Client>(server_->Connect());
  }
  void RestartAfterKill() {
    server_->Kill();
    Start();
  }

  // A write of each kind that a unit has, and a read.
  v1::CommitRequest Unit(const std::string& id) const {
    v1::CommitRequest request;
    request.set_request_id(id);
    request.set_mode(GetParam());
    for (size_t i = 0; i < kDocuments - 1; ++i) {
      *request.add_writes() = WriteOf({DocumentAt(i), Action::kAdd, 1});
    }
    const std::string deleted = DocumentAt(kDocuments - 1);
    *request.add_writes() = WriteOf({deleted, Action::kDelete});
    v1::CreateRequest& create = *request.add_writes()->mutable_create();
    create.set_collection(CollectionOf(deleted));
    create.set_id("made-by-" + id);
    *create.mutable_content() = ContentOf(7);
    v1::EnrollRequest& enroll = *request.add_writes()->mutable_enroll();
    enroll.set_student_id("student-" + id);
    enroll.set_class_name("class");
    enroll.set_sequence_number(1);
    const std::string read = DocumentAt(kDocuments);
    v1::DocumentVersion& held = *request.add_reads();
    held.set_collection(CollectionOf(read));
    held.set_id(IdOf(read));
    held.set_version(1);
    return request;
  }

  v1::CommitResponse MustCommit(const v1::CommitRequest& request) {
    v1::CommitResponse response;
    const grpc::Status status = client_->Commit(request, response);
    EXPECT_TRUE(status.ok()) << WordsOf(status);
    return response;
  }

  // What a repetition answers, but for that it is one.
  static std::string EffectOf(v1::CommitResponse response) {
    response.set_replayed(false);
    response.set_attempts(0);
    return response.DebugString();
  }

  void ExpectReplayed(const v1::CommitRequest& request, const v1::CommitResponse& first) {
    const v1::CommitResponse again = MustCommit(request);
    EXPECT_TRUE(again.replayed());
    EXPECT_EQ(EffectOf(again), EffectOf(first));
  }

  void ExpectRefusedAsAnother(const v1::CommitRequest& request) {
    v1::CommitResponse response;
    const grpc::Status status = client_->Commit(request, response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(client::RefusalOf(status).reason, "REQUEST_ID_REUSED") << WordsOf(status);
  }

  // Each document of the unit has one version more than before, and no other.
  void ExpectOneEffect(const std::string& id) {
    std::vector<LedgerEntry> entries;
    const grpc::Status audited = client_->Audit(entries, id);
    ASSERT_TRUE(audited.ok()) << WordsOf(audited);
    std::vector<std::string> written;
    for (const LedgerEntry& entry : entries) {
      written.push_back(entry.document + " " + std::to_string(entry.version));
    }
    std::vector<std::string> expected;
    for (size_t i = 0; i < kDocuments; ++i) expected.push_back(DocumentAt(i) + " 2");
    expected.push_back(CollectionOf(DocumentAt(kDocuments - 1)) + "/made-by-" + id + " 1");
    for (const std::string& one : expected) EXPECT_THAT(written, testing::Contains(one).Times(1));
    // Besides the document of the message and, in two phases, a version that holds what was read.
    const size_t more = GetParam() == v1::TRANSACTION_MODE_TWO_PHASE ? 2 : 1;
    EXPECT_EQ(written.size(), expected.size() + more);
  }

  test_support::TemporaryDirectory directory_;
  std::unique_ptr<fault::ServerProcess> server_;
  std::unique_ptr<Client> client_;
};

TEST_P(RepeatsTest, AnswerTheSameAfterTheAnswerAndAfterARestart) {
  const v1::CommitRequest request = Unit("one");
  const v1::CommitResponse first = MustCommit(request);
  EXPECT_FALSE(first.replayed());
  ExpectReplayed(request, first);
  ExpectReplayed(request, first);
  ExpectOneEffect("one");
  RestartAfterKill();
  ExpectReplayed(request, first);
  ExpectOneEffect("one");
}

TEST_P(RepeatsTest, AreRefusedWithOtherArguments) {
  const v1::CommitRequest request = Unit("one");
  const v1::CommitResponse first = MustCommit(request);
  for (const bool restarted : {false, true}) {
    if (restarted) RestartAfterKill();
    v1::CommitRequest other = request;
    *other.mutable_writes(0) = WriteOf({DocumentAt(0), Action::kAdd, 2});
    ExpectRefusedAsAnother(other);
    other = request;
    *other.add_writes() = WriteOf({DocumentAt(kDocuments + 1), Action::kSet, 2});
    ExpectRefusedAsAnother(other);
    other = request;
    other.mutable_writes()->RemoveLast();
    ExpectRefusedAsAnother(other);
    other = request;
    other.clear_reads();
    ExpectRefusedAsAnother(other);
    other = request;
    other.mutable_writes(1)->mutable_update()->mutable_precondition()->set_exists(true);
    ExpectRefusedAsAnother(other);
    ExpectReplayed(request, first);
  }
  ExpectOneEffect("one");
}

TEST_P(RepeatsTest, OfSixteenAtOnceHaveOneEffect) {
  const v1::CommitRequest request = Unit("one");
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < kAtOnce; ++i) {
    clients.push_back(std::make_unique<Client>(server_->Connect()));
  }
  std::vector<v1::CommitResponse> responses(kAtOnce);
  std::vector<grpc::Status> statuses(kAtOnce);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kAtOnce; ++i) {
    threads.emplace_back([&, i] { statuses[i] = clients[i]->Commit(request, responses[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  int first_answers = 0;
  for (size_t i = 0; i < kAtOnce; ++i) {
    ASSERT_TRUE(statuses[i].ok()) << WordsOf(statuses[i]);
    EXPECT_EQ(EffectOf(responses[i]), EffectOf(responses[0]));
    if (!responses[i].replayed()) ++first_answers;
  }
  EXPECT_EQ(first_answers, 1);
  ExpectOneEffect("one");
}

TEST_P(RepeatsTest, OfOneThatWasKilledOnTheWayHaveOneEffect) {
  const v1::CommitRequest request = Unit("one");
  Client another(server_->Connect());
  std::thread caller([&] {
    v1::CommitResponse response;
    another.Commit(request, response);
  });
  server_->Kill();
  caller.join();
  Start();
  const v1::CommitResponse done = MustCommit(request);
  ExpectReplayed(request, done);
  ExpectOneEffect("one");
}

TEST_P(RepeatsTest, OfARefusedUnitAreDecidedAnew) {
  v1::CommitRequest request = Unit("one");
  request.mutable_reads(0)->set_version(7);
  v1::CommitResponse response;
  const grpc::Status refused = client_->Commit(request, response);
  EXPECT_EQ(client::RefusalOf(refused).reason, "VERSION_CONFLICT") << WordsOf(refused);
  std::vector<LedgerEntry> entries;
  ASSERT_TRUE(client_->Audit(entries, "one").ok());
  EXPECT_EQ(entries.size(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Modes, RepeatsTest,
                         testing::Values(v1::TRANSACTION_MODE_ONE_COMMIT,
                                         v1::TRANSACTION_MODE_TWO_PHASE),
                         [](const testing::TestParamInfo<v1::TransactionMode>& mode) {
                           return mode.param == v1::TRANSACTION_MODE_ONE_COMMIT ? "OneCommit"
                                                                                : "TwoPhase";
                         });

}  // namespace
}  // namespace strata::serial
