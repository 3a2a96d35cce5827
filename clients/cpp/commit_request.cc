// The text is read as BSON, which keeps what contents say; contents are put back as BSON, and the
// rest, which has nothing that JSON loses, as JSON for protobuf to read.
#include "clients/cpp/commit_request.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>

#include <string_view>

#include "absl/strings/escaping.h"
#include "clients/cpp/extended_json.h"
#include "schemas/document/bson_view.h"

namespace strata::client {
namespace {

using document::Member;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

absl::Status NoRequest(const absl::Status& problem) {
  return absl::InvalidArgumentError("this is not a CommitRequest as JSON: " +
                                    std::string(problem.message()));
}

const FieldDescriptor* FindField(const Descriptor& message, std::string_view name) {
  const std::string text(name);
  const FieldDescriptor* const field = message.FindFieldByName(text);
  return field != nullptr ? field : message.FindFieldByCamelcaseName(text);
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  // The members of an object that stands for such a message; null: of whatever kind.
  absl::Status Message(std::string_view object, const Descriptor* message) {
    return Container(object, "{}", [&](const Member& member) {
      AppendJsonString(member.name, out_);
      out_ += ':';
      const FieldDescriptor* const field =
          message == nullptr ? nullptr : FindField(*message, member.name);
      return FieldValue(member, field == nullptr ? nullptr : field->message_type());
    });
  }

 private:
  template <typename Each>
  absl::Status Container(std::string_view bytes, std::string_view brackets, const Each& each) {
    out_ += brackets[0];
    document::MemberReader reader(bytes);
    Member member;
    for (bool first = true; reader.Next(member); first = false) {
      if (!first) out_ += ',';
      if (absl::Status status = each(member); !status.ok()) return status;
    }
    out_ += brackets[1];
    return absl::OkStatus();
  }

  absl::Status FieldValue(const Member& member, const Descriptor* message) {
    const bool ours = message != nullptr && message->file()->package() == "strata.v1";
    if (ours && member.type == document::kBsonArray) {
      return Container(member.value, "[]",
                       [&](const Member& element) { return FieldValue(element, message); });
    }
    if (!ours || member.type != document::kBsonObject) return Value(member);
    if (message == v1::Content::descriptor()) return Content(member.value);
    return Message(member.value, message);
  }

  // {"json": {...}} becomes {"bson": "..."}.
  absl::Status Content(std::string_view object) {
    return Container(object, "{}", [&](const Member& member) {
      if (member.name != "json" || member.type != document::kBsonObject) {
        AppendJsonString(member.name, out_);
        out_ += ':';
        return Value(member);
      }
      const std::string_view bson = member.value;
      out_ += R"("bson":")" + absl::Base64Escape({bson.data(), bson.size()}) + '"';
      return absl::OkStatus();
    });
  }

  absl::Status Value(const Member& member) {
    std::string alone;
    const size_t root = document::BeginDocument(alone);
    document::AppendMemberHead(member.type, "v", alone);
    alone += member.value;
    document::EndDocument(root, alone);
    const auto json = JsonFromBsonValue(alone, JsonStyle::kDoublesOnly);
    if (json.ok()) out_ += *json;
    return json.status();
  }

  std::string& out_;
};

}  // namespace

absl::StatusOr<v1::CommitRequest> CommitRequestFromJson(const std::string& json) {
  const absl::StatusOr<std::string> bson = BsonFromJson(json);
  if (!bson.ok()) return NoRequest(bson.status());
  std::string rewritten;
  if (absl::Status status = Writer(rewritten).Message(*bson, v1::CommitRequest::descriptor());
      !status.ok()) {
    return NoRequest(status);
  }
  v1::CommitRequest request;
  const auto parsed = google::protobuf::util::JsonStringToMessage(rewritten, &request);
  if (!parsed.ok()) {
    return NoRequest(absl::InvalidArgumentError(
        absl::string_view(parsed.message().data(), parsed.message().size())));
  }
  return request;
}

}  // namespace strata::client
