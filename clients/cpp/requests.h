// What the calls of all services have in common: requests out of options, answers into types.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cpp/core.h"
#include "clients/cpp/error_status.h"
#include "clients/cpp/messages.h"
#include "strata/client/value.h"
#include "strata/v1/document.pb.h"
#include "strata/v1/document_service.pb.h"
#include "strata/v1/enrollment_service.pb.h"

namespace strata::client {

// What a request says besides its options: contents come as BSON, the client's actor stands where
// the options name none, and what can have a request id has one.
template <typename Options, typename Request>
absl::Status FillRequest(const Core& core, const Options& options, Request& request) {
  absl::Status status = WriteMessage(options, request);
  if constexpr (requires { request.set_encoding(v1::ENCODING_BSON); }) {
    request.set_encoding(v1::ENCODING_BSON);
  }
  if constexpr (requires { request.mutable_change(); }) {
    if (!core.actor().empty() && request.change().actor().empty()) {
      request.mutable_change()->set_actor(core.actor());
    }
  }
  if constexpr (requires { request.set_request_id(""); }) {
    if constexpr (
        requires { options.reason; } || requires { options.incarnation; }) {
      if (request.request_id().empty()) request.set_request_id(UuidText(NewUuid()));
    }
  }
  return status;
}

// A collection need not exist: the first write makes it.
inline bool LacksCollection(const absl::Status& status) {
  return ReasonOf(status) == Reason::kCollectionNotFound;
}

// The end of a call about a document that has to be there. Where not even its collection is, the
// document is missing.
absl::Status OfDocument(const std::string& collection, const std::string& id, absl::Status status);

// What lists a collection that is not there yet finds nothing.
template <typename Request>
inline constexpr bool kListsCollection =
    std::is_same_v<Request, v1::ListRequest> || std::is_same_v<Request, v1::ListRosterRequest>;

// A listing by `method` that begins with `request`, whose responses hold what `items` gives, a
// function. `filled` not OK: the request cannot be sent.
template <typename T, typename Stub, typename Request, typename Response, typename Items>
Range<T> Pages(std::shared_ptr<Core> core,
               grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
               Request request, absl::Status filled, Items items) {
  using Page = typename Range<T>::Page;
  const auto fetch = [core = std::move(core), method, request = std::move(request),
                      filled = std::move(filled),
                      items](const std::string& token) mutable -> absl::StatusOr<Page> {
    if (!filled.ok()) return filled;
    request.set_page_token(token);
    Response response;
    absl::Status status = core->Call(method, request, &response);
    if (LacksCollection(status)) {
      if constexpr (requires { request.from_version(); }) {
        return OfDocument(request.collection(), request.id(), std::move(status));
      }
      // One that vanishes on the way cuts the listing short.
      if (kListsCollection<Request> && token.empty()) return Page();
    }
    if (!status.ok()) return status;
    Page page;
    for (const auto& item : items(response)) {
      absl::StatusOr<T> read = ReadMessage<T>(item);
      if (!read.ok()) return read.status();
      page.items.push_back(*std::move(read));
    }
    page.next_page_token = response.next_page_token();
    return page;
  };
  return Range<T>(fetch);
}

// What became of one message of several, as a status.
inline Refusal RefusalOf(const v1::ApplyError& error) {
  Refusal refusal;
  refusal.code = static_cast<grpc::StatusCode>(error.code());
  refusal.reason = error.reason();
  refusal.message = error.message();
  refusal.metadata.insert(error.metadata().begin(), error.metadata().end());
  return refusal;
}
inline absl::Status StatusOf(const v1::ApplyError& error) {
  const Refusal refusal = RefusalOf(error);
  return StatusOf(refusal, refusal.LeavesOutcomeUnknown());
}

}  // namespace strata::client
