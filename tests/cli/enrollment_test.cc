// Claims about the enrollment commands: what they send, what they print, and that apply loses
// nothing, whatever happens to its streams.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "clients/cli/enrollment_line.h"
#include "clients/cli/line_stream.h"
#include "tests/cli/command_line.h"
#include "tests/cli/status_of.h"

namespace strata::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string TextProto(const google::protobuf::Message& message) {
  return message.ShortDebugString();
}

std::string Line(const std::string& operation, int student, const std::string& class_name,
                 int number) {
  return R"({"operation":")" + operation + R"(","student_id":)" + std::to_string(student) +
         R"(,"class":")" + class_name + R"(","sequence_number":)" + std::to_string(number) + "}\n";
}

// For each student classes that are entered and left, in the order of intent.
std::vector<std::string> ManyMessages(int students, int messages) {
  std::vector<std::string> lines;
  for (int number = 1; number <= messages; ++number) {
    for (int student = 1; student <= students; ++student) {
      const std::string class_name = "CS " + std::to_string((number + student) % 3);
      lines.push_back(
          Line((number + student / 3) % 2 ? "insert" : "delete", student, class_name, number));
    }
  }
  return lines;
}

std::string Join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

// The number that follows "name": in a JSON object.
int64_t Member(const std::string& json, const std::string& name) {
  const size_t at = json.find("\"" + name + "\":");
  return at == std::string::npos ? -1 : std::stoll(json.substr(at + name.size() + 3));
}

class Enrollments : public CommandLine {
 protected:
  FakeEnrollments& fake() { return server_.enrollments; }

  // What all students ended with.
  std::string State(int students) {
    std::string state;
    for (int student = 1; student <= students; ++student) {
      state += Run({"enrollments", std::to_string(student), "--tombstones"}).out;
    }
    return state;
  }

  // What an undisturbed server, which gets the messages in order, ends with.
  static std::string Expected(const std::vector<std::string>& lines, int students) {
    class Undisturbed : public Enrollments {
     public:
      void TestBody() override {}
      std::string After(const std::string& text, int count) {
        EXPECT_EQ(Run({"apply", "-"}, text).status, kExitOk);
        return State(count);
      }
    };
    return Undisturbed().After(Join(lines), students);
  }
};

TEST_F(Enrollments, EnrollAndUnenrollSayWhatBecameOfThem) {
  Outcome outcome = Run({"enroll", "1", "CS 101", "1000"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(outcome.out, "applied: 1 is enrolled in CS 101, version 1\n");
  EXPECT_EQ(TextProto(fake().last_enroll),
            "student_id: \"1\" class_name: \"CS 101\" sequence_number: 1000 change { }");
  EXPECT_EQ(Run({"unenroll", "1", "CS 101", "1001"}).out,
            "applied: 1 is not enrolled in CS 101, version 2\n");
  outcome = Run({"enroll", "1", "CS 101", "1000"});
  EXPECT_EQ(outcome.status, kExitOk);
  EXPECT_EQ(outcome.out, "superseded: 1 is not enrolled in CS 101, version 2\n");
  EXPECT_EQ(Run({"unenroll", "1", "CS 101", "1001"}).out,
            "duplicate: 1 is not enrolled in CS 101, version 2\n");
  outcome = Run({"enroll", "1", "CS 101", "1001"});
  EXPECT_EQ(outcome.status, kExitOk);
  EXPECT_EQ(outcome.out, "conflict: 1 is not enrolled in CS 101, version 2\n");
  EXPECT_EQ(Run({"enroll", "1", "CS 101", "1002", "--json"}).out,
            R"({"result":"ENROLLMENT_RESULT_APPLIED","enrolled":true,"version":"3"})"
            "\n");
}

TEST_F(Enrollments, TheOptionsOfAMessageAreSent) {
  const std::vector<std::string> options = {"--collection",   "accounts", "--set",    "lists",
                                            "--actor",        "ann",      "--reason", "because",
                                            "--on-behalf-of", "bob",      "--label",  "k=v"};
  const std::string expected =
      "collection: \"accounts\" student_id: \"eve\" class_name: \"news\" sequence_number: 7 "
      "set: \"lists\" change { actor: \"ann\" on_behalf_of: \"bob\" reason: \"because\" "
      "labels { key: \"k\" value: \"v\" } }";
  for (const std::string command : {"enroll", "unenroll"}) {
    std::vector<std::string> arguments = {command, "eve", "news", "7"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    EXPECT_EQ(Run(arguments).status, kExitOk);
  }
  EXPECT_EQ(TextProto(fake().last_enroll), expected);
  EXPECT_EQ(TextProto(fake().last_unenroll), expected);
}

TEST_F(Enrollments, BelowTheFloorIsARefusal) {
  fake().purged_through = 10;
  const Outcome outcome = Run({"enroll", "1", "CS 101", "10"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(outcome.out, "below-floor: 1 is not enrolled in CS 101, version 0\n");
  EXPECT_THAT(outcome.err, StartsWith("Refused: "));
  EXPECT_EQ(Run({"unenroll", "1", "CS 101", "10", "--json"}).status, kExitRefused);
  fake().shapeless = {"2"};
  const Outcome error = Run({"enroll", "2", "CS 101", "11"});
  EXPECT_EQ(error.status, kExitRefused);
  EXPECT_THAT(error.err, StartsWith("ENROLLMENT_SHAPE: not a list of classes (path=/classes)\n"));
}

TEST_F(Enrollments, EnrollmentsAreATable) {
  Run({"enroll", "1", "CS 101", "1000"});
  Run({"enroll", "1", "Art", "7"});
  Run({"unenroll", "1", "CS 101", "1001"});
  EXPECT_EQ(Run({"enrollments", "1"}).out, "CLASS  SEQUENCE\nArt           7\n");
  EXPECT_EQ(Run({"enrollments", "1", "--tombstones"}).out,
            "CLASS   SEQUENCE  STATE\n"
            "Art            7  enrolled\n"
            "CS 101      1001  unenrolled\n");
  EXPECT_EQ(Run({"enrollments", "1", "--json", "--collection", "c", "--set", "s"}).out,
            R"({"enrollments":[{"class_name":"Art","sequence_number":"7","enrolled":true}],)"
            R"("version":"3"})"
            "\n");
  EXPECT_EQ(TextProto(fake().last_get_enrollments),
            "collection: \"c\" student_id: \"1\" set: \"s\"");
  const Outcome unknown = Run({"enrollments", "9"});
  EXPECT_EQ(unknown.status, kExitOk);
  EXPECT_EQ(unknown.out, "");
  EXPECT_EQ(unknown.err, "9 has no document\n");
}

TEST_F(Enrollments, TheRosterFollowsThePages) {
  for (const std::string id : {"a", "b", "c", "d", "e"}) Run({"enroll", id, "CS 101", "5"});
  Run({"unenroll", "b", "CS 101", "6"});
  EXPECT_EQ(Run({"roster", "CS 101"}).out,
            "STUDENT  SEQUENCE  VERSION\n"
            "a               5        1\n"
            "c               5        1\n"
            "d               5        1\n"
            "e               5        1\n");
  const std::string lines = Run({"roster", "CS 101", "--limit", "3", "--json"}).out;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3);
  EXPECT_THAT(lines, StartsWith(R"({"student_id":"a","sequence_number":"5","version":"1"})"));
  Run({"roster", "CS 101", "--at", "2026-01-31", "--collection", "c", "--set", "s"});
  EXPECT_EQ(TextProto(fake().last_list_roster),
            "collection: \"c\" class_name: \"CS 101\" set: \"s\" page_size: 500 page_token: \"c\" "
            "at_time { seconds: 1769817600 }");
}

TEST_F(Enrollments, APurgeFollowsThePagesAndNamesWhatItLeaves) {
  for (const std::string id : {"a", "b", "c", "d"}) Run({"unenroll", id, "CS 101", "5"});
  fake().shapeless = {"b"};
  const Outcome outcome = Run({"purge-tombstones", "5", "--actor", "ann"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(outcome.out, "purged 3 tombstones of 3 students; looked at 4, refused 1\n");
  EXPECT_THAT(outcome.err, StartsWith("refused: b: "));
  EXPECT_EQ(TextProto(fake().last_purge),
            "through_sequence_number: 5 change { actor: \"ann\" } page_token: \"c\"");
  fake().shapeless.clear();
  EXPECT_EQ(Run({"purge-tombstones", "5", "b", "--json"}).out,
            R"({"examined":"1","purged_students":"1","purged_tombstones":"1",)"
            R"("next_page_token":"","refused_student_ids":[],"through_sequence_number":"0"})"
            "\n");
  EXPECT_EQ(fake().last_purge.student_id(), "b");
  EXPECT_EQ(Run({"purge-tombstones", "5", "nobody"}).status, kExitRefused);
}

TEST_F(Enrollments, WrongUsageIsStatusTwo) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"enroll", "1", "CS 101"},
        {"enroll", "1", "CS 101", "0"},
        {"enroll", "1", "CS 101", "soon"},
        {"unenroll", "1", "CS 101", "1", "--label", "x"},
        {"enroll", "1", "CS 101", "1", "--request-id", "r"},
        {"enrollments"},
        {"roster"},
        {"roster", "CS 101", "--at", "soon"},
        {"roster", "CS 101", "--limit", "0"},
        {"purge-tombstones"},
        {"purge-tombstones", "0"},
        {"apply"},
        {"apply", "/nonexistent"},
        {"apply", "/"},
        {"apply", "-", "--streams", "0"},
        {"apply", "-", "--streams", "65"},
        {"apply", "-", "--retry-for", "soon"},
        {"apply", "-", "--label", "x"},
        {"apply", "-", "--reject", "/nonexistent/file"}}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, kExitUsage) << testing::PrintToString(arguments);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err, "");
  }
}

TEST_F(Enrollments, ApplyEndsTheSameInAnyOrderAndWithDuplicates) {
  std::vector<std::string> lines = ManyMessages(7, 40);
  const std::string expected = Expected(lines, 7);
  std::minstd_rand random(3);
  lines.insert(lines.end(), lines.begin(), lines.begin() + 140);
  std::shuffle(lines.begin(), lines.end(), random);
  const Outcome outcome = Run({"apply", "-", "--json", "--streams", "3"}, Join(lines));
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(State(7), expected);
  EXPECT_EQ(Member(outcome.out, "messages"), 420);
  EXPECT_EQ(Member(outcome.out, "applied") + Member(outcome.out, "superseded") +
                Member(outcome.out, "duplicate"),
            420);
  EXPECT_GT(Member(outcome.out, "superseded"), 0);
  EXPECT_THAT(outcome.out, HasSubstr(R"("conflict":0,"below_floor":0,"refused":0,"malformed":0,)"));
  EXPECT_GE(Member(outcome.out, "messages_per_second"), 0);
}

TEST_F(Enrollments, ALineBecomesARequest) {
  v1::ApplyRequest request;
  request.mutable_change()->set_reason("import");
  ASSERT_TRUE(ParseEnrollmentLine(R"({"operation": "delete", "student_id": "x/1", "class": "é",)"
                                  R"( "sequence_number": 9007199254740993, "set": "lists",)"
                                  R"( "actor": "ann", "on_behalf_of": "bob"})",
                                  request)
                  .ok());
  EXPECT_EQ(request.student_id(), "x/1");
  EXPECT_EQ(request.class_name(), "é");
  EXPECT_EQ(request.sequence_number(), 9007199254740993);
  EXPECT_EQ(request.operation(), v1::ENROLLMENT_OPERATION_UNENROLL);
  EXPECT_EQ(request.set(), "lists");
  EXPECT_EQ(request.change().actor(), "ann");
  EXPECT_EQ(request.change().on_behalf_of(), "bob");
  EXPECT_EQ(request.change().reason(), "import");
}

TEST_F(Enrollments, WhatLinesDoNotSayTheOptionsDo) {
  EXPECT_EQ(
      Run({"apply", "-", "--collection", "c", "--set", "s", "--actor", "ann", "--label", "k=v"},
          Line("insert", 1, "CS 101", 1000))
          .status,
      kExitOk);
  ASSERT_EQ(fake().applied.size(), 1u);
  EXPECT_EQ(TextProto(fake().applied[0]),
            "collection: \"c\" student_id: \"1\" class_name: \"CS 101\" sequence_number: 1000 set: "
            "\"s\" change { actor: \"ann\" labels { key: \"k\" value: \"v\" } } operation: "
            "ENROLLMENT_OPERATION_ENROLL");
}

TEST_F(Enrollments, AMalformedLineIsNamedAndTheOthersGoOn) {
  const std::string text =
      Line("insert", 1, "a", 1) + "{\n\n" +
      R"({"operation":"insert","student_id":1.5,"class":"a",)"
      R"("sequence_number":1})"
      "\n" +
      R"({"operation":"upsert","student_id":1,"class":"a","sequence_number":1})"
      "\n" +
      R"({"operation":"insert","student_id":1,"class":"a","sequence_number":"1"})"
      "\n" +
      R"({"operation":"insert","student_id":1,"class":"a"})"
      "\n" +
      R"({"operation":"insert","student_id":"","class":"a","sequence_number":1})"
      "\n" +
      R"({"operation":"insert","student_id":1,"class":"a","sequence_number":1,"priority":1})"
      "\n" +
      Line("delete", 1, "a", 2);
  const Outcome outcome = Run({"apply", "-"}, text);
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(outcome.out, "");
  for (const std::string message :
       {"stdin:2: INVALID_ARGUMENT: ",
        "stdin:4: INVALID_ARGUMENT: student_id: neither a string nor a whole number\n",
        "stdin:5: INVALID_ARGUMENT: operation: neither \"insert\" nor \"delete\"\n",
        "stdin:6: INVALID_ARGUMENT: sequence_number: not a whole number\n",
        "stdin:7: INVALID_ARGUMENT: no sequence_number\n",
        "stdin:8: INVALID_ARGUMENT: student_id: empty\n",
        "stdin:9: INVALID_ARGUMENT: priority: not a member that is known here\n",
        "9 messages: 2 applied, 0 superseded, 0 duplicate, 0 conflict, 0 below floor, 0 refused, "
        "7 malformed, in "}) {
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
  EXPECT_EQ(fake().applied.size(), 2u);
}

TEST_F(Enrollments, RefusedLinesAreWrittenWithTheirErrors) {
  fake().shapeless = {"2"};
  fake().purged_through = 5;
  const std::string rejects = testing::TempDir() + "strata_cli_rejects.ndjson";
  const std::string shapeless = R"({"operation":"insert","student_id":2,"class":"a",)"
                                R"("sequence_number":6})";
  const Outcome outcome =
      Run({"apply", "-", "--json", "--reject", rejects},
          Line("insert", 1, "a", 6) + shapeless + "\n" + Line("insert", 3, "a", 5) + "no\n");
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.out,
              StartsWith(R"({"messages":4,"applied":1,"superseded":0,"duplicate":0,"conflict":0,)"
                         R"("below_floor":1,"refused":1,"malformed":1,"seconds":)"));
  std::ifstream file(rejects);
  const std::string written{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 3);
  EXPECT_THAT(written,
              HasSubstr(R"({"line":2,"text":"{\"operation\":\"insert\",\"student_id\":2,)"));
  EXPECT_THAT(written, HasSubstr(R"("error":{"code":"FAILED_PRECONDITION","reason":)"
                                 R"("ENROLLMENT_SHAPE","message":"not a list of classes",)"));
  EXPECT_THAT(written, HasSubstr(R"("reason":"BELOW_FLOOR")"));
  EXPECT_THAT(written, HasSubstr(R"({"line":4,"text":"no","error":{"code":"INVALID_ARGUMENT")"));
  EXPECT_THAT(outcome.err, HasSubstr(R"("where":"stdin:2")"));
  std::filesystem::remove(rejects);
}

TEST_F(Enrollments, ABrokenStreamIsResumedWithoutLoss) {
  const std::vector<std::string> lines = ManyMessages(5, 60);
  fake().break_after = {0, 7, 0, 100, 1};
  for (const grpc::StatusCode code :
       {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::INTERNAL, grpc::StatusCode::OK}) {
    fake().break_status = grpc::Status(code, "broken");
    fake().streams = 0;
    const Outcome outcome = Run({"apply", "-", "--in-flight", "16"}, Join(lines));
    EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("300 messages: "));
    EXPECT_THAT(outcome.err, HasSubstr(" sent again, in "));
    EXPECT_EQ(fake().streams, 6);
  }
  EXPECT_EQ(State(5), Expected(lines, 5));
}

TEST_F(Enrollments, AMessageWithoutADefiniteAnswerIsSentAgain) {
  fake().errors = 20;
  fake().error.set_code(grpc::StatusCode::UNAVAILABLE);
  fake().error.set_reason("OUTCOME_UNKNOWN");
  const std::vector<std::string> lines = ManyMessages(5, 20);
  const Outcome outcome = Run({"apply", "-", "--json"}, Join(lines));
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(Member(outcome.out, "refused"), 0);
  EXPECT_GT(fake().streams, 1);
  EXPECT_EQ(State(5), Expected(lines, 5));
}

// Answers carry no RetryInfo.
TEST_F(Enrollments, AMessageBeyondTheQuotaIsSentAgain) {
  fake().errors = 3;
  fake().error.set_code(grpc::StatusCode::RESOURCE_EXHAUSTED);
  fake().error.set_reason("QUOTA_EXCEEDED");
  const std::vector<std::string> lines = ManyMessages(5, 20);
  const Outcome outcome = Run({"apply", "-", "--json"}, Join(lines));
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(Member(outcome.out, "refused"), 0);
  EXPECT_EQ(State(5), Expected(lines, 5));
}

TEST_F(Enrollments, WhoMayNotIsNotTriedAgain) {
  fake().errors = 1;
  fake().error.set_code(grpc::StatusCode::PERMISSION_DENIED);
  fake().error.set_reason("PERMISSION_DENIED");
  Outcome outcome = Run({"apply", "-", "--json"}, Line("insert", 1, "a", 1));
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(Member(outcome.out, "refused"), 1);
  fake().break_after.assign(1000, 0);
  fake().break_status =
      StatusOf(grpc::StatusCode::UNAUTHENTICATED, "CREDENTIALS_INVALID", "the token has expired");
  const int streams = fake().streams;
  outcome = Run({"apply", "-"}, Line("insert", 1, "a", 1));
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, StartsWith("stdin:1: CREDENTIALS_INVALID: the token has expired\n"));
  EXPECT_EQ(fake().streams, streams + 1);
}

TEST_F(Enrollments, RepetitionsAreBounded) {
  fake().errors = 1'000'000;
  fake().error.set_code(grpc::StatusCode::DEADLINE_EXCEEDED);
  Outcome outcome =
      Run({"apply", "-", "--json", "--retry-for", "300ms"}, Join(ManyMessages(5, 20)));
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(Member(outcome.out, "refused"), Member(outcome.out, "messages"));
  EXPECT_THAT(outcome.err, HasSubstr(R"("code":"DEADLINE_EXCEEDED")"));
  fake().errors = 0;
  fake().break_after.assign(1000, 0);
  outcome = Run({"apply", "-", "--retry-for", "300ms"}, Line("insert", 1, "a", 1));
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, StartsWith("stdin:1: UNAVAILABLE: broken\n"));
  EXPECT_THAT(outcome.err, HasSubstr("Run it again to continue"));
}

TEST_F(Enrollments, AnErrorThatNoRepetitionCuresStopsAtOnce) {
  fake().break_after.assign(1000, 1);
  fake().break_status = grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no such method");
  const Outcome outcome = Run({"apply", "-"}, Join(ManyMessages(1, 3)));
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, StartsWith("stdin:2: UNIMPLEMENTED: no such method\n"));
  EXPECT_THAT(outcome.err, HasSubstr("3 messages: 1 applied, "));
  EXPECT_EQ(fake().streams, 1);
}

TEST_F(Enrollments, AStudentsMessagesStayInOrderOnOneStream) {
  const std::vector<std::string> lines = ManyMessages(40, 25);
  EXPECT_EQ(Run({"apply", "-", "--streams", "8"}, Join(lines)).status, kExitOk);
  EXPECT_EQ(fake().streams, 8);
  for (const auto& [student, streams] : fake().streams_of_student) {
    EXPECT_EQ(streams.size(), 1u) << student;
  }
  std::map<std::string, int64_t> last;
  for (const v1::ApplyRequest& request : fake().applied) {
    EXPECT_EQ(request.sequence_number(), ++last[request.student_id()]);
  }
  EXPECT_EQ(last.size(), 40u);
}

TEST_F(Enrollments, AServerThatDoesNotAnswerIsNotFlooded) {
  fake().mute = true;
  const Outcome outcome =
      Run({"apply", "-", "--in-flight", "10", "--retry-for", "1ms", "--timeout", "500ms"},
          Join(ManyMessages(10, 100)));
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(fake().unanswered, 10);
  EXPECT_EQ(fake().streams, 1);
  EXPECT_THAT(outcome.err, StartsWith("stdin:1: DEADLINE_EXCEEDED: no answer in time\n"));
}

TEST_F(Enrollments, ACompressedFileIsApplied) {
  const std::string name = testing::TempDir() + "strata_cli_messages.ndjson.zst";
  const std::vector<std::string> lines = ManyMessages(5, 300);
  {
    std::ofstream file(name, std::ios::binary);
    LineWriter writer(file, true);
    for (const std::string& line : lines) writer.Write(line.substr(0, line.size() - 1));
    ASSERT_TRUE(writer.Finish());
  }
  Outcome outcome = Run({"apply", name, "--json"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(Member(outcome.out, "applied"), 1500);
  std::filesystem::resize_file(name, std::filesystem::file_size(name) - 5);
  outcome = Run({"apply", name, "--json"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, HasSubstr(R"("code":"DATA_LOSS")"));
  EXPECT_EQ(Run({"apply", "-"}, "").status, kExitOk);
  std::filesystem::remove(name);
}

TEST_F(Enrollments, HelpHasExamples) {
  for (const std::string command :
       {"enroll", "unenroll", "enrollments", "roster", "apply", "purge-tombstones"}) {
    EXPECT_THAT(RunBare({command, "--help"}).out, HasSubstr("  strata " + command + " "));
  }
}

}  // namespace
}  // namespace strata::cli
