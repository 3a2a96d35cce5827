// Each kind of write becomes what its own call would make of it.
#include "service/rpc/handlers/transaction/operations.h"

#include <string>
#include <type_traits>
#include <utility>

#include "schemas/base/status_macros.h"
#include "service/rpc/enrollment_messages.h"

namespace strata::rpc::transaction_service {
namespace {

using transaction::Operation;

// What a request may say for itself but not as a part of a transaction.
template <typename Request>
absl::Status CheckIsPart(const Request& request) {
  const auto refuse = [](std::string_view field) {
    return FieldError(field, "belongs to the whole transaction, not to one write");
  };
  if constexpr (requires { request.request_id(); }) {
    if (!request.request_id().empty()) return refuse("request_id");
    if (request.validate_only()) return refuse("validate_only");
  }
  if constexpr (requires { request.max_attempts(); }) {
    if (request.max_attempts() != 0) return refuse("max_attempts");
  }
  if constexpr (requires { request.has_lease(); }) {
    if (request.has_lease()) return refuse("lease");
  }
  if constexpr (requires { request.omit_content(); }) {
    if (request.encoding() != wire::ENCODING_UNSPECIFIED) return refuse("encoding");
    if (request.omit_content()) return refuse("omit_content");
  }
  return absl::OkStatus();
}

absl::StatusOr<decltype(Operation::what)> ToWhat(const wire::CreateRequest& request,
                                                 const document::Limits& limits) {
  transaction::Create create;
  ASSIGN_OR_RETURN(create.content, ToContent("content", request.content(), limits));
  return create;
}

absl::StatusOr<decltype(Operation::what)> ToWhat(const wire::UpdateRequest& request,
                                                 const document::Limits& limits) {
  transaction::Update update;
  ASSIGN_OR_RETURN(update.new_content, ToNewContent(request, limits));
  update.allow_missing = request.allow_missing();
  return update;
}

absl::StatusOr<decltype(Operation::what)> ToWhat(const wire::DeleteRequest& /*request*/,
                                                 const document::Limits& /*limits*/) {
  return transaction::Delete();
}

absl::StatusOr<decltype(Operation::what)> ToWhat(const wire::RestoreRequest& request,
                                                 const document::Limits& /*limits*/) {
  if (request.version() < 1) return FieldError("version", "is required, from 1");
  return transaction::Restore{request.version()};
}

// EnrollRequest or UnenrollRequest.
template <typename Request>
absl::StatusOr<decltype(Operation::what)> ToWhat(const Request& request,
                                                 const document::Limits& /*limits*/) {
  constexpr auto kOperation = std::is_same_v<Request, wire::EnrollRequest>
                                  ? enrollment::Operation::kEnroll
                                  : enrollment::Operation::kUnenroll;
  return transaction::Enroll{{enrollment_service::SetOr(request.set()), request.class_name(),
                              request.sequence_number(), kOperation}};
}

template <typename Request>
DocumentName NameOf(const Request& request) {
  if constexpr (requires { request.student_id(); }) {
    return {std::string(CollectionOr(request.collection())), request.student_id()};
  } else {
    return {request.collection(), request.id()};
  }
}

// Errors name the field inside the part.
template <typename Request>
absl::Status FillOperation(const Request& request, const Context& context, Operation& operation) {
  RETURN_IF_ERROR(CheckIsPart(request));
  if (request.has_change()) {
    ASSIGN_OR_RETURN(operation.change, ToChangeInfo(request.change(), operation.name.collection,
                                                    context.services.access, context.call.info()));
  }
  if constexpr (requires { request.precondition(); }) {
    if (request.has_precondition()) {
      ASSIGN_OR_RETURN(operation.precondition,
                       ToPrecondition("precondition", request.precondition()));
    }
  }
  if constexpr (requires { request.keep_unchanged(); }) {
    operation.keep_unchanged = request.keep_unchanged();
  }
  ASSIGN_OR_RETURN(operation.what, ToWhat(request, context.services.documents.limits()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Operation> ToOperation(int index, const wire::Write& write,
                                      const wire::ChangeInfo& change, const Context& context) {
  Operation operation;
  const auto fill = [&](std::string_view kind, const auto& request) -> absl::StatusOr<Operation> {
    operation.name = NameOf(request);
    ASSIGN_OR_RETURN(operation.change, ToChangeInfo(change, operation.name.collection,
                                                    context.services.access, context.call.info()));
    if (absl::Status status = FillOperation(request, context, operation); !status.ok()) {
      return InField(status, "writes[" + std::to_string(index) + "]." + std::string(kind));
    }
    return std::move(operation);
  };
  switch (write.write_case()) {
    case wire::Write::kCreate:
      return fill("create", write.create());
    case wire::Write::kUpdate:
      return fill("update", write.update());
    case wire::Write::kDelete:
      return fill("delete", write.delete_());
    case wire::Write::kRestore:
      return fill("restore", write.restore());
    case wire::Write::kEnroll:
      return fill("enroll", write.enroll());
    case wire::Write::kUnenroll:
      return fill("unenroll", write.unenroll());
    case wire::Write::WRITE_NOT_SET:
      break;
  }
  return FieldError("writes[" + std::to_string(index) + "]",
                    "has no write: create, update, delete, restore, enroll or unenroll");
}

}  // namespace strata::rpc::transaction_service
