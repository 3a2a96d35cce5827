// What a watcher asks for, and what it gets.
#pragma once

#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "schemas/base/clock.h"
#include "schemas/document/content.h"
#include "schemas/document/diff.h"
#include "schemas/document/filter.h"
#include "schemas/feed/commit.h"
#include "schemas/lease/place.h"
#include "schemas/versioning/copy.h"
#include "schemas/versioning/version.h"

namespace strata::feed {

// Where a watch begins.
struct FromNow {};
struct FromPosition {
  store::CommitPosition after = 0;  // after this commit; 0: at the beginning
};
struct FromTime {
  UnixMicros time = 0;  // with the first commit of this time or later
};
// With a copy of the documents as of a commit, from after the document `after`; then after that
// commit.
struct FromCopy {
  store::CommitPosition at = 0;  // 0: as of now
  versioning::CopyPlace after;
  bool complete = false;  // nothing of the copy is left to do
};
// After an event of a commit, or the whole commit.
struct FromPlace {
  lease::Place behind;
};
using Start = std::variant<FromNow, FromPosition, FromTime, FromCopy, FromPlace>;

inline constexpr std::chrono::seconds kBookmarkIntervalDefault{10};

struct WatchQuery {
  std::string caller = {};  // by whom turns go round
  Selection selection;
  std::optional<document::Filter> filter;  // of the content, and of the one before
  bool include_content = false;
  bool include_before = false;
  bool include_changes = false;
  std::chrono::microseconds bookmark_interval = kBookmarkIntervalDefault;
  Start start;
};

// Something that happened.
struct Event {
  store::CommitPosition position = 0;
  uint32_t index = 0;
  EventType type = EventType::kOther;
  std::string collection;
  int64_t incarnation = 0;  // of the collection
  std::string id;           // empty: it is of the collection
  // Without hashes, unless with content. Of what is no version only the commit time is there.
  versioning::StoredVersion version;
  std::optional<document::Content> before;
  document::Changes changes;
  bool left_filter = false;
  bool content_missing = false;
};

struct Progress {
  store::CommitPosition resume_position = 0;  // all up to this has been sent
  store::CommitPosition last_position = 0;    // there was when the message was made
  // Of a copy, how far it has come; resume_position is 0 until it is complete.
  std::optional<FromCopy> copy;
};

// Takes what one watcher gets. Thread-safe only as far as it says; a reader calls one thing after
// the other, on any thread.
class Sink {
 public:
  virtual ~Sink() = default;

  // Nobody takes anything any more. Asked often, on any thread.
  virtual bool closed() const = 0;
  // Whether the watcher may still have what it asked for. Asked before anything is read for it.
  virtual absl::Status Admit() = 0;
  // Whether there is room for a message, which is its until ReturnRoom. Asked before each turn; if
  // not, Reader::Ready follows once there may be.
  virtual bool TakeRoom() { return true; }
  virtual void ReturnRoom() {}
  // About how many events it takes in now, or more: none are looked for in vain. Asked before each
  // turn's look.
  virtual size_t room() const { return std::numeric_limits<size_t>::max(); }
  // Puts an event into the message to come; false: the message is full without it, and the event is
  // offered again, after a message without events if none was taken.
  virtual bool Add(Event&& event) = 0;
  // The same for a document of a copy.
  virtual bool AddDocument(versioning::CopyCursor& document) = 0;
  // Sends the message, of what was added. Reader::Ready follows when it has left.
  virtual void Send(const Progress& progress) = 0;
  // Ends the watch.
  virtual void Finish(const absl::Status& status) = 0;
};

}  // namespace strata::feed
