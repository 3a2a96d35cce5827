// How an error about content names the member that is at fault.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "schemas/base/error.h"

namespace strata::document {

// A pointer as errors show it: cut after kShownPathMax bytes, because errors travel in headers.
// REQUIRES: UTF-8.
inline constexpr size_t kShownPathMax = 512;
std::string ShownPath(std::string_view pointer);

// Where a walk through a document is, for the error that it may end with. It costs a walk that goes
// well next to nothing: levels live in the frames of the functions that walk them.
class Trail {
 public:
  // One object or array, for as long as it is walked.
  class Level {
   public:
    explicit Level(Trail& trail) : trail_(trail), parent_(trail.innermost_) {
      trail.innermost_ = this;
    }
    ~Level() { trail_.innermost_ = parent_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

    // The walk is at this member (element) of it; at the object or array itself.
    void At(std::string_view name) {
      place_ = Place::kMember;
      name_ = name;
    }
    void At(int64_t index) {
      place_ = Place::kElement;
      index_ = index;
    }
    void Leave() { place_ = Place::kSelf; }

   private:
    friend class Trail;
    enum class Place { kSelf, kMember, kElement };

    Trail& trail_;
    Level* const parent_;
    Place place_ = Place::kSelf;
    std::string_view name_;
    int64_t index_ = 0;
  };

  // The JSON Pointer; a member whose name is not UTF-8 ends it, and so does kShownPathMax.
  std::string Pointer() const;

 private:
  static bool AppendPointer(const Level* level, std::string& pointer);

  Level* innermost_ = nullptr;
};

// What is wrong with the member at `pointer` ("is NaN"), and what to do instead ("write …"), as an
// INVALID_CONTENT error with metadata "path" and "problem". `whole` is what the empty pointer
// names.
Error ContentError(std::string_view pointer, std::string_view problem, std::string_view advice,
                   std::string_view whole = "the content");

// The document (or value) has `actual` bytes and may have `limit`; `encoding` says in which form.
Error TooLargeError(std::string_view encoding, size_t actual, size_t limit);

}  // namespace strata::document
