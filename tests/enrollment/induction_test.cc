// The proof that order and repetition do not matter, and that its checker sees where they do.
#include "tests/enrollment/induction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "tests/enrollment/rejected_rules.h"
#include "tests/support/status_matchers.h"

namespace strata::enrollment::testing {
namespace {

using ::testing::HasSubstr;

// The rule under test: one write a message.
Outcome Apply(const document::Content& student, const Message& message) {
  absl::StatusOr<Decision> decision = ApplyMessage(student, "7", message, document::Limits());
  EXPECT_TRUE(decision.ok()) << decision.status();
  if (!decision.ok()) return {};
  return {std::move(decision->content), decision->result, decision->enrolled};
}
const Rule& TheRule() {
  static const auto* const rule = new Rule{Apply};
  return *rule;
}

// Eight messages over two classes, both operations.
const std::vector<std::string>& Eights() {
  static const auto* const sets = new std::vector<std::string>{
      "A+1 A-1 A+2 A-2 B+1 B-1 B+2 B-2",  // nothing but equal numbers
      "A+1 A-2 A+3 A-4 B-1 B+2 B-3 B+4",  // in turn, from either end
      "A-1 A-3 A+2 A+2 B+1 B+3 B-2 B-2",  // the article's order and its mirror; each thrice
      "A+1 A+2 A+3 A-3 A-1 B-2 B-3 B+3",  // the same operation over itself, then a conflict
      "A-4 A-5 A+5 B+5 B-4 B+4 B+1 A-1",  // tombstones first
  };
  return *sets;
}

// Every message over `classes` with a number up to `numbers`: holds every smaller set.
std::vector<Message> Universe(const std::vector<std::string>& classes, int64_t numbers) {
  std::vector<Message> all;
  for (const std::string& name : classes) {
    for (int64_t number = 1; number <= numbers; ++number) {
      for (const Operation operation : {Operation::kEnroll, Operation::kUnenroll}) {
        all.push_back({std::string(kDefaultSet), name, number, operation});
      }
    }
  }
  return all;
}

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
void Print(const char* what, const Report& report, std::chrono::steady_clock::time_point begin) {
  std::printf("%s: %lld checks, %lld wrong, %.2f s\n", what, static_cast<long long>(report.checks),
              static_cast<long long>(report.wrong), SecondsSince(begin));
}
double Percent(const Report& report) {
  return 100.0 * static_cast<double>(report.wrong) / static_cast<double>(report.checks);
}

TEST(InductionTest, EightMessagesOfTwoClassesEndRightInEveryOrderAndDuplication) {
  const auto begin = std::chrono::steady_clock::now();
  Report all;
  for (const Start& start : AllStarts()) {
    for (const std::string& set : Eights()) {
      const Report report = CheckInduction(Subsets(start, Messages(set)), TheRule());
      EXPECT_TRUE(report.right()) << report.counter_example;
      all.Add(report);
    }
  }
  EXPECT_EQ(all.checks, static_cast<int64_t>(AllStarts().size() * Eights().size() * 256 * 8));
  Print("induction over sets of 8 (subset, message)", all, begin);
}

// Sixteen messages at once: every set of any size over the numbers 1 to 4.
TEST(InductionTest, SoDoesEverySetOverTwoClassesAndFourNumbers) {
  const auto begin = std::chrono::steady_clock::now();
  Report all;
  for (const Start& start : AllStarts()) {
    const bool whole = start.name == "no document" || start.name == "purged";
    const Report report =
        CheckInduction(Subsets(start, Universe({"A", "B"}, whole ? 4 : 3)), TheRule());
    EXPECT_TRUE(report.right()) << report.counter_example;
    all.Add(report);
  }
  Print("induction over all sets (subset, message)", all, begin);
}

TEST(InductionTest, ThreeClassesDoNotDisturbEachOther) {
  for (const Start& start : AllStarts()) {
    const Report report = CheckInduction(Subsets(start, Universe({"A", "B", "C"}, 2)), TheRule());
    EXPECT_TRUE(report.right()) << report.counter_example;
  }
}

// The induction itself, checked against what it replaces.
TEST(InductionTest, EveryOrderTriedOneByOneEndsRightToo) {
  const auto begin = std::chrono::steady_clock::now();
  Report all;
  for (const Start& start : AllStarts()) {
    for (const char* set : {"A+1 A-2 A+3 A-3 B-1 B+1", "A+1 A+1 A-2 A-2 A+3 A+3",
                            "A-1 A-3 A+2 B+1 B+3 B-2", "A+5 A-5 A+5 A-5 A+6 A-6"}) {
      const Report report = CheckOrders(Subsets(start, Messages(set)), TheRule());
      EXPECT_TRUE(report.right()) << report.counter_example;
      all.Add(report);
    }
  }
  const Report eight = CheckOrders(Subsets(NoDocument(), Messages(Eights()[1])), TheRule());
  EXPECT_TRUE(eight.right()) << eight.counter_example;
  EXPECT_EQ(eight.checks, 40'320);
  all.Add(eight);
  Print("orders one by one", all, begin);
}

// A message that was delivered before a purge and comes again after it changes nothing; one that
// is newer counts as ever.
TEST(InductionTest, APurgeKeepsLateDuplicatesFromTakingEffect) {
  const auto begin = std::chrono::steady_clock::now();
  Report all;
  for (const Start& start : AllStarts()) {
    const Subsets subsets(start, Universe({"A", "B"}, 3));
    for (uint32_t subset = 0; subset < subsets.count(); ++subset) {
      for (int64_t through = 1; through <= 4; ++through) {
        const absl::StatusOr<Purge> purge =
            PurgeTombstones(subsets.content(subset), kDefaultSet, through, document::Limits());
        ASSERT_TRUE(purge.ok()) << purge.status();
        Start purged = start;
        purged.classes = subsets.classes(subset);
        const size_t gone = std::erase_if(purged.classes, [&](const auto& known) {
          return !known.second.enrolled && known.second.number <= through;
        });
        if (gone > 0) purged.floor = std::max(purged.floor, through);
        purged.content = subsets.content(subset);
        if (gone > 0) {
          // A purge adds no student_id.
          Start as_it_is = purged;
          const bool added =
              start.name == "older than the numbers" && subsets.content(subset) == start.content;
          if (added) as_it_is.before = R"("name":"John Doe",)";
          purged.content = ContentOf(as_it_is, purged.classes, purged.floor);
        }
        ASSERT_EQ(purge->tombstones, static_cast<int64_t>(gone));
        ASSERT_EQ(purge->content, purged.content) << document::Json(purge->content);
        for (size_t m = 0; m < subsets.messages().size(); ++m) {
          const Message& message = subsets.messages()[m];
          const bool late = (subset >> m & 1) != 0;
          const Outcome outcome = Apply(purged.content, message);
          ++all.checks;
          const Classes classes = late ? purged.classes : OracleClasses(purged, {message});
          const document::Content want = late ? purged.content : OracleContent(purged, classes);
          const bool refused = *outcome.result != Result::kApplied;
          if (outcome.content == want && (!late || refused) &&
              *outcome.result == OracleResult(purged, {}, message)) {
            continue;
          }
          Wrong(subsets, subset,
                "a purge through " + std::to_string(through) + " and " + Show(message),
                outcome.content, want, all);
        }
      }
    }
  }
  EXPECT_TRUE(all.right()) << all.counter_example;
  Print("purges (subset, floor, message)", all, begin);
}

TEST(InductionTest, TwoMessagesAtOnceEndRightAsEachIsOneWrite) {
  const Report report = CheckPairs(Subsets(NoDocument(), Messages(Eights()[2])), TheRule());
  EXPECT_TRUE(report.right()) << report.counter_example;
}

// The checker must find wrong what is wrong.
class CheckerTest : public ::testing::Test {
 protected:
  static Report Induction(const Updates& updates) {
    Report all;
    for (const std::string& set : Eights()) {
      all.Add(CheckInduction(Subsets(NoDocument(), Messages(set)), OnContent(updates)));
    }
    return all;
  }
  static Report Pairs(const Updates& updates) {
    return CheckPairs(Subsets(NoDocument(), Messages("A+1 A+3 A-2 B-1 B-3 B+2")),
                      OnContent(updates));
  }
  // All orders of one article's example.
  static Report Orders(const std::string& messages, const Updates& updates) {
    return CheckOrders(Subsets(NoDocument(), Messages(messages)), OnContent(updates));
  }
  static void ExpectFound(const char* what, const Report& report) {
    EXPECT_GT(report.wrong, 0) << what;
    EXPECT_NE(report.counter_example, "") << what;
    std::printf("%s: %lld of %lld wrong, e.g. %s\n", what, static_cast<long long>(report.wrong),
                static_cast<long long>(report.checks), report.counter_example.c_str());
  }
};

TEST_F(CheckerTest, SeesThatTheFilterAloneLosesEnrollments) {
  const Updates filter = {FirstUpdate};
  ExpectFound("filter alone", Induction(filter));
  ExpectFound("filter alone, orders of one set", Orders("A+1 A+3 A-2", filter));
  const Report three = CountWrongOrders(3, filter);
  const Report eight = CountWrongOrders(8, filter);
  EXPECT_EQ(three.checks, 48);
  EXPECT_EQ(three.wrong, 2);
  EXPECT_NEAR(Percent(three), 4.2, 0.05);
  EXPECT_NEAR(Percent(eight), 12.4, 0.05);
  std::printf("filter alone: wrong for %.1f %% of the orders of 3, %.1f %% of 8\n", Percent(three),
              Percent(eight));
}

TEST_F(CheckerTest, SeesThatItsMirrorIsJustAsWrong) {
  const Updates filter = {FirstUpdate};
  const auto ends = [&](const std::vector<Message>& messages) {
    TwoArrays state;
    for (const Message& message : messages) {
      FirstUpdate(state, message.sequence_number, message.operation);
    }
    return state.enrolled.has_value();
  };
  EXPECT_FALSE(ends(Messages("A+1 A+3 A-2"))) << "who should be enrolled is not";
  EXPECT_TRUE(ends(Messages("A-1 A-3 A+2"))) << "who should not be enrolled is";
  ExpectFound("filter alone, mirror", Orders("A-1 A-3 A+2", filter));
}

TEST_F(CheckerTest, SeesThatASecondUpdateOfEnrollsLeavesTheMirror) {
  const Updates updates = {FirstUpdate, SecondUpdateOfEnroll};
  const Report repaired = Orders("A+1 A+3 A-2", updates);
  EXPECT_TRUE(repaired.right()) << repaired.counter_example;
  ExpectFound("second update of enrolls, mirror", Orders("A-1 A-3 A+2", updates));
  ExpectFound("second update of enrolls", Induction(updates));
  const Report three = CountWrongOrders(3, updates);
  EXPECT_EQ(three.wrong, 1);
  std::printf("second update of enrolls: wrong for %.1f %% of the orders of 3\n", Percent(three));
}

TEST_F(CheckerTest, SeesThatASecondUpdateOfUnenrollsLeavesTheOriginal) {
  const Updates updates = {FirstUpdate, SecondUpdateOfUnenroll};
  const Report repaired = Orders("A-1 A-3 A+2", updates);
  EXPECT_TRUE(repaired.right()) << repaired.counter_example;
  ExpectFound("second update of unenrolls", Orders("A+1 A+3 A-2", updates));
  ExpectFound("second update of unenrolls", Induction(updates));
}

// Both second updates hold one message after the other, which no two consumers grant: between the
// two writes of one message another's may come.
TEST_F(CheckerTest, SeesThatTwoUpdatesOfAMessageMustNotBeInterleaved) {
  const Updates updates = {FirstUpdate, SecondUpdateOfBoth};
  const Report sequential = Induction(updates);
  EXPECT_TRUE(sequential.right()) << sequential.counter_example;
  EXPECT_EQ(CountWrongOrders(8, updates).wrong, 0);
  ExpectFound("symmetric second update, interleaved", Pairs(updates));
  // The same pairs, where both updates are one write.
  const Report atomic = Pairs({[](TwoArrays& state, int64_t number, Operation operation) {
    FirstUpdate(state, number, operation);
    SecondUpdateOfBoth(state, number, operation);
  }});
  EXPECT_TRUE(atomic.right()) << atomic.counter_example;
}

TEST_F(CheckerTest, SeesSlipsOfARuleInOneWrite) {
  using Op = Operation;
  const auto right = [](int64_t number, int64_t stored, Op operation) {
    return number > stored || (number == stored && operation == Op::kUnenroll);
  };
  EXPECT_TRUE(Induction({ReplaceIf(right)}).right());
  ExpectFound("the last one counts",
              Induction({ReplaceIf([](int64_t, int64_t, Op) { return true; })}));
  ExpectFound("the first one counts",
              Induction({ReplaceIf([](int64_t, int64_t, Op) { return false; })}));
  ExpectFound(
      "of equal numbers the last one counts",
      Induction({ReplaceIf([](int64_t number, int64_t stored, Op) { return number >= stored; })}));
  ExpectFound(
      "of equal numbers the first one counts",
      Induction({ReplaceIf([](int64_t number, int64_t stored, Op) { return number > stored; })}));
  ExpectFound("of equal numbers enroll counts",
              Induction({ReplaceIf([](int64_t number, int64_t stored, Op operation) {
                return number > stored || (number == stored && operation == Op::kEnroll);
              })}));
}

// A wrong answer with the right content is seen too.
TEST_F(CheckerTest, SeesWrongAnswers) {
  const Subsets subsets(NoDocument(), Messages(Eights()[0]));
  const Rule always_applied = {[](const document::Content& student, const Message& message) {
    Outcome outcome = Apply(student, message);
    outcome.result = Result::kApplied;
    return outcome;
  }};
  ExpectFound("always answers APPLIED", CheckInduction(subsets, always_applied));
  const Rule always_enrolled = {[](const document::Content& student, const Message& message) {
    Outcome outcome = Apply(student, message);
    outcome.enrolled = true;
    return outcome;
  }};
  ExpectFound("always answers enrolled", CheckInduction(subsets, always_enrolled));
}

TEST_F(CheckerTest, SeesAFloorThatIsForgotten) {
  const Start purged = AllStarts()[3];
  ASSERT_EQ(purged.name, "purged");
  const Rule forgets = {[](const document::Content& student, const Message& message) {
    Outcome outcome = Apply(student, message);
    if (*outcome.result != Result::kBelowFloor) return outcome;
    const Classes classes = {
        {"A", {1, true}},
        {message.class_name, {message.sequence_number, message.operation == Operation::kEnroll}}};
    return Outcome{ContentOf(NoDocument(), classes, 2), Result::kApplied, {}};
  }};
  const Report report = CheckInduction(Subsets(purged, Messages("B+1 B-2 B+3 A+2")), forgets);
  ExpectFound("forgets the floor", report);
  EXPECT_THAT(report.counter_example, HasSubstr("comes B+1"));
}

}  // namespace
}  // namespace strata::enrollment::testing
