// The rule case by case: answers, shapes that are read and refused, limits, names and purges.
#include "schemas/enrollment/sequence_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/enrollment/oracle.h"
#include "tests/support/status_matchers.h"

namespace strata::enrollment::testing {
namespace {

using document::Content;
using document::Doc;
using document::ExpectError;
using document::Json;
using document::Limits;
using test_support::HasReason;
using test_support::IsOk;
using ::testing::AnyOf;

constexpr int64_t kNumberMax = std::numeric_limits<int64_t>::max();

// A student, message by message.
class Student {
 public:
  explicit Student(Content content = Content()) : content_(std::move(content)) {}

  Result Apply(const Message& message) {
    absl::StatusOr<Decision> decision = ApplyMessage(content_, "7", message, Limits());
    EXPECT_THAT(decision, IsOk());
    if (!decision.ok()) return Result{};
    content_ = decision->content;
    enrolled_ = decision->enrolled;
    return decision->result;
  }
  Result Apply(const std::string& message) { return Apply(OneMessage(message)); }

  int64_t Purge(int64_t through, std::string_view set = kDefaultSet) {
    absl::StatusOr<enrollment::Purge> purge = PurgeTombstones(content_, set, through, Limits());
    EXPECT_THAT(purge, IsOk());
    if (!purge.ok()) return -1;
    content_ = purge->content;
    return purge->tombstones;
  }

  const Content& content() const { return content_; }
  bool enrolled() const { return enrolled_; }  // as the last message answered
  std::string json() const { return Json(content_); }

 private:
  Content content_;
  bool enrolled_ = false;
};

TEST(ApplyMessageTest, EachCaseOfTheRuleHasItsAnswer) {
  Student student;
  const struct {
    const char* message;
    Result result;
    bool enrolled;
  } kSteps[] = {
      {"A-5", Result::kApplied, false},    // never seen: a tombstone
      {"A-5", Result::kDuplicate, false},  //
      {"A+4", Result::kSuperseded, false}, {"A-4", Result::kSuperseded, false},
      {"A+5", Result::kConflict, false},  // stays unenrolled
      {"A+6", Result::kApplied, true},     {"A+7", Result::kApplied, true},
      {"A+6", Result::kSuperseded, true},  {"A+7", Result::kDuplicate, true},
      {"A-7", Result::kConflict, false},  // becomes unenrolled
      {"A-7", Result::kDuplicate, false},  {"A+7", Result::kConflict, false},
      {"A-8", Result::kApplied, false},    {"B+1", Result::kApplied, true},
  };
  for (const auto& step : kSteps) {
    EXPECT_EQ(student.Apply(step.message), step.result) << step.message;
    EXPECT_EQ(student.enrolled(), step.enrolled) << step.message;
  }
  EXPECT_EQ(student.content(), Doc("{\"student_id\":\"7\"," +
                                   SetJson({{"A", {8, false}}, {"B", {1, true}}}, 0) + "}"));
}

TEST(ApplyMessageTest, ADocumentOfTheArticleIsReadAndWrittenInItsShape) {
  Student student(Doc(R"({"student_id":"1","name":"John Doe","classes":[
      {"name":"CS 101","seq":1000}],"deleted_classes":[]})"));
  EXPECT_EQ(student.Apply({"classes", "CS 101", 1001, Operation::kUnenroll}), Result::kApplied);
  EXPECT_EQ(student.content(),
            Doc(R"({"student_id":"1","name":"John Doe","classes":[],"deleted_classes":[
                {"name":"CS 101","seq":{"$numberLong":"1001"}}]})"));
}

TEST(ApplyMessageTest, ShapesThatPeopleWriteAreRead) {
  const Content written = Doc(R"({"student_id":"7","classes":[{"seq":0,"name":"c"},"b",
      {"name":"","seq":{"$numberLong":"9"}}],"purged_through":0,"deleted_classes":["a"]})");
  ASSERT_OK_AND_ASSIGN(const EnrollmentSet read, ReadEnrollments(written, kDefaultSet));
  EXPECT_EQ(read.all, (std::vector<Enrollment>{
                          {"", 9, true}, {"a", 0, false}, {"b", 0, true}, {"c", 0, true}}));
  Student student(written);
  EXPECT_EQ(student.Apply("a+1"), Result::kApplied);
  EXPECT_EQ(
      student.content(),
      Doc("{\"student_id\":\"7\"," +
          SetJson({{"", {9, true}}, {"a", {1, true}}, {"b", {0, true}}, {"c", {0, true}}}, 0) +
          "}"));
}

TEST(ApplyMessageTest, AMessageWithoutEffectLeavesEveryByte) {
  const Content odd = Doc(R"({"classes":["b",{"seq":3,"name":"a"}],"purged_through":4})");
  for (const char* message : {"a+3", "a+2", "a-1", "x+4", "x-1"}) {
    Student student(odd);
    EXPECT_NE(student.Apply(message), Result::kApplied) << message;
    EXPECT_EQ(student.content(), odd) << message;
  }
}

TEST(ApplyMessageTest, TheGreatestNumberIsANumber) {
  Student student;
  const auto with = [&](int64_t number, Operation operation) {
    return student.Apply(Message{"classes", "A", number, operation});
  };
  EXPECT_EQ(with(kNumberMax - 1, Operation::kEnroll), Result::kApplied);
  EXPECT_EQ(with(kNumberMax, Operation::kEnroll), Result::kApplied);
  EXPECT_EQ(with(kNumberMax - 1, Operation::kUnenroll), Result::kSuperseded);
  EXPECT_EQ(with(kNumberMax, Operation::kUnenroll), Result::kConflict);
  EXPECT_EQ(student.Purge(kNumberMax), 1);
  EXPECT_EQ(with(kNumberMax, Operation::kEnroll), Result::kBelowFloor);
  EXPECT_EQ(student.content(), Doc("{\"student_id\":\"7\"," + SetJson({}, kNumberMax) + "}"));
}

TEST(ApplyMessageTest, SetsAreIndependent) {
  Student student;
  EXPECT_EQ(student.Apply(OneMessage("A+1", "carts")), Result::kApplied);
  EXPECT_EQ(student.Apply(OneMessage("A-2")), Result::kApplied);
  EXPECT_EQ(student.Apply(OneMessage("A+1", "carts")), Result::kDuplicate);
  EXPECT_EQ(student.content(),
            Doc("{\"student_id\":\"7\"," + SetJson({{"A", {1, true}}}, 0, "carts") + "," +
                SetJson({{"A", {2, false}}}, 0) + "}"));
}

TEST(ApplyMessageTest, NamesAreComparedAsBytes) {
  Student student;
  for (const char* name : {"a", "A", "\xC3\xA4", "a\xCC\x88", " a", "a ", "$a", "a/b", "a.b"}) {
    EXPECT_EQ(student.Apply(Message{"classes", name, 1, Operation::kEnroll}), Result::kApplied)
        << name;
    EXPECT_EQ(student.Apply(Message{"classes", name, 1, Operation::kEnroll}), Result::kDuplicate)
        << name;
  }
  ASSERT_OK_AND_ASSIGN(const EnrollmentSet read, ReadEnrollments(student.content(), kDefaultSet));
  EXPECT_TRUE(std::is_sorted(
      read.all.begin(), read.all.end(),
      [](const Enrollment& a, const Enrollment& b) { return a.class_name < b.class_name; }));
  EXPECT_THAT(Content::FromBson(std::string(student.content().bytes()), Limits()), IsOk());
}

// A member of a shape that nobody may have meant is not guessed at.
TEST(ShapeTest, EveryOtherShapeIsRefusedByItsPathAndNothingIsChanged) {
  const std::pair<const char*, const char*> kMalformed[] = {
      {R"("classes":null)", "/classes"},
      {R"("classes":"A")", "/classes"},
      {R"("classes":{})", "/classes"},
      {R"("classes":{"0":"A"})", "/classes"},
      {R"("classes":3)", "/classes"},
      {R"("classes":true)", "/classes"},
      {R"("classes":{"$date":{"$numberLong":"1"}})", "/classes"},
      {R"("deleted_classes":null)", "/deleted_classes"},
      {R"("deleted_classes":"A")", "/deleted_classes"},
      {R"("deleted_classes":{})", "/deleted_classes"},
      {R"("deleted_classes":1)", "/deleted_classes"},
      {R"("purged_through":"5")", "/purged_through"},
      {R"("purged_through":{"$numberDouble":"5.0"})", "/purged_through"},
      {R"("purged_through":{"$numberDecimal":"5"})", "/purged_through"},
      {R"("purged_through":null)", "/purged_through"},
      {R"("purged_through":true)", "/purged_through"},
      {R"("purged_through":[])", "/purged_through"},
      {R"("purged_through":{"$date":{"$numberLong":"1"}})", "/purged_through"},
      {R"("purged_through":-1)", "/purged_through"},
      {R"("purged_through":{"$numberLong":"-9223372036854775808"})", "/purged_through"},
      {R"("classes":[null])", "/classes/0"},
      {R"("classes":[1])", "/classes/0"},
      {R"("classes":[1.5])", "/classes/0"},
      {R"("classes":[false])", "/classes/0"},
      {R"("classes":[[]])", "/classes/0"},
      {R"("classes":[["A"]])", "/classes/0"},
      {R"("classes":[{"$oid":"0123456789abcdef01234567"}])", "/classes/0"},
      {R"("classes":[{}])", "/classes/0"},
      {R"("classes":[{"name":"A"}])", "/classes/0"},
      {R"("classes":[{"seq":1}])", "/classes/0"},
      {R"("classes":[{"name":1,"seq":1}])", "/classes/0/name"},
      {R"("classes":[{"name":null,"seq":1}])", "/classes/0/name"},
      {R"("classes":[{"name":["A"],"seq":1}])", "/classes/0/name"},
      {R"("classes":[{"name":"A","seq":"1"}])", "/classes/0/seq"},
      {R"("classes":[{"name":"A","seq":{"$numberDouble":"1.0"}}])", "/classes/0/seq"},
      {R"("classes":[{"name":"A","seq":{"$numberDecimal":"1"}}])", "/classes/0/seq"},
      {R"("classes":[{"name":"A","seq":null}])", "/classes/0/seq"},
      {R"("classes":[{"name":"A","seq":true}])", "/classes/0/seq"},
      {R"("classes":[{"name":"A","seq":{}}])", "/classes/0/seq"},
      {R"("classes":[{"name":"A","seq":{"$timestamp":{"t":1,"i":1}}}])", "/classes/0/seq"},
      {R"("classes":[{"name":"A","seq":-1}])", "/classes/0/seq"},
      {R"("classes":[{"name":"A","seq":{"$numberLong":"-9223372036854775808"}}])",
       "/classes/0/seq"},
      {R"("classes":[{"name":"A","seq":1,"room":"2"}])", "/classes/0/room"},
      {R"("classes":[{"name":"A","seq":1,"a/b~":2}])", "/classes/0/a~1b~0"},
      {R"("classes":[{"Name":"A","seq":1}])", "/classes/0/Name"},
      {R"("classes":["A",{"name":"B","seq":1},7])", "/classes/2"},
      {R"("deleted_classes":["A",{"name":"B","seq":-7}])", "/deleted_classes/1/seq"},
      {R"("deleted_classes":[{"name":"B"}])", "/deleted_classes/0"},
      {R"("classes":["A","A"])", "/classes"},
      {R"("classes":[{"name":"A","seq":1},{"name":"B","seq":1},{"name":"A","seq":2}])", "/classes"},
      {R"("classes":["A",{"name":"A","seq":0}])", "/classes"},
      {R"("deleted_classes":[{"name":"A","seq":1},{"name":"A","seq":1}])", "/deleted_classes"},
      {R"("classes":["A"],"deleted_classes":["A"])", "/classes"},
      {R"("deleted_classes":[{"name":"A","seq":9}],"classes":["A"])", "/classes"},
  };
  EXPECT_GE(std::size(kMalformed), 40u);
  for (const auto& [members, path] : kMalformed) {
    SCOPED_TRACE(members);
    const Content student = Doc(R"({"student_id":"7",)" + std::string(members) + "}");
    const std::string bytes(student.bytes());
    ExpectError(ReadEnrollments(student, kDefaultSet).status(), ErrorReason::kEnrollmentShape,
                path);
    ExpectError(ApplyMessage(student, "7", OneMessage("Z+9"), Limits()).status(),
                ErrorReason::kEnrollmentShape, path);
    ExpectError(PurgeTombstones(student, kDefaultSet, 9, Limits()).status(),
                ErrorReason::kEnrollmentShape, path);
    EXPECT_EQ(student.bytes(), bytes);
    // Another set does not mind.
    EXPECT_THAT(ApplyMessage(student, "7", OneMessage("Z+9", "carts"), Limits()), IsOk());
  }
}

TEST(ShapeTest, AnotherSetIsRefusedByItsOwnPaths) {
  const std::pair<const char*, const char*> kMalformed[] = {
      {R"({"carts":1})", "/carts"},
      {R"({"deleted_carts":1})", "/deleted_carts"},
      {R"({"purged_through_carts":-1})", "/purged_through_carts"},
      {R"({"deleted_carts":["A"],"carts":["A"]})", "/carts"},
  };
  for (const auto& [json, path] : kMalformed) {
    ExpectError(ReadEnrollments(Doc(json), "carts").status(), ErrorReason::kEnrollmentShape, path);
  }
  EXPECT_THAT(ReadEnrollments(Doc(R"({"purged_through":"x"})"), "carts"), IsOk());
}

TEST(ShapeTest, AnEnrollmentIsFoundWhateverIsWrongWithOthers) {
  const Content student = Doc(R"({"classes":[1,{"name":"B"},"A",{"name":"C","seq":3}],
      "deleted_classes":[{"name":"D","seq":1}]})");
  EXPECT_EQ(FindEnrollment(student, kDefaultSet, "A"), (Enrollment{"A", 0, true}));
  EXPECT_EQ(FindEnrollment(student, kDefaultSet, "C"), (Enrollment{"C", 3, true}));
  for (const char* name : {"B", "D", "E", ""}) {
    EXPECT_EQ(FindEnrollment(student, kDefaultSet, name), std::nullopt) << name;
  }
  EXPECT_EQ(FindEnrollment(Doc(R"({"classes":"A"})"), kDefaultSet, "A"), std::nullopt);
}

TEST(ValidateSetTest, ASetHasANameOfItsOwn) {
  for (const std::string& name :
       {std::string("classes"), std::string("c"), std::string(64, 'x'), std::string("A-b_9"),
        std::string("deleted"), std::string("purged"), std::string("student_ids"),
        std::string("0")}) {
    EXPECT_THAT(ValidateSet(name), IsOk()) << name;
  }
  for (const std::string& name :
       {std::string(), std::string(65, 'x'), std::string("a.b"), std::string("a/b"),
        std::string("$set"), std::string("a b"), std::string("\xC3\xA4"), std::string("a\0b", 3),
        std::string("student_id"), std::string("deleted_classes"), std::string("deleted_"),
        std::string("purged_through"), std::string("purged_through_x"),
        std::string("purged_throughout")}) {
    const absl::Status status = ValidateSet(name);
    EXPECT_THAT(status, HasReason(ErrorReason::kInvalidField)) << name;
    EXPECT_EQ(MetadataOf(status, "field"), "set") << name;
  }
}

// Enrolls in more and more classes until one does not fit; all that does not grow still works.
void FillUp(int start_with, size_t name_bytes, ErrorReason reason) {
  Classes classes;
  const auto name = [&](int number) {
    std::string text = std::to_string(100'000 + number);
    return text + std::string(name_bytes - text.size(), 'x');
  };
  for (int i = 0; i < start_with; ++i) classes[name(i)] = {1, true};
  Content student = Doc("{\"student_id\":\"7\"," + SetJson(classes, 0) + "}");
  ASSERT_THAT(Content::FromBson(std::string(student.bytes()), Limits()), IsOk());
  int next = start_with;
  absl::Status refused;
  for (; next < start_with + 500; ++next) {
    const Content before = student;
    const std::string bytes(before.bytes());
    const auto decision =
        ApplyMessage(student, "7", {"classes", name(next), 1, Operation::kEnroll}, Limits());
    if (!decision.ok()) {
      refused = decision.status();
      EXPECT_EQ(student.bytes(), bytes);
      break;
    }
    student = decision->content;
  }
  EXPECT_THAT(refused, HasReason(reason));
  std::printf("%d classes of %zu bytes: %s\n", next, name_bytes, refused.ToString().c_str());
  EXPECT_THAT(Content::FromBson(std::string(student.bytes()), Limits()), IsOk());
  Student full(student);
  EXPECT_EQ(full.Apply(Message{"classes", name(0), 1, Operation::kEnroll}), Result::kDuplicate);
  EXPECT_EQ(full.Apply(Message{"classes", name(0), 2, Operation::kUnenroll}), Result::kApplied);
  EXPECT_EQ(full.Purge(2), 1);
  EXPECT_EQ(full.Apply(Message{"classes", name(0), 2, Operation::kEnroll}), Result::kBelowFloor);
}

TEST(LimitsTest, ClassesUpToTheNodesOfADocument) {
  FillUp(16'300, 6, ErrorReason::kInvalidContent);
}
TEST(LimitsTest, ClassesUpToTheBytesOfADocument) {
  FillUp(4'100, 200, ErrorReason::kDocumentTooLarge);
}

// Strings become entries, which are larger: a purge must not write what no other write may.
TEST(LimitsTest, APurgeKeepsToTheLimitsToo) {
  std::string names;
  for (int i = 0; i < 20'000; ++i) names += "\"" + std::to_string(i) + "\",";
  const Content student = Doc("{\"classes\":[" + names + "\"x\"],\"deleted_classes\":[\"y\"]}");
  ASSERT_THAT(Content::FromBson(std::string(student.bytes()), Limits()), IsOk());
  EXPECT_THAT(PurgeTombstones(student, kDefaultSet, 1, Limits()),
              HasReason(ErrorReason::kInvalidContent));
  EXPECT_THAT(ApplyMessage(student, "7", OneMessage("0-1"), Limits()),
              HasReason(ErrorReason::kInvalidContent));
}

TEST(PurgeTest, TombstonesUpToTheFloorGoAndTheFloorStays) {
  Student student;
  for (const char* message : {"A+1", "A-2", "B-3", "C-4", "D+2"}) student.Apply(message);
  EXPECT_EQ(student.Purge(3), 2);
  EXPECT_EQ(student.content(), Doc("{\"student_id\":\"7\"," +
                                   SetJson({{"C", {4, false}}, {"D", {2, true}}}, 3) + "}"));
  // Late duplicates resurrect nothing.
  const Content purged = student.content();
  for (const char* message : {"A+1", "A-2", "B-3", "X+3"}) {
    EXPECT_EQ(student.Apply(message), Result::kBelowFloor) << message;
    EXPECT_FALSE(student.enrolled());
    EXPECT_EQ(student.content(), purged);
  }
  // What is known needs no floor, whatever its number.
  EXPECT_EQ(student.Apply("D+2"), Result::kDuplicate);
  EXPECT_EQ(student.Apply("D+1"), Result::kSuperseded);
  EXPECT_EQ(student.Apply("D-3"), Result::kApplied);
  EXPECT_EQ(student.Apply("C+3"), Result::kSuperseded);
  // What is newer takes effect.
  EXPECT_EQ(student.Apply("A+4"), Result::kApplied);
  EXPECT_TRUE(student.enrolled());
  EXPECT_EQ(student.content(),
            Doc("{\"student_id\":\"7\"," +
                SetJson({{"A", {4, true}}, {"C", {4, false}}, {"D", {3, false}}}, 3) + "}"));
}

TEST(PurgeTest, TheFloorOnlyRises) {
  Student student;
  for (const char* message : {"A-2", "B-8"}) student.Apply(message);
  EXPECT_EQ(student.Purge(5), 1);
  const Content once = student.content();
  EXPECT_EQ(student.Purge(5), 0);
  EXPECT_EQ(student.Purge(1), 0);
  EXPECT_EQ(student.Purge(7), 0) << "without a tombstone the floor stays where it is";
  EXPECT_EQ(student.content(), once);
  EXPECT_EQ(student.Apply("C-6"), Result::kApplied);
  EXPECT_EQ(student.Purge(9), 2);
  EXPECT_EQ(student.content(), Doc("{\"student_id\":\"7\"," + SetJson({}, 9) + "}"));

  // A tombstone below the floor, from a document that was written by hand.
  Student by_hand(Doc(R"({"deleted_classes":[{"name":"A","seq":2}],"purged_through":9})"));
  EXPECT_EQ(by_hand.Purge(3), 1);
  EXPECT_EQ(by_hand.content(), Doc("{" + SetJson({}, 9) + "}"));
}

TEST(PurgeTest, AnotherSetHasItsOwnFloor) {
  Student student;
  student.Apply("A-2");
  student.Apply(OneMessage("A-2", "carts"));
  EXPECT_EQ(student.Purge(5, "carts"), 1);
  EXPECT_EQ(student.content(), Doc("{\"student_id\":\"7\"," + SetJson({{"A", {2, false}}}, 0) +
                                   "," + SetJson({}, 5, "carts") + "}"));
  EXPECT_EQ(student.Apply("B+1"), Result::kApplied);
  EXPECT_EQ(student.Apply(OneMessage("B+1", "carts")), Result::kBelowFloor);
}

TEST(PurgeTest, ADocumentOlderThanTheNumbersKeepsItsEnrollments) {
  const Content old = Doc(R"({"name":"x","classes":["B","A"],"year":2})");
  Student untouched(old);
  EXPECT_EQ(untouched.Purge(100), 0);
  EXPECT_EQ(untouched.content(), old);
  Student student(Doc(R"({"name":"x","classes":["B","A"],"deleted_classes":["C"],"year":2})"));
  EXPECT_EQ(student.Purge(1), 1);
  EXPECT_EQ(
      student.content(),
      Doc("{\"name\":\"x\"," + SetJson({{"A", {0, true}}, {"B", {0, true}}}, 1) + ",\"year\":2}"));
  EXPECT_EQ(student.Apply("A-1"), Result::kApplied);
  EXPECT_EQ(student.Apply("C+1"), Result::kBelowFloor);
}

}  // namespace
}  // namespace strata::enrollment::testing
