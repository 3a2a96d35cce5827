// The stored records of each layout, on the example of the article that the layouts come from:
// document 174, versions 1 to 3. They are part of the stored format: a change here needs a
// migration.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "schemas/document/bson_builder.h"
#include "schemas/store/key_codec.h"
#include "schemas/versioning/strategy.h"
#include "service/engines/engines.h"
#include "tests/support/await_commit.h"
#include "tests/support/manual_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/versioning/operations.h"

namespace strata::versioning {
namespace {

using checks::ContentOf;
using checks::JsonOf;
using store::Keyspace;
using test_support::IsOk;

constexpr int64_t kLayoutIncarnation = 1;

// Version `number` of document 174.
StoredVersion Article(int64_t number, const StoredVersion* previous) {
  constexpr std::string_view kContents[] = {
      R"({"docId": 174, "attr1": 165})",
      R"({"docId": 174, "attr1": 165, "attr2": "A-1"})",
      R"({"docId": 174, "attr1": 184, "attr2": "A-1"})",
  };
  StoredVersion version;
  VersionHeader& header = version.header;
  header.version = number;
  header.kind = number == 1 ? VersionKind::kCreated : VersionKind::kUpdated;
  header.commit_time = 1'704'067'200'000'000 + (number - 1) * 1'000'000;
  header.create_time = 1'704'067'200'000'000;
  header.change.actor = "ann";
  if (number == 3) header.change.reason = "recount";
  header.salt = std::string(kSaltSize, static_cast<char>(number));
  version.content = ContentOf(kContents[number - 1]);
  header.content_hash = ContentHashOf(header.salt, version.content);
  header.chain_hash = ChainHash(
      previous == nullptr ? ChainStart("articles", "174") : previous->header.chain_hash, header);
  return version;
}

std::string Replaced(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// The JSON of an article's header: what all layouts store of it, hashes as they are computed.
std::string Header(const StoredVersion& version) {
  document::BsonBuilder builder;
  AppendHeader(version.header, 0, builder);
  const std::string json = JsonOf(builder.Take());
  return json.substr(2, json.size() - 4);
}

class LayoutsTest : public testing::Test {
 protected:
  LayoutsTest() : store_(*engines::OpenEngine("memory", {.directory = "", .clock = &clock_})) {
    for (int64_t number = 1; number <= 3; ++number) {
      versions_.push_back(Article(number, number == 1 ? nullptr : &versions_.back()));
    }
  }

  // Writes the versions one after the other, or all in one batch.
  void Write(std::string_view strategy_name, size_t batch_size = 1) {
    const std::unique_ptr<Strategy> strategy = FindStrategy(strategy_name)->make(StrategyOptions());
    const ReadContext context{*store_, store_->capabilities()};
    const store::DocumentKey key{kLayoutIncarnation, "174"};
    for (size_t first = 0; first < versions_.size(); first += batch_size) {
      auto head = strategy->ReadHead(context, key);
      ASSERT_THAT(head, IsOk());
      if (*head) {
        ASSERT_THAT(strategy->PrepareToPlan(context, key, **head), IsOk());
      }
      store::WriteBatch batch;
      const auto next = std::span<const StoredVersion>(versions_).subspan(first, batch_size);
      ASSERT_THAT(strategy->Plan(key, *head ? &**head : nullptr, next, context.capabilities, batch),
                  IsOk());
      ASSERT_TRUE(test_support::AwaitCommit(*store_, std::move(batch)).committed);
    }
  }

  // All records of a keyspace in the order of their keys, with "<v1>", "<v2>", "<v3>" in place of
  // the headers.
  std::vector<std::string> Records(Keyspace keyspace) {
    std::vector<std::string> records;
    const auto cursor = store_->Scan(keyspace, store::IncarnationRange(kLayoutIncarnation));
    for (; cursor->Valid(); cursor->Next()) {
      std::string json = JsonOf(cursor->value());
      for (const StoredVersion& version : versions_) {
        const std::string name = "<v" + std::to_string(version.header.version) + ">";
        json = Replaced(std::move(json), Header(version), name);
      }
      records.push_back(std::move(json));
    }
    return records;
  }

  // Positions begin with the wall clock's microseconds: here, with 1.
  const test_support::ManualClock clock_{0};
  std::unique_ptr<store::Store> store_;
  std::vector<StoredVersion> versions_;
};

using Texts = std::vector<std::string>;

TEST_F(LayoutsTest, AHeader) {
  EXPECT_EQ(
      Header(versions_[2]),
      R"("version" : 3, "kind" : 2, "time" : 1704067202000000, "created" : 1704067200000000, )"
      R"("actor" : "ann", "reason" : "recount", )"
      R"("proof" : { "$binary" : { "base64" : )"
      R"("AwMDAwMDAwMDAwMDAwMDAyxNs1qjnvNS35zrv9fmUCeoJ1DGEvDQzfdDWzI1q1+A)"
      R"(RUemkhvk9kH1t3/1nYy32uRI+s9jB3UpWL5vAQkr540=", "subType" : "00" } })");
}

TEST_F(LayoutsTest, FullCopies) {
  Write("full-copies");
  EXPECT_EQ(Records(Keyspace::kHeads), Texts{});
  EXPECT_EQ(Records(Keyspace::kVersions),
            (Texts{
                R"({ <v1>, "content" : { "docId" : 174, "attr1" : 165 } })",
                R"({ <v2>, "content" : { "docId" : 174, "attr1" : 165, "attr2" : "A-1" } })",
                R"({ <v3>, "content" : { "docId" : 174, "attr1" : 184, "attr2" : "A-1" } })",
            }));
}

TEST_F(LayoutsTest, CurrentFlag) {
  Write("current-flag");
  EXPECT_EQ(Records(Keyspace::kHeads), Texts{});
  EXPECT_EQ(Records(Keyspace::kVersions),
            (Texts{
                R"({ <v1>, "position" : 1, "content" : { "docId" : 174, "attr1" : 165 } })",
                R"({ <v2>, "position" : 2, )"
                R"("content" : { "docId" : 174, "attr1" : 165, "attr2" : "A-1" } })",
                R"({ <v3>, "current" : true, )"
                R"("content" : { "docId" : 174, "attr1" : 184, "attr2" : "A-1" } })",
            }));
}

TEST_F(LayoutsTest, EmbeddedHistory) {
  Write("embedded-history");
  EXPECT_EQ(Records(Keyspace::kHeads),
            (Texts{
                R"({ "current" : { <v3>, )"
                R"("content" : { "docId" : 174, "attr1" : 184, "attr2" : "A-1" } }, )"
                R"("prev" : [ )"
                R"({ <v1>, "position" : 1, "content" : { "docId" : 174, "attr1" : 165 } }, )"
                R"({ <v2>, "position" : 2, )"
                R"("content" : { "docId" : 174, "attr1" : 165, "attr2" : "A-1" } } ] })",
            }));
  EXPECT_EQ(Records(Keyspace::kVersions), Texts{});
}

TEST_F(LayoutsTest, EmbeddedHistoryOfOneBatch) {
  Write("embedded-history", 3);
  EXPECT_EQ(Records(Keyspace::kHeads),
            (Texts{
                R"({ "current" : { <v3>, )"
                R"("content" : { "docId" : 174, "attr1" : 184, "attr2" : "A-1" } }, )"
                R"("prev" : [ { <v1>, "content" : { "docId" : 174, "attr1" : 165 } }, )"
                R"({ <v2>, "content" : { "docId" : 174, "attr1" : 165, "attr2" : "A-1" } } ] })",
            }));
}

TEST_F(LayoutsTest, ShadowCollection) {
  Write("shadow-collection");
  EXPECT_EQ(Records(Keyspace::kHeads),
            (Texts{
                R"({ <v3>, "content" : { "docId" : 174, "attr1" : 184, "attr2" : "A-1" } })",
            }));
  EXPECT_EQ(Records(Keyspace::kVersions),
            (Texts{
                R"({ <v1>, "position" : 1, "content" : { "docId" : 174, "attr1" : 165 } })",
                R"({ <v2>, "position" : 2, )"
                R"("content" : { "docId" : 174, "attr1" : 165, "attr2" : "A-1" } })",
            }));
}

TEST_F(LayoutsTest, Deltas) {
  Write("deltas");
  EXPECT_EQ(Records(Keyspace::kHeads),
            (Texts{
                R"({ <v3>, "delta" : { "=/attr1" : 184 }, "chain_length" : 1, )"
                R"("chain_bytes" : 22, )"
                R"("content" : { "docId" : 174, "attr1" : 184, "attr2" : "A-1" } })",
            }));
  EXPECT_EQ(Records(Keyspace::kVersions),
            (Texts{
                R"({ <v1>, "position" : 1, "content" : { "docId" : 174, "attr1" : 165 } })",
                R"({ <v2>, "position" : 2, "chain_length" : 0, "delta" : { "+/attr2" : "A-1" } })",
            }));
}

}  // namespace
}  // namespace strata::versioning
