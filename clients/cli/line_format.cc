// Each member is read on its own; what belongs together is judged at the end.
#include "clients/cli/line_format.h"

#include <bson/bson.h>
#include <openssl/sha.h>

#include "absl/strings/escaping.h"
#include "clients/cli/line_members.h"
#include "clients/cpp/extended_json.h"

namespace strata::cli {
namespace {

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

absl::Status ReadLabels(const bson_iter_t& iter, std::map<std::string, std::string>& labels) {
  bson_iter_t child;
  if (!BSON_ITER_HOLDS_DOCUMENT(&iter) || !bson_iter_recurse(&iter, &child)) {
    return Invalid("not an object");
  }
  while (bson_iter_next(&child)) {
    const std::string name = bson_iter_key(&child);
    if (name == kTimeLabel) return Invalid("the label 'time' is written as member time");
    if (!ReadString(child, labels[name]).ok()) return Invalid("not an object of strings");
  }
  return absl::OkStatus();
}

absl::Status ReadContent(const bson_iter_t& iter, std::string& content) {
  if (!BSON_ITER_HOLDS_DOCUMENT(&iter)) return Invalid("not an object");
  uint32_t length = 0;
  const uint8_t* bytes = nullptr;
  bson_iter_document(&iter, &length, &bytes);
  content.assign(reinterpret_cast<const char*>(bytes), length);
  return absl::OkStatus();
}

absl::Status ReadDeleted(const bson_iter_t& iter, bool& deleted) {
  if (!BSON_ITER_HOLDS_BOOL(&iter)) return Invalid("not true or false");
  deleted = bson_iter_bool(&iter);
  return absl::OkStatus();
}

absl::Status ReadEvidence(const bson_iter_t& iter) {
  return BSON_ITER_HOLDS_DOCUMENT(&iter) ? absl::OkStatus() : Invalid("not an object");
}

absl::Status ReadMember(const bson_iter_t& iter, std::string_view name, VersionLine& line) {
  if (name == "collection") return ReadString(iter, line.collection);
  if (name == "id") return ReadString(iter, line.id);
  if (name == "time") return ReadString(iter, line.time);
  if (name == "actor") return ReadString(iter, line.actor);
  if (name == "on_behalf_of") return ReadString(iter, line.on_behalf_of);
  if (name == "reason") return ReadString(iter, line.reason);
  if (name == "labels") return ReadLabels(iter, line.labels);
  if (name == "deleted") return ReadDeleted(iter, line.deleted);
  if (name == "content") return ReadContent(iter, line.content);
  if (name == "evidence") return ReadEvidence(iter);
  return Invalid("not a member that is known here");
}

void AppendMember(std::string_view name, std::string_view text, std::string& json) {
  if (text.empty()) return;
  if (json.size() > 1) json += ',';
  client::AppendJsonString(name, json);
  json += ':';
  client::AppendJsonString(text, json);
}

void AppendLabels(const std::map<std::string, std::string>& labels, std::string& json) {
  if (labels.empty()) return;
  std::string object = "{";
  for (const auto& [name, value] : labels) {
    if (object.size() > 1) object += ',';
    client::AppendJsonString(name, object);
    object += ':';
    client::AppendJsonString(value, object);
  }
  json += ",\"labels\":" + object + "}";
}

}  // namespace

absl::StatusOr<VersionLine> ParseVersionLine(std::string_view text) {
  VersionLine line;
  bool has_content = false;
  const absl::Status read =
      VisitMembers(text, [&](std::string_view name, const bson_iter_t& value) {
        has_content = has_content || name == "content";
        return ReadMember(value, name, line);
      });
  if (!read.ok()) return read;
  if (line.id.empty()) return Invalid("no id");
  if (line.deleted == has_content) {
    return Invalid("needs either content or \"deleted\": true");
  }
  return line;
}

absl::StatusOr<std::string> FormatVersionLine(const VersionLine& line) {
  std::string json = "{";
  AppendMember("collection", line.collection, json);
  AppendMember("id", line.id, json);
  AppendMember("time", line.time, json);
  AppendMember("actor", line.actor, json);
  AppendMember("on_behalf_of", line.on_behalf_of, json);
  AppendMember("reason", line.reason, json);
  AppendLabels(line.labels, json);
  if (!line.evidence.empty()) json += ",\"evidence\":" + line.evidence;
  if (line.deleted) return json + ",\"deleted\":true}";
  const absl::StatusOr<std::string> content =
      client::JsonFromBson(line.content, client::JsonStyle::kExact);
  if (!content.ok()) return content.status();
  return json + ",\"content\":" + *content + "}";
}

std::string ImportRequestId(const VersionLine& line, int64_t number) {
  constexpr size_t kDigestUsed = 8;
  // Each part with its length, so that no two lines have the same parts.
  std::string parts;
  const auto add = [&parts](std::string_view part) {
    parts += std::to_string(part.size()) + ":";
    parts += part;
  };
  for (const std::string_view part :
       {std::string_view(line.collection), std::string_view(line.id), std::string_view(line.time),
        std::string_view(line.actor), std::string_view(line.on_behalf_of),
        std::string_view(line.reason)}) {
    add(part);
  }
  for (const auto& [name, value] : line.labels) {
    add(name);
    add(value);
  }
  add(line.deleted ? "deleted" : "content");
  add(line.content);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(parts.data()), parts.size(), digest);
  return std::string(kImportPrefix) +
         absl::BytesToHexString({reinterpret_cast<const char*>(digest), kDigestUsed}) + "-" +
         std::to_string(number);
}

}  // namespace strata::cli
