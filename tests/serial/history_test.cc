// The checker itself: what is strictly serialisable passes, and of anything else the two calls that
// contradict each other are named.
#include "tests/serial/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace strata::serial {
namespace {

using ::testing::IsEmpty;

Effect Set(const std::string& document, int64_t version, int64_t number) {
  return {.document = document,
          .number = number,
          .precondition = {},
          .version = version,
          .answered = number};
}

// A call at a position, under way from one moment to another.
Call At(const std::string& name, int64_t position, int64_t begun, int64_t ended,
        std::vector<Effect> effects, std::vector<Observation> observations = {}) {
  return {name, begun, ended, std::move(effects), std::move(observations), position, 0};
}

// "first and second: what", of the first contradiction.
std::string FirstOf(std::vector<Call> calls) {
  const std::vector<Contradiction> found = Check(std::move(calls));
  return found.empty() ? "" : ToText({found[0]});
}

TEST(Check, PassesWhatHappenedInTheOrderOfPlaces) {
  const std::vector<Call> calls = {
      At("second", 2, 1, 9, {Set("a", 2, 12)}, {{"b", 1, {}}}),
      At("first", 1, 1, 9, {Set("a", 1, 10), Set("b", 1, 20)}),
      At("read", 1, 2, 3, {}, {{"a", 1, 10}, {"b", 1, 20}, {"c", {}, {}}}),
      At("later read", 2, 10, 11, {}, {{"a", 2, 12}}),
  };
  EXPECT_THAT(Check(calls), IsEmpty());
}

TEST(Check, PassesUnitsOfOneCommitInTheOrderOfTheirPlaces) {
  Call second = At("second", 1, 1, 9, {Set("a", 2, 2)}, {{"a", 1, {}}});
  second.place = 1;
  EXPECT_THAT(Check({second, At("first", 1, 1, 9, {Set("a", 1, 1)})}), IsEmpty());
}

TEST(Check, PassesDeletionsAndWhatComesAfter) {
  Effect deletion = {.document = "a", .action = Action::kDelete, .version = 2};
  Effect addition = {
      .document = "a", .action = Action::kAdd, .number = 5, .version = 3, .answered = 5};
  EXPECT_THAT(Check({At("one", 1, 1, 2, {Set("a", 1, 1)}), At("two", 2, 3, 4, {deletion}),
                     At("none", 2, 5, 6, {}, {{"a", {}, {}}}), At("three", 3, 7, 8, {addition})}),
              IsEmpty());
}

TEST(Check, FindsAReadThatNoLongerHeld) {
  EXPECT_EQ(FirstOf({At("one", 1, 1, 2, {Set("a", 1, 1), Set("b", 1, 1)}),
                     At("two", 2, 3, 9, {Set("a", 2, 2)}, {{"b", 1, {}}}),
                     At("three", 3, 3, 9, {Set("b", 2, 2)}, {{"a", 1, {}}})}),
            "three and two: saw a version 1, and at its place there is version 2\n");
}

TEST(Check, FindsAReadOfTwoMoments) {
  EXPECT_EQ(FirstOf({At("one", 1, 1, 2, {Set("a", 1, 1), Set("b", 1, 1)}),
                     At("two", 2, 3, 4, {Set("a", 2, 2), Set("b", 2, 2)}),
                     At("read", 1, 3, 9, {}, {{"a", 1, 1}, {"b", 2, 2}})}),
            "read and two: saw b version 2, and at its place there is version 1\n");
}

TEST(Check, FindsADocumentThatAReadMissed) {
  EXPECT_EQ(
      FirstOf({At("one", 1, 1, 2, {Set("a", 1, 1)}), At("read", 1, 3, 9, {}, {{"a", {}, {}}})}),
      "read and one: found no a, and at its place there is version 1\n");
}

TEST(Check, FindsAPreconditionThatDidNotHold) {
  Effect late = Set("a", 3, 3);
  late.precondition = 1;
  EXPECT_EQ(FirstOf({At("one", 1, 1, 2, {Set("a", 1, 1)}), At("two", 2, 3, 4, {Set("a", 2, 2)}),
                     At("three", 3, 3, 9, {late})}),
            "three and two: asked for a version 1, and at its place there is version 2\n");
}

TEST(Check, FindsAnUpdateThatWasLost) {
  Effect lost = {
      .document = "a", .action = Action::kAdd, .number = 1, .version = 3, .answered = 11};
  Effect first = {
      .document = "a", .action = Action::kAdd, .number = 1, .version = 2, .answered = 11};
  EXPECT_EQ(FirstOf({At("zero", 1, 1, 2, {Set("a", 1, 10)}), At("one", 2, 3, 9, {first}),
                     At("two", 3, 3, 9, {lost})}),
            "two and one: was answered 11 of a version 3, which holds 12\n");
}

TEST(Check, FindsAVersionThatTwoMade) {
  EXPECT_EQ(FirstOf({At("one", 1, 1, 2, {Set("a", 1, 1)}), At("two", 2, 3, 4, {Set("a", 1, 2)})}),
            "one and two: both made a version 1\n");
}

TEST(Check, FindsTwoAtOnePlace) {
  EXPECT_EQ(FirstOf({At("one", 1, 1, 2, {Set("a", 1, 1)}), At("two", 1, 1, 2, {Set("b", 1, 2)})}),
            "one and two: both stand at one place\n");
}

TEST(Check, FindsWhoStandsBeforeOneThatHadEndedWhenItBegan) {
  EXPECT_EQ(FirstOf({At("one", 1, 5, 6, {Set("a", 1, 1)}), At("two", 2, 3, 4, {Set("b", 1, 2)})}),
            "one and two: the first stands before the second, which had ended when the first "
            "began\n");
}

TEST(Check, FindsAReadOfThePast) {
  EXPECT_EQ(
      FirstOf({At("one", 1, 1, 2, {Set("a", 1, 1)}), At("read", 0, 3, 4, {}, {{"a", {}, {}}})}),
      "read and one: the first stands before the second, which had ended when the first "
      "began\n");
}

TEST(Check, AsksNoOrderOfWhatIsUnknown) {
  EXPECT_THAT(
      Check({At("one", 1, 5, 6, {Set("a", 1, 1)}), At("unknown", 2, 3, kNever, {Set("b", 1, 2)})}),
      IsEmpty());
}

TEST(Resolve, TakesTheUnknownThatHappenedAndLeavesOutTheRest) {
  std::vector<Call> calls = {At("happened", 0, 1, kNever, {Set("a", 0, 1), Set("b", 0, 2)}),
                             At("did not", 0, 1, kNever, {Set("a", 0, 3)}),
                             At("unread", 0, 1, kNever, {}, {{"a", 1, {}}})};
  EXPECT_THAT(Resolve({{7, 3, "a", 1, "happened"}, {7, 4, "b", 1, "happened"}}, calls), IsEmpty());
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].position, 7);
  EXPECT_EQ(calls[0].place, 3);
  EXPECT_EQ(calls[0].effects[1].version, 1);
  EXPECT_THAT(Check(calls), IsEmpty());
}

// What a ledger says of one call.
std::string Disagreement(const std::vector<LedgerEntry>& ledger, Call call) {
  std::vector<Call> calls = {std::move(call)};
  return ToText(Resolve(ledger, calls));
}

TEST(Resolve, FindsHalfAUnit) {
  EXPECT_EQ(Disagreement({{1, 0, "a", 1, "unit"}},
                         At("unit", 0, 1, kNever, {Set("a", 0, 1), Set("b", 0, 1)})),
            "unit and nobody: the ledger does not have its write of b\n");
}

TEST(Resolve, FindsAnAnswerThatWasForgotten) {
  EXPECT_EQ(Disagreement({{1, 0, "a", 1, "another"}}, At("unit", 1, 1, 2, {Set("a", 1, 1)})),
            "unit and another: the ledger does not have its write of a\n"
            "another and nobody: is in the ledger, and nobody asked for it\n");
}

TEST(Resolve, FindsAUnitOfTwoCommits) {
  EXPECT_EQ(Disagreement({{1, 0, "a", 1, "unit"}, {2, 1, "b", 1, "unit"}},
                         At("unit", 1, 1, 2, {Set("a", 1, 1), Set("b", 1, 1)})),
            "unit and nobody: its versions have several positions\n");
}

TEST(Resolve, FindsAnotherPositionThanWasAnswered) {
  EXPECT_EQ(Disagreement({{2, 0, "a", 1, "unit"}}, At("unit", 1, 1, 2, {Set("a", 1, 1)})),
            "unit and nobody: was answered position 1, and the ledger says 2\n");
}

}  // namespace
}  // namespace strata::serial
