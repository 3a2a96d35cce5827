// Contents become BSON here, and operations the JSON that they travel as.
#include "clients/cpp/write_parts.h"

#include <utility>

#include "clients/cpp/error_status.h"
#include "clients/cpp/json_value.h"

namespace strata::client {
namespace {

absl::Status FillContent(const Value& value, v1::Content& content) {
  absl::StatusOr<std::string> bson = ToBson(value);
  if (!bson.ok()) return bson.status();
  content.set_bson(*std::move(bson));
  return absl::OkStatus();
}

absl::Status FillValues(const Array& values, const std::string& path,
                        google::protobuf::ListValue& list) {
  for (const Value& value : values) {
    if (absl::Status status = ToJson(value, path, *list.add_values()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status FillOperation(const Operation& operation, v1::Operation& message) {
  message.set_path(operation.path);
  switch (operation.kind) {
    case Operation::Kind::kSet:
      return ToJson(operation.value, operation.path, *message.mutable_set());
    case Operation::Kind::kUnset:
      message.set_unset(true);
      return absl::OkStatus();
    case Operation::Kind::kIncrement:
      return ToJson(operation.value, operation.path, *message.mutable_increment());
    case Operation::Kind::kAppend:
      return FillValues(operation.values, operation.path, *message.mutable_append());
    case Operation::Kind::kAppendMissing:
      return FillValues(operation.values, operation.path, *message.mutable_append_missing());
    case Operation::Kind::kRemoveAll:
      return FillValues(operation.values, operation.path, *message.mutable_remove_all());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FillCreate(const std::string& collection, const std::string& id, const Value& content,
                        v1::CreateRequest& request) {
  request.set_collection(collection);
  request.set_id(id);
  return FillContent(content, *request.mutable_content());
}

absl::Status FillUpdate(const std::string& collection, const std::string& id, const Change& change,
                        v1::UpdateRequest& request) {
  request.set_collection(collection);
  request.set_id(id);
  const bool patches = change.merge.has_value() || !change.operations.empty();
  if (change.replace.has_value() == patches) {
    return RefusedField("change", patches ? "both replaces and patches" : "says nothing");
  }
  if (change.replace.has_value()) return FillContent(*change.replace, *request.mutable_replace());
  v1::Patch& patch = *request.mutable_patch();
  absl::Status status;
  if (change.merge.has_value()) status = FillContent(*change.merge, *patch.mutable_merge());
  for (const Operation& operation : change.operations) {
    status.Update(FillOperation(operation, *patch.add_operations()));
  }
  return status;
}

}  // namespace strata::client
