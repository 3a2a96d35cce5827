// How an error about content names the member that is at fault.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "schemas/base/error.h"

namespace strata::document {

// A pointer as errors show it: cut behind kShownPathMax bytes, because errors travel in headers.
// REQUIRES: UTF-8.
inline constexpr size_t kShownPathMax = 512;
std::string ShownPath(std::string_view pointer);

// The members from the root down to where a walk is. Names are views and must outlive it.
class Trail {
 public:
  void Push(std::string_view name) { steps_.push_back({name, -1}); }
  void PushIndex(int64_t index) { steps_.push_back({{}, index}); }
  void Pop() { steps_.pop_back(); }

  // The JSON Pointer; a step whose name is not UTF-8 ends it, and so does kShownPathMax.
  std::string Pointer() const;

 private:
  struct Step {
    std::string_view name;
    int64_t index;  // -1: the step has a name
  };
  absl::InlinedVector<Step, 32> steps_;
};

// What is wrong with the member at `pointer` ("is NaN"), and what to do instead ("write …"), as an
// INVALID_CONTENT (or other) error with metadata "path" and "problem".
Error ContentError(std::string_view pointer, std::string_view problem, std::string_view advice,
                   ErrorReason reason = ErrorReason::kInvalidContent);

// The document (or value) has `actual` bytes and may have `limit`; `encoding` says in which form.
Error TooLargeError(std::string_view encoding, size_t actual, size_t limit);

}  // namespace strata::document
