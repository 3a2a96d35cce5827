// Records: what is written reads back, and what nobody wrote is an error.
#include "schemas/versioning/record_codec.h"

#include <string>

#include "gtest/gtest.h"
#include "schemas/base/error.h"

namespace strata::versioning {
namespace {

VersionHeader Header() {
  VersionHeader header;
  header.version = 3;
  header.kind = VersionKind::kUpdated;
  header.commit_time = 2;
  header.create_time = 1;
  header.change = {"ada", "bob", "because", {{"ticket", "7"}}};
  header.salt = std::string(kSaltSize, 's');
  return header;
}

// A version record with one more member in front.
template <typename Add>
absl::StatusOr<VersionRecord> DecodeWith(Add add) {
  BsonBuilder builder;
  add(builder);
  VersionHeader header = Header();
  header.change.labels.clear();
  AppendHeader(header, /*position=*/0, builder);
  return DecodeVersion(builder.Take(), /*record_position=*/1, Part::kHeader);
}

TEST(RecordCodec, AnyTimeOfCreationReadsBack) {
  StoredVersion version{Header(), {}, /*position=*/1};
  for (const UnixMicros time : {UnixMicros{-1}, UnixMicros{0}, UnixMicros{2}}) {
    version.header.create_time = time;
    const auto read = DecodeVersion(EncodeVersion(version), /*record_position=*/1, Part::kHeader);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->version.header, version.header) << time;
  }
}

TEST(RecordCodec, LabelsThatAreNoDocumentAreCorrupt) {
  const auto read = DecodeWith([](BsonBuilder& builder) { builder.String("labels", "x"); });
  EXPECT_EQ(ReasonOf(read.status()), ErrorReason::kRecordCorrupt) << read.status();
  const std::string entry = BsonBuilder().Int64("version", 1).Int32("labels", 1).Take();
  EXPECT_EQ(ReasonOf(DecodeLedgerRecord(entry).status()), ErrorReason::kRecordCorrupt);
}

TEST(RecordCodec, AKindBeyondOneByteIsCorrupt) {
  for (const int64_t kind : {int64_t{0}, int64_t{5}, int64_t{257}, int64_t{-255}}) {
    const std::string bytes = BsonBuilder()
                                  .Int64("version", 1)
                                  .Int64("kind", kind)
                                  .Binary("proof", std::string(80, 'p'))
                                  .Take();
    const auto read = DecodeVersion(bytes, /*record_position=*/1, Part::kHeader);
    EXPECT_EQ(ReasonOf(read.status()), ErrorReason::kRecordCorrupt) << kind;
  }
}

TEST(RecordCodec, AVersionWithoutItsWholeProofIsCorrupt) {
  for (const size_t size : {size_t{0}, size_t{16}, size_t{79}, size_t{80}, size_t{81}}) {
    BsonBuilder builder;
    builder.Int64("version", 1).Int64("kind", 1);
    if (size > 0) builder.Binary("proof", std::string(size, 'p'));
    const auto read = DecodeVersion(builder.Take(), /*record_position=*/1, Part::kHeader);
    EXPECT_EQ(read.ok(), size == 80) << size;
  }
}

TEST(RecordCodec, ARequestHasItsFingerprint) {
  for (const bool request : {false, true}) {
    for (const bool fingerprint : {false, true}) {
      BsonBuilder builder;
      builder.Int64("version", 1).Int64("kind", 1).Binary("proof", std::string(80, 'p'));
      if (request) builder.String("request", "r1");
      if (fingerprint) builder.Binary("fingerprint", "12345678");
      const auto read = DecodeVersion(builder.Take(), /*record_position=*/1, Part::kHeader);
      EXPECT_EQ(read.ok(), request == fingerprint) << request << fingerprint;
    }
  }
}

}  // namespace
}  // namespace strata::versioning
