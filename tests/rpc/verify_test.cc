// Verify over a real socket: every field, every reason, slow readers and leaving ones.
#include "schemas/versioning/verify.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "schemas/store/key_codec.h"
#include "schemas/versioning/record_codec.h"
#include "service/engines/engines.h"
#include "tests/rpc/test_server.h"
#include "tests/support/await_commit.h"
#include "tests/support/hooked_store.h"

namespace strata::rpc_test {
namespace {

using store::Keyspace;
using testing::IsEmpty;
using testing::SizeIs;
using Reader = std::unique_ptr<grpc::ClientReader<v1::VerifyResponse>>;

struct Verified {
  std::vector<v1::Finding> findings;
  v1::VerifyResponse last;
  int messages = 0;
  grpc::Status status;
};

Verified Verify(TestServer& server, std::string_view json) {
  Verified verified;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const Reader reader = server.collections().Verify(&context, Parse<v1::VerifyRequest>(json));
  while (reader->Read(&verified.last)) {
    ++verified.messages;
    for (const v1::Finding& finding : verified.last.findings()) {
      verified.findings.push_back(finding);
    }
  }
  verified.status = reader->Finish();
  return verified;
}

// A server over a store that the test has its hands on.
class VerifyRpc : public testing::Test {
 protected:
  VerifyRpc() {
    auto owned =
        std::make_unique<InterposedStore>(*engines::OpenEngine("memory", engines::OpenOptions()));
    store_ = owned.get();
    server_ = std::make_unique<TestServer>(TestOptions(), std::move(owned));
  }

  void CreateCollection(const std::string& strategy) {
    ASSERT_TRUE(
        server_->CreateCollection(R"({"name": "c", "strategy": ")" + strategy + R"("})").ok());
  }
  void Write(const std::string& id, int versions) {
    for (int i = 0; i < versions; ++i) {
      ASSERT_TRUE(server_
                      ->Update(R"({"collection": "c", "id": ")" + id +
                               R"(", "allow_missing": true, "replace": {"json": {"n": )" +
                               std::to_string(i) + "}}}")
                      .ok());
    }
  }
  void Put(Keyspace keyspace, std::string key, std::string value) {
    store::WriteBatch batch;
    batch.Put(keyspace, std::move(key), std::move(value));
    ASSERT_TRUE(test_support::AwaitCommit(store_->inner(), std::move(batch)).committed);
  }
  // The one collection is the first.
  std::string VersionKey(const std::string& id, int64_t version) {
    return store::VersionKey(1, id, version);
  }

  InterposedStore* store_ = nullptr;
  std::unique_ptr<TestServer> server_;
};

TEST_F(VerifyRpc, TellsWhatItChecked) {
  CreateCollection("STRATEGY_DELTAS");
  Write("a", 3);
  Write("b", 2);
  const Verified all = Verify(*server_, R"({"collection": "c"})");
  EXPECT_TRUE(all.status.ok()) << all.status.error_message();
  EXPECT_THAT(all.findings, IsEmpty());
  EXPECT_EQ(all.last.documents(), 2);
  EXPECT_EQ(all.last.versions(), 5);
  EXPECT_EQ(all.last.ledger_entries(), 5);
  EXPECT_TRUE(all.last.complete());
  const Verified one = Verify(*server_, R"({"collection": "c", "id": "b"})");
  EXPECT_TRUE(one.status.ok());
  EXPECT_EQ(one.last.documents(), 1);
  EXPECT_EQ(one.last.versions(), 2);
}

TEST_F(VerifyRpc, NamesWhatIsBrokenAndRepairsTheRest) {
  CreateCollection("STRATEGY_CURRENT_FLAG");
  Write("a", 3);
  Write("b", 3);
  // The head of "a" without its flag; a hole in "b".
  const auto flagged = **store_->inner().Get(Keyspace::kVersions, VersionKey("a", 3));
  const auto decoded =
      *versioning::DecodeVersion(flagged.value, flagged.position, versioning::Part::kContent);
  Put(Keyspace::kVersions, VersionKey("a", 3), versioning::EncodeVersion(decoded.version));
  store::WriteBatch hole;
  hole.Delete(Keyspace::kVersions, VersionKey("b", 2));
  ASSERT_TRUE(test_support::AwaitCommit(store_->inner(), std::move(hole)).committed);

  for (const bool repair : {false, true, true}) {
    const Verified verified = Verify(
        *server_, repair ? R"({"collection": "c", "repair": true})" : R"({"collection": "c"})");
    EXPECT_EQ(verified.status.error_code(), grpc::StatusCode::DATA_LOSS);
    const Details details = DetailsOf(verified.status);
    EXPECT_EQ(details.reason, "CHAIN_BROKEN");
    EXPECT_EQ(details.domain, "strata");
    EXPECT_EQ(details.metadata.at("collection"), "c");
    EXPECT_EQ(details.metadata.at("id"), "b");
    EXPECT_EQ(details.metadata.at("version"), "2");
    EXPECT_EQ(details.metadata.at("findings"), "1");
    EXPECT_TRUE(verified.last.complete());
    ASSERT_FALSE(verified.findings.empty());
    const v1::Finding& broken = verified.findings.back();
    EXPECT_EQ(broken.id(), "b");
    EXPECT_EQ(broken.version(), 2);
    EXPECT_EQ(broken.kind(), v1::FINDING_KIND_VERSION_MISSING);
    EXPECT_FALSE(broken.problem().empty());
    EXPECT_FALSE(broken.recoverable());
    EXPECT_FALSE(broken.repaired());
    if (verified.findings.size() == 1) continue;
    const v1::Finding& flag = verified.findings.front();
    EXPECT_EQ(flag.id(), "a");
    EXPECT_EQ(flag.version(), 3);
    EXPECT_EQ(flag.kind(), v1::FINDING_KIND_WRONG_FLAG);
    EXPECT_TRUE(flag.recoverable());
    EXPECT_EQ(flag.repaired(), repair);
    EXPECT_EQ(flag.commit_position(), decoded.version.position);
  }
  // Repaired at the second look, gone at the third.
  EXPECT_THAT(Verify(*server_, R"({"collection": "c"})").findings, SizeIs(1));
}

TEST_F(VerifyRpc, WhatIsOnlyRecoverableIsNoFailure) {
  CreateCollection("STRATEGY_SHADOW_COLLECTION");
  Write("a", 1);
  const auto head = **store_->inner().Get(Keyspace::kHeads, store::HeadKey(1, "a"));
  const auto decoded =
      *versioning::DecodeVersion(head.value, head.position, versioning::Part::kContent);
  Put(Keyspace::kVersions, VersionKey("a", 1), versioning::EncodeVersion(decoded.version));
  const Verified verified = Verify(*server_, R"({"collection": "c"})");
  EXPECT_TRUE(verified.status.ok());
  ASSERT_THAT(verified.findings, SizeIs(1));
  EXPECT_EQ(verified.findings[0].kind(), v1::FINDING_KIND_EARLY_COPY);
}

TEST_F(VerifyRpc, TheNumbersOfFindingsAreThoseOfTheCode) {
  const auto* const kinds = v1::FindingKind_descriptor();
  EXPECT_EQ(kinds->value_count(), static_cast<int>(versioning::FindingKind::kRequestMismatch) + 1);
  EXPECT_EQ(static_cast<int>(versioning::FindingKind::kVersionMissing),
            v1::FINDING_KIND_VERSION_MISSING);
  EXPECT_EQ(static_cast<int>(versioning::FindingKind::kEarlyCopy), v1::FINDING_KIND_EARLY_COPY);
  EXPECT_EQ(static_cast<int>(versioning::FindingKind::kLedgerEntryOrphan),
            v1::FINDING_KIND_LEDGER_ENTRY_ORPHAN);
  EXPECT_EQ(static_cast<int>(versioning::FindingKind::kRequestMismatch),
            v1::FINDING_KIND_REQUEST_MISMATCH);
}

TEST_F(VerifyRpc, RefusesWithAReason) {
  CreateCollection("STRATEGY_DELTAS");
  const auto refuses = [&](std::string_view json, std::string_view reason, grpc::StatusCode code) {
    const Verified verified = Verify(*server_, json);
    EXPECT_EQ(verified.messages, 0) << json;
    EXPECT_EQ(DetailsOf(verified.status).reason, reason) << json;
    EXPECT_EQ(verified.status.error_code(), code) << json;
  };
  refuses("{}", "INVALID_NAME", grpc::StatusCode::INVALID_ARGUMENT);
  refuses(R"({"collection": "c", "id": "a\n"})", "INVALID_NAME",
          grpc::StatusCode::INVALID_ARGUMENT);
  refuses(R"({"collection": "none"})", "COLLECTION_NOT_FOUND", grpc::StatusCode::NOT_FOUND);
  refuses(R"({"collection": "c", "id": "none"})", "DOCUMENT_NOT_FOUND",
          grpc::StatusCode::NOT_FOUND);
  const grpc::Status garbled = server_->CallRaw("strata.v1.CollectionService/Verify", "\x0A\xFF");
  EXPECT_EQ(DetailsOf(garbled).reason, "INVALID_MESSAGE");
}

// Sends so many messages where one is due.
grpc::Status SendMessages(TestServer& server, int messages) {
  grpc::GenericStub stub(server.channel());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  grpc::CompletionQueue queue;
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return ok;
  };
  int tag = 0;
  const auto call = stub.PrepareCall(&context, "/strata.v1.CollectionService/Verify", &queue);
  call->StartCall(&tag);
  next();
  const std::string bytes = Parse<v1::VerifyRequest>(R"({"collection": "c"})").SerializeAsString();
  for (int i = 0; i < messages; ++i) {
    const grpc::Slice slice(bytes);
    call->Write(grpc::ByteBuffer(&slice, 1), &tag);
    if (!next()) break;
  }
  call->WritesDone(&tag);
  next();
  grpc::Status status;
  call->Finish(&status, &tag);
  next();
  return status;
}

TEST_F(VerifyRpc, TakesExactlyOneMessage) {
  CreateCollection("STRATEGY_DELTAS");
  EXPECT_EQ(DetailsOf(SendMessages(*server_, 0)).reason, "INVALID_MESSAGE");
  EXPECT_EQ(DetailsOf(SendMessages(*server_, 2)).reason, "INVALID_MESSAGE");
}

// A collection whose verification takes several messages of many findings each.
class ManyFindings : public VerifyRpc {
 protected:
  static constexpr int kStrays = 60'000;

  ManyFindings() {
    CreateCollection("STRATEGY_SHADOW_COLLECTION");
    store::WriteBatch batch;
    for (int i = 0; i < kStrays; ++i) {
      // Long ids, so that there is much to send.
      const std::string number = std::to_string(1'000'000 + i);
      batch.Put(Keyspace::kVersions, VersionKey(std::string(200, 'x') + number, 1),
                versioning::BsonBuilder().Take());
    }
    EXPECT_TRUE(test_support::AwaitCommit(store_->inner(), std::move(batch)).committed);
  }
};

TEST_F(ManyFindings, AreAllSentToWhoeverReads) {
  const Verified verified = Verify(*server_, R"({"collection": "c"})");
  EXPECT_THAT(verified.findings, SizeIs(kStrays));
  EXPECT_GT(verified.messages, 10);
  EXPECT_EQ(DetailsOf(verified.status).metadata.at("findings"), std::to_string(kStrays));
}

// What counts how far a verification has gone: the snapshots that it took.
class CountingSnapshots final : public store::Store {
 public:
  CountingSnapshots(std::unique_ptr<store::Store> inner, std::atomic<int>& snapshots)
      : inner_(std::move(inner)), snapshots_(snapshots) {}
  store::Store& inner() { return *inner_; }

  store::Capabilities capabilities() const override { return inner_->capabilities(); }
  absl::StatusOr<std::optional<store::Record>> Get(Keyspace keyspace,
                                                   std::string_view key) const override {
    return inner_->Get(keyspace, key);
  }
  std::unique_ptr<store::Cursor> Scan(Keyspace keyspace, const store::Range& range) const override {
    return inner_->Scan(keyspace, range);
  }
  std::unique_ptr<store::Reader> Snapshot() const override {
    ++snapshots_;
    return inner_->Snapshot();
  }
  void Commit(store::WriteBatch batch, store::CommitCallback done) override {
    inner_->Commit(std::move(batch), std::move(done));
  }
  store::RangeEstimate Estimate(Keyspace keyspace, const store::Range& range) const override {
    return inner_->Estimate(keyspace, range);
  }
  store::CommitPosition LastPosition() const override { return inner_->LastPosition(); }

 private:
  const std::unique_ptr<store::Store> inner_;
  std::atomic<int>& snapshots_;
};

TEST(SlowReader, TheServerWaitsForWhoeverDoesNotRead) {
  std::atomic<int> snapshots = 0;
  auto owned = std::make_unique<CountingSnapshots>(
      *engines::OpenEngine("memory", engines::OpenOptions()), snapshots);
  store::Store& inner = owned->inner();
  TestServer server(TestOptions(), std::move(owned));
  ASSERT_TRUE(
      server.CreateCollection(R"({"name": "c", "strategy": "STRATEGY_SHADOW_COLLECTION"})").ok());
  // Some 30 MB of findings, far beyond what the connection takes unread.
  constexpr int kStrays = 100'000;
  store::WriteBatch batch;
  for (int i = 0; i < kStrays; ++i) {
    batch.Put(Keyspace::kVersions,
              store::VersionKey(1, std::string(200, 'x') + std::to_string(1'000'000 + i), 1),
              versioning::BsonBuilder().Take());
  }
  ASSERT_TRUE(test_support::AwaitCommit(inner, std::move(batch)).committed);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const Reader reader =
      server.collections().Verify(&context, Parse<v1::VerifyRequest>(R"({"collection": "c"})"));
  // It stands still before it is through: nothing moves any more although nothing was read.
  int before = -1;
  int unmoved = 0;
  while (unmoved < 20) {
    // A turn of the server's threads, by a call that goes through them.
    for (int i = 0; i < 20; ++i) (void)server.ListCollections("{}");
    const int verify_snapshots = snapshots;
    // Each listing takes one, too.
    const int moved = verify_snapshots - before - 20;
    unmoved = moved == 0 ? unmoved + 1 : 0;
    before = verify_snapshots;
  }
  int findings = 0;
  v1::VerifyResponse response;
  const int stood_at = snapshots;
  while (reader->Read(&response)) findings += response.findings_size();
  EXPECT_EQ(findings, kStrays);
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_GT(snapshots - stood_at, 20) << "most of it was walked before anybody read";
}

TEST_F(ManyFindings, AClientThatLeavesEndsTheWalk) {
  grpc::ClientContext context;
  const Reader reader =
      server_->collections().Verify(&context, Parse<v1::VerifyRequest>(R"({"collection": "c"})"));
  v1::VerifyResponse response;
  ASSERT_TRUE(reader->Read(&response));
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // And the server stops without waiting for it.
  server_->server().Shutdown();
}

TEST_F(ManyFindings, TheDrainEndsTheStream) {
  grpc::ClientContext context;
  const Reader reader =
      server_->collections().Verify(&context, Parse<v1::VerifyRequest>(R"({"collection": "c"})"));
  v1::VerifyResponse response;
  ASSERT_TRUE(reader->Read(&response));
  std::thread shutdown([&] { server_->server().Shutdown(); });
  while (reader->Read(&response)) {
  }
  const grpc::Status status = reader->Finish();
  shutdown.join();
  // A fast reader may be through first.
  if (!response.complete()) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  }
}

TEST_F(ManyFindings, TheCallersDeadlineHolds) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
  const Reader reader =
      server_->collections().Verify(&context, Parse<v1::VerifyRequest>(R"({"collection": "c"})"));
  // Nothing is read until it has passed, so the walk cannot be through.
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

}  // namespace
}  // namespace strata::rpc_test
