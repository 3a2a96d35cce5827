// Early return on error, in the spelling that Abseil's users know.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define STRATA_MACRO_CONCAT_INNER_(a, b) a##b
#define STRATA_MACRO_CONCAT_(a, b) STRATA_MACRO_CONCAT_INNER_(a, b)
// Unique even where one macro's argument holds a lambda that uses another.
#define STRATA_MACRO_NAME_(name) STRATA_MACRO_CONCAT_(name, __COUNTER__)

// Returns from the enclosing function if `expression` is not OK.
#define RETURN_IF_ERROR(expression) \
  STRATA_RETURN_IF_ERROR_(STRATA_MACRO_NAME_(status_macro_), expression)
#define STRATA_RETURN_IF_ERROR_(status, expression)         \
  do {                                                      \
    if (absl::Status status = (expression); !status.ok()) { \
      return status;                                        \
    }                                                       \
  } while (false)

// Assigns the value of a StatusOr to `target` (which may declare a variable), or returns its
// status.
#define ASSIGN_OR_RETURN(target, expression) \
  STRATA_ASSIGN_OR_RETURN_(STRATA_MACRO_NAME_(status_or_macro_), target, expression)
#define STRATA_ASSIGN_OR_RETURN_(status_or, target, expression) \
  auto status_or = (expression);                                \
  if (!status_or.ok()) return std::move(status_or).status();    \
  target = *std::move(status_or)
