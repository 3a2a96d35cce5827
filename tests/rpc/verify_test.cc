// Verify over a real socket: every field, every reason, slow readers and leaving ones.
#include "schemas/versioning/verify.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "schemas/document/bson_builder.h"
#include "schemas/store/forwarding_store.h"
#include "schemas/store/key_codec.h"
#include "schemas/versioning/record_codec.h"
#include "service/engines/engines.h"
#include "service/rpc/page_token.h"
#include "service/rpc/verify_place.h"
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

// Gives up after so many messages, if there are more.
Verified Verify(TestServer& server, const v1::VerifyRequest& request, int messages_max = 1 << 30) {
  Verified verified;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const Reader reader = server.collections().Verify(&context, request);
  while (verified.messages < messages_max && reader->Read(&verified.last)) {
    ++verified.messages;
    EXPECT_EQ(verified.last.resume_token().empty(), verified.last.complete());
    for (const v1::Finding& finding : verified.last.findings()) {
      verified.findings.push_back(finding);
    }
  }
  if (verified.messages == messages_max) context.TryCancel();
  verified.status = reader->Finish();
  return verified;
}

Verified Verify(TestServer& server, std::string_view json) {
  return Verify(server, Parse<v1::VerifyRequest>(json));
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
  EXPECT_EQ(kinds->value_count(),
            static_cast<int>(versioning::FindingKind::kCollectionMissing) + 1);
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
  static constexpr int kStrays = 30'000;

  ManyFindings() {
    CreateCollection("STRATEGY_SHADOW_COLLECTION");
    store::WriteBatch batch;
    for (int i = 0; i < kStrays; ++i) {
      // Long ids, so that there is much to send.
      const std::string number = std::to_string(1'000'000 + i);
      batch.Put(Keyspace::kVersions, VersionKey(std::string(200, 'x') + number, 1),
                document::BsonBuilder().Take());
    }
    EXPECT_TRUE(test_support::AwaitCommit(store_->inner(), std::move(batch)).committed);
  }
};

TEST_F(ManyFindings, AreAllSentToWhoeverReads) {
  const Verified verified = Verify(*server_, R"({"collection": "c"})");
  EXPECT_THAT(verified.findings, SizeIs(kStrays));
  EXPECT_GT(verified.messages, 5);
  EXPECT_EQ(DetailsOf(verified.status).metadata.at("findings"), std::to_string(kStrays));
}

std::string Line(const v1::Finding& finding) {
  return finding.id() + " " + std::to_string(finding.version()) + " " + finding.problem();
}

// A collection of a thousand healthy documents after 3,500 findings.
class CutRuns : public VerifyRpc {
 protected:
  static constexpr int kStrays = 3'500;

  CutRuns() {
    CreateCollection("STRATEGY_SHADOW_COLLECTION");
    Write("z", 1'500);
    store::WriteBatch batch;
    for (int i = 0; i < kStrays; ++i) {
      batch.Put(Keyspace::kVersions, VersionKey("stray" + std::to_string(10'000 + i), 1),
                document::BsonBuilder().Take());
    }
    EXPECT_TRUE(test_support::AwaitCommit(store_->inner(), std::move(batch)).committed);
  }

  const v1::VerifyRequest request_ = Parse<v1::VerifyRequest>(R"({"collection": "c"})");
};

TEST_F(CutRuns, GoOnBehindTheirLastMessage) {
  const Verified whole = Verify(*server_, request_);
  ASSERT_THAT(whole.findings, SizeIs(kStrays));
  ASSERT_GT(whole.messages, 3);
  for (int cut = 1; cut < whole.messages; ++cut) {
    SCOPED_TRACE(cut);
    const Verified first = Verify(*server_, request_, cut);
    if (first.last.complete()) continue;  // where the steps end depends on the time they take
    v1::VerifyRequest rest = request_;
    rest.set_resume_token(first.last.resume_token());
    const Verified second = Verify(*server_, rest);
    ASSERT_EQ(first.findings.size() + second.findings.size(), whole.findings.size());
    for (size_t i = 0; i < whole.findings.size(); ++i) {
      const size_t before = first.findings.size();
      const v1::Finding& found = i < before ? first.findings[i] : second.findings[i - before];
      ASSERT_EQ(Line(found), Line(whole.findings[i]));
    }
    EXPECT_EQ(second.last.documents(), whole.last.documents());
    EXPECT_EQ(second.last.versions(), whole.last.versions());
    EXPECT_EQ(second.last.ledger_entries(), whole.last.ledger_entries());
    EXPECT_TRUE(second.last.complete());
    // Whatever was found before counts.
    EXPECT_EQ(second.status.error_code(), grpc::StatusCode::DATA_LOSS);
    EXPECT_EQ(DetailsOf(second.status).metadata.at("findings"), std::to_string(kStrays));
    EXPECT_THAT(second.status.error_message(),
                testing::HasSubstr(std::to_string(first.findings.size())));
  }
}

TEST_F(CutRuns, GoOnMessageByMessage) {
  v1::VerifyRequest request = request_;
  std::set<std::string> lines;
  Verified part;
  int runs = 0;
  do {
    part = Verify(*server_, request, 1);
    request.set_resume_token(part.last.resume_token());
    for (const v1::Finding& finding : part.findings) {
      EXPECT_TRUE(lines.insert(Line(finding)).second);
    }
    ++runs;
  } while (!part.last.complete());
  EXPECT_EQ(lines.size(), static_cast<size_t>(kStrays));
  EXPECT_GT(runs, 3);
  EXPECT_EQ(part.last.versions(), 1'500);
  EXPECT_EQ(part.last.ledger_entries(), 1'500);
}

TEST_F(CutRuns, ATokenBelongsToItsRequest) {
  const std::string token = Verify(*server_, request_, 1).last.resume_token();
  ASSERT_FALSE(token.empty());
  const auto refuses = [&](v1::VerifyRequest request, const std::string& given) {
    request.set_resume_token(given);
    const Verified verified = Verify(*server_, request);
    EXPECT_EQ(verified.messages, 0);
    const Details details = DetailsOf(verified.status);
    EXPECT_EQ(details.reason, "INVALID_PAGE_TOKEN");
    EXPECT_EQ(details.field(), "resume_token");
    EXPECT_THAT(verified.status.error_message(), testing::HasSubstr("resume_token"));
  };
  refuses(Parse<v1::VerifyRequest>(R"({"collection": "d"})"), token);
  refuses(Parse<v1::VerifyRequest>(R"({"collection": "c", "id": "z"})"), token);
  refuses(Parse<v1::VerifyRequest>(R"({"collection": "c", "repair": true})"), token);
  refuses(request_, "x");
  refuses(request_, token + "A");
  refuses(request_, token.substr(1));
  const auto list = server_->List(R"({"collection": "c", "show_deleted": true, "page_size": 1})");
  if (!list.response.next_page_token().empty()) {
    refuses(request_, list.response.next_page_token());
  }
  for (size_t i = 0; i < token.size(); ++i) {
    std::string damaged = token;
    damaged[i] = damaged[i] == 'Q' ? 'R' : 'Q';
    refuses(request_, damaged);
  }
}

TEST_F(CutRuns, ACollectionThatWasMadeAnewIsNotTheOneThatWasVerified) {
  v1::VerifyRequest request = request_;
  request.set_resume_token(Verify(*server_, request_, 1).last.resume_token());
  ASSERT_TRUE(server_->DeleteCollection(R"({"name": "c", "force": true})").ok());
  CreateCollection("STRATEGY_SHADOW_COLLECTION");
  const Verified verified = Verify(*server_, request);
  EXPECT_EQ(DetailsOf(verified.status).reason, "COLLECTION_NOT_FOUND");
}

TEST_F(VerifyRpc, TheLedgersHeadIsAnsweredAndHeldAgainstIt) {
  CreateCollection("STRATEGY_DELTAS");
  Write("a", 4);
  const auto answered = server_->GetLedgerHead("{}");
  ASSERT_TRUE(answered.status.ok());
  const v1::LedgerHead head = answered.response.head();
  EXPECT_GE(head.position(), 4);
  EXPECT_EQ(head.hash().size(), 32u);
  Write("b", 2);
  v1::VerifyRequest request;
  *request.mutable_expect_head() = head;
  grpc::Status status;
  const auto verify = [&] {
    grpc::ClientContext context;
    const auto stream = server_->collections().Verify(&context, request);
    v1::VerifyResponse response;
    v1::VerifyResponse last;
    while (stream->Read(&response)) last = response;
    status = stream->Finish();
    return last;
  };
  const v1::VerifyResponse whole = verify();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(whole.complete());
  EXPECT_GE(whole.ledger_entries(), 6);
  EXPECT_EQ(whole.documents(), 0);
  // Another hash was never a head: DATA_LOSS, with the finding's kind.
  (*request.mutable_expect_head()->mutable_hash())[0] ^= 1;
  const v1::VerifyResponse other = verify();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  ASSERT_EQ(other.findings_size(), 1);
  EXPECT_EQ(other.findings(0).kind(), v1::FINDING_KIND_LEDGER_HEAD_MISMATCH);
  // What is no head is refused by name.
  request.mutable_expect_head()->set_hash("short");
  (void)verify();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("expect_head.hash"), std::string::npos);
}

// Whoever may ask for a verification may make a token: of no place there is does it do harm.
TEST_F(VerifyRpc, APlaceThatNobodyWasAtDoesNoHarm) {
  CreateCollection("STRATEGY_DELTAS");
  Write("a", 40);
  Write("b", 3);
  versioning::VerifyPlace place;
  place.incarnation = 1;
  place.next_key = store::VersionKey(1, "a", 1);
  place.document = versioning::VerifyPlace::Document{.id = "a", .next_version = 20};
  place.document->before = versioning::VerifyPlace::Document::Before{.version = 19};
  place.ledger = versioning::VerifyPlace::Ledger{
      .last = 10, .next = 1, .before = {}, .head_passed = false, .entries = 1};
  const std::string bytes = rpc::EncodeVerifyPlace(place);
  ASSERT_TRUE(rpc::DecodeVerifyPlace(bytes).has_value());
  ASSERT_EQ(rpc::EncodeVerifyPlace(*rpc::DecodeVerifyPlace(bytes)), bytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(rpc::DecodeVerifyPlace(bytes.substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(rpc::DecodeVerifyPlace(bytes + '\0').has_value());
  v1::VerifyRequest request = Parse<v1::VerifyRequest>(R"({"collection": "c"})");
  int taken = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const char bit : {'\x01', '\x80'}) {
      std::string forged = bytes;
      forged[i] = static_cast<char>(forged[i] ^ bit);
      request.clear_resume_token();
      const std::string scope = request.SerializeAsString();
      request.set_resume_token(rpc::MakePageToken("Verify", scope, forged));
      const Verified verified = Verify(*server_, request);
      const std::string reason = DetailsOf(verified.status).reason;
      EXPECT_THAT(reason,
                  testing::AnyOf("", "CHAIN_BROKEN", "COLLECTION_NOT_FOUND", "INVALID_PAGE_TOKEN"));
      taken += reason == "INVALID_PAGE_TOKEN" ? 0 : 1;
    }
  }
  EXPECT_GT(taken, 100);
}

// What counts how far a verification has gone: the snapshots that it took.
class CountingSnapshots final : public store::ForwardingStore {
 public:
  CountingSnapshots(std::unique_ptr<store::Store> inner, std::atomic<int>& snapshots)
      : ForwardingStore(std::move(inner)), snapshots_(snapshots) {}

  std::unique_ptr<store::Reader> Snapshot() const override {
    ++snapshots_;
    return inner().Snapshot();
  }

 private:
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
  // Some 15 MB of findings, far beyond what the connection takes unread.
  constexpr int kStrays = 50'000;
  store::WriteBatch batch;
  for (int i = 0; i < kStrays; ++i) {
    batch.Put(Keyspace::kVersions,
              store::VersionKey(1, std::string(200, 'x') + std::to_string(1'000'000 + i), 1),
              document::BsonBuilder().Take());
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
