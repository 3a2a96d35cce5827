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

using security::Permission;

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

  // As Method::Kind says. `handler` is a function of one of the shapes above. The permission has to
  // be named; it is required on the resources that ResourcesOf finds in a request.
  template <typename Handler>
  void Read(std::string_view name, Permission permission, Handler* handler) {
    Add(Row(Method::Kind::kRead, name, handler), permission);
  }
  // As Read, with an answer as large as a Scan's.
  template <typename Handler>
  void ReadMany(std::string_view name, Permission permission, Handler* handler) {
    Read(name, permission, handler);
    rows_.back().answer_bytes = AnswerBytes(Method::Kind::kScan);
  }
  template <typename Handler>
  void Scan(std::string_view name, Permission permission, Handler* handler) {
    Add(Row(Method::Kind::kScan, name, handler), permission);
  }
  template <typename Handler>
  void ScanAndWrite(std::string_view name, Permission permission, Handler* handler) {
    Scan(name, permission, handler);
    rows_.back().writes = true;
  }
  template <typename Handler>
  void Write(std::string_view name, Permission permission, Handler* handler) {
    Add(Row(Method::Kind::kWrite, name, handler), permission);
  }
  // As Write, for one that may wait long for others before.
  template <typename Handler>
  void WriteAfterWait(std::string_view name, Permission permission, Handler* handler) {
    Write(name, permission, handler);
    rows_.back().waits = true;
  }

  std::vector<Method> Take() { return std::move(rows_); }

 private:
  void Add(Method row, Permission permission) {
    row.permission = permission;
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
    row.demands = [](const google::protobuf::MessageLite& request, Permission permission,
                     security::Demands& demands) {
      ResourcesOf(static_cast<const Request&>(request), permission, demands);
    };
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
