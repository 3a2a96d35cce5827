#include "schemas/queue/message.h"

#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "schemas/base/error.h"
#include "schemas/base/hex.h"
#include "schemas/base/names.h"
#include "schemas/base/strings.h"
#include "schemas/base/varint.h"
#include "schemas/document/bson_builder.h"

namespace strata::queue {
namespace {

using document::BsonBuilder;
using document::BsonReader;
using document::Content;

constexpr size_t kRequestBytes = 8;
// About what the members take beside texts, headers and payload.
constexpr size_t kMembersBytes = 224;

// Of a token: what is wrong with one that was cut or changed is found out before it is looked up.
constexpr char kTokenForm = 1;
constexpr size_t kCheckBytes = 4;

// FNV-1a, 32 bits: whoever wants to make up a token can; what it may do is the policy's to say.
std::string CheckOf(std::string_view bytes) {
  uint32_t hash = 2166136261u;
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 16777619u;
  std::string check;
  for (size_t i = 0; i < kCheckBytes; ++i) check += static_cast<char>(hash >> (8 * i));
  return check;
}

absl::Status Corrupt() {
  return Error(ErrorReason::kRecordCorrupt, "message record").With("record", "message record");
}

// `part` of the record's bytes.
Content Share(const Bytes& record, std::string_view part) {
  return Content::FromTrusted(record, part);
}

absl::Status ReadMember(BsonReader& reader, const Bytes& record, Message& message) {
  const std::string_view name = reader.name();
  if (name == "queue") {
    message.queue = reader.Int64();
  } else if (name == "stage") {
    const int64_t stage = reader.Int64();
    if (stage < int64_t{static_cast<uint8_t>(Stage::kOpen)} ||
        stage > int64_t{static_cast<uint8_t>(Stage::kTombstone)}) {
      return Corrupt();
    }
    message.stage = static_cast<Stage>(stage);
  } else if (name == "time") {
    message.time = reader.Int64();
  } else if (name == "at_once") {
    message.at_once = reader.Bool();
  } else if (name == "timeout") {
    message.timeout = std::chrono::microseconds(reader.Int64());
  } else if (name == "hint") {
    message.hint_base = reader.Int64();
  } else if (name == "priority") {
    const int64_t priority = reader.Int64();
    if (priority < 0 || priority > kPriorityMax) return Corrupt();
    message.priority = static_cast<int32_t>(priority);
  } else if (name == "key") {
    message.ordering_key = reader.String();
  } else if (name == "number") {
    message.number = reader.Int64();
  } else if (name == "sequence") {
    message.sequence_number = reader.Int64();
  } else if (name == "sequence_hint") {
    message.sequence_base = reader.Int64();
  } else if (name == "pushed") {
    message.push_time = reader.Int64();
  } else if (name == "expires") {
    message.expire_time = reader.Int64();
  } else if (name == "forget") {
    message.forget_time = reader.Int64();
  } else if (name == "delivery") {
    message.delivery = reader.Int64();
  } else if (name == "tries") {
    const int64_t tries = reader.Int64();
    if (!std::in_range<int32_t>(tries)) return Corrupt();
    message.tries = static_cast<int32_t>(tries);
  } else if (name == "reason") {
    message.reason = reader.String();
  } else if (name == "request") {
    message.request = reader.Binary();
    if (message.request.size() != kRequestBytes) return Corrupt();
  } else if (name == "pusher") {
    message.pusher = reader.String();
  } else if (name == "payload_at") {
    message.payload_base = reader.Int64();
  } else if (name == "headers") {
    message.headers = Share(record, reader.Document());
  } else if (name == "payload") {
    message.payload = Share(record, reader.Document());
  } else {
    return Corrupt();
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<MessageId> MessageId::FromText(std::string_view text) {
  if (text.size() != 2 * kBytes) return std::nullopt;
  for (const char digit : text) {
    if (!(digit >= '0' && digit <= '9') && !(digit >= 'a' && digit <= 'f')) return std::nullopt;
  }
  return FromBytes(*BytesOfHex(text));
}

std::string MessageId::ToText() const { return absl::BytesToHexString(ToAbsl(bytes())); }

State Message::StateAt(UnixMicros now) const {
  switch (stage) {
    case Stage::kOpen:
      return due(now) ? State::kReady : State::kScheduled;
    case Stage::kReserved:
      return time <= now ? State::kReady : State::kReserved;
    case Stage::kWaiting:
      return State::kWaiting;
    case Stage::kDead:
      return State::kDead;
    case Stage::kFinished:
    case Stage::kStub:
    case Stage::kTombstone:
      break;
  }
  return State::kFinished;
}

std::string Message::Encode() const {
  BsonBuilder builder(kMembersBytes + ordering_key.size() + reason.size() + pusher.size() +
                      headers.size() + payload.size());
  builder.Int64("queue", queue).Int32("stage", static_cast<int32_t>(stage)).Int64("time", time);
  if (at_once) builder.Bool("at_once", true);
  if (timeout.count() != 0) builder.Int64("timeout", timeout.count());
  if (hint_base != 0) builder.Int64("hint", hint_base);
  if (priority != 0) builder.Int32("priority", priority);
  if (!ordering_key.empty()) builder.String("key", ordering_key);
  if (number != 0) builder.Int64("number", number);
  if (sequence_number) builder.Int64("sequence", *sequence_number);
  if (sequence_base != 0) builder.Int64("sequence_hint", sequence_base);
  if (push_time != 0) builder.Int64("pushed", push_time);
  if (expire_time != 0) builder.Int64("expires", expire_time);
  if (forget_time != 0) builder.Int64("forget", forget_time);
  if (delivery != 0) builder.Int64("delivery", delivery);
  if (tries != 0) builder.Int32("tries", tries);
  if (!reason.empty()) builder.String("reason", reason);
  if (!request.empty()) builder.Binary("request", request);
  if (!pusher.empty()) builder.String("pusher", pusher);
  if (payload_base) builder.Int64("payload_at", *payload_base);
  if (headers.size() > Content().size()) builder.Document("headers", headers.bytes());
  if (!payload_base && payload.size() > Content().size()) {
    builder.Document("payload", payload.bytes());
  }
  return builder.Take();
}

absl::StatusOr<Message> Message::Decode(const Bytes& record) {
  Message message;
  int required = 0;
  BsonReader reader(record);
  while (reader.Next()) {
    const std::string_view name = reader.name();
    required += name == "queue" || name == "stage" || name == "time" ? 1 : 0;
    if (absl::Status read = ReadMember(reader, record, message); !read.ok()) return read;
  }
  if (reader.corrupt() || required != 3) return Corrupt();
  return message;
}

Content ToContent(const Headers& headers) {
  BsonBuilder builder;
  for (const auto& [name, value] : headers) builder.String(name, value);
  return Content::FromTrusted(builder.Take());
}

absl::StatusOr<Headers> ToHeaders(const Content& content) {
  Headers headers;
  BsonReader reader(content.bytes());
  while (reader.Next()) {
    std::string name(reader.name());
    headers.emplace(std::move(name), reader.String());
  }
  if (reader.corrupt()) return Corrupt();
  return headers;
}

std::string Token::ToText() const {
  std::string bytes(1, kTokenForm);
  AppendVarint(timeline, bytes);
  AppendVarint(delivery, bytes);
  bytes += message.bytes();
  bytes += queue;
  bytes += CheckOf(bytes);
  return absl::WebSafeBase64Escape(bytes);
}

absl::StatusOr<Token> Token::FromText(std::string_view field, std::string_view text) {
  const auto refused = [&] {
    return Error(ErrorReason::kInvalidField,
                 "is no token of a message; use it as Reserve or Receive gave it")
        .With("field", field);
  };
  if (text.empty()) {
    return Error(ErrorReason::kInvalidField, "required: the token that Reserve or Receive gave")
        .With("field", field);
  }
  std::string bytes;
  if (!absl::WebSafeBase64Unescape(ToAbsl(text), &bytes)) return refused();
  // One text for one token, so that equal texts are equal tokens.
  if (absl::WebSafeBase64Escape(bytes) != ToAbsl(text)) return refused();
  if (bytes.size() <= kCheckBytes + 1 || bytes.front() != kTokenForm) return refused();
  const std::string_view all = bytes;
  const std::string_view checked = all.substr(0, all.size() - kCheckBytes);
  if (CheckOf(checked) != all.substr(checked.size())) return refused();
  std::string_view rest = checked.substr(1);
  Token token;
  const std::optional<int64_t> timeline = TakeVarint(rest);
  const std::optional<int64_t> delivery = timeline ? TakeVarint(rest) : std::nullopt;
  if (!delivery || rest.size() <= MessageId::kBytes) return refused();
  token.timeline = *timeline;
  token.delivery = *delivery;
  token.message = *MessageId::FromBytes(rest.substr(0, MessageId::kBytes));
  token.queue = rest.substr(MessageId::kBytes);
  if (!ValidateName(field, token.queue).ok()) return refused();
  return token;
}

}  // namespace strata::queue
