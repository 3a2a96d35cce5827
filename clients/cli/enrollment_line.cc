// What only the server can judge (lengths, the range of numbers) passes.
#include "clients/cli/enrollment_line.h"

#include <set>
#include <string>

#include "clients/cli/line_members.h"

namespace strata::cli {
namespace {

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

absl::Status ReadOperation(const bson_iter_t& value, v1::ApplyRequest& request) {
  std::string name;
  const absl::Status status = ReadString(value, name);
  if (!status.ok()) return status;
  if (name == "insert") {
    request.set_operation(v1::ENROLLMENT_OPERATION_ENROLL);
  } else if (name == "delete") {
    request.set_operation(v1::ENROLLMENT_OPERATION_UNENROLL);
  } else {
    return Invalid("neither \"insert\" nor \"delete\"");
  }
  return absl::OkStatus();
}

absl::Status ReadStudent(const bson_iter_t& value, v1::ApplyRequest& request) {
  int64_t number = 0;
  if (ReadWhole(value, number).ok()) {
    request.set_student_id(std::to_string(number));
    return absl::OkStatus();
  }
  if (!ReadString(value, *request.mutable_student_id()).ok()) {
    return Invalid("neither a string nor a whole number");
  }
  return request.student_id().empty() ? Invalid("empty") : absl::OkStatus();
}

absl::Status ReadNumber(const bson_iter_t& value, v1::ApplyRequest& request) {
  int64_t number = 0;
  const absl::Status status = ReadWhole(value, number);
  request.set_sequence_number(number);
  return status;
}

absl::Status ReadMember(const bson_iter_t& value, std::string_view name,
                        v1::ApplyRequest& request) {
  v1::ChangeInfo& change = *request.mutable_change();
  if (name == "operation") return ReadOperation(value, request);
  if (name == "student_id") return ReadStudent(value, request);
  if (name == "class") return ReadString(value, *request.mutable_class_name());
  if (name == "sequence_number") return ReadNumber(value, request);
  if (name == "set") return ReadString(value, *request.mutable_set());
  if (name == "actor") return ReadString(value, *change.mutable_actor());
  if (name == "reason") return ReadString(value, *change.mutable_reason());
  if (name == "on_behalf_of") return ReadString(value, *change.mutable_on_behalf_of());
  return Invalid("not a member that is known here");
}

}  // namespace

absl::Status ParseEnrollmentLine(std::string_view text, v1::ApplyRequest& request) {
  std::set<std::string, std::less<>> seen;
  const absl::Status read =
      VisitMembers(text, [&](std::string_view name, const bson_iter_t& value) {
        seen.emplace(name);
        return ReadMember(value, name, request);
      });
  if (!read.ok()) return read;
  for (const char* required : {"operation", "student_id", "class", "sequence_number"}) {
    if (!seen.contains(required)) return Invalid(std::string("no ") + required);
  }
  return absl::OkStatus();
}

}  // namespace strata::cli
