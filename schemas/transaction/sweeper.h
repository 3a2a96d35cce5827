// The sweeper: what goes on with transactions in two phases that nobody else goes on with. Internal
// to this folder.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "schemas/base/age_clock.h"
#include "schemas/transaction/environment.h"

namespace strata::transaction {

// Comes by every ten seconds or so, as long as somebody holds it, and has those driven to their end
// that nobody has touched for a while; those that are older than `timeout` and not applied it
// cancels. Clocks decide when it tries, nothing else. Keep it in a shared_ptr.
class Sweeper : public std::enable_shared_from_this<Sweeper> {
 public:
  Sweeper(const Environment& environment, std::chrono::milliseconds timeout);

  void Start() { Schedule(); }

 private:
  // What it saw of an unfinished transaction: its record's stamp, and since when.
  struct Seen {
    store::Stamp stamp = 0;  // 0: there was no record
    std::chrono::steady_clock::time_point since;
    std::weak_ptr<void> driving = {};  // lives while it is driven from here
  };

  void Schedule();
  void Sweep();
  absl::Status SweepHints();
  void SweepOne(const std::string& id, Seen& seen);
  std::chrono::microseconds AgeOf(const TransactionRecord* record, Seen& seen) const;
  void ForgetHint(const std::string& id, const std::optional<TransactionRecord>& known);
  void KeepHint(const std::string& id);

  const Environment environment_;
  const store::Capabilities capabilities_;
  const AgeClock age_clock_;
  const std::chrono::milliseconds timeout_;
  std::map<std::string, Seen> seen_;  // by id
};

}  // namespace strata::transaction
