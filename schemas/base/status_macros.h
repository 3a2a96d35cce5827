// Early return on error, in the spelling that Abseil's users know.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function if `expression` is not OK.
#define RETURN_IF_ERROR(expression)                                       \
  do {                                                                    \
    if (absl::Status status_macro_ = (expression); !status_macro_.ok()) { \
      return status_macro_;                                               \
    }                                                                     \
  } while (false)

#define STRATA_MACRO_CONCAT_INNER_(a, b) a##b
#define STRATA_MACRO_CONCAT_(a, b) STRATA_MACRO_CONCAT_INNER_(a, b)

// Assigns the value of a StatusOr to `target` (which may declare a variable), or returns its
// status.
#define ASSIGN_OR_RETURN(target, expression) \
  STRATA_ASSIGN_OR_RETURN_(STRATA_MACRO_CONCAT_(status_or_macro_, __LINE__), target, expression)
#define STRATA_ASSIGN_OR_RETURN_(status_or, target, expression) \
  auto status_or = (expression);                                \
  if (!status_or.ok()) return std::move(status_or).status();    \
  target = *std::move(status_or)
