// Records of transactions: what is written reads back, and what nobody wrote is an error.
#include "schemas/versioning/transaction_record.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/base/error.h"
#include "schemas/document/bson_builder.h"
#include "service/engines/engines.h"
#include "tests/support/await_commit.h"
#include "tests/support/status_matchers.h"

namespace strata::versioning {
namespace {

using document::BsonBuilder;
using store::Keyspace;
using test_support::HasReason;
using testing::ElementsAre;

TransactionRecord Whole() {
  TransactionRecord record;
  record.status = TransactionStatus::kPending;
  record.mode = TransactionMode::kTwoPhase;
  record.create_time = 5;
  record.last_modified = 7;
  record.change = {"ann", "bob", "because", {{"ticket", "7"}, {"area", "x"}}};
  record.fingerprint = std::string(
      "12\0\x01"
      "56",
      6);
  record.participants = {{{"accounts", "a"}, 3, 0, 1, true, false, -2},
                         {{"accounts", "b/ä"}, 3, 41, 42, false, true, 2'000'000'000},
                         {{"books", "moby"}, 4, 7, 0, false, false, 0}};
  record.data = {"one", std::string("\0two", 4), ""};
  record.cause = "asked for";
  record.joined_answer = std::string("\0ids", 4);
  record.stamp = 11;
  record.position = 12;
  return record;
}

absl::StatusOr<TransactionRecord> Decode(std::string bytes) {
  return TransactionRecord::Decode({std::move(bytes), 11, 12});
}

void ExpectSame(const TransactionRecord& a, const TransactionRecord& b) {
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.mode, b.mode);
  EXPECT_EQ(a.create_time, b.create_time);
  EXPECT_EQ(a.last_modified, b.last_modified);
  EXPECT_EQ(a.change, b.change);
  EXPECT_EQ(a.fingerprint, b.fingerprint);
  EXPECT_EQ(a.participants, b.participants);
  EXPECT_EQ(a.data, b.data);
  EXPECT_EQ(a.cause, b.cause);
  EXPECT_EQ(a.joined_answer, b.joined_answer);
  EXPECT_EQ(a.stamp, b.stamp);
  EXPECT_EQ(a.position, b.position);
}

TEST(TransactionRecord, ReadsBackWithAllThatItSays) {
  TransactionRecord record = Whole();
  for (int status = 1; status <= 6; ++status) {
    for (int mode = 1; mode <= 2; ++mode) {
      record.status = static_cast<TransactionStatus>(status);
      record.mode = static_cast<TransactionMode>(mode);
      ASSERT_OK_AND_ASSIGN(const TransactionRecord read, Decode(record.Encode()));
      ExpectSame(read, record);
    }
  }
}

TEST(TransactionRecord, ReadsBackWithNothingInIt) {
  TransactionRecord record;
  record.stamp = 11;
  record.position = 12;
  ASSERT_OK_AND_ASSIGN(const TransactionRecord read, Decode(record.Encode()));
  ExpectSame(read, record);
}

TEST(TransactionRecord, IsUndecidedUntilItIsAppliedOrCancelled) {
  TransactionRecord record;
  std::vector<TransactionStatus> undecided;
  std::vector<TransactionStatus> finished;
  for (int number = 1; number <= 6; ++number) {
    record.status = static_cast<TransactionStatus>(number);
    if (record.undecided()) undecided.push_back(record.status);
    if (record.finished()) finished.push_back(record.status);
  }
  EXPECT_THAT(undecided, ElementsAre(TransactionStatus::kPending, TransactionStatus::kCancelling));
  EXPECT_THAT(finished, ElementsAre(TransactionStatus::kDone, TransactionStatus::kCancelled));
}

// Cut anywhere, or with any bit turned, it is refused or reads as a record: never anything else.
TEST(TransactionRecord, WhatIsCutIsCorrupt) {
  const std::string bytes = Whole().Encode();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(Decode(bytes.substr(0, size)), HasReason(ErrorReason::kRecordCorrupt)) << size;
  }
  EXPECT_THAT(Decode(bytes + '\0'), HasReason(ErrorReason::kRecordCorrupt));
}

TEST(TransactionRecord, WhatIsChangedIsCorruptOrARecord) {
  const std::string bytes = Whole().Encode();
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const char flip : {'\x01', '\x20', '\x80'}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      const auto read = Decode(changed);
      if (!read.ok()) {
        EXPECT_THAT(read, HasReason(ErrorReason::kRecordCorrupt));
        continue;
      }
      ASSERT_OK_AND_ASSIGN(const TransactionRecord again, Decode(read->Encode()));
      ExpectSame(again, *read);
    }
  }
}

using Add = std::function<void(BsonBuilder&)>;

std::string Built(const Add& add) {
  BsonBuilder builder;
  add(builder);
  return builder.Take();
}

// A pending record with more in it.
std::string RecordWith(const Add& add) {
  return Built([&](BsonBuilder& record) {
    record.Int32("status", 2).Int32("mode", 2);
    add(record);
  });
}

// Such a record with one participant.
std::string RecordOf(const Add& participant) {
  const std::string array =
      Built([&](BsonBuilder& builder) { builder.Document("0", Built(participant)); });
  return RecordWith([&](BsonBuilder& record) { record.Array("participants", array); });
}
std::string RecordOfNamed(const Add& participant) {
  return RecordOf([&](BsonBuilder& builder) {
    builder.String("collection", "c").Int64("incarnation", 1).String("id", "d");
    participant(builder);
  });
}

TEST(TransactionRecord, HasAStatusAndAMode) {
  for (int32_t status = -1; status <= 8; ++status) {
    for (int32_t mode = -1; mode <= 4; ++mode) {
      const auto read = Decode(
          Built([&](BsonBuilder& record) { record.Int32("status", status).Int32("mode", mode); }));
      const bool known = status >= 1 && status <= 6 && mode >= 1 && mode <= 2;
      EXPECT_EQ(read.ok(), known) << status << " " << mode;
      if (!known) {
        EXPECT_THAT(read, HasReason(ErrorReason::kRecordCorrupt));
      }
    }
  }
  for (const Add& add :
       {Add([](BsonBuilder& /*record*/) {}),
        Add([](BsonBuilder& record) { record.Int32("status", 2); }),
        Add([](BsonBuilder& record) { record.Int32("mode", 2); }),
        Add([](BsonBuilder& record) { record.Int64("status", 256 + 2).Int32("mode", 2); })}) {
    EXPECT_THAT(Decode(Built(add)), HasReason(ErrorReason::kRecordCorrupt));
  }
}

TEST(TransactionRecord, WhatNobodyWritesInItIsCorrupt) {
  EXPECT_THAT(Decode(RecordWith([](BsonBuilder& /*record*/) {})), test_support::IsOk());
  const std::string number = Built([](BsonBuilder& builder) { builder.Int32("0", 1); });
  const std::vector<Add> adds = {
      [](BsonBuilder& record) { record.Int32("more", 1); },
      [](BsonBuilder& record) { record.Int32("cause", 1); },
      [](BsonBuilder& record) { record.String("created", "now"); },
      [](BsonBuilder& record) { record.String("labels", "x"); },
      [&](BsonBuilder& record) { record.Document("labels", number); },
      [](BsonBuilder& record) { record.String("fingerprint", "text"); },
      [](BsonBuilder& record) { record.String("participants", "x"); },
      [&](BsonBuilder& record) { record.Array("participants", number); },
      [&](BsonBuilder& record) { record.Array("data", number); },
      [](BsonBuilder& record) { record.String("data", "x"); },
  };
  for (size_t i = 0; i < adds.size(); ++i) {
    EXPECT_THAT(Decode(RecordWith(adds[i])), HasReason(ErrorReason::kRecordCorrupt)) << i;
  }
}

TEST(TransactionRecord, WhatNobodyWritesOfAParticipantIsCorrupt) {
  EXPECT_THAT(Decode(RecordOfNamed([](BsonBuilder& /*builder*/) {})), test_support::IsOk());
  for (const Add& nameless :
       {Add([](BsonBuilder& /*builder*/) {}),
        Add([](BsonBuilder& builder) { builder.String("id", "d"); }),
        Add([](BsonBuilder& builder) { builder.String("collection", "c"); })}) {
    EXPECT_THAT(Decode(RecordOf(nameless)), HasReason(ErrorReason::kRecordCorrupt));
  }
  const std::vector<Add> adds = {
      [](BsonBuilder& builder) { builder.Int64("base", -1); },
      [](BsonBuilder& builder) { builder.Int64("version", -1); },
      [](BsonBuilder& builder) { builder.Int32("changed", 1); },
      [](BsonBuilder& builder) { builder.Int64("more", 1); },
      [](BsonBuilder& builder) { builder.Int64("note", int64_t{1} << 31); },
      [](BsonBuilder& builder) { builder.String("note", "x"); },
  };
  for (size_t i = 0; i < adds.size(); ++i) {
    EXPECT_THAT(Decode(RecordOfNamed(adds[i])), HasReason(ErrorReason::kRecordCorrupt)) << i;
  }
}

TEST(TransactionRecord, StandsUnderItsIdApartFromTheHints) {
  const auto store = *engines::OpenEngine("memory", {});
  store::WriteBatch batch;
  for (const char* const id : {"b", "a", "t", "o", "a/2"}) {
    batch.Put(Keyspace::kTransactions, TransactionKey(id), Whole().Encode());
    batch.Put(Keyspace::kTransactions, TransactionHintKey(id), BsonBuilder().Take());
  }
  ASSERT_TRUE(test_support::AwaitCommit(*store, std::move(batch)).committed);
  for (const store::Range& range : {TransactionRange(), TransactionHintRange()}) {
    std::vector<std::string> ids;
    for (auto cursor = store->Scan(Keyspace::kTransactions, range); cursor->Valid();
         cursor->Next()) {
      ids.emplace_back(TransactionIdOf(cursor->key()));
    }
    EXPECT_THAT(ids, ElementsAre("a", "a/2", "b", "o", "t"));
  }
  ASSERT_OK_AND_ASSIGN(const std::optional<TransactionRecord> found, ReadTransaction(*store, "a"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->participants, Whole().participants);
  EXPECT_EQ(found->position, store->LastPosition());
  ASSERT_OK_AND_ASSIGN(const std::optional<TransactionRecord> none, ReadTransaction(*store, "c"));
  EXPECT_FALSE(none);
}

}  // namespace
}  // namespace strata::versioning
