// What one watcher of a storm got, held against the ledger.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "schemas/base/clock.h"
#include "tests/rpc/storm_world.h"

namespace strata::rpc_test {

// What one watcher got.
struct Got {
  Wish wish;
  int64_t asked_for = -1;  // the position or the time (in µs) to begin with
  int64_t least = 0;       // where it may begin
  int64_t most = 0;
  int64_t began = -1;
  std::map<int32_t, Told> copy;  // by document
  std::unique_ptr<ToldFile> events;
  int breaks = 0;
  int breaks_in_copy = 0;
  std::string failure;
};

// It is shown the ledger once, entry by entry, and filters it by a plain evaluation of its own.
class WatcherCheck {
 public:
  // `end`: the position up to which the ledger is shown. All must outlive this.
  WatcherCheck(const Got& got, const Numbers& numbers, int64_t end);

  void See(const Told& entry, UnixMicros time);
  // After the last entry: what is wrong; empty if nothing is.
  std::string Finish();

 private:
  void SeeBeginning(const Told& entry, UnixMicros time);
  void SeeCopied(const Told& entry);
  void SeeEvent(const Told& expected);
  void CheckBeginning();
  void CheckCopy();
  void Move();
  // What is wrong first counts.
  template <typename... Parts>
  void Fail(const Parts&... parts) {
    if (!failure_.empty()) return;
    std::ostringstream text;
    (text << ... << parts);
    failure_ = text.str();
  }

  const Got& got_;
  const Numbers& numbers_;
  const int64_t end_;

  std::optional<Told> told_;  // the event that is to be next
  int64_t events_ = 0;        // before it
  // Of who begins at a time: the first commit behind the beginning, and the latest time in it.
  int64_t first_position_ = -1;
  UnixMicros first_latest_ = 0;
  // Of who begins with a copy: the documents as of its position.
  std::map<int32_t, Told> expected_;
  std::set<std::string> deleted_since_;

  std::string failure_;
};

}  // namespace strata::rpc_test
