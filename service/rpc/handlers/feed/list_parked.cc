#include <optional>
#include <string>
#include <vector>

#include "schemas/base/status_macros.h"
#include "service/rpc/batched_cursor.h"
#include "service/rpc/handlers/feed/subscription_messages.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::feed_service {
namespace {

constexpr std::string_view kListParkedMethod = "ListParked";

// Where a page ends: the partition, the collection's length, the collection, the id.
std::string PlaceOf(const wire::ParkedDocument& document) {
  std::string place;
  AppendPlaceNumber(document.partition(), place);
  AppendPlaceNumber(static_cast<int64_t>(document.collection().size()), place);
  return place + document.collection() + document.id();
}

absl::StatusOr<feed::ParkedDocument> ToPlace(std::string_view place) {
  feed::ParkedDocument after;
  const std::optional<int64_t> partition = TakePlaceNumber(place);
  const std::optional<int64_t> length = TakePlaceNumber(place);
  if (!partition || *partition < 0 || *partition >= feed::kPartitionsMax || !length ||
      *length < 0 || static_cast<size_t>(*length) > place.size()) {
    return InvalidPageToken("names no document");
  }
  after.partition = static_cast<int32_t>(*partition);
  after.collection = place.substr(0, static_cast<size_t>(*length));
  after.id = place.substr(static_cast<size_t>(*length));
  return after;
}

void FillParked(const feed::ParkedDocument& document, wire::ParkedDocument& filled) {
  filled.set_collection(document.collection);
  filled.set_id(document.id);
  filled.set_partition(document.partition);
  filled.set_from_version(document.from_version);
  filled.set_position(document.place.position);
  if (document.place.index) filled.set_index(*document.place.index);
  filled.set_attempts(document.attempts);
  filled.set_reason(document.reason);
  FillTimestamp(document.park_time, *filled.mutable_park_time());
  if (document.replay) filled.set_action(wire::PARKED_ACTION_REPLAY);
}

}  // namespace

absl::Status ListParked(const Context& context, const wire::ListParkedRequest& request,
                        wire::ListParkedResponse& response) {
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  std::optional<feed::ParkedDocument> after;
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(const std::string place,
                     ReadPageToken(kListParkedMethod, PageScope(request), request.page_token()));
    ASSIGN_OR_RETURN(after, ToPlace(place));
  }
  BatchedCursor<feed::ParkedDocument> parked([&](const feed::ParkedDocument* last, size_t most) {
    if (last != nullptr) after = *last;
    return context.services.subscriptions.ListParked(request.subscription(), after, most,
                                                     OnceClosed(context.call));
  });
  const auto fill = [&](wire::ParkedDocument& filled) { FillParked(parked.item(), filled); };
  RETURN_IF_ERROR(FillPage(parked, context.call, page_size, *response.mutable_documents(), fill));
  if (!parked.done() && response.documents_size() > 0) {
    const wire::ParkedDocument& last = response.documents(response.documents_size() - 1);
    response.set_next_page_token(
        MakePageToken(kListParkedMethod, PageScope(request), PlaceOf(last)));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::feed_service
