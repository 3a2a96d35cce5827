// A collection whose records are planted with damage, in any layout.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schemas/document/bson_builder.h"
#include "schemas/store/key_codec.h"
#include "schemas/versioning/ledger.h"
#include "schemas/versioning/record_codec.h"
#include "tests/documents/world.h"
#include "tests/support/status_matchers.h"
#include "tests/versioning/verify_world.h"

namespace strata::versioning::testing {

inline constexpr int64_t kPlantedVersions = 8;
inline constexpr std::string_view kPlantedId = "b";

// Encodes all members that a version record may have. The position always, as the record is to be
// written by a commit that is not its version's.
inline std::string EncodeRecord(const VersionRecord& record) {
  document::BsonBuilder builder;
  AppendHeader(record.version.header, record.version.position, builder);
  if (record.current) builder.Bool("current", true);
  if (!record.delta.empty()) builder.Document("delta", record.delta);
  if (record.chain_length && record.chain_bytes == 0) {
    builder.Int64("chain_length", *record.chain_length);
  } else if (record.chain_length) {
    builder.Int64("chain_length", *record.chain_length).Int64("chain_bytes", record.chain_bytes);
  }
  if (record.version.content) builder.Document("content", record.version.content->bytes());
  return builder.Take();
}

inline std::string Nonsense() { return document::BsonBuilder().Int64("nonsense", 1).Take(); }

inline document::Content ContentOf(int64_t number) {
  return document::Content::FromTrusted(
      document::BsonBuilder().String("text", std::string(80, 'x')).Int64("n", number).Take());
}

// One collection with three documents, and direct access to the records of one, "b".
class Scene {
 public:
  Scene(World& world, std::string_view strategy, std::string collection)
      : world_(world), strategy_(strategy), collection_(std::move(collection)) {
    for (const char* id : {"a", "b", "c"}) {
      for (int64_t version = 1; version <= kPlantedVersions; ++version) {
        WriteRequest request = Named(id, "r" + std::to_string(version));
        EXPECT_THAT(version == 1
                        ? world_->Create(request, ContentOf(1))
                        : world_->Update(request, Documents::NewContent(ContentOf(version))),
                    test_support::IsOk());
      }
    }
    EXPECT_THAT(world_->Delete(Named("c", "gone")), test_support::IsOk());
    EXPECT_THAT(world_->Restore(Named("c", ""), 3), test_support::IsOk());
    EXPECT_THAT(world_->Delete(Named("c", "")), test_support::IsOk());
    collection_ptr_ = *world_->documents().collections().Require(world_.engine(), collection_);
    key_ = {collection_ptr_->incarnation, std::string(kPlantedId)};
  }

  std::string_view strategy() const { return strategy_; }
  bool flagged() const { return strategy_ == "current-flag"; }
  bool deltas() const { return strategy_ == "deltas"; }
  bool embedded() const { return strategy_ == "embedded-history"; }
  bool with_heads() const { return strategy_ != "full-copies" && !flagged(); }
  bool copies() const { return with_heads() && !embedded(); }
  const std::string& collection() const { return collection_; }
  const store::DocumentKey& key() const { return key_; }

  absl::StatusOr<Verified> Run(bool repair = false, std::string id = "") {
    return Verify(world_.process(), world_.clock(), {collection_, std::move(id), repair});
  }

  // All records, as text.
  std::map<std::string, std::string> Dump() {
    std::map<std::string, std::string> all;
    for (const store::Keyspace keyspace :
         {store::Keyspace::kHeads, store::Keyspace::kVersions, store::Keyspace::kRequests}) {
      const auto cursor = world_.engine().Scan(keyspace, store::IncarnationRange(key_.incarnation));
      for (; cursor->Valid(); cursor->Next()) {
        all[std::string(store::KeyspaceName(keyspace)) + std::string(cursor->key())] =
            std::string(cursor->value()) + std::to_string(cursor->stamp());
      }
    }
    return all;
  }

  void Commit(store::WriteBatch batch) {
    EXPECT_TRUE(test_support::AwaitCommit(world_.engine(), std::move(batch)).committed);
  }
  void Put(store::Keyspace keyspace, std::string key, std::string value) {
    store::WriteBatch batch;
    batch.Put(keyspace, std::move(key), std::move(value));
    Commit(std::move(batch));
  }
  void Delete(store::Keyspace keyspace, std::string key) {
    store::WriteBatch batch;
    batch.Delete(keyspace, std::move(key));
    Commit(std::move(batch));
  }
  store::Record Get(store::Keyspace keyspace, const std::string& key) {
    return **world_.engine().Get(keyspace, key);
  }

  using Change = std::function<void(VersionRecord&)>;
  // Changes the record of a version, wherever the layout keeps it.
  void Edit(int64_t version, const Change& change) {
    if (embedded()) {
      return EditEmbedded([&](int64_t number, VersionRecord& record) {
        if (number == version) change(record);
        return EncodeRecord(record);
      });
    }
    const bool head = with_heads() && version == kPlantedVersions;
    const store::Keyspace keyspace = head ? store::Keyspace::kHeads : store::Keyspace::kVersions;
    const std::string key = head ? store::HeadKey(key_) : store::VersionKey(key_, version);
    const store::Record stored = Get(keyspace, key);
    VersionRecord record = *DecodeVersion(stored.value, stored.position, Part::kContent);
    change(record);
    Put(keyspace, key, EncodeRecord(record));
  }
  // Replaces the record of a version, or drops it where `bytes` are none.
  void Replace(int64_t version, const std::optional<std::string>& bytes) {
    if (embedded()) {
      return EditEmbedded([&](int64_t number, VersionRecord& record) {
        return number == version ? bytes : std::optional(EncodeRecord(record));
      });
    }
    const std::string key = store::VersionKey(key_, version);
    bytes ? Put(store::Keyspace::kVersions, key, *bytes) : Delete(store::Keyspace::kVersions, key);
  }

  StoredVersion Read(int64_t version) {
    const Head head = ReadHead();
    return *collection_ptr_->strategy->ReadVersion(context(), key_, head, version, Part::kContent);
  }
  Head ReadHead() { return **collection_ptr_->strategy->ReadHead(context(), key_); }

  // A further version that is right in itself.
  StoredVersion Next(const std::function<void(VersionHeader&)>& change = [](auto&) {}) {
    const Head head = ReadHead();
    StoredVersion next;
    next.content = ContentOf(head.version.header.version + 1);
    next.header = head.version.header;
    next.header.version = head.version.header.version + 1;
    next.header.kind = VersionKind::kUpdated;
    next.header.commit_time += 10;
    next.header.request_id.clear();
    next.header.request_fingerprint.clear();
    next.header.fingerprint_chained = false;
    change(next.header);
    next.header.content_hash = ContentHashOf(next.header.salt, next.content);
    next.header.chain_hash = ChainHash(head.version.header.chain_hash, next.header);
    return next;
  }
  // Plans and commits it, as a writer would, with these ledger entries.
  void Write(const StoredVersion& next, const std::vector<store::LedgerEntry>& ledger) {
    store::WriteBatch batch = Plan(next);
    for (const store::LedgerEntry& entry : ledger) batch.AppendToLedger(entry);
    Commit(std::move(batch));
  }
  store::WriteBatch Plan(const StoredVersion& next) {
    const Head head = ReadHead();
    store::WriteBatch batch;
    EXPECT_THAT(
        collection_ptr_->strategy->Plan(key_, &head, {&next, 1}, context().capabilities, batch),
        test_support::IsOk());
    const VersionHeader& superseded = head.version.header;
    if (!superseded.request_id.empty()) {
      batch.Ensure(store::Keyspace::kRequests, store::RequestKey(key_, superseded.request_id),
                   EncodeRequest(superseded.version));
    }
    return batch;
  }
  store::LedgerEntry Entry(const VersionHeader& header) {
    return MakeLedgerEntry(collection_, key_.incarnation, key_.id, header);
  }
  // What the next update would store of the head.
  std::string RightCopy() {
    const StoredVersion next = Next();
    const store::WriteBatch batch = Plan(next);
    return batch.writes().front().value;
  }

 private:
  WriteRequest Named(std::string_view id, std::string_view request_id) {
    WriteRequest request = Request(id, request_id);
    request.name.collection = collection_;
    request.change.actor = "ann";
    return request;
  }
  ReadContext context() { return {world_.engine(), world_.engine().capabilities()}; }

  // `encode` answers an element's bytes, or nothing to drop it.
  void EditEmbedded(
      const std::function<std::optional<std::string>(int64_t, VersionRecord&)>& encode) {
    const store::Record stored = Get(store::Keyspace::kHeads, store::HeadKey(key_));
    document::BsonBuilder record;
    document::BsonReader members(stored.value);
    while (members.Next()) {
      const std::string name(members.name());
      if (name == "current") {
        VersionRecord current = *DecodeVersion(members.Document(), stored.position, Part::kContent);
        const int64_t number = current.version.header.version;
        record.Document("current", *encode(number, current));
        continue;
      }
      document::BsonBuilder prev;
      int index = 0;
      document::BsonReader elements(members.Document());
      while (elements.Next()) {
        VersionRecord element =
            *DecodeVersion(elements.Document(), stored.position, Part::kContent);
        const int64_t number = element.version.header.version;
        const std::optional<std::string> bytes = encode(number, element);
        if (bytes) prev.Document(std::to_string(index++), *bytes);
      }
      record.Array("prev", prev.Take());
    }
    Put(store::Keyspace::kHeads, store::HeadKey(key_), record.Take());
  }

  World& world_;
  const std::string strategy_;
  const std::string collection_;
  CollectionPtr collection_ptr_;
  store::DocumentKey key_;
};

}  // namespace strata::versioning::testing
