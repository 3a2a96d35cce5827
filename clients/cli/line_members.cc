// A line is read as BSON once; members are then slices of those bytes.
#include "clients/cli/line_members.h"

#include <set>

#include "clients/cpp/extended_json.h"

namespace strata::cli {

absl::Status VisitMembers(std::string_view text, const MemberVisitor& visit) {
  const absl::StatusOr<std::string> bson = client::BsonFromJson(text);
  if (!bson.ok()) return bson.status();
  bson_t view;
  bson_iter_t iter;
  if (!bson_init_static(&view, reinterpret_cast<const uint8_t*>(bson->data()), bson->size()) ||
      !bson_iter_init(&iter, &view)) {
    return absl::InvalidArgumentError("not an object");
  }
  std::set<std::string> seen;
  while (bson_iter_next(&iter)) {
    const std::string name = bson_iter_key(&iter);
    if (!seen.insert(name).second) return absl::InvalidArgumentError(name + ": written twice");
    const absl::Status status = visit(name, iter);
    if (!status.ok()) {
      return absl::InvalidArgumentError(name + ": " + std::string(status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadString(const bson_iter_t& value, std::string& field) {
  if (!BSON_ITER_HOLDS_UTF8(&value)) return absl::InvalidArgumentError("not a string");
  uint32_t length = 0;
  const char* text = bson_iter_utf8(&value, &length);
  field.assign(text, length);
  return absl::OkStatus();
}

absl::Status ReadWhole(const bson_iter_t& value, int64_t& field) {
  if (!BSON_ITER_HOLDS_INT(&value)) return absl::InvalidArgumentError("not a whole number");
  field = bson_iter_as_int64(&value);
  return absl::OkStatus();
}

}  // namespace strata::cli
