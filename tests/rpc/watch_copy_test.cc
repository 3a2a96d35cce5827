// Copies of a collection beside 2,000 updates a second, cut off every 100 ms and gone on with: each
// is what the collection was as of one position, and with what follows what it is in the end,
// document by document and version by version.
//
// STRATA_COPY_DOCUMENTS: so many documents (10,000). STRATA_SEED: the seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "schemas/versioning/ledger.h"
#include "service/engines/engines.h"
#include "tests/rpc/watching.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/volume.h"

namespace strata::rpc_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kWriters = 16;
constexpr int kCopies = 8;
constexpr std::chrono::microseconds kBetweenUpdates{1'000'000 / 2000};
constexpr milliseconds kCut{100};
// So long a message is looked at: long enough for a copy to be cut off several times.
constexpr milliseconds kPerMessage{20};
constexpr milliseconds kTail{500};  // so long each one follows before nobody writes any more
constexpr int64_t kAtLeast = 50;    // what a filter lets pass

int DocumentsWanted() {
  return static_cast<int>(
      test_support::NumberOr("STRATA_COPY_DOCUMENTS", test_support::Sampled(10'000, 2'000)));
}

// One version of a document; no number: a deletion.
struct State {
  int64_t version = 0;
  std::optional<int64_t> number;

  friend bool operator==(const State&, const State&) = default;
  friend std::ostream& operator<<(std::ostream& out, const State& state) {
    return out << "version " << state.version << " with "
               << (state.number ? std::to_string(*state.number) : "no content");
  }
};
using Documents = std::map<std::string, State>;

bool Passes(const State& state) { return state.number && *state.number >= kAtLeast; }

// What a follower keeps.
struct Copy {
  bool filtered = false;
  int64_t as_of = -1;
  Documents documents;  // as of then, and in the end with all that follows
  std::optional<Documents> begun;
  std::vector<std::pair<std::string, State>> events;
  int cuts_in_copy = 0;
  int cuts = 0;
  std::string failure;
};

class WatchCopy : public testing::TestWithParam<std::string> {
 protected:
  WatchCopy() {
    engines::OpenOptions open;
    open.directory = directory_.path();
    auto store = *engines::OpenEngine(GetParam(), open);
    store_ = store.get();
    server_.emplace(TestOptions(), std::move(store));
  }

  static v1::UpdateRequest Put(const std::string& id, int64_t number) {
    v1::UpdateRequest request;
    request.set_collection("stock");
    request.set_id(id);
    request.set_allow_missing(true);
    request.set_keep_unchanged(true);
    auto& fields = *request.mutable_replace()->mutable_json()->mutable_fields();
    fields["n"].set_number_value(static_cast<double>(number));
    fields["text"].set_string_value(std::string(200, static_cast<char>('a' + number % 26)));
    return request;
  }
  static std::optional<int64_t> NumberIn(const v1::Content& content) {
    const auto& fields = content.json().fields();
    const auto number = static_cast<int64_t>(fields.at("n").number_value());
    EXPECT_EQ(fields.at("text").string_value()[0], 'a' + number % 26);
    return number;
  }

  void Fill();
  void Write(int writer);
  bool Take(const v1::WatchResponse& message, Copy& copy, v1::Snapshot& copied);
  void Follow(Copy& copy);
  void ReadLedger();
  Documents AsOf(int64_t position, bool filtered) const;
  Documents List();
  void ExpectSame(const Documents& documents, const Documents& expected) const;
  void ExpectEvents(const Copy& copy) const;

  const uint64_t seed_ = test_support::TestSeed();
  const int documents_ = DocumentsWanted();
  test_support::TemporaryDirectory directory_;
  store::Store* store_ = nullptr;
  std::optional<TestServer> server_;
  std::vector<std::vector<State>> versions_;  // of each document, by its one writer
  std::atomic<bool> writing_ = true;
  std::atomic<int> followed_ = 0;  // copies that are whole and were followed for long enough
  std::atomic<int64_t> end_ = -1;  // the last position, once nobody writes any more
  std::vector<std::pair<int64_t, std::pair<std::string, State>>> ledger_;
};

INSTANTIATE_TEST_SUITE_P(Engines, WatchCopy, testing::Values("memory", "rocksdb"),
                         [](const auto& engine) { return engine.param; });

void WatchCopy::Fill() {
  versions_.resize(static_cast<size_t>(documents_));
  for (int document = 0; document < documents_;) {
    v1::CommitRequest request;
    for (int i = 0; i < 100 && document < documents_; ++i, ++document) {
      *request.add_writes()->mutable_update() = Put(std::to_string(document), document % 100);
      versions_[static_cast<size_t>(document)].push_back({1, document % 100});
    }
    grpc::ClientContext context;
    v1::CommitResponse response;
    const grpc::Status status = server_->transactions().Commit(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
}

// At its times, and as soon as it can where it is late. One write in twenty is a deletion.
void WatchCopy::Write(int writer) {
  std::mt19937_64 random(seed_ + static_cast<uint64_t>(writer));
  const auto stub = v1::DocumentService::NewStub(server_->Connect());
  auto next = steady_clock::now();
  while (writing_) {
    std::this_thread::sleep_until(next);
    next += kBetweenUpdates * kWriters;
    const auto document = random() % static_cast<uint64_t>(documents_ / kWriters) * kWriters +
                          static_cast<uint64_t>(writer);
    std::vector<State>& versions = versions_[document];
    const std::string id = std::to_string(document);
    grpc::ClientContext context;
    if (versions.back().number && random() % 20 == 0) {
      v1::DeleteRequest request;
      request.set_collection("stock");
      request.set_id(id);
      v1::DeleteResponse response;
      ASSERT_TRUE(stub->Delete(&context, request, &response).ok());
      versions.push_back({versions.back().version + 1, {}});
    } else {
      const auto number = static_cast<int64_t>(random() % 100);
      v1::UpdateResponse response;
      ASSERT_TRUE(stub->Update(&context, Put(id, number), &response).ok());
      versions.push_back({versions.back().version + 1, number});
    }
  }
}

// False: something is wrong with it.
bool WatchCopy::Take(const v1::WatchResponse& message, Copy& copy, v1::Snapshot& copied) {
  for (const v1::Document& document : message.documents()) {
    const State state{document.version(), NumberIn(document.content())};
    if (!copy.documents.emplace(document.id(), state).second) {
      copy.failure = document.id() + " is copied twice";
    }
  }
  for (const v1::Event& event : message.events()) {
    State state{event.version().version(), {}};
    if (event.version().has_content()) state.number = NumberIn(event.version().content());
    copy.events.emplace_back(event.id(), state);
  }
  if (message.has_snapshot()) {
    copied = message.snapshot();
    if (copy.as_of < 0) copy.as_of = copied.at_position();
    if (copied.at_position() != copy.as_of) copy.failure = "the copy's position moves";
    if (copied.complete() && message.resume_position() != copy.as_of) {
      copy.failure = "the copy is followed from elsewhere";
    }
  }
  return copy.failure.empty();
}

void WatchCopy::Follow(Copy& copy) {
  v1::WatchRequest request;
  request.add_collections("stock");
  request.set_include_content(true);
  request.mutable_bookmark_interval()->set_seconds(1);
  if (copy.filtered) {
    auto& condition = (*request.mutable_filter()->mutable_fields())["n"];
    (*condition.mutable_struct_value()->mutable_fields())["$gte"].set_number_value(kAtLeast);
  }
  request.mutable_snapshot();
  const auto channel = server_->Connect();
  std::optional<steady_clock::time_point> whole_since;
  bool counted = false;
  int64_t resume = -1;
  while (end_ < 0 || resume < end_) {
    Watching watching(channel, request, std::chrono::hours(1));
    v1::Snapshot copied = request.snapshot();
    std::vector<std::pair<std::string, State>> pending;
    const auto cut = steady_clock::now() + kCut;
    while ((end_ < 0 && steady_clock::now() < cut) || (end_ >= 0 && resume < end_)) {
      const std::optional<v1::WatchResponse> message = watching.Next();
      if (!message) {
        copy.failure = "ended: " + watching.AwaitEnd().error_message();
        break;
      }
      const size_t events = copy.events.size();
      if (!Take(*message, copy, copied)) break;
      // Only a commit that is whole counts; a part of one comes again.
      pending.insert(pending.end(), copy.events.begin() + static_cast<ptrdiff_t>(events),
                     copy.events.end());
      copy.events.resize(events);
      if (!copy.begun && message->snapshot().complete()) copy.begun = copy.documents;
      if (!copy.begun) {
        std::this_thread::sleep_for(kPerMessage);
        continue;
      }
      if (!whole_since) whole_since = steady_clock::now();
      if (message->resume_position() > resume) {
        copy.events.insert(copy.events.end(), pending.begin(), pending.end());
        pending.clear();
        resume = message->resume_position();
      }
      if (!counted && steady_clock::now() >= *whole_since + kTail) {
        counted = true;
        ++followed_;
      }
    }
    if (!copy.failure.empty()) break;
    if (copy.begun) {
      ++copy.cuts;
      request.set_after_position(resume);
    } else {
      ++copy.cuts_in_copy;
      *request.mutable_snapshot() = copied;
    }
  }
  if (!counted) ++followed_;
}

void WatchCopy::ReadLedger() {
  versioning::LedgerCursor cursor(*store_, 0, 0);
  while (cursor.Next() && cursor.position() <= end_) {
    const store::LedgerEntryView& entry = cursor.entry();
    const auto document = static_cast<size_t>(std::stoi(std::string(entry.id)));
    ledger_.emplace_back(cursor.position(),
                         std::pair(std::string(entry.id),
                                   versions_[document][static_cast<size_t>(entry.version) - 1]));
  }
  ASSERT_THAT(cursor.status(), test_support::IsOk());
}

Documents WatchCopy::AsOf(int64_t position, bool filtered) const {
  Documents documents;
  for (const auto& [at, change] : ledger_) {
    if (at <= position) documents[change.first] = change.second;
  }
  std::erase_if(documents, [&](const auto& document) {
    return filtered ? !Passes(document.second) : !document.second.number;
  });
  return documents;
}

Documents WatchCopy::List() {
  Documents documents;
  v1::ListRequest request;
  request.set_collection("stock");
  request.set_page_size(1000);
  do {
    grpc::ClientContext context;
    v1::ListResponse response;
    const grpc::Status status = server_->documents().List(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    if (!status.ok()) break;
    for (const v1::Document& document : response.documents()) {
      documents[document.id()] = {document.version(), NumberIn(document.content())};
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  documents.erase("last");
  return documents;
}

void WatchCopy::ExpectSame(const Documents& documents, const Documents& expected) const {
  for (const auto& [id, state] : expected) {
    const auto found = documents.find(id);
    ASSERT_TRUE(found != documents.end()) << id << " is missing, of " << state;
    ASSERT_EQ(found->second, state) << id;
  }
  for (const auto& [id, state] : documents) {
    ASSERT_TRUE(expected.contains(id)) << id << " should not be there, of " << state;
  }
}

// Every version of a later commit comes once, in the order of commits, and none of an earlier one.
void WatchCopy::ExpectEvents(const Copy& copy) const {
  auto event = copy.events.begin();
  for (const auto& [position, change] : ledger_) {
    if (position <= copy.as_of) continue;
    const auto& [id, state] = change;
    const auto& versions = versions_[static_cast<size_t>(std::stoi(id))];
    const bool left = state.version > 1 && Passes(versions[static_cast<size_t>(state.version) - 2]);
    if (copy.filtered && !Passes(state) && !left) continue;
    ASSERT_TRUE(event != copy.events.end()) << id << "@" << state.version << " is missing";
    ASSERT_EQ(event->first, id) << "where " << id << "@" << state.version << " should be";
    ASSERT_EQ(event->second, state) << id;
    ++event;
  }
  ASSERT_TRUE(event == copy.events.end() || event->first == "last")
      << event->first << "@" << event->second.version << " comes twice, or out of order";
}

TEST_P(WatchCopy, AsOfItsPositionAndInTheEndEachIsWhatTheCollectionWas) {
  STRATA_TRACE_SEED(seed_);
  ASSERT_NO_FATAL_FAILURE(Fill());
  std::vector<Copy> copies(kCopies);
  std::vector<std::thread> writers;
  std::vector<std::thread> followers;
  const auto began = steady_clock::now();
  for (int i = 0; i < kWriters; ++i) writers.emplace_back([this, i] { Write(i); });
  for (Copy& copy : copies) {
    copy.filtered = followers.size() % 2 == 1;
    followers.emplace_back([this, &copy, delay = kPerMessage * followers.size()] {
      std::this_thread::sleep_for(delay);  // each as of another position
      Follow(copy);
    });
  }
  while (followed_ < kCopies) std::this_thread::sleep_for(milliseconds(1));
  writing_ = false;
  for (std::thread& writer : writers) writer.join();
  const std::chrono::duration<double> lasted = steady_clock::now() - began;
  end_ = store_->LastPosition();
  // Whoever has come so far already learns of it by a commit more, which passes every filter.
  grpc::ClientContext context;
  v1::UpdateResponse response;
  ASSERT_TRUE(server_->documents().Update(&context, Put("last", kAtLeast), &response).ok());
  for (std::thread& follower : followers) follower.join();

  ASSERT_NO_FATAL_FAILURE(ReadLedger());
  const Documents end = List();
  int cuts = 0;
  int cuts_in_copies = 0;
  size_t events = 0;
  for (Copy& copy : copies) {
    SCOPED_TRACE(&copy - copies.data());
    ASSERT_EQ(copy.failure, "");
    ASSERT_TRUE(copy.begun);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(*copy.begun, AsOf(copy.as_of, copy.filtered)));
    ASSERT_NO_FATAL_FAILURE(ExpectEvents(copy));
    for (const auto& [id, state] : copy.events) {
      const bool stays = copy.filtered ? Passes(state) : state.number.has_value();
      if (stays) copy.documents[id] = state;
      if (!stays) copy.documents.erase(id);
    }
    copy.documents.erase("last");
    Documents expected = end;
    if (copy.filtered) {
      std::erase_if(expected, [](const auto& document) { return !Passes(document.second); });
    }
    ASSERT_NO_FATAL_FAILURE(ExpectSame(copy.documents, expected));
    cuts += copy.cuts;
    cuts_in_copies += copy.cuts_in_copy;
    events += copy.events.size();
  }
  EXPECT_GE(cuts_in_copies, kCopies);
  std::printf(
      "seed %llu: %d documents, %.0f updates/s for %.1f s, %d copies cut off %d times, and "
      "%d times in the tail, %zu events\n",
      static_cast<unsigned long long>(seed_), documents_,
      static_cast<double>(ledger_.size() - static_cast<size_t>(documents_)) / lasted.count(),
      lasted.count(), kCopies, cuts_in_copies, cuts, events);
}

}  // namespace
}  // namespace strata::rpc_test
