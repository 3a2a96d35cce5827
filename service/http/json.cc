#include "service/http/json.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/json/message_json.h"

namespace strata::http {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::StringOutputStream;

constexpr char kUrlPrefix[] = "type.googleapis.com";
constexpr size_t kFieldBytesMax = 200;
// Protobuf's reader holds at most so many times what it makes, beside the text; measured with
// numbers, texts and empty objects.
constexpr size_t kConversionFactor = 4;

std::string UrlOf(const Descriptor& type) {
  return std::string(kUrlPrefix) + "/" + type.full_name();
}

// A byte of UTF-8 before which no text may be cut.
bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Where it stands, and what is wrong there. Protobuf says "(change.actor): invalid value 1 for type
// TYPE_STRING", "(change) nope: Cannot find field."; of what is no JSON the place in the text,
// whose excerpt is cut off here.
struct Problem {
  std::string field;
  std::string text;
};

Problem ProblemOf(std::string_view message) {
  message = message.substr(0, message.find('\n'));
  Problem problem;
  if (message.starts_with('(')) {
    const size_t end = message.find(')');
    if (end != std::string_view::npos) {
      problem.field = message.substr(1, end - 1);
      message.remove_prefix(end + 1);
    }
  }
  constexpr std::string_view kUnknown = ": Cannot find field.";
  if (message.ends_with(kUnknown)) {
    message.remove_suffix(kUnknown.size());
    while (message.starts_with(' ')) message.remove_prefix(1);
    if (!problem.field.empty()) problem.field += ".";
    problem.field += message;
    problem.text = "there is no such field";
  } else {
    const size_t begin = message.find_first_not_of(": ");
    problem.text = begin == std::string_view::npos ? "invalid" : message.substr(begin);
  }
  if (problem.field.size() > kFieldBytesMax) {
    size_t size = kFieldBytesMax;
    while (size > 0 && IsContinuation(problem.field[size])) --size;
    problem.field.resize(size);
  }
  return problem;
}

}  // namespace

JsonCodec::JsonCodec()
    : types_(google::protobuf::util::NewTypeResolverForDescriptorPool(
          kUrlPrefix, google::protobuf::DescriptorPool::generated_pool())) {}

absl::StatusOr<std::string> JsonCodec::ToBytes(const Descriptor& type, std::string_view json,
                                               const Room& room) const {
  ASSIGN_OR_RETURN(const size_t least, json::CheckMessageJson(json, type));
  if (!room(json.size() + kConversionFactor * std::max(least, json.size()))) {
    return Error(ErrorReason::kOverloaded,
                 "there is no room to convert the request; repeat it a little later");
  }
  std::string bytes;
  ArrayInputStream in(json.data(), static_cast<int>(json.size()));
  StringOutputStream out(&bytes);
  const auto converted =
      google::protobuf::util::JsonToBinaryStream(types_.get(), UrlOf(type), &in, &out);
  if (converted.ok()) return bytes;
  const Problem problem = ProblemOf({converted.message().data(), converted.message().size()});
  if (problem.field.empty()) {
    return Error(ErrorReason::kInvalidMessage,
                 "not a " + type.full_name() + " in JSON: " + problem.text);
  }
  return Error(ErrorReason::kInvalidField,
               problem.field + ": " + problem.text + " (" + type.full_name() + " in JSON)")
      .With("field", std::string_view(problem.field));
}

absl::StatusOr<std::string> JsonCodec::ToJson(const Descriptor& type,
                                              std::string_view bytes) const {
  std::string json;
  ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
  StringOutputStream out(&json);
  const auto converted =
      google::protobuf::util::BinaryToJsonStream(types_.get(), UrlOf(type), &in, &out);
  if (converted.ok()) return json;
  return Error(ErrorReason::kInternal,
               "the answer, a " + type.full_name() + ", cannot be written in JSON (" +
                   ProblemOf({converted.message().data(), converted.message().size()}).text +
                   "); ask by gRPC, or for application/proto");
}

void AppendJsonText(std::string_view text, std::string& json) {
  json += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        json += "\\\"";
        break;
      case '\\':
        json += "\\\\";
        break;
      case '\n':
        json += "\\n";
        break;
      default:
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) {
          char escaped[8];
          std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
          json += escaped;
        } else {
          json += c;
        }
    }
  }
  json += '"';
}

}  // namespace strata::http
