// Order and completeness: many watchers beside many writers. What each one gets is the ledger,
// filtered by a plain evaluation of its own here, whatever breaks in between; and who begins with a
// copy has each document as of one position first.
//
// STRATA_WATCH_EVENTS: about so many events (30,000; over the memory engine a third of that). Over
// a million of them come in larger transactions, of up to 100 changes. STRATA_WATCHERS: so many
// watchers (50). STRATA_SEED: the seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "schemas/versioning/ledger.h"
#include "service/engines/engines.h"
#include "tests/rpc/storm_world.h"
#include "tests/rpc/watcher_check.h"
#include "tests/rpc/watching.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/volume.h"

namespace strata::rpc_test {
namespace {

constexpr int kWriters = 16;
constexpr std::chrono::hours kLimit{2};

int64_t Wanted(const char* variable, int64_t otherwise) {
  const char* const given = std::getenv(variable);
  return given == nullptr ? otherwise : std::atoll(given);
}

// Of this process, at most so far.
int64_t ResidentMiB() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

class WatchStorm : public testing::TestWithParam<std::string> {
 protected:
  WatchStorm() {
    engines::OpenOptions open;
    open.directory = directory_.path();
    auto store = *engines::OpenEngine(GetParam(), open);
    store_ = store.get();
    server_.emplace(TestOptions(), std::move(store));
  }

  static void SetNumber(int64_t number, v1::Content& content) {
    (*content.mutable_json()->mutable_fields())["n"].set_number_value(static_cast<double>(number));
  }
  static int32_t NumberIn(const v1::Content& content) {
    return static_cast<int32_t>(content.json().fields().at("n").number_value());
  }
  static v1::UpdateRequest Put(int document, int64_t number) {
    v1::UpdateRequest request;
    request.set_collection(CollectionOf(document));
    request.set_id(IdOf(document));
    request.set_allow_missing(true);
    request.set_keep_unchanged(true);
    SetNumber(number, *request.mutable_replace());
    return request;
  }

  void Write(uint64_t seed);
  void MakeAndDeleteCollections();
  void Begin(uint64_t seed, Got& got, v1::WatchRequest& request);
  void Follow(uint64_t seed, Got& got);
  static Told ToTold(const v1::Event& event);
  void ReadNumbers();
  std::vector<std::string> Check(const std::vector<Got>& all);

  const uint64_t seed_ = test_support::TestSeed();
  const int64_t events_wanted_ =
      Wanted("STRATA_WATCH_EVENTS", GetParam() == "rocksdb" ? test_support::Sampled(30'000, 6'000)
                                                            : test_support::Sampled(10'000, 3'000));
  const int unit_most_ = events_wanted_ > 1'000'000 ? 100 : 31;
  const int watchers_ = static_cast<int>(Wanted("STRATA_WATCHERS", 50));
  test_support::TemporaryDirectory directory_;
  test_support::TemporaryDirectory files_;  // of what watchers were told
  store::Store* store_ = nullptr;
  std::optional<TestServer> server_;
  std::atomic<int64_t> written_ = 0;
  std::atomic<int64_t> newest_ = 0;  // some position that was answered
  std::atomic<int> begun_ = 0;       // watchers
  std::atomic<int64_t> end_ = -1;    // the last position, once nobody writes any more

  // Once nobody writes any more.
  Numbers numbers_;
  int64_t entries_ = 0;  // of the ledger
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
    const int64_t number = static_cast<int64_t>(random() % 90);
    switch (random() % 4) {
      case 0: {
        v1::CommitRequest request;
        const int count = 2 + static_cast<int>(random() % static_cast<uint64_t>(unit_most_ - 1));
        for (int i = 0; i < count; ++i) {
          *request.add_writes()->mutable_update() =
              Put((document + i) % kDocuments, (number + i) % Numbers::kMost);
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
        if (documents->Update(&context, Put(each, number), &response).ok()) {
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
    const int first = kDocuments + round % kPassing * kPassingDocuments;
    for (int document = first; document < first + kPassingDocuments; ++document) {
      grpc::ClientContext context;
      v1::UpdateResponse response;
      EXPECT_TRUE(
          documents->Update(&context, Put(document, Numbers::OfPassing(document)), &response).ok());
    }
    grpc::ClientContext context;
    v1::DeleteCollectionRequest request;
    request.set_name(CollectionOf(first));
    request.set_force(true);
    v1::DeleteCollectionResponse response;
    EXPECT_TRUE(collections->DeleteCollection(&context, request, &response).ok());
  }
}

// Says where to begin, and where that may be.
void WatchStorm::Begin(uint64_t seed, Got& got, v1::WatchRequest& request) {
  got.least = store_->LastPosition();
  switch (got.wish.start) {
    case Wish::Start::kBeginning:
      got.asked_for = 0;
      request.set_after_position(0);
      break;
    case Wish::Start::kPosition:
      got.asked_for = newest_;
      request.set_after_position(got.asked_for);
      break;
    case Wish::Start::kTime: {
      const auto now =
          std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
      got.asked_for = now.time_since_epoch() / std::chrono::microseconds(1);
      request.mutable_start_time()->set_seconds(now.time_since_epoch().count());
      break;
    }
    case Wish::Start::kNow:
      break;
    case Wish::Start::kCopy:
      request.mutable_snapshot();
      // Half of them as of a position that has passed.
      if (seed % 2 == 0 && newest_ > 0) {
        got.asked_for = newest_;
        request.mutable_snapshot()->set_at_position(got.asked_for);
      }
      break;
  }
}

Told WatchStorm::ToTold(const v1::Event& event) {
  Told told;
  told.position = event.position();
  told.index = event.index();
  if (event.type() == v1::EVENT_TYPE_COLLECTION_DELETED) {
    told.document = DocumentOf(event.collection(), "x/0");
    return told;
  }
  told.document = DocumentOf(event.collection(), event.id());
  told.version = static_cast<int32_t>(event.version().version());
  told.kind = static_cast<int16_t>(event.version().kind());
  if (event.version().has_content()) {
    told.number = static_cast<int16_t>(NumberIn(event.version().content()));
  }
  if (event.content_missing()) told.number = kGone;
  return told;
}

// Goes on from the last place told each time that the stream breaks, and forgets what came behind
// it: that comes again.
void WatchStorm::Follow(uint64_t seed, Got& got) {
  std::mt19937_64 random(seed);
  v1::WatchRequest request = got.wish.Request();
  Begin(seed, got, request);
  const auto channel = server_->Connect();
  int64_t resume = -1;
  while (end_ < 0 || resume < end_) {
    Watching watching(channel, request, kLimit);
    std::vector<Told> pending;
    v1::Snapshot copied;
    // A quarter of them never breaks by itself.
    const int64_t messages_left =
        seed % 4 == 0 ? 1'000'000'000 : static_cast<int64_t>(random() % 60);
    bool copying = got.wish.start == Wish::Start::kCopy && resume < 0;
    for (int64_t i = 0; i <= messages_left && (end_ < 0 || resume < end_); ++i) {
      // Copies are short: they break more often.
      if (copying && i > 0 && random() % 2 == 0) break;
      const std::optional<v1::WatchResponse> message = watching.Next();
      if (!message) {
        const grpc::Status status = watching.AwaitEnd();
        // Who is slow may be cut off, and goes on: the likely reason is that its library asks for
        // more only when half of what it took in ahead is read.
        if (got.wish.slow && status.error_code() == grpc::StatusCode::CANCELLED && got.began >= 0) {
          break;
        }
        got.failure = "ended: " + status.error_message();
        if (got.began < 0) ++begun_;
        return;
      }
      for (const v1::Document& document : message->documents()) {
        Told told;
        told.document = DocumentOf(document.collection(), document.id());
        told.version = static_cast<int32_t>(document.version());
        if (document.has_content()) {
          told.number = static_cast<int16_t>(NumberIn(document.content()));
        }
        if (!got.copy.emplace(told.document, told).second) got.failure = "copied twice";
      }
      for (const v1::Event& event : message->events()) pending.push_back(ToTold(event));
      const int64_t place =
          copying ? message->snapshot().at_position() : message->resume_position();
      if (got.began < 0) {
        got.began = place;
        got.most = store_->LastPosition();
        ++begun_;
      }
      if (copying) {
        if (place != got.began) got.failure = "the copy's position moves";
        copied = message->snapshot();
        if (!copied.complete()) continue;
        copying = false;
      }
      if (message->resume_position() < resume) got.failure = "the place goes back";
      if (!got.failure.empty()) return;
      if (message->resume_position() == resume) continue;
      resume = message->resume_position();
      // All that has come belongs to commits that are whole now.
      const auto whole = std::find_if(pending.begin(), pending.end(),
                                      [&](const Told& told) { return told.position > resume; });
      for (auto told = pending.begin(); told != whole; ++told) got.events->Add(*told);
      pending.erase(pending.begin(), whole);
      if (got.wish.slow && end_ < 0) std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    if (copying) {
      ++got.breaks_in_copy;
      *request.mutable_snapshot() = copied;
    } else {
      ++got.breaks;
      request.set_after_position(resume);
    }
  }
}

// As an export has them.
void WatchStorm::ReadNumbers() {
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
      ASSERT_TRUE(status.ok()) << status.error_message();
      for (const v1::Version& version : response.versions()) {
        numbers_.Set(document, version.version(),
                     version.has_content() ? NumberIn(version.content()) : kNothing);
      }
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
  }
}

// What is wrong with each, parallel to `all`, by one walk through the ledger.
std::vector<std::string> WatchStorm::Check(const std::vector<Got>& all) {
  std::deque<WatcherCheck> checks;
  for (const Got& got : all) checks.emplace_back(got, numbers_, end_);
  versioning::LedgerCursor cursor(*store_, 0, 0);
  while (cursor.Next() && cursor.position() <= end_) {
    const store::LedgerEntryView& entry = cursor.entry();
    Told told;
    told.position = cursor.position();
    told.index = static_cast<int32_t>(cursor.index());
    if (versioning::IsVersion(entry)) {
      told.document = DocumentOf(entry.collection, entry.id);
      told.version = static_cast<int32_t>(entry.version);
      told.kind = entry.kind;
    } else {
      told.document = DocumentOf(entry.collection, "x/0");
    }
    for (WatcherCheck& check : checks) check.See(told, entry.time);
    ++entries_;
  }
  EXPECT_THAT(cursor.status(), test_support::IsOk());
  std::vector<std::string> wrong;
  for (WatcherCheck& check : checks) wrong.push_back(check.Finish());
  return wrong;
}

TEST_P(WatchStorm, EachWatcherGetsTheLedgerOnceAndInOrder) {
  STRATA_TRACE_SEED(seed_);
  std::vector<Got> all(static_cast<size_t>(watchers_));
  for (int i = 0; i < watchers_; ++i) {
    Got& got = all[static_cast<size_t>(i)];
    got.events = std::make_unique<ToldFile>(files_.Join(std::to_string(i)));
    Wish& wish = got.wish;
    wish.start = static_cast<Wish::Start>(i % 5);
    // With every start once in 25.
    switch ((i + i / 5) % 5) {
      case 0:
        break;  // everything
      case 1:
        wish.collections = {"c1", "c3", "passing0", "cannot be"};
        break;
      case 2:
        wish.collections = {"c2"};
        wish.id_prefix = "x/";
        break;
      case 3:
        wish.kind = i % 2 == 0 ? v1::VERSION_KIND_DELETED : v1::VERSION_KIND_UPDATED;
        break;
      case 4:
        wish.collections = {"c4", "c5", "passing1"};
        wish.at_least = 70;
        break;
    }
    wish.content = i % 3 == 0;
    wish.slow = i % 7 == 0;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [begin] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::vector<std::thread> watchers;
  std::vector<std::thread> writers;
  for (uint64_t i = 0; i < kWriters; ++i) writers.emplace_back([this, i] { Write(seed_ + i); });
  writers.emplace_back([this] { MakeAndDeleteCollections(); });
  for (size_t i = 0; i < all.size(); ++i) {
    watchers.emplace_back([this, i, &all, random = std::mt19937_64(seed_ + 100 + i)]() mutable {
      // They come one after the other, for most of the time that is written.
      const int64_t first = static_cast<int64_t>(random() % 100) * events_wanted_ / 120;
      while (written_ < first) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      Follow(seed_ + 100 + i, all[i]);
    });
  }
  for (std::thread& writer : writers) writer.join();
  const double written = seconds();
  while (begun_ < watchers_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  end_ = store_->LastPosition();
  // Whoever has come so far already learns of it by a commit more.
  EXPECT_TRUE(server_
                  ->Update(R"({"collection": "c0", "id": "x/last", "allow_missing": true,
                                  "replace": {"json": {"n": 1}}})")
                  .ok());
  for (std::thread& watcher : watchers) watcher.join();

  const double caught_up = seconds();

  ASSERT_NO_FATAL_FAILURE(ReadNumbers());
  const std::vector<std::string> wrong = Check(all);
  int64_t events = 0;
  size_t copied = 0;
  int breaks = 0;
  int breaks_in_copies = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const Got& got = all[i];
    EXPECT_EQ(wrong[i], "") << "watcher " << i;
    events += got.events->size();
    copied += got.copy.size();
    breaks += got.breaks;
    breaks_in_copies += got.breaks_in_copy;
  }
  EXPECT_GT(copied, 0u);
  std::printf(
      "seed %llu: %lld entries, %lld events and %zu documents to %d watchers, %d breaks, %d of a "
      "copy; written in %.0f s, all caught up after %.0f s, checked after %.0f s; at most %lld "
      "MiB\n",
      static_cast<unsigned long long>(seed_), static_cast<long long>(entries_),
      static_cast<long long>(events), copied, watchers_, breaks, breaks_in_copies, written,
      caught_up, seconds(), static_cast<long long>(ResidentMiB()));
}

}  // namespace
}  // namespace strata::rpc_test
