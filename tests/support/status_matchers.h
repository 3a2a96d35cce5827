// Matchers for statuses, in the spelling that Abseil's users know. They take an absl::Status, an
// absl::StatusOr or a store::CommitResult.
//
//   EXPECT_THAT(status, IsOk());
//   EXPECT_THAT(result, HasReason(ErrorReason::kVersionConflict));
//   EXPECT_THAT(status_or, IsOkAndHolds(Eq(3)));
//   ASSERT_OK_AND_ASSIGN(const Thing thing, MakeThing());
#pragma once

#include <ostream>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/base/error.h"
#include "schemas/store/store.h"

namespace strata::test_support {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}
inline const absl::Status& StatusOf(const store::CommitResult& result) { return result.status; }

MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  *result_listener << "which is " << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

MATCHER_P(StatusIs, code,
          std::string(negation ? "has not" : "has") + " the code " +
              absl::StatusCodeToString(code)) {
  *result_listener << "which is " << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code;
}

MATCHER_P(HasReason, reason,
          std::string(negation ? "has not" : "has") + " the reason " +
              std::string(ReasonName(reason))) {
  *result_listener << "which is " << StatusOf(arg).ToString();
  return ReasonOf(StatusOf(arg)) == reason;
}

MATCHER_P(IsOkAndHolds, inner,
          "is OK and holds a value that " +
              testing::DescribeMatcher<typename std::decay_t<arg_type>::value_type>(inner,
                                                                                    negation)) {
  if (!arg.ok()) {
    *result_listener << "which is " << arg.status().ToString();
    return false;
  }
  return testing::ExplainMatchResult(inner, *arg, result_listener);
}

// For messages of the form "seed 17", so that a failed random run can be repeated.
#define STRATA_TRACE_SEED(seed) SCOPED_TRACE(::testing::Message() << "seed " << (seed))

#define ASSERT_OK_AND_ASSIGN(target, expression) \
  STRATA_ASSERT_OK_AND_ASSIGN_(STRATA_TEST_CONCAT_(assign_, __LINE__), target, expression)
#define STRATA_ASSERT_OK_AND_ASSIGN_(status_or, target, expression)         \
  auto status_or = (expression);                                            \
  ASSERT_TRUE(status_or.ok()) << #expression << ": " << status_or.status(); \
  target = *std::move(status_or)
#define STRATA_TEST_CONCAT_INNER_(a, b) a##b
#define STRATA_TEST_CONCAT_(a, b) STRATA_TEST_CONCAT_INNER_(a, b)

}  // namespace strata::test_support
