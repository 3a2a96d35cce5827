#include "schemas/versioning/record_codec.h"

#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"

namespace strata::versioning {
namespace {

using document::BsonBuilder;
using document::BsonReader;

absl::Status Corrupt(std::string_view what) {
  return Error(ErrorReason::kRecordCorrupt, what).With("record", what);
}

void AppendChange(const ChangeInfo& change, BsonBuilder& builder) {
  if (!change.actor.empty()) builder.String("actor", change.actor);
  if (!change.on_behalf_of.empty()) builder.String("for", change.on_behalf_of);
  if (!change.reason.empty()) builder.String("reason", change.reason);
  if (change.labels.empty()) return;
  BsonBuilder labels;
  for (const auto& [name, value] : change.labels) labels.String(name, value);
  builder.Document("labels", labels.Take());
}

void ReadLabels(std::string_view bytes, ChangeInfo& change, bool& corrupt) {
  BsonReader reader(bytes);
  while (reader.Next()) change.labels.emplace(reader.name(), reader.String());
  corrupt |= reader.corrupt();
}

// One member for three: they are random bytes, which nothing compresses, side by side.
constexpr size_t kHashSize = std::tuple_size_v<document::Hash>;
constexpr size_t kProofSize = kSaltSize + 2 * kHashSize;

void AppendProof(const VersionHeader& header, BsonBuilder& builder) {
  std::string proof;
  proof.reserve(kProofSize);
  proof.append(header.salt)
      .append(document::HashBytes(header.content_hash))
      .append(document::HashBytes(header.chain_hash));
  builder.Binary("proof", proof);
}

void ReadProof(std::string_view proof, VersionHeader& header, bool& corrupt) {
  if (proof.size() != kProofSize) {
    corrupt = true;
    return;
  }
  header.salt = proof.substr(0, kSaltSize);
  std::memcpy(header.content_hash.data(), proof.data() + kSaltSize, kHashSize);
  std::memcpy(header.chain_hash.data(), proof.data() + kSaltSize + kHashSize, kHashSize);
}

bool ValidKind(VersionKind kind) {
  return kind >= VersionKind::kCreated && kind <= VersionKind::kRestored;
}

}  // namespace

void AppendHeader(const VersionHeader& header, store::CommitPosition position,
                  BsonBuilder& builder) {
  builder.Int64("version", header.version)
      .Int32("kind", static_cast<int32_t>(header.kind))
      .Int64("time", header.commit_time);
  if (header.create_time != header.commit_time) builder.Int64("created", header.create_time);
  AppendChange(header.change, builder);
  if (!header.request_id.empty()) {
    builder.String("request", header.request_id)
        .Binary(header.fingerprint_chained ? "request_fingerprint" : "fingerprint",
                header.request_fingerprint);
  }
  if (!header.transaction_id.empty()) builder.String("transaction", header.transaction_id);
  if (header.mark != VersionMark::kNone) builder.Int32("mark", static_cast<int32_t>(header.mark));
  AppendProof(header, builder);
  if (position != 0) builder.Int64("position", position);
}

std::string EncodeVersion(const StoredVersion& version) {
  BsonBuilder builder(kHeaderBytes + (version.content ? version.content->size() : 0));
  AppendHeader(version.header, version.position, builder);
  if (version.content) builder.Document("content", version.content->bytes());
  return builder.Take();
}

namespace {

// Into a new `version`: there is much to move. `make_content` of the bytes of the content, if the
// part has it. False for bytes that are no version record.
template <typename MakeContent>
bool Decode(std::string_view bytes, store::CommitPosition record_position, Part part,
            MakeContent make_content, StoredVersion& version, LayoutMembers& layout) {
  VersionHeader& header = version.header;
  std::optional<UnixMicros> create_time;
  version.position = record_position;
  bool corrupt = false;
  BsonReader reader(bytes);
  while (reader.Next()) {
    const std::string_view name = reader.name();
    if (name == "version") {
      header.version = reader.Int64();
    } else if (name == "kind") {
      const int64_t kind = reader.Int64();
      header.kind = static_cast<VersionKind>(kind);
      corrupt |= static_cast<int64_t>(header.kind) != kind;  // 257 is no creation
    } else if (name == "time") {
      header.commit_time = reader.Int64();
    } else if (name == "actor") {
      header.change.actor = reader.String();
    } else if (name == "for") {
      header.change.on_behalf_of = reader.String();
    } else if (name == "reason") {
      header.change.reason = reader.String();
    } else if (name == "labels") {
      ReadLabels(reader.Document(), header.change, corrupt);
    } else if (name == "request") {
      header.request_id = reader.String();
    } else if (name == "content") {
      const std::string_view content = reader.Document();
      if (part == Part::kContent && !reader.corrupt()) version.content = make_content(content);
    } else if (name == "created") {
      create_time = reader.Int64();
    } else if (name == "request_fingerprint" || name == "fingerprint") {
      header.request_fingerprint = reader.Binary();
      header.fingerprint_chained = name == "request_fingerprint";
    } else if (name == "transaction") {
      header.transaction_id = reader.String();
    } else if (name == "mark") {
      const int64_t mark = reader.Int64();
      header.mark = static_cast<VersionMark>(mark);
      corrupt |= mark < 1 || mark > static_cast<int64_t>(VersionMark::kClosed);
    } else if (name == "proof") {
      ReadProof(reader.Binary(), header, corrupt);
    } else if (name == "position") {
      version.position = reader.Int64();
    } else if (name == "current") {
      layout.current = reader.Bool();
    } else if (name == "delta") {
      layout.delta = reader.Document();
    } else if (name == "chain_length") {
      layout.chain_length = reader.Int64();
    } else if (name == "chain_bytes") {
      layout.chain_bytes = reader.Int64();
    } else {
      corrupt = true;
    }
  }
  header.create_time = create_time.value_or(header.commit_time);
  return !corrupt && !reader.corrupt() && header.version >= 1 && ValidKind(header.kind) &&
         !header.salt.empty() &&
         (header.mark == VersionMark::kNone || !header.transaction_id.empty()) &&
         header.request_id.empty() == header.request_fingerprint.empty();
}

template <typename MakeContent>
absl::StatusOr<VersionRecord> DecodeRecord(std::string_view bytes, store::CommitPosition position,
                                           Part part, MakeContent make_content) {
  absl::StatusOr<VersionRecord> decoded(absl::in_place);
  if (!Decode(bytes, position, part, make_content, decoded->version, *decoded)) {
    decoded = Corrupt("version record");
  }
  return decoded;
}

// The content shares the record's bytes.
auto SharedWith(const store::Record& record) {
  return [&record](std::string_view content) {
    return document::Content::FromTrusted(record.value, content);
  };
}

}  // namespace

absl::StatusOr<VersionRecord> DecodeVersion(std::string_view bytes,
                                            store::CommitPosition record_position, Part part) {
  return DecodeRecord(bytes, record_position, part, [](std::string_view content) {
    return document::Content::FromTrusted(std::string(content));
  });
}

absl::StatusOr<VersionRecord> DecodeVersion(const store::Record& record, Part part) {
  return DecodeRecord(record.value, record.position, part, SharedWith(record));
}

absl::Status DecodeVersion(const store::Record& record, Part part, StoredVersion& version) {
  LayoutMembers layout;
  const bool decoded =
      Decode(record.value, record.position, part, SharedWith(record), version, layout);
  return decoded ? absl::OkStatus() : Corrupt("version record");
}

absl::StatusOr<RecordBody> DecodeBody(std::string_view bytes) {
  RecordBody body;
  BsonReader reader(bytes);
  while (reader.Next()) {
    const std::string_view name = reader.name();
    if (name == "chain_length") body.chain_length = reader.Int64();
    if (name == "chain_bytes") body.chain_bytes = reader.Int64();
    if (name != "content" && name != "delta") continue;
    const std::string_view value = reader.Document();
    if (reader.corrupt()) break;
    (name == "content" ? body.content : body.delta) =
        Extent{static_cast<size_t>(value.data() - bytes.data()), value.size()};
  }
  if (reader.corrupt()) return Corrupt("version record");
  return body;
}

std::string EncodeRequest(int64_t version) {
  return BsonBuilder().Int64("version", version).Take();
}

absl::StatusOr<int64_t> DecodeRequest(std::string_view bytes) {
  int64_t version = 0;
  BsonReader reader(bytes);
  while (reader.Next()) {
    if (reader.name() == "version") version = reader.Int64();
  }
  if (reader.corrupt() || version < 1) return Corrupt("request record");
  return version;
}

}  // namespace strata::versioning
