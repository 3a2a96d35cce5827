// Errors here are usage errors: they name the text that was typed.
#include "clients/cli/arguments.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include "clients/cli/line_stream.h"
#include "clients/cpp/extended_json.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/util/json_util.h"

namespace strata::cli {
namespace {

using client::BsonFromJson;
using client::BsonFromJsonValue;
using client::JsonStyle;

absl::Status Usage(const std::string& message) { return absl::InvalidArgumentError(message); }

bool BeginsAsJson(std::string_view text) {
  return text.starts_with('{') || text.starts_with('[') || text.starts_with('"');
}

absl::StatusOr<std::string> ReadAll(std::istream& in, const std::string& name) {
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) return Usage("cannot read " + name);
  return std::string(WithoutByteOrderMark(text));
}

absl::StatusOr<std::string> ReadArgument(const std::string& argument, std::istream& in) {
  if (argument == "-") return ReadAll(in, "standard input");
  if (!argument.starts_with("@")) return argument;
  const std::string name = argument.substr(1);
  std::ifstream file(name, std::ios::binary);
  if (!file) return Usage("cannot read " + name);
  return ReadAll(file, name);
}

std::string LowerWithHyphens(std::string_view text) {
  std::string name;
  for (const char c : text) {
    name += c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return name;
}

// Enums are named by their descriptors, so that a new value needs no line here.
std::string EnumName(const google::protobuf::EnumDescriptor& type, int number,
                     std::string_view prefix) {
  const auto* value = type.FindValueByNumber(number);
  if (value == nullptr) return std::to_string(number);
  return LowerWithHyphens(std::string_view(value->name()).substr(prefix.size()));
}

absl::StatusOr<int> ParseEnum(const google::protobuf::EnumDescriptor& type, const std::string& name,
                              std::string_view prefix) {
  std::string known;
  for (int i = 1; i < type.value_count(); ++i) {
    const std::string candidate = EnumName(type, type.value(i)->number(), prefix);
    if (candidate == name) return type.value(i)->number();
    known += (i == 1 ? "" : ", ") + candidate;
  }
  return Usage("'" + name + "' is none of " + known);
}

}  // namespace

absl::StatusOr<PathValue> SplitPathValue(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return Usage("'" + text + "' is not /PATH=VALUE");
  if (equals > 0 && text.front() != '/') {
    return Usage("the path in '" + text + "' does not begin with /");
  }
  return PathValue{text.substr(0, equals), text.substr(equals + 1)};
}

absl::StatusOr<v1::Newer> NewerProto(const std::string& text) {
  const auto parts = SplitPathValue(text);
  if (!parts.ok()) return parts.status();
  int64_t value = 0;
  const char* const end = parts->value.data() + parts->value.size();
  const std::from_chars_result read = std::from_chars(parts->value.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) {
    return Usage("'" + text + "' is not /PATH=N with an integer of 64 bits");
  }
  v1::Newer newer;
  newer.set_path(parts->path);
  newer.set_value(value);
  return newer;
}

absl::StatusOr<std::string> ValueBson(const std::string& text) {
  absl::StatusOr<std::string> bson = BsonFromJsonValue(text);
  if (bson.ok()) return bson;
  if (!client::IsUtf8(text)) return Usage("the value is not UTF-8");
  if (absl::IsOutOfRange(bson.status()) || BeginsAsJson(text)) {
    return Usage("'" + text + "' is not JSON: " + std::string(bson.status().message()) +
                 (BeginsAsJson(text) ? "; text that begins so is written in double quotes" : ""));
  }
  std::string quoted;
  client::AppendJsonString(text, quoted);
  return BsonFromJsonValue(quoted);
}

absl::StatusOr<google::protobuf::Value> ValueProto(const std::string& text) {
  const absl::StatusOr<std::string> bson = ValueBson(text);
  if (!bson.ok()) return bson.status();
  const absl::StatusOr<std::string> json =
      client::JsonFromBsonValue(*bson, JsonStyle::kDoublesOnly);
  if (!json.ok()) return json.status();
  google::protobuf::Value value;
  if (!google::protobuf::util::JsonStringToMessage(*json, &value).ok()) {
    return Usage("'" + text + "' is too deep");
  }
  return value;
}

absl::StatusOr<google::protobuf::Value> NumberProto(const std::string& text) {
  absl::StatusOr<google::protobuf::Value> value = ValueProto(text);
  if (!value.ok()) return value;
  const bool wrapped = value->has_struct_value() && value->struct_value().fields().size() == 1 &&
                       value->struct_value().fields().begin()->first.starts_with("$number");
  if (!value->has_number_value() && !wrapped) return Usage("'" + text + "' is not a number");
  return value;
}

namespace {

google::protobuf::Struct Condition(const std::string& path, const char* operation,
                                   google::protobuf::Value value) {
  google::protobuf::Struct filter;
  auto& condition = *(*filter.mutable_fields())[path].mutable_struct_value()->mutable_fields();
  condition[operation] = std::move(value);
  return filter;
}

std::string WithoutBlanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return std::string(text.substr(0, text.find_last_not_of(kBlanks) + 1));
}

constexpr std::string_view kSigns = "<>=!~";

absl::StatusOr<google::protobuf::Struct> ShortFilter(const std::string& given) {
  const std::string text = WithoutBlanks(given);
  const auto invalid = [&](const std::string& problem) {
    return Usage(
        "'" + text + "' is no condition: " + problem +
        "; write PATH>VALUE, PATH>=VALUE, PATH<VALUE, PATH<=VALUE, PATH=VALUE, PATH!=VALUE, "
        "PATH~REGEX, PATH or !PATH, or a filter in braces");
  };
  const bool negated = text.starts_with("!");
  const size_t at = text.find_first_of(kSigns, negated ? 1 : 0);
  const std::string path =
      WithoutBlanks(text.substr(negated ? 1 : 0, at == std::string::npos ? at : at - negated));
  if (path.empty()) return invalid("it names no path");
  if (path.starts_with("$")) return invalid("it begins with an operator");
  if (at == std::string::npos) {
    google::protobuf::Value exists;
    exists.set_bool_value(!negated);
    return Condition(path, "$exists", std::move(exists));
  }
  if (negated) return invalid("!PATH takes no value");
  const bool wide = text.size() > at + 1 && text[at + 1] == '=';
  const char* operation = nullptr;
  switch (text[at]) {
    case '<':
      operation = wide ? "$lte" : "$lt";
      break;
    case '>':
      operation = wide ? "$gte" : "$gt";
      break;
    case '!':
      operation = wide ? "$ne" : nullptr;
      break;
    case '=':
      operation = "$eq";
      break;
    case '~':
      operation = "$regex";
      break;
  }
  if (operation == nullptr) return invalid("there is no = after the !");
  const size_t sign_size = wide && text[at] != '~' ? 2 : 1;
  const std::string right = WithoutBlanks(text.substr(at + sign_size));
  if (!wide && (text[at] == '<' || text[at] == '>') && right.starts_with('=')) {
    return invalid("a blank stands within its sign");
  }
  if (text[at] == '~') {
    google::protobuf::Value pattern;
    pattern.set_string_value(right);
    return Condition(path, operation, std::move(pattern));
  }
  if (const size_t more = std::min(right.find_first_not_of(kSigns), right.size()); more > 0) {
    return invalid("there is no operator " + text.substr(at, sign_size) + right.substr(0, more) +
                   "; a value that begins with such a sign is written in double quotes");
  }
  absl::StatusOr<google::protobuf::Value> value = ValueProto(right);
  if (!value.ok()) return value.status();
  return Condition(path, operation, *std::move(value));
}

}  // namespace

absl::StatusOr<google::protobuf::Struct> FilterProto(const std::string& text) {
  if (!client::IsUtf8(text)) return Usage("the filter is not UTF-8");
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') return ShortFilter(text);
  const absl::StatusOr<google::protobuf::Value> value = ValueProto(text);
  if (value.ok() && value->has_struct_value()) return value->struct_value();
  return Usage("the filter is not a JSON object: " +
               std::string(BsonFromJson(text).status().message()));
}

absl::StatusOr<v1::Content> ContentArgument(const std::string& argument, std::istream& in) {
  const absl::StatusOr<std::string> json = ReadArgument(argument, in);
  if (!json.ok()) return json.status();
  absl::StatusOr<std::string> bson = BsonFromJson(*json);
  if (!bson.ok()) {
    const bool inside = argument == "-" || argument.starts_with("@");
    return Usage("content " + (inside ? "of " + argument : "'" + argument + "'") +
                 " is not a JSON object: " + std::string(bson.status().message()));
  }
  v1::Content content;
  content.set_bson(*std::move(bson));
  return content;
}

absl::StatusOr<std::pair<std::string, std::string>> SplitLabel(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return Usage("'" + text + "' is not KEY=VALUE");
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

std::string StrategyName(v1::Strategy strategy) {
  return EnumName(*v1::Strategy_descriptor(), strategy, "STRATEGY_");
}

absl::StatusOr<v1::Strategy> ParseStrategy(const std::string& name) {
  const absl::StatusOr<int> value = ParseEnum(*v1::Strategy_descriptor(), name, "STRATEGY_");
  if (!value.ok()) return value.status();
  return static_cast<v1::Strategy>(*value);
}

std::string ResultName(v1::EnrollmentResult result) {
  return EnumName(*v1::EnrollmentResult_descriptor(), result, "ENROLLMENT_RESULT_");
}

std::string KindName(v1::VersionKind kind) {
  return EnumName(*v1::VersionKind_descriptor(), kind, "VERSION_KIND_");
}

absl::StatusOr<v1::VersionKind> ParseKind(const std::string& name) {
  const absl::StatusOr<int> value = ParseEnum(*v1::VersionKind_descriptor(), name, "VERSION_KIND_");
  if (!value.ok()) return value.status();
  return static_cast<v1::VersionKind>(*value);
}

std::string TransactionModeName(v1::TransactionMode mode) {
  return EnumName(*v1::TransactionMode_descriptor(), mode, "TRANSACTION_MODE_");
}

std::string TransactionStatusName(v1::TransactionStatus status) {
  return EnumName(*v1::TransactionStatus_descriptor(), status, "TRANSACTION_STATUS_");
}

absl::StatusOr<v1::TransactionStatus> ParseTransactionStatus(const std::string& name) {
  const absl::StatusOr<int> value =
      ParseEnum(*v1::TransactionStatus_descriptor(), name, "TRANSACTION_STATUS_");
  if (!value.ok()) return value.status();
  return static_cast<v1::TransactionStatus>(*value);
}

std::string MessageStateName(v1::MessageState state) {
  return EnumName(*v1::MessageState_descriptor(), state, "MESSAGE_STATE_");
}

absl::StatusOr<v1::MessageState> ParseMessageState(const std::string& name) {
  const absl::StatusOr<int> value =
      ParseEnum(*v1::MessageState_descriptor(), name, "MESSAGE_STATE_");
  if (!value.ok()) return value.status();
  return static_cast<v1::MessageState>(*value);
}

}  // namespace strata::cli
