#include <google/protobuf/arena.h>
#include <strata/wire/v1/feed_service.pb.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schemas/base/status_macros.h"
#include "schemas/feed/feed.h"
#include "service/rpc/answer_size.h"
#include "service/rpc/convert.h"
#include "service/rpc/resources.h"
#include "service/rpc/server_stream.h"

namespace strata::rpc::feed_service {
namespace {

// A message ends with the event that passes this, which then comes in the next, unless it is alone.
constexpr size_t kMessageBytesMax = size_t{256} << 10;
// Contents and changes that make an event larger are left out.
constexpr size_t kEventBytesMax = kPageBytesMax;

constexpr size_t kIdBytesMax = 256;

absl::Status CheckCollections(const wire::WatchRequest& request) {
  if (request.collections_size() > kWatchedCollectionsMax) {
    return TooManyElements("collections", request.collections_size(), kWatchedCollectionsMax);
  }
  for (int i = 0; i < request.collections_size(); ++i) {
    RETURN_IF_ERROR(
        versioning::ValidateName("collections[" + std::to_string(i) + "]", request.collections(i)));
  }
  return absl::OkStatus();
}

absl::StatusOr<feed::Selection> ToSelection(const wire::WatchRequest& request) {
  RETURN_IF_ERROR(CheckCollections(request));
  feed::Selection selection;
  selection.collections.assign(request.collections().begin(), request.collections().end());
  auto& collections = selection.collections;
  std::sort(collections.begin(), collections.end());
  collections.erase(std::unique(collections.begin(), collections.end()), collections.end());
  if (!request.id_prefix().empty() && collections.size() != 1) {
    return FieldError("id_prefix", "needs exactly one collection, and " +
                                       std::to_string(collections.size()) + " are named");
  }
  if (request.id_prefix().size() > kIdBytesMax) {
    return FieldError("id_prefix", "has " + std::to_string(request.id_prefix().size()) +
                                       " bytes, and ids have at most 256");
  }
  selection.id_prefix = request.id_prefix();
  for (int i = 0; i < request.kinds_size(); ++i) {
    const wire::VersionKind kind = request.kinds(i);
    if (kind == wire::VERSION_KIND_UNSPECIFIED || !wire::VersionKind_IsValid(kind)) {
      return FieldError("kinds[" + std::to_string(i) + "]",
                        "is no kind of version; leave kinds out for all of them");
    }
    selection.kinds.push_back(static_cast<versioning::VersionKind>(kind));
  }
  return selection;
}

absl::StatusOr<std::chrono::microseconds> ToBookmarkInterval(const wire::WatchRequest& request) {
  if (!request.has_bookmark_interval()) return feed::kBookmarkIntervalDefault;
  const google::protobuf::Duration& interval = request.bookmark_interval();
  const bool in_range =
      interval.seconds() >= 1 && interval.nanos() >= 0 && interval.nanos() <= 999'999'999 &&
      (interval.seconds() < 3600 || (interval.seconds() == 3600 && interval.nanos() == 0));
  if (!in_range) return FieldError("bookmark_interval", "has to be from 1 s to 1 h");
  return std::chrono::seconds(interval.seconds()) +
         std::chrono::microseconds(interval.nanos() / 1000);
}

absl::Status CheckPosition(std::string_view field, int64_t position) {
  if (position >= 0) return absl::OkStatus();
  return FieldError(field, "is " + std::to_string(position) + ", but has to be 0 or more");
}

absl::StatusOr<feed::FromCopy> ToCopy(const wire::Snapshot& snapshot) {
  RETURN_IF_ERROR(CheckPosition("snapshot.at_position", snapshot.at_position()));
  const bool begun = !snapshot.after_collection().empty() || !snapshot.after_id().empty();
  if ((begun || snapshot.complete()) && snapshot.at_position() == 0) {
    return FieldError("snapshot.at_position", "is needed to go on with a copy");
  }
  if (begun) {
    RETURN_IF_ERROR(
        versioning::ValidateName("snapshot.after_collection", snapshot.after_collection()));
  }
  if (!snapshot.after_id().empty()) {
    RETURN_IF_ERROR(versioning::ValidateName("snapshot.after_id", snapshot.after_id()));
  }
  return feed::FromCopy{snapshot.at_position(),
                        {snapshot.after_collection(), snapshot.after_id()},
                        snapshot.complete()};
}

absl::StatusOr<feed::Start> ToStart(const wire::WatchRequest& request) {
  switch (request.start_case()) {
    case wire::WatchRequest::kAfterPosition:
      RETURN_IF_ERROR(CheckPosition("after_position", request.after_position()));
      return feed::FromPosition{request.after_position()};
    case wire::WatchRequest::kStartTime: {
      ASSIGN_OR_RETURN(const UnixMicros time,
                       ToMicros("start_time", request.start_time(), Round::kUp));
      return feed::FromTime{time};
    }
    case wire::WatchRequest::kSnapshot:
      return ToCopy(request.snapshot());
    case wire::WatchRequest::START_NOT_SET:
      break;
  }
  return feed::FromNow();
}

absl::StatusOr<feed::WatchQuery> ToQuery(const wire::WatchRequest& request) {
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  feed::WatchQuery query;
  ASSIGN_OR_RETURN(query.selection, ToSelection(request));
  ASSIGN_OR_RETURN(query.filter, ToFilter("filter", request.filter()));
  query.include_content = request.include_content();
  query.include_before = request.include_before();
  query.include_changes = request.include_changes();
  ASSIGN_OR_RETURN(query.bookmark_interval, ToBookmarkInterval(request));
  ASSIGN_OR_RETURN(query.start, ToStart(request));
  return query;
}

void FillSnapshot(const feed::FromCopy& copy, wire::Snapshot& snapshot) {
  snapshot.set_at_position(copy.at);
  snapshot.set_after_collection(copy.after.collection);
  snapshot.set_after_id(copy.after.id);
  snapshot.set_complete(copy.complete);
}

// Leaves contents out, the least important first, until the event is small enough.
void Truncate(wire::Event& event) {
  event.set_truncated(true);
  event.clear_before();
  if (event.ByteSizeLong() > kEventBytesMax) event.mutable_version()->clear_changes();
  if (event.ByteSizeLong() > kEventBytesMax) event.mutable_version()->clear_content();
}

// One message of events at a time, made when its watcher has taken the one before.
class Watch final : public ServerStream<wire::WatchRequest, wire::WatchResponse> {
 public:
  Watch(const Services& services, Stream& stream) : ServerStream(stream), services_(services) {}

  void OnClosed() override;

 private:
  class Messages;

  absl::Status Begin(const wire::WatchRequest& request) override;
  void OnReady() override { watch_->Ready(); }

  const Services& services_;
  std::shared_ptr<Messages> messages_;
  std::unique_ptr<feed::Watch> watch_;
};

// Outlives the stream where a turn is under way when that ends.
class Watch::Messages final : public feed::Sink {
 public:
  Messages(Watch& watch, const wire::WatchRequest& request, const feed::WatchQuery& query)
      : encoding_(request.encoding()),
        include_content_(query.include_content),
        include_changes_(query.include_changes),
        access_(watch.services_.access),
        identity_(watch.info().identity),
        peer_(watch.info().peer),
        collections_(query.selection.collections),
        watch_(&watch) {}

  // Waits for a message that is being handed over, and for nothing that takes long.
  void Close() {
    closed_ = true;
    const std::lock_guard lock(mutex_);
    watch_ = nullptr;
  }

  bool closed() const override { return closed_.load(std::memory_order_relaxed); }

  // A watch is open for long, and what its caller may read may change meanwhile.
  absl::Status Admit() override {
    RETURN_IF_ERROR(access_.CheckStillValid(*identity_));
    security::Demands demands;
    for (const std::string& collection : collections_) {
      demands.push_back(OnCollection(security::Permission::kRead, collection));
    }
    if (demands.empty()) {
      demands.push_back(OnCollection(security::Permission::kRead, security::kEvery));
    }
    return access_.Authorize(*identity_, demands, peer_);
  }

  bool Add(feed::Event&& event) override {
    wire::WatchResponse& message = Message();
    wire::Event& added = *message.add_events();
    FillEvent(event, added);
    return Keep(added.ByteSizeLong(), *message.mutable_events());
  }

  bool AddDocument(versioning::CopyCursor& document) override {
    wire::WatchResponse& message = Message();
    wire::Document& added = *message.add_documents();
    const versioning::StoredVersion& version = document.version();
    FillDocument(document.collection(), document.id(), version, added);
    if (version.content) FillContent(*version.content, encoding_, *added.mutable_content());
    return Keep(added.ByteSizeLong(), *message.mutable_documents());
  }

  void Send(const feed::Progress& progress) override {
    wire::WatchResponse& message = Message();
    message.set_resume_position(progress.resume_position);
    message.set_last_position(progress.last_position);
    if (progress.copy) FillSnapshot(*progress.copy, *message.mutable_snapshot());
    {
      const std::lock_guard lock(mutex_);
      if (watch_ != nullptr) watch_->Send(message);
    }
    message_ = nullptr;
    bytes_ = 0;
    arena_.reset();
  }

  void Finish(const absl::Status& status) override {
    const std::lock_guard lock(mutex_);
    if (watch_ != nullptr) watch_->ServerStream::Finish(status);
  }

 private:
  // The message to come. Made when it is needed, so that whoever waits holds none.
  wire::WatchResponse& Message() {
    if (message_ == nullptr) {
      arena_.emplace();
      message_ = google::protobuf::Arena::CreateMessage<wire::WatchResponse>(&*arena_);
    }
    return *message_;
  }

  // Whether the message has room for its last item, of so many bytes; if not, it is taken out.
  template <typename Items>
  bool Keep(size_t item_bytes, Items& items) {
    if (bytes_ > 0 && bytes_ + item_bytes > kMessageBytesMax) {
      items.RemoveLast();
      return false;
    }
    bytes_ += item_bytes;
    return true;
  }

  void FillEvent(const feed::Event& event, wire::Event& filled) const {
    filled.set_position(event.position);
    filled.set_index(static_cast<int32_t>(event.index));
    filled.set_type(static_cast<wire::EventType>(event.type));
    filled.set_collection(event.collection);
    filled.set_id(event.id);
    if (event.type != feed::EventType::kVersion) return;
    wire::Version& version = *filled.mutable_version();
    FillVersion(event.version, version);
    filled.set_left_filter(event.left_filter);
    filled.set_content_missing(event.content_missing);
    if (include_content_ && event.version.content) {
      FillContent(*event.version.content, encoding_, *version.mutable_content());
    }
    if (event.before) FillContent(*event.before, encoding_, *filled.mutable_before());
    if (include_changes_) FillChanges(event.changes, version);
    if (filled.ByteSizeLong() > kEventBytesMax) Truncate(filled);
  }

  const wire::Encoding encoding_;
  const bool include_content_;
  const bool include_changes_;
  security::Access& access_;
  const std::shared_ptr<const security::Identity> identity_;
  const std::string peer_;
  const std::vector<std::string> collections_;
  std::atomic<bool> closed_ = false;

  // Of the turn under way.
  std::optional<google::protobuf::Arena> arena_;
  wire::WatchResponse* message_ = nullptr;  // on the arena
  size_t bytes_ = 0;                        // of its items

  std::mutex mutex_;  // guards watch_, and is held while it is used
  Watch* watch_;      // null: it is closed
};

absl::Status Watch::Begin(const wire::WatchRequest& request) {
  ASSIGN_OR_RETURN(feed::WatchQuery query, ToQuery(request));
  messages_ = std::make_shared<Messages>(*this, request, query);
  ASSIGN_OR_RETURN(watch_, services_.feed.Open(std::move(query), messages_));
  return absl::OkStatus();
}

void Watch::OnClosed() {
  if (messages_ != nullptr) messages_->Close();
  watch_.reset();
}

}  // namespace

std::unique_ptr<HandlerOf<wire::WatchRequest>> OpenWatch(const Services& services, Stream& stream) {
  return std::make_unique<Watch>(services, stream);
}

}  // namespace strata::rpc::feed_service
