// The feed: every change in the order of commits, from any position, for as long as the client
// reads. It reads the ledger and stores nothing of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/base/executor.h"
#include "schemas/feed/event.h"
#include "schemas/feed/reader.h"
#include "schemas/feed/reader_line.h"
#include "schemas/feed/ring.h"
#include "schemas/feed/tail.h"
#include "schemas/store/store.h"
#include "schemas/versioning/documents.h"
#include "schemas/versioning/ledger_floor.h"

namespace strata::feed {

inline constexpr int64_t kWatchersMax = 10'000;

struct FeedOptions {
  int64_t watchers_max = kWatchersMax;
  // Maximum readers at work at the same time. All but one, if there is more than one, may be
  // such whose last turn was long, or who have looked at nothing yet.
  int turns_max = 2;
  RingLimits ring;
  // How long entries of the ledger are kept, for GetState; nothing: for ever.
  std::optional<std::chrono::seconds> retention;
  // The holders that keep entries longer, for GetState; null: none. Outlives the feed.
  const versioning::FloorHolders* floor_holders = nullptr;
};

struct FeedState {
  store::CommitPosition oldest_position = 0;
  store::CommitPosition last_position = 0;
  int64_t watchers = 0;
  int64_t parked_watchers = 0;
  int64_t events_sent = 0;
  int64_t catch_up_reads = 0;
  std::optional<std::chrono::seconds> retention;
  std::optional<versioning::FloorHolder> held_by;  // the lowest of the ledger's holders
};

// An open watch; it ends with its last owner.
class Watch {
 public:
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // The watcher has taken all messages, or begins to.
  void Ready() { reader_->Ready(); }

 private:
  friend class Feed;
  Watch(class Feed& feed, std::shared_ptr<Reader> reader, bool counted)
      : feed_(feed), reader_(std::move(reader)), counted_(counted) {}

  class Feed& feed_;
  const std::shared_ptr<Reader> reader_;
  const bool counted_;  // among the watchers
};

// Thread-safe. Readers take turns on the executor: callers go round, and of each its readers. It
// needs one thread more than `turns_max` for the tail, and drops its remaining work before the feed
// is destroyed.
class Feed {
 public:
  // All outlive it.
  Feed(store::Store& store, versioning::Documents& documents, const Clock& clock,
       Executor& executor, const FeedOptions& options = {});
  // REQUIRES: no watch is open.
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Opens a watch, which begins with its first Ready; its start is checked then, and the sink gets
  // the error. UNSUPPORTED_BY_ENGINE without commit positions, OVERLOADED with too many watchers,
  // INVALID_FIELD for a start_time in the future.
  absl::StatusOr<std::unique_ptr<Watch>> Open(WatchQuery query, std::shared_ptr<Sink> sink);

  // The same for a reader inside the server, which is not counted as a watcher. REQUIRES: commit
  // positions; no start_time.
  std::unique_ptr<Watch> Follow(WatchQuery query, std::shared_ptr<Sink> sink);

  // UNSUPPORTED_BY_ENGINE, RECORD_CORRUPT, STORE_UNAVAILABLE.
  absl::StatusOr<FeedState> GetState() const;

  versioning::Collections& collections() { return workshop_.documents.collections(); }

  // Test only: total turns taken.
  int64_t turns() const { return counters_.turns; }
  const Tail& tail() const { return tail_; }

 private:
  friend class Watch;

  std::unique_ptr<Watch> Begin(WatchQuery query, std::shared_ptr<Sink> sink, bool counted);
  void Close(Reader& reader, bool counted);
  void Schedule(std::shared_ptr<Reader> reader);
  void RunTurn();
  // With the lock held.
  bool HasLong() const;
  bool HasNext() const;

  store::Store& store_;
  const Clock& clock_;
  Executor& executor_;
  const FeedOptions options_;
  Counters counters_;
  Tail tail_;
  const Workshop workshop_;
  std::atomic<int64_t> watchers_ = 0;

  std::mutex mutex_;  // guards the members below
  ReaderLine brief_;
  ReaderLine lengthy_;      // whose last turn was long, or who looked at nothing yet
  int running_ = 0;         // turns under way, or about to begin
  int long_running_ = 0;    // of them those of `lengthy_`
  bool long_next_ = false;  // where either may be, so that neither waits for all of the other
};

}  // namespace strata::feed
