// Operations: writes as values, which say the same whether they were stored or not.
#include "schemas/transaction/operation.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "schemas/base/error.h"
#include "tests/documents/world.h"
#include "tests/support/seeded_entropy.h"

namespace strata::transaction {
namespace {

using versioning::testing::Increment;
using versioning::testing::Number;
using versioning::testing::Text;

class RandomOperations {
 public:
  explicit RandomOperations(uint64_t seed) : random_(seed) {}

  Operation Next() {
    Operation operation;
    operation.name = {Word(), Word()};
    switch (Below(6)) {
      case 0:
        operation.what = Create{NextContent()};
        break;
      case 1:
        operation.what = Update{NextContent(), Coin()};
        break;
      case 2:
        operation.what = Update{NextPatch(), Coin()};
        break;
      case 3:
        operation.what = Delete{};
        break;
      case 4:
        operation.what = Restore{static_cast<int64_t>(Below(1'000'000))};
        break;
      default:
        operation.what =
            Enroll{{Word(), Word(), static_cast<int64_t>(Below(1'000)),
                    Coin() ? enrollment::Operation::kEnroll : enrollment::Operation::kUnenroll}};
    }
    AddRest(operation);
    return operation;
  }

 private:
  uint64_t Below(uint64_t end) { return random_() % end; }
  bool Coin() { return Below(2) == 0; }

  std::string Word() {
    static const std::vector<std::string> words = {"a", "b", "a.b", "$x", "é/ü", "~", "name", "7"};
    return words[Below(words.size())] + std::to_string(Below(100));
  }

  document::Content NextContent() {
    return Coin() ? Number(static_cast<int64_t>(random_())) : Text(Word());
  }

  document::Patch NextPatch() {
    document::Patch patch;
    if (Coin()) patch.merge = NextContent();
    for (uint64_t i = Below(4); i > 0; --i) {
      document::Operation& added = patch.operations.emplace_back(
          Increment("/a~1b/" + std::to_string(Below(9)), static_cast<int32_t>(Below(1'000)))
              .operations.front());
      added.path.Push(Word());
      added.kind = static_cast<document::OperationKind>(Below(6));
      if (added.kind == document::OperationKind::kUnset) added.operand = {};
      if (Coin()) added.operand = {document::kBsonObject, std::string(NextContent().bytes())};
    }
    return patch;
  }

  void AddRest(Operation& operation) {
    switch (Below(4)) {
      case 0:
        operation.precondition.version = static_cast<int64_t>(Below(9));
        break;
      case 1:
        operation.precondition.exists = Coin();
        break;
      case 2:
        operation.precondition.filter = *document::Filter::Compile(
            Coin() ? Number(static_cast<int64_t>(Below(9))) : document::Content());
        break;
      default:
        break;
    }
    const bool takes_newer = std::holds_alternative<Update>(operation.what) ||
                             std::holds_alternative<Delete>(operation.what);
    if (takes_newer && Coin()) {
      operation.precondition = {};
      operation.precondition.newer = *versioning::Newer::Make("/a~1b/" + std::to_string(Below(9)),
                                                              static_cast<int64_t>(random_()));
    }
    if (Coin()) operation.change.actor = Word();
    if (Coin()) operation.change.on_behalf_of = Word();
    if (Coin()) operation.change.reason = Word();
    for (uint64_t i = Below(3); i > 0; --i) operation.change.labels[Word()] = Word();
    operation.keep_unchanged = Coin();
  }

  std::mt19937_64 random_;
};

TEST(Operation, IsTheSameAfterItWasStored) {
  const uint64_t seed = test_support::TestSeed();
  SCOPED_TRACE("STRATA_SEED=" + std::to_string(seed));
  RandomOperations operations(seed);
  for (int i = 0; i < 5'000; ++i) {
    const Operation operation = operations.Next();
    const std::string bytes = Encode(operation);
    const absl::StatusOr<Operation> decoded = Decode(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ASSERT_EQ(decoded->what.index(), operation.what.index());
    ASSERT_EQ(decoded->change, operation.change);
    ASSERT_EQ(decoded->precondition.filter.has_value(), operation.precondition.filter.has_value());
    ASSERT_EQ(decoded->precondition.newer, operation.precondition.newer);
    // The encoding tells operations apart, so what is encoded alike is the same.
    ASSERT_EQ(Encode(*decoded), bytes);
  }
}

TEST(Operation, DoesTheSameAfterItWasStored) {
  const uint64_t seed = test_support::TestSeed();
  SCOPED_TRACE("STRATA_SEED=" + std::to_string(seed));
  RandomOperations operations(seed);
  versioning::StoredVersion current;
  current.header.version = 3;
  current.content = Number(5);
  versioning::CurrentState state;
  state.version = &current;
  state.read = [&](int64_t) { return current; };
  for (int i = 0; i < 1'000; ++i) {
    const Operation operation = operations.Next();
    const auto expected = ToChange(operation, {}).mutate(state);
    const auto actual = ToChange(*Decode(Encode(operation)), {}).mutate(state);
    ASSERT_EQ(actual.status(), expected.status());
    if (!expected.ok()) continue;
    ASSERT_EQ(actual->kind, expected->kind);
    ASSERT_EQ(actual->content, expected->content);
    ASSERT_EQ(actual->note, expected->note);
  }
}

TEST(Operation, DamagedBytesAreRefused) {
  Operation operation;
  operation.name = {"things", "a"};
  operation.what = Create{Number(1)};
  const std::string bytes = Encode(operation);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(ReasonOf(Decode(bytes.substr(0, size)).status()), ErrorReason::kRecordCorrupt);
  }
}

std::string FieldOf(const Operation& operation) {
  return MetadataOf(Validate(operation), "field").value_or("none");
}

TEST(Operation, WhatIsWrongIsNamedAsInAWrite) {
  Operation operation;
  operation.name = {"things", ""};
  operation.what = Create{};
  EXPECT_EQ(FieldOf(operation), "create.id");
  operation.what = Delete{};
  EXPECT_EQ(FieldOf(operation), "delete.id");
  operation.name = {"", "a"};
  operation.what = Restore{1};
  EXPECT_EQ(FieldOf(operation), "restore.collection");
  operation.name = {"things", "a"};
  operation.what = Update{document::Content(), false};
  operation.precondition.version = -1;
  EXPECT_EQ(FieldOf(operation), "update.precondition.version");
  operation.precondition = {};
  operation.change.actor = std::string(300, 'x');
  EXPECT_EQ(FieldOf(operation), "update.change.actor");
  operation.change = {};
  operation.what = Enroll{{"classes", "math", 0, enrollment::Operation::kEnroll}};
  EXPECT_EQ(FieldOf(operation), "enroll.sequence_number");
  operation.what = Enroll{{"classes", "", 1, enrollment::Operation::kUnenroll}};
  EXPECT_EQ(FieldOf(operation), "unenroll.class_name");
  operation.name.id = "";
  EXPECT_EQ(FieldOf(operation), "unenroll.student_id");
}

TEST(Operation, APatchThatDoesNotFitIsNamedAsInAWrite) {
  Operation operation;
  operation.name = {"things", "a"};
  operation.what = Update{Increment("/text", 1)};
  versioning::StoredVersion current;
  current.header.version = 1;
  current.content = Text("no number");
  versioning::CurrentState state;
  state.version = &current;
  const auto mutation = ToChange(operation, {}).mutate(state);
  EXPECT_EQ(ReasonOf(mutation.status()), ErrorReason::kInvalidPatch);
  EXPECT_EQ(MetadataOf(mutation.status(), "field"), "update.patch.operations[0]");
}

}  // namespace
}  // namespace strata::transaction
