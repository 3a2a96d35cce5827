#include "schemas/versioning/transaction_record.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/bson_builder.h"

namespace strata::versioning {
namespace {

using document::BsonBuilder;
using document::BsonReader;

using store::Keyspace;

constexpr std::string_view kRecordPrefix = "t";
constexpr std::string_view kHintPrefix = "o";
// What no request's id ends in, and no attempt's (schemas/transaction/attempt.h).
constexpr std::string_view kForgottenEnd = "/0";

absl::Status Corrupt() {
  return Error(ErrorReason::kRecordCorrupt, "transaction record")
      .With("record", "transaction record");
}

std::string Prefixed(std::string_view prefix, std::string_view id) {
  std::string key;
  key.reserve(prefix.size() + id.size());
  return key.append(prefix).append(id);
}

std::string EncodeParticipant(const Participant& participant) {
  BsonBuilder builder;
  builder.String("collection", participant.name.collection)
      .Int64("incarnation", participant.incarnation)
      .String("id", participant.name.id);
  if (participant.base != 0) builder.Int64("base", participant.base);
  if (participant.version != 0) builder.Int64("version", participant.version);
  if (participant.changed) builder.Bool("changed", true);
  if (participant.stale) builder.Bool("stale", true);
  if (participant.note != 0) builder.Int32("note", participant.note);
  return builder.Take();
}

absl::StatusOr<Participant> DecodeParticipant(std::string_view bytes) {
  Participant participant;
  BsonReader reader(bytes);
  while (reader.Next()) {
    const std::string_view name = reader.name();
    if (name == "collection") {
      participant.name.collection = reader.String();
    } else if (name == "incarnation") {
      participant.incarnation = reader.Int64();
    } else if (name == "id") {
      participant.name.id = reader.String();
    } else if (name == "base") {
      participant.base = reader.Int64();
    } else if (name == "version") {
      participant.version = reader.Int64();
    } else if (name == "changed") {
      participant.changed = reader.Bool();
    } else if (name == "stale") {
      participant.stale = reader.Bool();
    } else if (name == "note") {
      const int64_t note = reader.Int64();
      if (!std::in_range<int32_t>(note)) return Corrupt();
      participant.note = static_cast<int32_t>(note);
    } else {
      return Corrupt();
    }
  }
  const bool whole = !participant.name.collection.empty() && !participant.name.id.empty() &&
                     participant.base >= 0 && participant.version >= 0;
  if (reader.corrupt() || !whole) return Corrupt();
  return participant;
}

template <typename Element, typename Encode>
std::string EncodeArray(const std::vector<Element>& elements, Encode encode) {
  BsonBuilder builder;
  for (size_t i = 0; i < elements.size(); ++i) encode(builder, std::to_string(i), elements[i]);
  return builder.Take();
}

std::string EncodeLabels(const std::map<std::string, std::string>& labels) {
  BsonBuilder builder;
  for (const auto& [name, value] : labels) builder.String(name, value);
  return builder.Take();
}

absl::Status DecodeParticipants(std::string_view array, std::vector<Participant>& participants) {
  BsonReader elements(array);
  while (elements.Next()) {
    ASSIGN_OR_RETURN(Participant participant, DecodeParticipant(elements.Document()));
    participants.push_back(std::move(participant));
  }
  return elements.corrupt() ? Corrupt() : absl::OkStatus();
}

bool IsStatus(int64_t number) {
  return number >= static_cast<int64_t>(TransactionStatus::kNew) &&
         number <= static_cast<int64_t>(TransactionStatus::kCancelled);
}

bool IsMode(int64_t number) {
  return number >= static_cast<int64_t>(TransactionMode::kOneCommit) &&
         number <= static_cast<int64_t>(TransactionMode::kTwoPhase);
}

absl::StatusOr<TransactionRecord> DecodeRecord(std::string_view value, bool with_data) {
  TransactionRecord record;
  int64_t status = 0;
  int64_t mode = 0;
  BsonReader reader(value);
  while (reader.Next()) {
    const std::string_view name = reader.name();
    if (name == "status") {
      status = reader.Int64();
    } else if (name == "mode") {
      mode = reader.Int64();
    } else if (name == "created") {
      record.create_time = reader.Int64();
    } else if (name == "modified") {
      record.last_modified = reader.Int64();
    } else if (name == "actor") {
      record.change.actor = reader.String();
    } else if (name == "for") {
      record.change.on_behalf_of = reader.String();
    } else if (name == "reason") {
      record.change.reason = reader.String();
    } else if (name == "labels") {
      BsonReader labels(reader.Document());
      while (labels.Next()) {
        std::string label(labels.name());
        record.change.labels.emplace(std::move(label), labels.String());
      }
      if (labels.corrupt()) return Corrupt();
    } else if (name == "fingerprint") {
      record.fingerprint = reader.Binary();
    } else if (name == "participants") {
      RETURN_IF_ERROR(DecodeParticipants(reader.Document(), record.participants));
    } else if (name == "data") {
      BsonReader elements(reader.Document());
      while (with_data && elements.Next()) record.data.emplace_back(elements.Binary());
      if (elements.corrupt()) return Corrupt();
    } else if (name == "cause") {
      record.cause = reader.String();
    } else if (name == "lost") {
      record.lost = reader.Bool();
    } else if (name == "applied") {
      record.applied_position = reader.Int64();
    } else if (name == "answer") {
      record.joined_answer = reader.Binary();
    } else {
      return Corrupt();
    }
  }
  if (reader.corrupt() || !IsStatus(status) || !IsMode(mode)) return Corrupt();
  record.status = static_cast<TransactionStatus>(status);
  record.mode = static_cast<TransactionMode>(mode);
  return record;
}

}  // namespace

std::string TransactionRecord::Encode() const {
  BsonBuilder builder;
  builder.Int32("status", static_cast<int32_t>(status))
      .Int32("mode", static_cast<int32_t>(mode))
      .Int64("created", create_time)
      .Int64("modified", last_modified);
  if (!change.actor.empty()) builder.String("actor", change.actor);
  if (!change.on_behalf_of.empty()) builder.String("for", change.on_behalf_of);
  if (!change.reason.empty()) builder.String("reason", change.reason);
  if (!change.labels.empty()) builder.Document("labels", EncodeLabels(change.labels));
  if (!fingerprint.empty()) builder.Binary("fingerprint", fingerprint);
  builder.Array("participants",
                EncodeArray(participants, [](BsonBuilder& array, const std::string& index,
                                             const Participant& participant) {
                  array.Document(index, EncodeParticipant(participant));
                }));
  if (!data.empty()) {
    builder.Array("data",
                  EncodeArray(data, [](BsonBuilder& array, const std::string& index,
                                       const std::string& bytes) { array.Binary(index, bytes); }));
  }
  if (!cause.empty()) builder.String("cause", cause);
  if (lost) builder.Bool("lost", true);
  if (applied_position != 0) builder.Int64("applied", applied_position);
  if (!joined_answer.empty()) builder.Binary("answer", joined_answer);
  return builder.Take();
}

absl::StatusOr<TransactionRecord> TransactionRecord::Decode(const store::Record& stored) {
  ASSIGN_OR_RETURN(TransactionRecord record, DecodeRecord(stored.value, /*with_data=*/true));
  record.stamp = stored.stamp;
  record.position = stored.position;
  return record;
}

absl::StatusOr<TransactionRecord> TransactionRecord::DecodeWithoutData(std::string_view value) {
  return DecodeRecord(value, /*with_data=*/false);
}

std::string MakeForgottenId(Entropy& entropy) {
  return absl::BytesToHexString(entropy.Bytes(16)).append(kForgottenEnd);
}

bool IsForgottenId(std::string_view id) { return id.ends_with(kForgottenEnd); }

std::string TransactionKey(std::string_view id) { return Prefixed(kRecordPrefix, id); }

std::string TransactionHintKey(std::string_view id) { return Prefixed(kHintPrefix, id); }

store::Range TransactionRange() {
  return {std::string(kRecordPrefix), store::PrefixEnd(kRecordPrefix)};
}

store::Range TransactionHintRange() {
  return {std::string(kHintPrefix), store::PrefixEnd(kHintPrefix)};
}

std::string_view TransactionIdOf(std::string_view key) { return key.substr(kHintPrefix.size()); }

absl::StatusOr<std::optional<TransactionRecord>> ReadTransaction(const store::Reader& reader,
                                                                 std::string_view id) {
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   reader.Get(Keyspace::kTransactions, TransactionKey(id)));
  if (!record) return std::nullopt;
  return TransactionRecord::Decode(*record);
}

}  // namespace strata::versioning
