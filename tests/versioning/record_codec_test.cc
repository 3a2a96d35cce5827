// Records: what is written reads back, and what nobody wrote is an error.
#include "schemas/versioning/record_codec.h"

#include <string>

#include "gtest/gtest.h"
#include "schemas/base/error.h"
#include "schemas/document/bson_builder.h"
#include "schemas/document/content.h"

namespace strata::versioning {
namespace {

using document::BsonBuilder;

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

// With the transaction's id as a member in front, or none, and a mark.
absl::StatusOr<VersionRecord> DecodeMarked(const char* transaction, int64_t mark) {
  return DecodeWith([&](BsonBuilder& builder) {
    if (transaction != nullptr) builder.String("transaction", transaction);
    builder.Int64("mark", mark);
  });
}

TEST(RecordCodec, ATransactionAndItsMarkReadBack) {
  StoredVersion version{Header(), {}, /*position=*/1};
  const std::string without = EncodeVersion(version);
  EXPECT_EQ(without.find("transaction"), std::string::npos);
  EXPECT_EQ(without.find("mark"), std::string::npos);
  version.header.transaction_id = "transfer-7/2";
  for (const VersionMark mark :
       {VersionMark::kNone, VersionMark::kApplied, VersionMark::kUndone, VersionMark::kClosed}) {
    version.header.mark = mark;
    const auto read = DecodeVersion(EncodeVersion(version), /*record_position=*/1, Part::kHeader);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->version.header, version.header) << static_cast<int>(mark);
  }
}

TEST(RecordCodec, AMarkThatNobodyMakesIsCorrupt) {
  for (const int64_t mark : {int64_t{0}, int64_t{4}, int64_t{-1}, int64_t{257}, int64_t{1} << 32}) {
    const auto read = DecodeMarked("t", mark);
    EXPECT_EQ(ReasonOf(read.status()), ErrorReason::kRecordCorrupt) << mark;
  }
  const auto text = DecodeWith(
      [](BsonBuilder& builder) { builder.String("transaction", "t").String("mark", "1"); });
  EXPECT_EQ(ReasonOf(text.status()), ErrorReason::kRecordCorrupt);
}

TEST(RecordCodec, AMarkHasItsTransaction) {
  EXPECT_TRUE(DecodeMarked("t", 1).ok());
  EXPECT_EQ(ReasonOf(DecodeMarked(nullptr, 1).status()), ErrorReason::kRecordCorrupt);
  EXPECT_EQ(ReasonOf(DecodeMarked("", 1).status()), ErrorReason::kRecordCorrupt);
  const auto number = DecodeWith([](BsonBuilder& builder) { builder.Int64("transaction", 1); });
  EXPECT_EQ(ReasonOf(number.status()), ErrorReason::kRecordCorrupt);
}

std::string WholeVersion() {
  return EncodeVersion(
      {Header(), document::Content::FromTrusted(BsonBuilder().Int64("age", 36).Take()), 1});
}

TEST(RecordCodec, ARecordThatIsCutIsCorrupt) {
  const std::string whole = WholeVersion();
  ASSERT_TRUE(DecodeVersion(whole, /*record_position=*/1, Part::kContent).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    const auto read = DecodeVersion(cut, /*record_position=*/1, Part::kContent);
    EXPECT_EQ(ReasonOf(read.status()), ErrorReason::kRecordCorrupt) << size;
  }
}

// Of the other bytes only the sanitizers say what becomes of them.
TEST(RecordCodec, DamageInTheFrameIsFound) {
  const std::string whole = WholeVersion();
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int flip : {0x01, 0x7F, 0x80, 0xFF}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      const auto read = DecodeVersion(damaged, /*record_position=*/1, Part::kContent);
      const bool frame = at < sizeof(int32_t) || at + 1 == whole.size();
      if (frame) {
        EXPECT_EQ(ReasonOf(read.status()), ErrorReason::kRecordCorrupt) << at;
      }
    }
  }
}

}  // namespace
}  // namespace strata::versioning
