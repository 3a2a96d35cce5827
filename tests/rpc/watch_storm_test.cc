// Order and completeness: many watchers beside many writers. What each one gets is the ledger,
// filtered by a plain evaluation of its own here, whatever breaks in between.
//
// STRATA_WATCH_EVENTS: about so many events (30,000).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "schemas/versioning/ledger.h"
#include "service/engines/engines.h"
#include "tests/rpc/watching.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_directory.h"

namespace strata::rpc_test {
namespace {

constexpr int kWriters = 16;
constexpr int kWatchers = 50;
constexpr int kDocuments = 1000;
constexpr int kCollections = 8;  // that stay
constexpr uint64_t kSeed = 20'261'123;

int64_t EventsWanted() {
  const char* const given = std::getenv("STRATA_WATCH_EVENTS");
  return given == nullptr ? 30'000 : std::atoll(given);
}

// What the ledger says of one version.
struct Told {
  int64_t position = 0;
  int32_t index = 0;
  std::string collection;
  std::string id;
  int64_t version = 0;
  int kind = 0;

  friend bool operator==(const Told&, const Told&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Told& told) {
    return out << told.position << "." << told.index << " " << told.collection << "/" << told.id
               << "@" << told.version;
  }
};

// "n" of each version of the collections that stay; none of a deletion.
using Numbers = std::map<std::tuple<std::string, std::string, int64_t>, std::optional<int64_t>>;

// What one watcher asks for.
struct Wish {
  std::vector<std::string> collections;
  std::string id_prefix;
  std::optional<v1::VersionKind> kind;
  std::optional<int64_t> at_least;  // "n" of the content, or of the one before
  bool content = false;
  bool slow = false;

  v1::WatchRequest Request() const {
    v1::WatchRequest request;
    for (const std::string& collection : collections) request.add_collections(collection);
    request.set_id_prefix(id_prefix);
    if (kind) request.add_kinds(*kind);
    if (at_least) {
      auto& condition = (*request.mutable_filter()->mutable_fields())["n"];
      (*condition.mutable_struct_value()->mutable_fields())["$gte"].set_number_value(
          static_cast<double>(*at_least));
    }
    request.set_include_content(content);
    request.mutable_bookmark_interval()->set_seconds(1);
    return request;
  }

  bool Wants(const Told& told, const Numbers& numbers) const {
    if (!collections.empty() &&
        std::find(collections.begin(), collections.end(), told.collection) == collections.end()) {
      return false;
    }
    if (told.id.rfind(id_prefix, 0) != 0) return false;
    if (kind && told.kind != *kind) return false;
    if (!at_least) return true;
    const auto matches = [&](int64_t version) {
      const auto found = numbers.find({told.collection, told.id, version});
      return found != numbers.end() && found->second && *found->second >= *at_least;
    };
    return matches(told.version) || matches(told.version - 1);
  }
};

// What one watcher got since the place that it began at.
struct Got {
  Wish wish;
  int64_t began = -1;
  std::vector<v1::Event> events;
  int breaks = 0;
  std::string failure;
};

class WatchStorm : public testing::TestWithParam<std::string> {
 protected:
  WatchStorm() {
    engines::OpenOptions open;
    open.directory = directory_.path();
    auto store = *engines::OpenEngine(GetParam(), open);
    store_ = store.get();
    server_.emplace(TestOptions(), std::move(store));
  }

  static std::string CollectionOf(int document) {
    return "c" + std::to_string(document % kCollections);
  }
  static std::string IdOf(int document) {
    return (document % 3 == 0 ? "x/" : "y/") + std::to_string(document);
  }
  static void SetNumber(int64_t number, v1::Content& content) {
    (*content.mutable_json()->mutable_fields())["n"].set_number_value(static_cast<double>(number));
  }
  static v1::UpdateRequest Put(const std::string& collection, const std::string& id, int64_t n) {
    v1::UpdateRequest request;
    request.set_collection(collection);
    request.set_id(id);
    request.set_allow_missing(true);
    request.set_keep_unchanged(true);
    SetNumber(n, *request.mutable_replace());
    return request;
  }

  void Write(uint64_t seed);
  void MakeAndDeleteCollections();
  void Follow(uint64_t seed, Got& got);
  std::vector<Told> ReadLedger() const;
  Numbers ReadNumbers();

  test_support::TemporaryDirectory directory_;
  store::Store* store_ = nullptr;
  std::optional<TestServer> server_;
  const int64_t events_wanted_ = EventsWanted();
  std::atomic<int64_t> written_ = 0;
  std::atomic<int64_t> newest_ = 0;  // some position that was answered
  std::atomic<int64_t> end_ = -1;    // the last position, once nobody writes any more
};

INSTANTIATE_TEST_SUITE_P(Engines, WatchStorm, testing::Values("memory", "rocksdb"),
                         [](const auto& engine) { return engine.param; });

void WatchStorm::Write(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto channel = server_->Connect();
  const auto documents = v1::DocumentService::NewStub(channel);
  const auto transactions = v1::TransactionService::NewStub(channel);
  while (written_ < events_wanted_) {
    grpc::ClientContext context;
    const int document = static_cast<int>(random() % kDocuments);
    const int64_t number = static_cast<int64_t>(random() % 100);
    switch (random() % 4) {
      case 0: {
        v1::CommitRequest request;
        const int count = 2 + static_cast<int>(random() % 30);
        for (int i = 0; i < count; ++i) {
          const int each = (document + i) % kDocuments;
          *request.add_writes()->mutable_update() = Put(CollectionOf(each), IdOf(each), number + i);
        }
        v1::CommitResponse response;
        if (transactions->Commit(&context, request, &response).ok()) written_ += count;
        break;
      }
      case 1: {
        v1::DeleteRequest request;
        request.set_collection(CollectionOf(document));
        request.set_id(IdOf(document));
        v1::DeleteResponse response;
        if (documents->Delete(&context, request, &response).ok()) ++written_;
        break;
      }
      default: {
        // One in eight goes to a document that all want.
        const int each = random() % 8 == 0 ? 0 : document;
        v1::UpdateResponse response;
        if (documents->Update(&context, Put(CollectionOf(each), IdOf(each), number), &response)
                .ok()) {
          ++written_;
          newest_ = response.commit_position();
        }
      }
    }
  }
}

void WatchStorm::MakeAndDeleteCollections() {
  const auto documents = v1::DocumentService::NewStub(server_->channel());
  const auto collections = v1::CollectionService::NewStub(server_->channel());
  for (int round = 0; written_ < events_wanted_; ++round) {
    const std::string name = "passing" + std::to_string(round % 2);
    for (int i = 0; i < 20; ++i) {
      grpc::ClientContext context;
      v1::UpdateResponse response;
      documents->Update(&context, Put(name, "x/" + std::to_string(i), i), &response);
    }
    grpc::ClientContext context;
    v1::DeleteCollectionRequest request;
    request.set_name(name);
    request.set_force(true);
    v1::DeleteCollectionResponse response;
    collections->DeleteCollection(&context, request, &response);
  }
}

// Goes on from the last place told each time that the stream breaks, and forgets what came behind
// it: that comes again.
void WatchStorm::Follow(uint64_t seed, Got& got) {
  std::mt19937_64 random(seed);
  v1::WatchRequest request = got.wish.Request();
  switch (random() % 4) {
    case 0:
      request.set_after_position(0);
      break;
    case 1:
      request.set_after_position(newest_);
      break;
    case 2: {
      const auto now = std::chrono::duration_cast<std::chrono::seconds>(
          std::chrono::system_clock::now().time_since_epoch());
      request.mutable_start_time()->set_seconds(now.count());
      break;
    }
    default:
      break;  // now
  }
  const auto channel = server_->Connect();
  int64_t resume = -1;
  while (end_ < 0 || resume < end_) {
    Watching watching(channel, request);
    std::vector<v1::Event> pending;
    // A quarter of them never breaks by itself.
    const int64_t messages_left = seed % 4 == 0 ? 1'000'000 : static_cast<int64_t>(random() % 60);
    for (int64_t i = 0; i <= messages_left && (end_ < 0 || resume < end_); ++i) {
      const std::optional<v1::WatchResponse> message = watching.Next();
      if (!message) {
        got.failure = watching.AwaitEnd().error_message();
        return;
      }
      pending.insert(pending.end(), message->events().begin(), message->events().end());
      if (got.began < 0) got.began = message->resume_position();
      if (message->resume_position() < resume) {
        got.failure = "the place goes back";
        return;
      }
      if (message->resume_position() == resume) continue;
      resume = message->resume_position();
      // All that has come belongs to commits that are whole now.
      while (!pending.empty() && pending.front().position() <= resume) {
        got.events.push_back(pending.front());
        pending.erase(pending.begin());
      }
      if (got.wish.slow && end_ < 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    ++got.breaks;
    request.set_after_position(resume);
  }
}

std::vector<Told> WatchStorm::ReadLedger() const {
  std::vector<Told> all;
  versioning::LedgerCursor cursor(*store_, 0, 0);
  while (cursor.Next()) {
    const store::LedgerEntryView& entry = cursor.entry();
    if (entry.version == 0) continue;  // tells of a collection
    all.push_back({cursor.position(), static_cast<int32_t>(cursor.index()),
                   std::string(entry.collection), std::string(entry.id), entry.version,
                   entry.kind});
  }
  EXPECT_THAT(cursor.status(), test_support::IsOk());
  return all;
}

Numbers WatchStorm::ReadNumbers() {
  Numbers numbers;
  for (int document = 0; document < kDocuments; ++document) {
    v1::HistoryRequest request;
    request.set_collection(CollectionOf(document));
    request.set_id(IdOf(document));
    request.set_include_content(true);
    request.set_page_size(1000);
    do {
      grpc::ClientContext context;
      v1::HistoryResponse response;
      const grpc::Status status = server_->documents().History(&context, request, &response);
      if (status.error_code() == grpc::StatusCode::NOT_FOUND) break;
      EXPECT_TRUE(status.ok()) << status.error_message();
      if (!status.ok()) break;
      for (const v1::Version& version : response.versions()) {
        std::optional<int64_t>& number =
            numbers[{request.collection(), request.id(), version.version()}];
        if (version.has_content()) {
          number = static_cast<int64_t>(version.content().json().fields().at("n").number_value());
        }
      }
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
  }
  return numbers;
}

TEST_P(WatchStorm, EachWatcherGetsTheLedgerOnceAndInOrder) {
  STRATA_TRACE_SEED(kSeed);
  std::vector<Got> all(kWatchers);
  for (int i = 0; i < kWatchers; ++i) {
    Wish& wish = all[i].wish;
    switch (i % 5) {
      case 0:
        break;  // everything
      case 1:
        wish.collections = {"c1", "c3", "passing0", "not there"};
        break;
      case 2:
        wish.collections = {"c2"};
        wish.id_prefix = "x/";
        break;
      case 3:
        wish.kind = i % 2 == 0 ? v1::VERSION_KIND_DELETED : v1::VERSION_KIND_UPDATED;
        break;
      case 4:
        wish.collections = {"c4", "c5"};
        wish.at_least = 70;
        break;
    }
    wish.content = i % 3 == 0;
    wish.slow = i % 7 == 0;
  }
  std::vector<std::thread> watchers;
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) writers.emplace_back([this, i] { Write(kSeed + i); });
  writers.emplace_back([this] { MakeAndDeleteCollections(); });
  for (int i = 0; i < kWatchers; ++i) {
    watchers.emplace_back([this, i, &all] { Follow(kSeed + 100 + i, all[i]); });
  }
  for (std::thread& writer : writers) writer.join();
  end_ = store_->LastPosition();
  // Whoever has come so far already learns of it by a commit more.
  EXPECT_TRUE(server_
                  ->Update(R"({"collection": "c0", "id": "last", "allow_missing": true,
                                  "replace": {"json": {"n": 1}}})")
                  .ok());
  for (std::thread& watcher : watchers) watcher.join();

  const std::vector<Told> ledger = ReadLedger();
  const Numbers numbers = ReadNumbers();
  int64_t events = 0;
  int breaks = 0;
  for (int i = 0; i < kWatchers; ++i) {
    SCOPED_TRACE(i);
    const Got& got = all[i];
    ASSERT_EQ(got.failure, "");
    std::vector<Told> expected;
    for (const Told& told : ledger) {
      if (told.position > got.began && told.position <= end_ && got.wish.Wants(told, numbers)) {
        expected.push_back(told);
      }
    }
    std::vector<Told> told;
    for (const v1::Event& event : got.events) {
      if (event.type() != v1::EVENT_TYPE_VERSION || event.position() > end_) continue;
      told.push_back({event.position(), event.index(), event.collection(), event.id(),
                      event.version().version(), event.version().kind()});
      if (!got.wish.content || event.content_missing()) continue;
      const auto found = numbers.find({event.collection(), event.id(), event.version().version()});
      if (found == numbers.end()) continue;  // its collection went
      ASSERT_EQ(event.version().has_content(), found->second.has_value());
      if (found->second) {
        ASSERT_EQ(event.version().content().json().fields().at("n").number_value(), *found->second);
      }
    }
    const size_t same = static_cast<size_t>(
        std::mismatch(told.begin(), told.end(), expected.begin(), expected.end()).first -
        told.begin());
    EXPECT_EQ(told.size(), expected.size());
    ASSERT_TRUE(same == told.size() && same == expected.size())
        << "differs at event " << same << " of " << expected.size() << ": expected "
        << (same < expected.size() ? testing::PrintToString(expected[same]) : "no more") << ", got "
        << (same < told.size() ? testing::PrintToString(told[same]) : "no more");
    events += static_cast<int64_t>(told.size());
    breaks += got.breaks;
  }
  std::printf("%zu entries, %lld events to %d watchers, %d breaks\n", ledger.size(),
              static_cast<long long>(events), kWatchers, breaks);
}

}  // namespace
}  // namespace strata::rpc_test
