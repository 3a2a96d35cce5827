// EnrollmentService over a real socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "strata/v1/enrollment_service.grpc.pb.h"
#include "tests/rpc/test_server.h"
#include "tests/support/volume.h"

namespace strata::rpc_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Enrollment : public testing::Test {
 protected:
  explicit Enrollment(const app::ServerOptions& options = TestOptions())
      : server_(options), stub_(v1::EnrollmentService::NewStub(server_.channel())) {}

#define STRATA_ENROLLMENT_CALL(Method)                                                      \
  Outcome<v1::Method##Response> Method(std::string_view json) {                             \
    return server_.Call<v1::Method##Response>(*stub_, &v1::EnrollmentService::Stub::Method, \
                                              Parse<v1::Method##Request>(json));            \
  }
  STRATA_ENROLLMENT_CALL(Enroll)
  STRATA_ENROLLMENT_CALL(Unenroll)
  STRATA_ENROLLMENT_CALL(GetEnrollments)
  STRATA_ENROLLMENT_CALL(ListRoster)
  STRATA_ENROLLMENT_CALL(PurgeTombstones)
#undef STRATA_ENROLLMENT_CALL

  static std::string Message(const std::string& student, const std::string& class_name, int number,
                             const std::string& rest = "") {
    return R"({"student_id": ")" + student + R"(", "class_name": ")" + class_name +
           R"(", "sequence_number": )" + std::to_string(number) + rest + "}";
  }

  // "CS 101:1000 +" for an enrollment, "-" for a tombstone.
  std::vector<std::string> EnrollmentsOf(const std::string& student) {
    const auto found =
        GetEnrollments(R"({"student_id": ")" + student + R"(", "include_tombstones": true})");
    EXPECT_TRUE(found.ok()) << found.status.error_message();
    std::vector<std::string> all;
    for (const v1::Enrollment& each : found.response.enrollments()) {
      all.push_back(each.class_name() + ":" + std::to_string(each.sequence_number()) +
                    (each.enrolled() ? " +" : " -"));
    }
    return all;
  }

  TestServer server_;
  const std::unique_ptr<v1::EnrollmentService::Stub> stub_;
};

TEST_F(Enrollment, TellsWhatBecameOfEachMessage) {
  const auto applied = Enroll(Message("1", "CS 101", 1000));
  ASSERT_TRUE(applied.ok()) << applied.status.error_message();
  EXPECT_EQ(applied.response.result(), v1::ENROLLMENT_RESULT_APPLIED);
  EXPECT_TRUE(applied.response.enrolled());
  EXPECT_EQ(applied.response.version(), 1);
  const auto gone = Unenroll(Message("1", "CS 101", 1002));
  EXPECT_EQ(gone.response.result(), v1::ENROLLMENT_RESULT_APPLIED);
  EXPECT_FALSE(gone.response.enrolled());
  EXPECT_EQ(gone.response.version(), 2);
  const auto late = Enroll(Message("1", "CS 101", 1001));
  EXPECT_EQ(late.response.result(), v1::ENROLLMENT_RESULT_SUPERSEDED);
  EXPECT_FALSE(late.response.enrolled());
  EXPECT_EQ(late.response.version(), 2);
  EXPECT_EQ(Unenroll(Message("1", "CS 101", 1002)).response.result(),
            v1::ENROLLMENT_RESULT_DUPLICATE);
  EXPECT_EQ(Enroll(Message("1", "CS 101", 1002)).response.result(), v1::ENROLLMENT_RESULT_CONFLICT);
  EXPECT_THAT(EnrollmentsOf("1"), ElementsAre("CS 101:1002 -"));
}

// A message is a version like any other, with its own actor and reason.
TEST_F(Enrollment, IsHistoryLikeAnyOther) {
  Enroll(Message("1", "CS 101", 1, R"(, "change": {"actor": "ann", "reason": "term begins"})"));
  Unenroll(Message("1", "CS 101", 2, R"(, "change": {"actor": "bob", "reason": "too hard"})"));
  Enroll(Message("1", "CS 101", 1));
  const auto history =
      server_.History(R"({"collection": "students", "id": "1", "include_changes": true})");
  ASSERT_THAT(history.response.versions(), SizeIs(2));
  EXPECT_EQ(history.response.versions(0).change().actor(), "bob");
  EXPECT_EQ(history.response.versions(0).change().reason(), "too hard");
  EXPECT_EQ(history.response.versions(1).change().actor(), "ann");
  const auto audit = server_.Audit(R"({"collection": "students", "actor": "bob"})");
  ASSERT_THAT(audit.response.entries(), SizeIs(1));
  EXPECT_EQ(audit.response.entries(0).version().version(), 2);
}

TEST_F(Enrollment, StudentsWithoutDocumentHaveNone) {
  EXPECT_EQ(GetEnrollments(R"({"student_id": "1"})").details().reason, "COLLECTION_NOT_FOUND");
  Enroll(Message("1", "CS 101", 1));
  const auto unknown = GetEnrollments(R"({"student_id": "2"})");
  ASSERT_TRUE(unknown.ok());
  EXPECT_THAT(unknown.response.enrollments(), IsEmpty());
  EXPECT_EQ(unknown.response.version(), 0);
}

TEST_F(Enrollment, OfADeletedStudentIsRefused) {
  Enroll(Message("1", "CS 101", 1));
  server_.Delete(R"({"collection": "students", "id": "1"})");
  const auto refused = Enroll(Message("1", "CS 101", 2));
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(refused.details().reason, "DOCUMENT_DELETED");
  EXPECT_TRUE(refused.details().Has("google.rpc.PreconditionFailure"));
  EXPECT_EQ(refused.details().metadata.at("version"), "2");
  const auto none = GetEnrollments(R"({"student_id": "1"})");
  EXPECT_THAT(none.response.enrollments(), IsEmpty());
  EXPECT_EQ(none.response.version(), 2);
}

TEST_F(Enrollment, OfADocumentWithoutTheShapeIsRefused) {
  server_.Create(R"({"collection": "students", "id": "1",
                     "content": {"json": {"classes": [{"name": "CS 101", "seq": "1000"}]}}})");
  const auto refused = Enroll(Message("1", "CS 101", 1));
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(refused.details().reason, "ENROLLMENT_SHAPE");
  EXPECT_EQ(refused.details().metadata.at("path"), "/classes/0/seq");
  EXPECT_EQ(refused.details().metadata.at("id"), "1");
}

TEST_F(Enrollment, OfDocumentsOlderThanTheNumbersGoesOn) {
  server_.Create(R"({"collection": "students", "id": "1",
                     "content": {"json": {"name": "John Doe", "classes": ["CS 101", "CS 102"]}}})");
  EXPECT_THAT(EnrollmentsOf("1"), ElementsAre("CS 101:0 +", "CS 102:0 +"));
  EXPECT_TRUE(Unenroll(Message("1", "CS 101", 7)).ok());
  EXPECT_THAT(EnrollmentsOf("1"), ElementsAre("CS 101:7 -", "CS 102:0 +"));
  const auto document = server_.Get(R"({"collection": "students", "id": "1"})");
  EXPECT_EQ(document.response.document().content().json().fields().at("name").string_value(),
            "John Doe");
}

TEST_F(Enrollment, ARosterGoesThroughTheStudentsOfAClass) {
  for (int student = 0; student < 25; ++student) {
    const std::string id = "s" + std::to_string(10 + student);
    ASSERT_TRUE(Enroll(Message(id, student % 2 == 0 ? "even" : "odd", 1 + student)).ok());
  }
  Unenroll(Message("s12", "even", 100));
  server_.Delete(R"({"collection": "students", "id": "s14"})");
  std::vector<std::string> students;
  std::string token;
  do {
    const auto page =
        ListRoster(R"({"class_name": "even", "page_size": 4, "page_token": ")" + token + R"("})");
    ASSERT_TRUE(page.ok()) << page.status.error_message();
    for (const v1::RosterEntry& entry : page.response.students()) {
      students.push_back(entry.student_id());
      EXPECT_EQ("s" + std::to_string(9 + entry.sequence_number()), entry.student_id());
    }
    token = page.response.next_page_token();
  } while (!token.empty());
  EXPECT_THAT(students, ElementsAre("s10", "s16", "s18", "s20", "s22", "s24", "s26", "s28", "s30",
                                    "s32", "s34"));
}

TEST_F(Enrollment, APurgeForgetsTombstonesAndKeepsTheFloor) {
  for (int student = 0; student < 3; ++student) {
    const std::string id = std::to_string(student);
    Enroll(Message(id, "kept", 10));
    Unenroll(Message(id, "dropped", 11));
    Unenroll(Message(id, "late", 30));
  }
  server_.Create(R"({"collection": "students", "id": "odd", "content": {"json": {"classes": 1}}})");
  const auto purged = PurgeTombstones(R"({"through_sequence_number": 20})");
  ASSERT_TRUE(purged.ok()) << purged.status.error_message();
  EXPECT_EQ(purged.response.examined(), 4);
  EXPECT_EQ(purged.response.purged_students(), 3);
  EXPECT_EQ(purged.response.purged_tombstones(), 3);
  EXPECT_THAT(purged.response.refused_student_ids(), ElementsAre("odd"));
  EXPECT_THAT(purged.response.next_page_token(), IsEmpty());
  EXPECT_THAT(EnrollmentsOf("0"), ElementsAre("kept:10 +", "late:30 -"));
  EXPECT_EQ(Enroll(Message("0", "dropped", 11)).response.result(),
            v1::ENROLLMENT_RESULT_BELOW_FLOOR);
  EXPECT_EQ(Enroll(Message("0", "dropped", 21)).response.result(), v1::ENROLLMENT_RESULT_APPLIED);
  EXPECT_EQ(Unenroll(Message("0", "kept", 12)).response.result(), v1::ENROLLMENT_RESULT_APPLIED);
  const auto one = PurgeTombstones(R"({"student_id": "odd", "through_sequence_number": 20})");
  EXPECT_EQ(one.details().reason, "ENROLLMENT_SHAPE");
}

v1::ApplyRequest Operation(const std::string& student, int number, bool enroll = true) {
  v1::ApplyRequest request;
  request.set_student_id(student);
  request.set_class_name("CS 101");
  request.set_sequence_number(number);
  request.set_operation(enroll ? v1::ENROLLMENT_OPERATION_ENROLL
                               : v1::ENROLLMENT_OPERATION_UNENROLL);
  return request;
}

TEST_F(Enrollment, AStreamAnswersInTheOrderOfItsMessages) {
  grpc::ClientContext context;
  const auto stream = stub_->Apply(&context);
  constexpr int kMessages = 2000;
  std::thread writer([&] {
    for (int i = 0; i < kMessages; ++i) {
      // Every tenth is refused, and says so for itself.
      v1::ApplyRequest request = Operation("s" + std::to_string(i % 7), i + 1);
      if (i % 10 == 9) request.set_class_name("");
      if (i % 10 == 8) request.clear_operation();
      EXPECT_TRUE(stream->Write(request));
    }
    stream->WritesDone();
  });
  v1::ApplyResponse response;
  int answers = 0;
  for (; stream->Read(&response); ++answers) {
    if (answers % 10 == 9) {
      EXPECT_EQ(response.error().reason(), "INVALID_NAME");
      EXPECT_EQ(response.error().metadata().at("field"), "class_name");
    } else if (answers % 10 == 8) {
      EXPECT_EQ(response.error().reason(), "INVALID_FIELD");
      EXPECT_EQ(response.error().metadata().at("field"), "operation");
    } else {
      ASSERT_FALSE(response.has_error()) << response.ShortDebugString();
      EXPECT_TRUE(response.enrolled());
    }
  }
  writer.join();
  EXPECT_EQ(answers, kMessages);
  EXPECT_TRUE(stream->Finish().ok());
}

// Also one that no method would take.
TEST_F(Enrollment, AMessageThatIsFarTooLargeAnswersForItself) {
  grpc::ClientContext context;
  const auto stream = stub_->Apply(&context);
  v1::ApplyRequest large = Operation("1", 1);
  large.mutable_change()->set_reason(std::string(5 << 20, 'x'));
  stream->Write(Operation("2", 1));
  stream->Write(large);
  stream->Write(Operation("3", 1));
  stream->WritesDone();
  v1::ApplyResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_FALSE(answer.has_error());
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.error().reason(), "INVALID_MESSAGE");
  EXPECT_EQ(answer.error().metadata().at("limit"), std::to_string(32 << 10));
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_FALSE(answer.has_error());
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(Enrollment, AMessageThatIsTooLargeAnswersForItself) {
  grpc::ClientContext context;
  const auto stream = stub_->Apply(&context);
  v1::ApplyRequest large = Operation("1", 1);
  large.mutable_change()->set_reason(std::string(40'000, 'x'));
  stream->Write(large);
  stream->Write(Operation("1", 1));
  stream->WritesDone();
  v1::ApplyResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.error().reason(), "INVALID_MESSAGE");
  EXPECT_THAT(response.error().message(), HasSubstr("32768"));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.result(), v1::ENROLLMENT_RESULT_APPLIED);
  EXPECT_TRUE(stream->Finish().ok());
}

// A caller that reads slowly is read slowly: it cannot make the server hold all of its messages.
TEST_F(Enrollment, AStreamIsReadNoFasterThanItReads) {
  if (test_support::kOneIn > 1) GTEST_SKIP() << "sampled: it takes minutes to fill the buffers";
  // Answers that take more bytes than there are in all buffers on the way.
  const std::string student(256, 'x');
  Enroll(Message(student, "CS 101", 1));
  server_.Delete(R"({"collection": "students", "id": ")" + student + R"("})");
  grpc::ClientContext context;
  const auto stream = stub_->Apply(&context);
  constexpr int kMessages = 120'000;
  constexpr int kAheadMax = 60'000;  // what waits in the server and in the buffers between
  std::atomic<int> written = 0;
  std::thread writer([&] {
    for (int i = 0; i < kMessages && stream->Write(Operation(student, i + 1)); ++i) ++written;
    stream->WritesDone();
  });
  v1::ApplyResponse response;
  int answers = 0;
  int ahead = 0;
  for (; stream->Read(&response); ++answers) {
    // The reader is slow at first, as it does something else between two answers.
    if (answers < 6000) GetEnrollments(R"({"student_id": "2"})");
    ahead = std::max(ahead, written - answers);
    EXPECT_EQ(response.error().reason(), "DOCUMENT_DELETED");
  }
  writer.join();
  EXPECT_EQ(answers, kMessages);
  EXPECT_LT(ahead, kAheadMax);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(Enrollment, AStreamThatIsGivenUpDisturbsNobody) {
  for (int round = 0; round < 20; ++round) {
    grpc::ClientContext context;
    const auto stream = stub_->Apply(&context);
    for (int i = 0; i < 50; ++i) stream->Write(Operation("1", round * 50 + i + 1));
    context.TryCancel();
    EXPECT_FALSE(stream->Finish().ok());
  }
  EXPECT_TRUE(Enroll(Message("1", "CS 101", 5000)).ok());
}

TEST_F(Enrollment, AStreamEndsWhenTheServerDrains) {
  grpc::ClientContext context;
  const auto stream = stub_->Apply(&context);
  stream->Write(Operation("1", 1));
  v1::ApplyResponse response;
  ASSERT_TRUE(stream->Read(&response));
  std::thread closer([&] { server_.server().Shutdown(); });
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status end = stream->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(DetailsOf(end).reason, "DRAINING");
  closer.join();
}

}  // namespace
}  // namespace strata::rpc_test
