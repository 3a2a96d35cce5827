// What the store holds: keys that sort as what they name and read back, records that read back,
// and bytes that nobody wrote, which are an error.
#include <algorithm>
#include <limits>
#include <string>
#include <tuple>

#include "schemas/store/key_codec.h"
#include "schemas/versioning/fingerprint.h"
#include "schemas/versioning/record_codec.h"
#include "tests/fuzz/input.h"

namespace strata::fuzz {
namespace {

using document::Content;

int64_t NotNegative(Input& input) { return input.Integer() & std::numeric_limits<int64_t>::max(); }

struct KeyParts {
  explicit KeyParts(Input& input)
      : document{NotNegative(input), input.Text()}, version(NotNegative(input)) {}

  auto Tuple() const { return std::tie(document.incarnation, document.id, version); }

  store::DocumentKey document;
  int64_t version;
};

void CheckKey(const KeyParts& parts) {
  Require(store::ParseHeadKey(store::HeadKey(parts.document)) == parts.document,
          "a head's key reads back");
  const std::string key = store::VersionKey(parts.document, parts.version);
  const auto version = store::ParseVersionKey(key);
  Require(version && version->document == parts.document && version->version == parts.version,
          "a version's key reads back");
  Require(store::ParseLedgerKey(store::LedgerKey(parts.version)) == parts.version,
          "a ledger's key reads back");
  const store::Range range = store::IncarnationRange(parts.document.incarnation);
  Require(key >= range.begin && (range.end.empty() || key < range.end),
          "an incarnation's range holds its keys");
}

void CheckOrder(const KeyParts& a, const KeyParts& b) {
  const std::string key_a = store::VersionKey(a.document, a.version);
  const std::string key_b = store::VersionKey(b.document, b.version);
  Require((key_a < key_b) == (a.Tuple() < b.Tuple()), "versions' keys sort as what they name");
  Require((key_a == key_b) == (a.Tuple() == b.Tuple()), "no two versions share a key");
  Require((store::LedgerKey(a.version) < store::LedgerKey(b.version)) == (a.version < b.version),
          "the ledger's keys sort as what they name");
}

// Whatever reads as a key is the key of what it reads as.
void CheckHostileKey(const std::string& bytes) {
  if (const auto head = store::ParseHeadKey(bytes)) {
    Require(store::HeadKey(*head) == bytes, "a head has one key");
  }
  if (const auto version = store::ParseVersionKey(bytes)) {
    Require(store::VersionKey(version->document, version->version) == bytes,
            "a version has one key");
  }
  if (const auto ledger = store::ParseLedgerKey(bytes)) {
    Require(store::LedgerKey(*ledger) == bytes, "a block has one key");
  }
  const std::string end = store::PrefixEnd(bytes);
  Require(end.empty() || end > bytes, "a prefix ends after itself");
}

document::Hash MakeHash(Input& input) {
  document::Hash hash;
  const std::string bytes = input.Raw(hash.size());
  std::copy(bytes.begin(), bytes.end(), hash.begin());
  return hash;
}

constexpr size_t kFingerprint = versioning::kFingerprintSize;

versioning::VersionHeader MakeHeader(Input& input) {
  versioning::VersionHeader header;
  header.version = std::max<int64_t>(NotNegative(input), 1);
  header.kind = static_cast<versioning::VersionKind>(1 + input.Below(4));
  header.commit_time = input.Integer();
  header.create_time = input.Chance(2) ? input.Integer() : header.commit_time;
  header.change = {input.Text(), input.Text(), input.Text(), {}};
  for (size_t i = input.Below(4); i > 0; --i) header.change.labels[input.Name()] = input.Text();
  header.request_id = input.Text();
  if (!header.request_id.empty()) {
    header.request_fingerprint = input.Raw(kFingerprint);
    header.fingerprint_chained = input.Chance(2);
  }
  if (input.Chance(4)) header.transaction_id = input.Text();
  header.salt = input.Raw(versioning::kSaltSize);
  header.content_hash = MakeHash(input);
  header.chain_hash = MakeHash(input);
  return header;
}

void CheckRecords(Input& input) {
  versioning::StoredVersion version{MakeHeader(input), {}, NotNegative(input)};
  if (!version.deleted()) version.content = input.Document();
  const std::string bytes = versioning::EncodeVersion(version);
  const auto read = versioning::DecodeVersion(bytes, version.position, versioning::Part::kContent);
  Require(read.ok() && read->version.header == version.header &&
              read->version.content == version.content &&
              read->version.position == version.position,
          "a version's record reads back");

  const auto request = versioning::DecodeRequest(versioning::EncodeRequest(version.header.version));
  Require(request.ok() && *request == version.header.version, "a request's record reads back");
}

// A record's bytes, damaged: read as a record, or refused.
void CheckHostileRecords(Input& input) {
  versioning::StoredVersion version{MakeHeader(input), input.Document(), 1};
  const std::string good[] = {versioning::EncodeVersion(version),
                              versioning::EncodeRequest(version.header.version)};
  std::string bytes = good[input.Below(std::size(good))];
  for (size_t i = input.Below(6); i > 0 && !bytes.empty(); --i) {
    const size_t at = input.Take<uint16_t>() % bytes.size();
    bytes[at] = static_cast<char>(input.Byte());
  }
  for (const std::string& hostile : {bytes, input.Rest()}) {
    const auto read = versioning::DecodeVersion(hostile, 1, versioning::Part::kContent);
    if (read.ok()) {
      Require(read->version.header.version >= 1, "versions count from 1");
      const auto kind = static_cast<int>(read->version.header.kind);
      Require(kind >= 1 && kind <= 4, "a version is of one of the kinds");
    }
    (void)versioning::DecodeRequest(hostile);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const KeyParts a(input);
  KeyParts b(input);
  if (input.Chance(2)) b.document = a.document;
  if (input.Chance(2)) b.document.incarnation = a.document.incarnation;
  CheckKey(a);
  CheckKey(b);
  CheckOrder(a, b);
  CheckOrder(b, a);
  CheckHostileKey(input.Raw(input.Below(32)));
  CheckRecords(input);
  CheckHostileRecords(input);
  return 0;
}

}  // namespace strata::fuzz
