// How the handlers of a service become rows of the method table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "service/rpc/answer_size.h"
#include "service/rpc/context.h"
#include "service/rpc/public_name.h"
#include "service/rpc/resources.h"
#include "service/server/method.h"

namespace strata::rpc {

// The shapes of handlers, as types to declare them by:
//
//   Answers<Request, Response> Get;          // has its answer when it returns
//   AnswersLater<Request, Response> Create;  // OK: the reply has the answer, now or later
//   OpensStream<Request> OpenVerify;         // a ServerStream, or any other stream
template <typename Request, typename Response>
using Answers = absl::Status(const Context& context, const Request& request, Response& response);
// A non-OK return value is the answer; the reply is then ignored. The request lives as long as the
// reply.
template <typename Request, typename Response>
using AnswersLater = absl::Status(const Context& context, const Request& request,
                                  Reply<Response> reply);
template <typename Request>
using OpensStream = std::unique_ptr<server::HandlerOf<Request>>(const Services& services,
                                                                Stream& stream);

// Makes the rows of one service, bound to what its handlers work with.
class Rows {
 public:
  using Method = server::Method;

  Rows(std::string_view service, bool operational, const Services& services)
      : service_(service), operational_(operational), services_(services) {}

  // `handler` is a function of one of the shapes above. What the options of its RPC say is not said
  // again: name, permission, resource, and whether it writes.
  template <typename Handler>
  void Add(Handler* handler) {
    using Options = OptionsOf<decltype(RequestOf(handler))>;
    Add(Options::kWrites ? Method::Kind::kWrite : Method::Kind::kRead, handler);
  }
  // As Add, with an answer as large as a Scan's.
  template <typename Handler>
  void AddLarge(Handler* handler) {
    Add(handler);
    rows_.back().answer_bytes = AnswerBytes(Method::Kind::kScan);
  }
  // As Add, for one that may wait long for others before.
  template <typename Handler>
  void AddWaiting(Handler* handler) {
    Add(handler);
    rows_.back().waits = true;
  }
  template <typename Handler>
  void AddScan(Handler* handler) {
    Add(Method::Kind::kScan, handler);
  }
  // A method of a contract that is not ours: it reads, and is open to every caller.
  template <typename Handler>
  void AddOpen(std::string_view name, Handler* handler) {
    rows_.push_back(Row(Method::Kind::kRead, name, handler));
    rows_.back().permission = Permission::kOpen;
  }

  std::vector<Method> Take() { return std::move(rows_); }

 private:
  // Declared only, for their types.
  template <typename Request, typename Response>
  static Request RequestOf(Answers<Request, Response>*);
  template <typename Request, typename Response>
  static Request RequestOf(AnswersLater<Request, Response>*);
  template <typename Request>
  static Request RequestOf(OpensStream<Request>*);

  template <typename Handler>
  void Add(Method::Kind kind, Handler* handler) {
    using Request = decltype(RequestOf(handler));
    using Options = OptionsOf<Request>;
    Method row = Row(kind, Options::kName, handler);
    row.writes = Options::kWrites;
    row.permission = Options::kPermission;
    row.demands = [](const google::protobuf::MessageLite& request, Permission permission,
                     Demands& demands) {
      AddDemands(static_cast<const Request&>(request), permission, demands);
    };
    rows_.push_back(std::move(row));
  }

  template <typename Request>
  Method BareRow(Method::Kind kind, std::string_view name) const {
    Method row;
    row.kind = kind;
    row.service = service_;
    row.name = name;
    row.operational = operational_;
    row.request = PublicName<Request>();
    row.make_request = &Make<Request>;
    return row;
  }

  // The largest answer that there may be: a page, or a document. A write's is small, unless its
  // content turns out large (ReserveForContent), and so is an operational method's.
  size_t AnswerBytes(Method::Kind kind) const {
    const size_t document = AnswerBytesOf(services_.documents.limits().bytes_max);
    switch (kind) {
      case Method::Kind::kRead:
        return document;
      case Method::Kind::kScan:
        return std::max(kPageBytesMax, document);
      case Method::Kind::kWrite:
        return kSmallAnswerBytes;
    }
    return document;
  }

  template <typename Request, typename Response>
  Method UnaryRow(Method::Kind kind, std::string_view name) const {
    Method row = BareRow<Request>(kind, name);
    row.answer_bytes = operational_ ? kSmallAnswerBytes : AnswerBytes(kind);
    row.make_response = &Make<Response>;
    return row;
  }

  template <typename Request, typename Response>
  Method Row(Method::Kind kind, std::string_view name, Answers<Request, Response>* handler) const {
    Method row = UnaryRow<Request, Response>(kind, name);
    row.handle = [&services = services_, handler](const server::CallHandle& call) {
      call.Answer(handler({services, call.call()}, static_cast<const Request&>(call.request()),
                          static_cast<Response&>(call.response())));
    };
    return row;
  }

  template <typename Request, typename Response>
  Method Row(Method::Kind kind, std::string_view name,
             AnswersLater<Request, Response>* handler) const {
    Method row = UnaryRow<Request, Response>(kind, name);
    row.handle = [&services = services_, handler](const server::CallHandle& call) {
      const absl::Status refused =
          handler({services, call.call()}, static_cast<const Request&>(call.request()),
                  Reply<Response>(call));
      if (!refused.ok()) call.Answer(refused);
    };
    return row;
  }

  template <typename Request>
  Method Row(Method::Kind kind, std::string_view name, OpensStream<Request>* open) const {
    Method row = BareRow<Request>(kind, name);
    row.open = [&services = services_, open](Stream& stream) { return open(services, stream); };
    return row;
  }

  template <typename Message>
  static google::protobuf::MessageLite* Make(google::protobuf::Arena* arena) {
    return google::protobuf::Arena::CreateMessage<Message>(arena);
  }

  std::string_view service_;
  bool operational_;
  const Services& services_;
  std::vector<Method> rows_;
};

}  // namespace strata::rpc
