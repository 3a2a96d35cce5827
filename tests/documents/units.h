// Units for tests: made in a line, answered on any thread.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "schemas/document/bson_builder.h"
#include "tests/documents/world.h"

namespace strata::versioning::testing {

class UnitAnswer {
 public:
  UnitCallback Callback() {
    return [this](absl::StatusOr<UnitResult> result) {
      const std::lock_guard lock(mutex_);
      ASSERT_FALSE(result_) << "answered twice";
      result_ = std::move(result);
      answered_.notify_all();
    };
  }
  bool ready() {
    const std::lock_guard lock(mutex_);
    return result_.has_value();
  }
  const absl::StatusOr<UnitResult>& Wait() {
    std::unique_lock lock(mutex_);
    answered_.wait(lock, [this] { return result_.has_value(); });
    return *result_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable answered_;
  std::optional<absl::StatusOr<UnitResult>> result_;
};

// What `process` answers to it.
inline absl::StatusOr<UnitResult> Commit(Process& process, UnitRequest unit) {
  UnitAnswer answer;
  process.documents().Commit(std::move(unit), answer.Callback());
  return answer.Wait();
}

inline DocumentName Named(std::string_view id, std::string_view collection = "things") {
  return {std::string(collection), std::string(id)};
}

// Adds to the member "n", which is 0 where there is no document.
inline Change Adding(DocumentName name, int32_t by) {
  Change change;
  change.request.name = std::move(name);
  change.mutate = [by](const CurrentState& current) -> absl::StatusOr<Mutation> {
    int64_t n = by;
    if (current.live()) {
      document::BsonReader reader(current.version->content->bytes());
      while (reader.Next()) n += reader.Int64();
    }
    return Mutation{current.live() ? VersionKind::kUpdated : VersionKind::kCreated, Number(n)};
  };
  return change;
}

// "n" of a content that Number or Adding made.
inline int64_t NumberIn(const StoredVersion& version) {
  document::BsonReader reader(version.content->bytes());
  return reader.Next() ? reader.Int64() : 0;
}

inline UnitRequest UnitOf(std::vector<Change> changes, std::string id = "t") {
  UnitRequest unit;
  unit.changes = std::move(changes);
  unit.transaction_id = std::move(id) + "/0";  // as of one that nothing remembers
  return unit;
}

// It is to be done once, whatever else is asked for under its id.
inline UnitRequest Remembered(UnitRequest unit, std::string fingerprint = "12345678") {
  unit.transaction_id.resize(unit.transaction_id.size() - 2);
  unit.request_fingerprint = std::move(fingerprint);
  return unit;
}

}  // namespace strata::versioning::testing
