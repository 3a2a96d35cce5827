// Rules that do not hold, so that a test can see that its checker sees: the article's update by
// filter, with and without its second update, and slips that are easily made.
//
// An update by filter is one atomic write: a condition on the document and what to do if it holds.
// The first update moves a class from one array to the other; it looks for the number in the other
// array but in its own only for the name. The second update raises the number of a class that is
// where it should be already.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "tests/enrollment/induction.h"

namespace strata::enrollment::testing {

// A class's numbers in `classes` and in `deleted_classes`.
struct TwoArrays {
  std::optional<int64_t> enrolled;
  std::optional<int64_t> deleted;
};
using Update = std::function<void(TwoArrays& state, int64_t number, Operation operation)>;
using Updates = std::vector<Update>;

inline void FirstUpdate(TwoArrays& state, int64_t number, Operation operation) {
  if (operation == Operation::kEnroll) {
    if (state.enrolled || (state.deleted && *state.deleted >= number)) return;
    state = {number, {}};
  } else {
    if (state.deleted || (state.enrolled && *state.enrolled > number)) return;
    state = {{}, number};
  }
}
inline void SecondUpdateOfEnroll(TwoArrays& state, int64_t number, Operation operation) {
  if (operation != Operation::kEnroll) return;
  if (state.enrolled && *state.enrolled < number) state.enrolled = number;
}
inline void SecondUpdateOfUnenroll(TwoArrays& state, int64_t number, Operation operation) {
  if (operation != Operation::kUnenroll) return;
  if (state.deleted && *state.deleted < number) state.deleted = number;
}
inline void SecondUpdateOfBoth(TwoArrays& state, int64_t number, Operation operation) {
  SecondUpdateOfEnroll(state, number, operation);
  SecondUpdateOfUnenroll(state, number, operation);
}

// A rule of one write, by when a message replaces what is known.
template <typename Replaces>
Update ReplaceIf(Replaces replaces) {
  return [replaces](TwoArrays& state, int64_t number, Operation operation) {
    const bool known = state.enrolled || state.deleted;
    const int64_t stored = state.enrolled ? *state.enrolled : state.deleted.value_or(0);
    if (known && !replaces(number, stored, operation)) return;
    state = operation == Operation::kEnroll ? TwoArrays{number, {}} : TwoArrays{{}, number};
  };
}

// The update as a write of a whole document; only for students without other members.
inline Step OnContent(Update update) {
  return [update = std::move(update)](const document::Content& content, const Message& message) {
    Classes classes;
    const absl::StatusOr<EnrollmentSet> read = ReadEnrollments(content, message.set);
    EXPECT_TRUE(read.ok()) << read.status();
    for (const Enrollment& entry : read->all) {
      classes[entry.class_name] = {entry.sequence_number, entry.enrolled};
    }
    const Classes before = classes;
    TwoArrays state;
    if (const auto known = classes.find(message.class_name); known != classes.end()) {
      (known->second.enrolled ? state.enrolled : state.deleted) = known->second.number;
    }
    update(state, message.sequence_number, message.operation);
    if (state.enrolled) classes[message.class_name] = {*state.enrolled, true};
    if (state.deleted) classes[message.class_name] = {*state.deleted, false};
    if (classes == before) return Outcome{content, {}, {}};
    return Outcome{ContentOf(NoDocument(), classes, 0), {}, {}};
  };
}
inline Rule OnContent(const Updates& updates) {
  Rule rule;
  for (const Update& update : updates) rule.push_back(OnContent(update));
  return rule;
}

// Of all orders of `count` messages about one class with the numbers 1 to `count` and any
// operations: how many end with the student enrolled who should not be, or not who should.
inline Report CountWrongOrders(int count, const Updates& updates) {
  Report report;
  for (uint32_t enrolls = 0; enrolls < uint32_t{1} << count; ++enrolls) {
    const auto operation = [&](int number) {
      return (enrolls >> (number - 1) & 1) != 0 ? Operation::kEnroll : Operation::kUnenroll;
    };
    std::vector<int> order;
    std::function<void(TwoArrays)> visit = [&](TwoArrays state) {
      if (order.size() == static_cast<size_t>(count)) {
        ++report.checks;
        if (state.enrolled.has_value() == (operation(count) == Operation::kEnroll)) return;
        if (report.wrong++ > 0) return;
        for (const int number : order) {
          report.counter_example += Show({"classes", "A", number, operation(number)}) + " ";
        }
        return;
      }
      for (int number = 1; number <= count; ++number) {
        if (std::find(order.begin(), order.end(), number) != order.end()) continue;
        TwoArrays next = state;
        for (const Update& update : updates) update(next, number, operation(number));
        order.push_back(number);
        visit(next);
        order.pop_back();
      }
    };
    visit({});
  }
  return report;
}

}  // namespace strata::enrollment::testing
