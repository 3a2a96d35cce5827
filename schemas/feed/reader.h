// One watch: a place in the feed, and what is wanted of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/feed/commit.h"
#include "schemas/feed/contents.h"
#include "schemas/feed/event.h"
#include "schemas/feed/parking.h"
#include "schemas/feed/tail.h"
#include "schemas/store/store.h"
#include "schemas/versioning/documents.h"

namespace strata::feed {

// So many events at most are put into one message.
inline constexpr size_t kTurnEventsMax = 256;
// So many entries at most are looked at in one turn, wanted or not.
inline constexpr size_t kTurnEntriesMax = 4096;
// With so much content looked at, sent or not, or after so long, the next one has its turn. One
// event is always looked at: a turn lasts as long as that may take, and the time that is left.
inline constexpr std::chrono::milliseconds kTurnTimeMax{5};
inline constexpr size_t kTurnBytesMax = size_t{8} << 20;

class Reader;

// Counts of all watches, since the start.
struct Counters {
  std::atomic<int64_t> events_sent = 0;
  std::atomic<int64_t> catch_up_reads = 0;  // of the ledger, for one who is not where it ends
  std::atomic<int64_t> turns = 0;
};

// What all readers work with. Outlives them.
struct Workshop {
  store::Store& store;
  versioning::Documents& documents;
  const Clock& clock;
  Tail& tail;
  Counters& counters;
  // Has the reader's Turn called once, soon, on any thread.
  std::function<void(std::shared_ptr<Reader>)> schedule;
};

// Keeps no events: it takes them from the tail's ring or, where they are older, from the ledger,
// when the caller has taken the message before. So a slow caller costs one message and holds up
// nobody. At the ledger's end it is parked with the tail. Thread-safe. Keep it in a shared_ptr.
//
// Events come in the order of their places, each once. A message is sent at once when there are
// events; without any when nothing was sent for the bookmark interval though more has been looked
// at; and as the first of all, so that its place is known before anything can go wrong.
class Reader final : public Follower, public std::enable_shared_from_this<Reader> {
 public:
  Reader(const Workshop& workshop, WatchQuery query, std::shared_ptr<Sink> sink);

  // The caller has taken all that was sent, or begins to.
  void Ready();
  // Nothing more is sent, but for what a turn under way may send still.
  void Close();

  const Selection& selection() const override { return query_.selection; }
  void Wake(store::CommitPosition passed) override;

  // What it was scheduled for. Nothing: it neither began nor had anything to look at.
  enum class Effort : uint8_t { kNothing, kBegan, kLooked };
  Effort Turn();
  const std::string& caller() const { return query_.caller; }
  // Whether its next turn is expected to be brief. Guarded by the feed's lock.
  bool brief;

 private:
  using Time = std::chrono::steady_clock::time_point;
  enum class State : uint8_t {
    kSent,       // until the caller has taken what was sent, or there may be room for more
    kScheduled,  // a turn is to come
    kRuns,       // a turn is under way
    kParked,
    kClosed,
  };
  enum class Outcome : uint8_t { kSentMessage, kSentNothing, kNoRoom };

  // An entry that is wanted, as far as the ledger tells.
  struct Candidate {
    Place place;
    const Entry* entry = nullptr;
  };
  // What one turn looks at.
  struct Window {
    size_t events_max = kTurnEventsMax;
    std::vector<Candidate> candidates;
    Place next;  // after all
    std::vector<CommitPtr> commits;
    std::deque<Entry> entries;  // read from the ledger
  };

  absl::StatusOr<Outcome> Take();
  void EndTurn(const absl::StatusOr<Outcome>& outcome);
  absl::StatusOr<Outcome> TakeInRoom();
  absl::Status Begin();
  absl::Status Look(Window& window);
  void LookAt(const Tail::Taken& taken, Window& window) const;
  absl::Status ReadLedger(store::CommitPosition end, Window& window) const;
  struct Filled {
    int64_t events = 0;
    bool refused = false;  // the sink would not take the next one
  };
  absl::StatusOr<Filled> Fill(const Window& window);
  absl::StatusOr<Outcome> CopyOn();
  bool BookmarkIsDue() const;
  void SendMessage();
  void Fail(const absl::Status& status);
  void Continue();
  void Schedule(std::unique_lock<std::mutex> lock);

  const Workshop& workshop_;
  const WatchQuery query_;
  const std::shared_ptr<Sink> sink_;

  std::mutex mutex_;  // guards what follows
  State state_ = State::kSent;
  bool ready_again_ = false;  // the message sent in this turn has left already

  // Of the turn under way, or of whoever ends the state that none is.
  bool begun_ = false;
  Effort effort_ = Effort::kNothing;  // what it came to
  std::optional<FromCopy> copy_;      // under way
  Place next_;
  Time last_sent_;
  store::CommitPosition told_ = 0;  // the place that the last message named
};

// Makes events of entries, as a query wants them.
class EventMaker {
 public:
  // `query` outlives it.
  EventMaker(store::Store& store, versioning::Collections& collections, const WatchQuery& query,
             StopCheck stopped);

  // As Contents::Expect.
  void Expect(const Entry& entry);
  // Nothing: the filter does not match. As Contents::Read.
  absl::StatusOr<std::optional<Event>> Make(const Place& place, const Entry& entry);

  // Of content that was looked at, sent or not.
  size_t bytes() const { return bytes_; }

 private:
  absl::StatusOr<bool> FillContents(const Entry& entry, Event& event);
  absl::StatusOr<bool> Matches(const std::optional<document::Content>& content) const;

  const WatchQuery& query_;
  const StopCheck stopped_;
  const bool needs_before_;
  const bool needs_contents_;
  Contents contents_;
  size_t bytes_ = 0;
};

// POSITION_UNKNOWN after the last commit; POSITION_TRIMMED before the part of the ledger that is
// kept.
absl::Status CheckPosition(const store::Store& store, std::string_view field,
                           store::CommitPosition position);
// Before the first commit of this time or later; after the last commit if there is none.
// POSITION_TRIMMED, CANCELLED.
absl::StatusOr<store::CommitPosition> PositionBefore(const store::Store& store, UnixMicros time,
                                                     const StopCheck& stopped);

// The first commit that the ledger still tells of; 0: there is none.
absl::StatusOr<store::CommitPosition> OldestPosition(const store::Reader& reader);

}  // namespace strata::feed
