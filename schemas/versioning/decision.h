// Decisions: what becomes of the writes that wait for a document, one after the other, each on what
// those before it leave. Internal to this folder.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/age_clock.h"
#include "schemas/base/clock.h"
#include "schemas/store/store.h"
#include "schemas/versioning/collections.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/version.h"
#include "schemas/versioning/write_path.h"
#include "schemas/versioning/write_queue.h"

namespace strata::versioning {

// The writes of one document that are decided together, on one read of its head.
struct Round {
  PendingWrites group;             // that are not answered yet
  std::optional<size_t> take_max;  // what WriteQueue::LimitNextTake had said

  bool brief = false;  // others wait for the thread
  ReadLimits limits;
  bool takes_long = false;  // more than the limits let it: nothing is decided

  std::unique_ptr<store::Reader> reader;
  CollectionPtr collection;  // null: there is none
  store::DocumentKey document;
  std::optional<Head> head;
  UnixMicros forgotten = 0;  // what requests did until then is not remembered
  std::vector<StoredVersion> planned;
  size_t planned_bytes = 0;
  // The earliest of those who planned: the versions come together or not at all.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();

  const StoredVersion* current() const {
    if (!planned.empty()) return &planned.back();
    return head ? &head->version : nullptr;
  }
  int64_t head_version() const { return head ? head->version.header.version : 0; }

  // Answers, in their order, those who have an answer that holds; the others stay.
  template <typename Holds>
  void Answer(Holds holds) {
    size_t kept = 0;
    for (auto& write : group) {
      if (write->answer && holds(*write)) {
        const std::unique_ptr<PendingWrite> answered = std::move(write);
        answered->done(*std::move(answered->answer));
      } else {
        std::swap(group[kept++], write);
      }
    }
    group.resize(kept);
  }
};

// DEADLINE_EXCEEDED, for a write that tried `attempts` commits.
absl::Status DeadlineExceeded(int attempts);

// Thread-safe. All that it is given must outlive it.
class Decider {
 public:
  Decider(const store::Store& store, Collections& collections, const Clock& clock, Entropy& entropy,
          const WriteOptions& options);

  // Reads the document's head and decides the writes of the round in their order. Each gets an
  // answer. One that makes a version plans it: that answer, and all after it, hold once the version
  // is committed. The last ones get none if the round is too full for them. None gets any, and
  // none counts, if the round takes long.
  void Decide(Round& round);

 private:
  absl::Status ReadDocument(Round& round);
  void DecideOne(Round& round, PendingWrite& write);
  bool Replay(Round& round, PendingWrite& write) const;
  absl::StatusOr<std::optional<StoredVersion>> FindMade(const Round& round,
                                                        const WriteRequest& request) const;
  absl::Status CheckPrecondition(const Round& round, const PendingWrite& write) const;
  absl::Status CheckFilter(const Round& round, const PendingWrite& write) const;
  ReadContext ContextOf(const Round& round) const;
  CurrentState StateOf(const Round& round) const;
  void PlanVersion(Round& round, PendingWrite& write, const CurrentState& current,
                   Mutation mutation);
  StoredVersion NextVersion(const StoredVersion* current, const WriteRequest& request,
                            Mutation mutation);

  const store::Store& store_;
  const store::Capabilities capabilities_;
  Collections& collections_;
  const Clock& clock_;
  const AgeClock age_clock_;
  Entropy& entropy_;
  const WriteOptions& options_;
};

}  // namespace strata::versioning
