#include <strata/wire/v1/feed_service.pb.h>

#include <memory>
#include <string>
#include <utility>

#include "schemas/base/status_macros.h"
#include "schemas/feed/feed.h"
#include "service/rpc/convert.h"
#include "service/rpc/handlers/feed/events.h"
#include "service/rpc/handlers/feed/selection.h"
#include "service/rpc/server_stream.h"

namespace strata::rpc::feed_service {
namespace {

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

absl::StatusOr<feed::FromCopy> ToCopy(const wire::Snapshot& snapshot) {
  RETURN_IF_ERROR(CheckPosition("snapshot.at_position", snapshot.at_position()));
  const bool begun = !snapshot.after_collection().empty() || !snapshot.after_id().empty();
  if (begun && snapshot.at_position() == 0) {
    return FieldError("snapshot.at_position", "is needed to continue a copy");
  }
  return feed::FromCopy{snapshot.at_position(),
                        {snapshot.after_collection(), snapshot.after_id()},
                        snapshot.complete()};
}

absl::StatusOr<feed::WatchQuery> ToQuery(const wire::WatchRequest& request,
                                         const std::string& caller) {
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  feed::WatchQuery query;
  query.caller = caller;
  ASSIGN_OR_RETURN(query.selection,
                   ToSelection(request.collections(), request.id_prefix(), request.kinds()));
  ASSIGN_OR_RETURN(query.filter, ToFilter("filter", request.filter()));
  query.include_content = request.include_content();
  query.include_before = request.include_before();
  query.include_changes = request.include_changes();
  ASSIGN_OR_RETURN(query.bookmark_interval, ToBookmarkInterval(request));
  if (request.has_snapshot()) {
    ASSIGN_OR_RETURN(query.start, ToCopy(request.snapshot()));
  } else {
    ASSIGN_OR_RETURN(query.start, ToStart(request));
  }
  return query;
}

void FillSnapshot(const feed::FromCopy& copy, wire::Snapshot& snapshot) {
  snapshot.set_at_position(copy.at);
  snapshot.set_after_collection(copy.after.collection);
  snapshot.set_after_id(copy.after.id);
  snapshot.set_complete(copy.complete);
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
      : form_(request),
        access_(watch.services_.access, watch.info(), query.selection.collections),
        watch_(watch) {}

  void Close() { watch_.Close(); }

  bool closed() const override { return watch_.closed(); }
  absl::Status Admit() override { return access_.Check(); }

  bool TakeRoom() override {
    bool taken = false;
    watch_.IfOpen([&](Watch& watch) { taken = watch.ServerStream::TakeRoom(); });
    return taken;
  }
  void ReturnRoom() override {
    watch_.IfOpen([](Watch& watch) { watch.ServerStream::ReturnRoom(); });
  }

  bool Add(feed::Event&& event) override {
    wire::WatchResponse& message = made_.message();
    form_.Fill(event, *message.add_events());
    return made_.Keep(*message.mutable_events());
  }

  bool AddDocument(versioning::CopyCursor& document) override {
    wire::WatchResponse& message = made_.message();
    wire::Document& added = *message.add_documents();
    const versioning::StoredVersion& version = document.version();
    FillDocument(document.collection(), document.id(), version, added);
    if (version.content) {
      FillContent(*version.content, form_.encoding(), *added.mutable_content());
    }
    return made_.Keep(*message.mutable_documents());
  }

  void Send(const feed::Progress& progress) override {
    wire::WatchResponse& message = made_.message();
    message.set_resume_position(progress.resume_position);
    message.set_last_position(progress.last_position);
    if (progress.copy) FillSnapshot(*progress.copy, *message.mutable_snapshot());
    watch_.IfOpen([&](Watch& watch) { watch.Send(message); });
    made_.Clear();
  }

  void Finish(const absl::Status& status) override {
    watch_.IfOpen([&](Watch& watch) { watch.ServerStream::Finish(status); });
  }

 private:
  const EventForm form_;
  const EventAccess access_;
  MessageInMaking<wire::WatchResponse> made_;
  Outlived<Watch> watch_;
};

absl::Status Watch::Begin(const wire::WatchRequest& request) {
  ASSIGN_OR_RETURN(feed::WatchQuery query, ToQuery(request, info().caller->name()));
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
