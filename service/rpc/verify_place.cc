// One list of the fields says both how they are written and how they are read:
//
//   number   = 8 bytes, big-endian        bytes = number, that many bytes
//   optional = number (0 or 1), what it holds if 1
//
// Tokens are not kept: a field may come or go with any version of the server, whose older tokens
// are then refused.
#include "service/rpc/verify_place.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "schemas/versioning/documents.h"
#include "service/rpc/page_token.h"

namespace strata::rpc {
namespace {

using versioning::VerifyPlace;

class Writer {
 public:
  template <typename Number>
  void Integer(const Number& number, int64_t /*least*/, int64_t /*most*/) {
    AppendPlaceNumber(static_cast<int64_t>(number), bytes_);
  }
  void Bytes(const std::string& bytes) {
    AppendPlaceNumber(static_cast<int64_t>(bytes.size()), bytes_);
    bytes_ += bytes;
  }
  void Hash(const document::Hash& hash) { bytes_ += document::HashBytes(hash); }
  template <typename Value, typename Fields>
  void Optional(const std::optional<Value>& value, const Fields& fields) {
    AppendPlaceNumber(value ? 1 : 0, bytes_);
    if (value) fields(*value);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename Number>
  void Integer(Number& number, int64_t least, int64_t most) {
    const std::optional<int64_t> read = TakePlaceNumber(rest_);
    good_ = good_ && read && *read >= least && *read <= most;
    if (good_) number = static_cast<Number>(*read);
  }
  void Bytes(std::string& bytes) {
    int64_t size = 0;
    Integer(size, 0, static_cast<int64_t>(rest_.size()));
    good_ = good_ && static_cast<size_t>(size) <= rest_.size();
    if (good_) bytes = Take(static_cast<size_t>(size));
  }
  void Hash(document::Hash& hash) {
    good_ = good_ && rest_.size() >= hash.size();
    if (!good_) return;
    const std::string_view bytes = Take(hash.size());
    std::copy(bytes.begin(), bytes.end(), hash.begin());
  }
  template <typename Value, typename Fields>
  void Optional(std::optional<Value>& value, const Fields& fields) {
    bool there = false;
    Integer(there, 0, 1);
    if (good_ && there) fields(value.emplace(Value()));
  }
  bool good() const { return good_ && rest_.empty(); }

 private:
  std::string_view Take(size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool good_ = true;
};

// So far from the greatest number that nobody who goes on counting gets there.
constexpr int64_t kCountMax = int64_t{1} << 60;
constexpr int64_t kAnyLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kAnyMost = std::numeric_limits<int64_t>::max();

template <typename Codec, typename Before>
void BeforeFields(Codec& codec, Before& before) {
  codec.Integer(before.version, 1, kAnyMost);
  codec.Integer(before.kind, static_cast<int64_t>(versioning::VersionKind::kCreated),
                static_cast<int64_t>(versioning::VersionKind::kRestored));
  codec.Integer(before.commit_time, kAnyLeast, kAnyMost);
  codec.Integer(before.create_time, kAnyLeast, kAnyMost);
  codec.Integer(before.created_before, kAnyLeast, kAnyMost);
  codec.Hash(before.chain_stored);
  codec.Hash(before.chain_computed);
}

template <typename Codec, typename Document>
void DocumentFields(Codec& codec, Document& document) {
  codec.Bytes(document.id);
  codec.Integer(document.versions_checked, 0, 1);
  codec.Integer(document.next_version, 1, kAnyMost);
  codec.Optional(document.before, [&](auto& before) { BeforeFields(codec, before); });
  codec.Bytes(document.next_request);
  codec.Integer(document.seen, 0, 1);
  codec.Integer(document.versions, 0, kCountMax);
  codec.Integer(document.ledger_entries, 0, kCountMax);
}

template <typename Codec, typename Ledger>
void LedgerFields(Codec& codec, Ledger& ledger) {
  codec.Integer(ledger.last, 0, kCountMax);
  codec.Integer(ledger.next, 0, kCountMax);
  codec.Optional(ledger.before, [&](auto& hash) { codec.Hash(hash); });
  codec.Integer(ledger.head_passed, 0, 1);
  codec.Integer(ledger.entries, 0, kCountMax);
  codec.Integer(ledger.unended_since, 0, kCountMax);
}

template <typename Codec, typename Place>
void PlaceFields(Codec& codec, Place& place) {
  codec.Integer(place.incarnation, 0, kCountMax);
  codec.Integer(place.stage, static_cast<int64_t>(VerifyPlace::Stage::kDocuments),
                static_cast<int64_t>(VerifyPlace::Stage::kLedger));
  codec.Bytes(place.next_key);
  codec.Optional(place.document, [&](auto& document) { DocumentFields(codec, document); });
  codec.Integer(place.ledger_from, 0, kCountMax);
  codec.Optional(place.ledger, [&](auto& ledger) { LedgerFields(codec, ledger); });
  codec.Integer(place.documents, 0, kCountMax);
  codec.Integer(place.versions, 0, kCountMax);
  codec.Integer(place.ledger_entries, 0, kCountMax);
  codec.Integer(place.broken, 0, kCountMax);
}

}  // namespace

std::string EncodeVerifyPlace(const VerifyPlace& place) {
  Writer writer;
  PlaceFields(writer, place);
  return writer.Take();
}

std::optional<VerifyPlace> DecodeVerifyPlace(std::string_view bytes) {
  VerifyPlace place;
  Reader reader(bytes);
  PlaceFields(reader, place);
  if (!reader.good()) return std::nullopt;
  if (place.document && !ValidateName("id", place.document->id).ok()) {
    return std::nullopt;
  }
  return place;
}

}  // namespace strata::rpc
