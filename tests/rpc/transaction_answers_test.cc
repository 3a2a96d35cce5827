// What Commit and Read answer, and what follows from it for the next Commit, however a transaction
// takes effect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>

#include "schemas/store/single_record_store.h"
#include "service/engines/engines.h"
#include "strata/v1/transaction_service.pb.h"
#include "tests/rpc/stored.h"
#include "tests/rpc/test_server.h"
#include "tests/support/volume.h"

namespace strata::rpc_test {
namespace {

struct Way {
  const char* name;
  bool single_record;
  const char* mode;  // for the end of a CommitRequest

  bool two_phase() const { return single_record || *mode != '\0'; }
  friend std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }
};
constexpr Way kWays[] = {{"InOneCommit", false, ""},
                         {"InTwoPhases", false, R"(, "mode": "TRANSACTION_MODE_TWO_PHASE")"},
                         {"WhereOnlyTwoPhasesAre", true, ""}};

std::string Name(const std::string& collection, const std::string& id) {
  return R"("collection": ")" + collection + R"(", "id": ")" + id + R"(")";
}

class TransactionAnswers : public testing::TestWithParam<Way> {
 protected:
  TransactionAnswers() : TransactionAnswers(Engine(GetParam().single_record)) {}

  static std::unique_ptr<store::Store> Engine(bool single_record) {
    auto engine = *engines::OpenEngine("memory", engines::OpenOptions());
    if (!single_record) return engine;
    return std::make_unique<store::SingleRecordStore>(std::move(engine));
  }

  void Create(const std::string& collection, const std::string& id,
              const std::string& content = "{}") {
    const auto made = server_.Create("{" + Name(collection, id) + R"(, "omit_content": true,
        "content": {"json": )" + content +
                                     "}}");
    ASSERT_TRUE(made.ok()) << made.status.error_message();
  }
  void Delete(const std::string& collection, const std::string& id) {
    const auto deleted = server_.Delete("{" + Name(collection, id) + "}");
    ASSERT_TRUE(deleted.ok()) << deleted.status.error_message();
  }
  v1::ReadResponse Read(const std::string& documents) {
    const auto read = server_.Read(R"({"documents": [)" + documents + "]}");
    EXPECT_TRUE(read.ok()) << read.status.error_message();
    return read.response;
  }
  bool Exists(const std::string& collection) {
    return server_.GetCollection(R"({"name": ")" + collection + R"("})").ok();
  }

  // Of these writes, and the rest of the request.
  static v1::CommitRequest Request(const std::string& writes, const std::string& rest = "") {
    return Parse<v1::CommitRequest>(R"({"writes": [)" + writes + "]" + rest + GetParam().mode +
                                    "}");
  }
  Outcome<v1::CommitResponse> Commit(const v1::CommitRequest& request) {
    return server_.Call<v1::CommitResponse>(server_.transactions(),
                                            &v1::TransactionService::Stub::Commit, request);
  }
  Outcome<v1::CommitResponse> Commit(const std::string& writes, const std::string& rest = "") {
    return Commit(Request(writes, rest));
  }
  static std::string Update(const std::string& collection, const std::string& id) {
    return R"({"update": {)" + Name(collection, id) +
           R"(, "allow_missing": true, "patch": {"operations": [{"path": "/n", "increment": 1}]}}})";
  }

 private:
  explicit TransactionAnswers(std::unique_ptr<store::Store> store)
      : store_(*store), server_(TestOptions(), std::move(store)) {}

 protected:
  store::Store& store_;  // the server's
  TestServer server_;
};
INSTANTIATE_TEST_SUITE_P(Ways, TransactionAnswers, testing::ValuesIn(kWays),
                         [](const auto& way) { return std::string(way.param.name); });

// A document that was deleted, one that never was, and one whose collection was made anew since.
TEST_P(TransactionAnswers, WhatIsMissingIsReadAndHeldLikeWhatIsThere) {
  Create("books", "gone");
  Delete("books", "gone");
  Create("again", "purged");
  ASSERT_TRUE(server_.DeleteCollection(R"({"name": "again", "force": true})").ok());
  ASSERT_TRUE(server_.CreateCollection(R"({"name": "again"})").ok());
  const std::string names = "{" + Name("books", "never") + "}, {" + Name("books", "gone") + "}, {" +
                            Name("again", "purged") + "}";
  const v1::ReadResponse read = Read(names);
  EXPECT_EQ(read.documents_size(), 0);
  ASSERT_EQ(read.missing_size(), 3);
  EXPECT_EQ(read.missing(0).version(), 0);
  EXPECT_EQ(read.missing(1).collection(), "books");
  EXPECT_EQ(read.missing(1).id(), "gone");
  EXPECT_EQ(read.missing(1).version(), 2);
  EXPECT_EQ(read.missing(2).version(), 0);

  v1::CommitRequest request = Request(Update("books", "count"));
  *request.mutable_reads() = read.missing();
  const auto done = Commit(request);
  ASSERT_TRUE(done.ok()) << done.status.error_message();
  EXPECT_EQ(done.response.results(0).document().version(), 1);

  const v1::ReadResponse held = Read(names);
  const int made = GetParam().two_phase() ? 1 : 0;
  ASSERT_EQ(held.missing_size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(held.missing(i).version(), read.missing(i).version() + made) << i;
  }

  *request.mutable_reads() = held.missing();
  Create("books", "gone");
  const auto refused = Commit(request);
  EXPECT_EQ(refused.details().reason, "VERSION_CONFLICT");
  EXPECT_EQ(refused.details().field(), "reads[1].version");
  EXPECT_EQ(refused.details().metadata.at("expected"), std::to_string(held.missing(1).version()));
  EXPECT_EQ(refused.details().metadata.at("actual"), std::to_string(held.missing(1).version() + 1));
}

TEST_P(TransactionAnswers, AReadMakesNoCollection) {
  const v1::ReadResponse read = Read("{" + Name("nowhere", "x") + "}");
  ASSERT_EQ(read.missing_size(), 1);
  EXPECT_EQ(read.missing(0).version(), 0);
  v1::CommitRequest request = Request(Update("books", "count"));
  *request.mutable_reads() = read.missing();
  if (GetParam().two_phase()) {
    // There is nothing that a version could hold.
    Create("books", "other");
    const document::Hash before = HashOfAll(store_);
    const auto refused = Commit(request);
    EXPECT_EQ(refused.details().reason, "COLLECTION_NOT_FOUND") << refused.status.error_message();
    EXPECT_EQ(refused.details().field(), "reads[0]");
    EXPECT_TRUE(HashOfAll(store_) == before) << "something was written";
  } else {
    const auto done = Commit(request);
    EXPECT_TRUE(done.ok()) << done.status.error_message();
  }
  EXPECT_FALSE(Exists("nowhere"));
  request.mutable_reads(0)->set_version(3);
  const auto conflict = Commit(request);
  EXPECT_EQ(conflict.details().reason, "VERSION_CONFLICT") << conflict.status.error_message();
  EXPECT_EQ(conflict.details().field(), "reads[0].version");
  EXPECT_FALSE(Exists("nowhere"));

  // A write makes it, for the reads beside it too.
  *request.add_writes() = Request(Update("nowhere", "y")).writes(0);
  request.mutable_reads(0)->set_version(0);
  const auto done = Commit(request);
  ASSERT_TRUE(done.ok()) << done.status.error_message();
  EXPECT_TRUE(Exists("nowhere"));
}

TEST_P(TransactionAnswers, WhatAWriteLeavesAsItIsMakesAVersionInTwoPhasesOnly) {
  Create("books", "a", R"({"n": 1})");
  const auto done = Commit(R"({"update": {)" + Name("books", "a") + R"(, "patch": {}}})",
                           R"(, "request_id": "t1")");
  ASSERT_TRUE(done.ok()) << done.status.error_message();
  const int64_t left = GetParam().two_phase() ? 2 : 1;
  EXPECT_FALSE(done.response.results(0).changed());
  EXPECT_EQ(done.response.results(0).document().version(), left);
  EXPECT_TRUE(done.response.results(0).document().has_content());
  const auto history = server_.History("{" + Name("books", "a") + "}");
  EXPECT_EQ(history.response.versions_size(), left);
  const auto found = server_.GetTransaction(R"({"id": "t1"})");
  ASSERT_EQ(found.response.transaction().participants_size(), 1);
  const v1::Participant& participant = found.response.transaction().participants(0);
  EXPECT_EQ(participant.base_version(), GetParam().two_phase() ? 1 : 0);
  EXPECT_EQ(participant.version(), left);
}

// As JSON they take four times what they take as BSON: 390 KB each and 105 KB.
std::string LargeAsJson() {
  std::string elements = R"({"$minKey": 1})";
  for (int i = 1; i < 15'000; ++i) elements += R"(,{"$minKey": 1})";
  return R"({"n": 1, "a": [)" + elements + "]}";
}

TEST_P(TransactionAnswers, AreBoundInTheEncodingInWhichTheyAreSent) {
  if (test_support::kOneIn > 1 && std::string_view(GetParam().name) != kWays[0].name) {
    GTEST_SKIP() << "sampled";
  }
  std::string writes;
  for (int i = 0; i < 10; ++i) {
    const std::string id = "large-" + std::to_string(i);
    Create("books", id, LargeAsJson());
    writes += (i == 0 ? "" : ", ") + Update("books", id);
    if (i != 6) continue;
    const auto fits = Commit(writes, R"(, "request_id": "t0")");
    EXPECT_TRUE(fits.ok()) << fits.status.error_message();
    EXPECT_GT(fits.response.ByteSizeLong(), 2'500'000u);
    // In two phases it is answered before its end, which is still to be written.
    EXPECT_TRUE(server_.ResumeTransaction(R"({"id": "t0"})").ok());
  }
  const document::Hash before = HashOfAll(store_);
  for (const char* const encoding : {"", R"(, "encoding": "ENCODING_JSON")",
                                     R"(, "validate_only": true)", R"(, "request_id": "t1")"}) {
    SCOPED_TRACE(encoding);
    const auto refused = Commit(writes, encoding);
    EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(refused.details().reason, "LAYOUT_LIMIT") << refused.status.error_message();
    EXPECT_EQ(refused.details().metadata["limit"], "3145728");
    EXPECT_THAT(refused.status.error_message(), testing::HasSubstr("set omit_content"));
    EXPECT_TRUE(HashOfAll(store_) == before) << "something was written";
  }
  const auto bson = Commit(writes, R"(, "encoding": "ENCODING_BSON", "request_id": "t2")");
  ASSERT_TRUE(bson.ok()) << bson.status.error_message();
  EXPECT_LT(bson.response.ByteSizeLong(), 1'500'000u);
  const auto omitted = Commit(writes, R"(, "omit_content": true)");
  ASSERT_TRUE(omitted.ok()) << omitted.status.error_message();
  // Of a repeated call the answer counts, not what was asked for at first.
  const auto again = Commit(writes, R"(, "request_id": "t2")");
  EXPECT_EQ(again.details().reason, "LAYOUT_LIMIT") << again.status.error_message();
}

// The longest names, a hundred times, of writes whose answer has no content.
TEST_P(TransactionAnswers, HaveRoomForEveryName) {
  const int count = GetParam().two_phase() ? 20 : 100;
  const std::string collection(256, 'c');
  std::string writes;
  for (int i = 0; i < count; ++i) {
    std::string id = std::to_string(i);
    id.insert(0, 256 - id.size(), 'd');
    Create(collection, id);
    writes += (i == 0 ? "" : ", ") + (R"({"delete": {)" + Name(collection, id) + "}}");
  }
  const auto done = Commit(writes);
  ASSERT_TRUE(done.ok()) << done.status.error_message();
  ASSERT_EQ(done.response.results_size(), count);
  for (const v1::CommitResult& result : done.response.results()) {
    EXPECT_EQ(result.document().id().size(), 256u);
    EXPECT_FALSE(result.document().has_content());
  }
}

TEST_P(TransactionAnswers, OfAReadAreBoundInTheEncodingInWhichTheyAreSent) {
  std::string names;
  for (int i = 0; i < 10; ++i) {
    const std::string id = "large-" + std::to_string(i);
    Create("books", id, LargeAsJson());
    names += (i == 0 ? "{" : ", {") + Name("books", id) + "}";
  }
  const auto json = server_.Read(R"({"documents": [)" + names + "]}");
  EXPECT_EQ(json.details().reason, "LAYOUT_LIMIT") << json.status.error_message();
  EXPECT_EQ(json.details().metadata["limit"], "3145728");
  const auto bson = server_.Read(R"({"encoding": "ENCODING_BSON", "documents": [)" + names + "]}");
  EXPECT_TRUE(bson.ok()) << bson.status.error_message();
}

// A long array is smaller as JSON: 495 KB here, and 675 KB as it is stored.
TEST_P(TransactionAnswers, OfAReadAreBoundAsTheyAreStored) {
  std::string elements = "0.5";
  for (int i = 1; i < 45'000; ++i) elements += ",0.5";
  std::string names;
  for (int i = 0; i < 5; ++i) {
    const std::string id = "long-" + std::to_string(i);
    Create("books", id, R"({"a": [)" + elements + "]}");
    names += (i == 0 ? "{" : ", {") + Name("books", id) + "}";
    const auto read = server_.Read(R"({"documents": [)" + names + "]}");
    EXPECT_EQ(read.details().reason, i < 4 ? "" : "LAYOUT_LIMIT") << read.status.error_message();
    EXPECT_EQ(read.details().metadata["limit"], i < 4 ? "" : "3145728");
  }
}

}  // namespace
}  // namespace strata::rpc_test
