// What goes wrong without each of the rules of the tail, of readers and of trimming: writers, a
// trimmer and followers at random, one between any two steps of another, sound with what is built,
// and unsound once a fault is planted in the store between, or in what a follower is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/document/filter.h"
#include "schemas/store/forwarding_store.h"
#include "schemas/versioning/ledger_floor.h"
#include "schemas/versioning/ledger_trimming.h"
#include "tests/feed/feed_world.h"
#include "tests/feed/seeded_runs.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"

namespace strata::feed::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using store::CommitPosition;
using store::Keyspace;
using test_support::IsOk;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr seconds kRetention{15};
constexpr int64_t kFilteredNumber = 1;

enum class Fault {
  kNone,
  // In the store.
  kFloorBeforeTheScan,       // the floor is read, then the ledger
  kPositionBeforeTheCommit,  // the last position grows before its commit can be read
  kToldBeforeItCanBeRead,    // commits are told of before the last position grows
  kCopyOfTheLatest,          // a copy has each document as it is, and not as it was
  kDeletesBeforeTheFloor,    // trimming deletes blocks, then raises the floor
  kTrimsAboveAFollower,      // trimming asks nobody
  // In what a follower is told, or makes of it.
  kPlaceBeforeTheCommitIsWhole,  // it goes on behind the last event, and not the last commit
  kTailFromElsewhere,            // the tail of a copy begins with the last position
  kCopyGoesOnElsewhere,          // a broken copy is gone on with as of now
  kStartsAtTheFirstEvent,        // without an event, its place is as of when it comes again
  kForgetsWhatLeftTheFilter,
  kForgetsDeletedCollections,
};

// Reads and positions as a fault has them. What `between` does may happen at any of them.
class FaultyStore final : public store::ForwardingStore {
 public:
  FaultyStore(store::Store& inner, Fault fault) : ForwardingStore(inner), fault_(fault) {}

  std::function<void()> between;

  absl::StatusOr<std::optional<store::Record>> Get(Keyspace keyspace,
                                                   std::string_view key) const override {
    if (fault_ == Fault::kFloorBeforeTheScan && keyspace == Keyspace::kFeed &&
        key == versioning::kLedgerFloorKey && floor_) {
      return *std::exchange(floor_, std::nullopt);
    }
    if (between) between();
    return ForwardingStore::Get(keyspace, key);
  }
  std::unique_ptr<store::Cursor> Scan(Keyspace keyspace, const store::Range& range) const override {
    if (fault_ == Fault::kFloorBeforeTheScan && keyspace == Keyspace::kLedger) {
      floor_ = ForwardingStore::Get(Keyspace::kFeed, versioning::kLedgerFloorKey);
    }
    if (between) between();
    return ForwardingStore::Scan(keyspace, range);
  }
  std::unique_ptr<store::Reader> Snapshot() const override {
    if (between) between();
    auto snapshot = ForwardingStore::Snapshot();
    if (fault_ == Fault::kCopyOfTheLatest) return std::make_unique<OldHeads>(std::move(snapshot));
    return snapshot;
  }
  CommitPosition LastPosition() const override {
    const CommitPosition last = ForwardingStore::LastPosition();
    if (fault_ == Fault::kPositionBeforeTheCommit) return last + 1;
    if (fault_ == Fault::kToldBeforeItCanBeRead) {
      return std::max(std::exchange(last_, last), StartPosition());
    }
    return last;
  }

 private:
  // Every document's head looks as if it had always been so.
  class OldCursor final : public store::ForwardingCursor {
   public:
    using ForwardingCursor::ForwardingCursor;
    CommitPosition position() const override { return 1; }
  };
  class OldHeads final : public store::ForwardingReader {
   public:
    using ForwardingReader::ForwardingReader;
    absl::StatusOr<std::optional<store::Record>> Get(Keyspace keyspace,
                                                     std::string_view key) const override {
      auto record = ForwardingReader::Get(keyspace, key);
      if (keyspace == Keyspace::kHeads && record.ok() && *record) (*record)->position = 1;
      return record;
    }
    std::vector<absl::StatusOr<std::optional<store::Record>>> GetMany(
        std::span<const store::RecordKey> keys) const override {
      return Reader::GetMany(keys);
    }
    std::unique_ptr<store::Cursor> Scan(Keyspace keyspace,
                                        const store::Range& range) const override {
      auto cursor = ForwardingReader::Scan(keyspace, range);
      if (keyspace != Keyspace::kHeads) return cursor;
      return std::make_unique<OldCursor>(std::move(cursor));
    }
  };

  const Fault fault_;
  mutable std::optional<absl::StatusOr<std::optional<store::Record>>> floor_;
  mutable CommitPosition last_ = 0;
};

// The store as the trimmer has it; what `between` does may happen before any of its commits.
class TrimmersStore final : public store::ForwardingStore {
 public:
  TrimmersStore(store::Store& inner, Fault fault) : ForwardingStore(inner), fault_(fault) {}

  std::function<void()> between;

  void Commit(store::WriteBatch batch, store::CommitCallback done) override {
    between();
    if (fault_ == Fault::kDeletesBeforeTheFloor) {
      if (RaisesFloor(batch)) {
        floor_ = std::move(batch);
        store::CommitResult raised;
        raised.committed = true;
        return done(raised);
      }
      ForwardingStore::Commit(std::move(batch), std::move(done));
      between();
      return;
    }
    ForwardingStore::Commit(std::move(batch), std::move(done));
  }
  // What was kept back.
  void RaiseFloor() {
    if (!floor_) return;
    ForwardingStore::Commit(*std::exchange(floor_, std::nullopt), [](const auto&) {});
  }

 private:
  static bool RaisesFloor(const store::WriteBatch& batch) {
    return std::any_of(batch.writes().begin(), batch.writes().end(), [](const auto& write) {
      return write.keyspace == Keyspace::kFeed && write.key == versioning::kLedgerFloorKey &&
             write.kind == store::WriteKind::kPut;
    });
  }

  const Fault fault_;
  std::optional<store::WriteBatch> floor_;
};

// What is stored of a document.
struct State {
  int64_t version = 0;
  std::optional<int64_t> number;  // none: it is deleted
};
using DocumentIds = std::pair<std::string, std::string>;  // collection and id

// One who keeps a copy, of all or of what a filter passes, and whose watch breaks at random.
class Follower {
 public:
  enum class What { kCopy, kFilteredCopy, kEventsFromNow };

  Follower(What what, Fault fault, size_t message) : what_(what), fault_(fault), message_(message) {
    Restart();
  }

  What what() const { return what_; }
  bool is_open() const { return watcher_.watch != nullptr; }
  // Everything up to there has come; nothing before the first message.
  std::optional<CommitPosition> place() const { return place_; }
  CommitPosition began() const { return began_.value_or(0); }  // of all, at first
  const std::vector<std::string>& wrong() const { return wrong_; }
  const std::vector<std::string>& events() const { return events_; }
  const std::map<DocumentIds, int64_t>& copy() const { return copy_; }
  // Whatever came of documents that the copy did not have, and no deletion of their collections.
  bool unexplained() const { return !unexplained_.empty(); }

  void Open(Feed& feed) {
    WatchQuery query;
    if (what_ == What::kFilteredCopy) {
      query.filter = *document::Filter::Compile(versioning::testing::Number(kFilteredNumber));
    }
    if (place_) {
      query.start = FromPosition{*place_};
    } else if (what_ != What::kEventsFromNow) {
      FromCopy start = copied_.value_or(FromCopy{});
      if (fault_ == Fault::kCopyGoesOnElsewhere) start.at = feed.GetState()->last_position;
      query.start = start;
    }
    watcher_.inbox = std::make_shared<Inbox>(message_);
    auto opened = feed.Open(std::move(query), watcher_.inbox);
    ASSERT_THAT(opened, IsOk());
    watcher_.watch = *std::move(opened);
    watcher_.watch->Ready();
  }
  void Break() {
    watcher_.watch.reset();
    pending_.clear();
    // It learns of nothing before the first event.
    if (fault_ == Fault::kStartsAtTheFirstEvent && what_ == What::kEventsFromNow &&
        events_.empty()) {
      place_.reset();
    }
  }
  // Looks at what came; its next message may come then.
  void Take() {
    if (!is_open()) return;
    std::vector<Message> messages = std::exchange(watcher_.inbox->messages, {});
    for (Message& message : messages) Look(message);
    if (watcher_.inbox->end) return End(*watcher_.inbox->end);
    for (; watcher_.inbox->waiting > 0; --watcher_.inbox->waiting) watcher_.watch->Ready();
  }

 private:
  void Restart() {
    place_.reset();
    copied_.reset();
    copy_.clear();
    pending_.clear();
    unexplained_.clear();
  }

  void End(const absl::Status& status) {
    watcher_.watch.reset();
    if (ReasonOf(status) != ErrorReason::kPositionTrimmed || what_ == What::kEventsFromNow) {
      wrong_.push_back("a watch ends: " + status.ToString());
    }
    Restart();
  }

  void Look(Message& message) {
    const bool copies = message.progress.copy.has_value();
    if (copies) copied_ = message.progress.copy;
    for (const std::string& document : message.documents) {
      const size_t slash = document.find('/');
      const size_t at = document.find('@');
      const DocumentIds name(document.substr(0, slash), document.substr(slash + 1, at - slash - 1));
      if (!copy_.emplace(name, std::stoll(document.substr(at + 1))).second) {
        wrong_.push_back(document + " is copied twice");
      }
    }
    for (Event& event : message.events) pending_.push_back(std::move(event));
    if (copies && !copied_->complete) return;
    CommitPosition resume = message.progress.resume_position;
    if (fault_ == Fault::kTailFromElsewhere && copies) resume = message.progress.last_position;
    if (fault_ == Fault::kPlaceBeforeTheCommitIsWhole && !pending_.empty()) {
      resume = pending_.back().position;
    }
    if (!began_) began_ = resume;
    if (place_ && resume < *place_) wrong_.push_back("a place goes back");
    if (place_ == resume) return;
    place_ = resume;
    while (!pending_.empty() && pending_.front().position <= resume) {
      Apply(pending_.front());
      pending_.erase(pending_.begin());
    }
  }

  void Apply(const Event& event) {
    const DocumentIds name(event.collection, event.id);
    if (event.type == EventType::kCollectionDeleted) {
      if (fault_ == Fault::kForgetsDeletedCollections) return;
      std::erase_if(copy_, [&](const auto& each) { return each.first.first == event.collection; });
      std::erase_if(deleted_, [&](const auto& each) { return each.first == event.collection; });
      std::erase_if(unexplained_, [&](const auto& each) { return each == event.collection; });
      events_.push_back(event.collection);
      return;
    }
    const int64_t version = event.version.header.version;
    const std::string told = event.collection + "/" + event.id + "@" + std::to_string(version);
    events_.push_back(told);
    if (what_ == What::kEventsFromNow) return;
    const bool is_deletion = event.version.header.kind == versioning::VersionKind::kDeleted;
    if (what_ == What::kCopy) {
      const auto known = copy_.find(name);
      if (known != copy_.end() && version != known->second + 1) {
        wrong_.push_back(told + " comes behind version " + std::to_string(known->second));
      }
      // What the copy left out was deleted as of then, or its collection has been deleted since.
      if (known == copy_.end() && version > 1 && !deleted_.contains(name)) {
        if (event.version.header.kind != versioning::VersionKind::kCreated) {
          unexplained_.insert(event.collection);
        }
      }
    }
    if (is_deletion) deleted_.insert(name);
    if (is_deletion || event.left_filter) {
      if (event.left_filter && fault_ == Fault::kForgetsWhatLeftTheFilter) return;
      copy_.erase(name);
    } else {
      copy_[name] = version;
    }
  }

  const What what_;
  const Fault fault_;
  const size_t message_;
  Watcher watcher_;
  std::optional<CommitPosition> place_;
  std::optional<FromCopy> copied_;
  std::optional<CommitPosition> began_;
  std::vector<Event> pending_;
  std::map<DocumentIds, int64_t> copy_;  // versions
  std::set<DocumentIds> deleted_;
  std::set<std::string> unexplained_;  // collections
  std::vector<std::string> events_;
  std::vector<std::string> wrong_;
};

// Tells what was wrong.
class Scenario {
 public:
  Scenario(uint64_t seed, Fault fault)
      : fault_(fault),
        random_(seed),
        store_(world_.engine(), fault),
        trimmers_store_(world_.engine(), fault),
        executor_(world_.clock()),
        reading_(store_, {}, world_.clock()),
        feed_(store_, reading_.documents(), world_.clock(), executor_, SmallRing()),
        trimmer_(trimmers_store_, world_.clock(), kRetention, holders_, /*chunk=*/3) {
    using What = Follower::What;
    for (const What what : {What::kCopy, What::kFilteredCopy, What::kEventsFromNow, What::kCopy}) {
      followers_.emplace_back(what, fault, 1 + random_() % 3);
    }
    // Who may not begin anew keeps the ledger from being trimmed.
    if (fault != Fault::kTrimsAboveAFollower) {
      holders_.Add([this](const auto&) -> absl::StatusOr<std::optional<versioning::FloorHolder>> {
        const auto place = followers_[2].place();
        if (!place) return std::nullopt;
        return versioning::FloorHolder{*place + 1, "the follower"};
      });
    }
    store_.between = [this] { StepIn(); };
    trimmers_store_.between = [this] {
      if (!stepping_in_ && random_() % 2 == 0) RunFollowers();
    };
  }

  std::vector<std::string> Run() {
    Write();
    for (int step = 0; step < 200; ++step) Step();
    Settle();
    Check();
    return wrong_;
  }
  int trims() const { return trims_; }
  int64_t catch_up_reads() const { return feed_.GetState()->catch_up_reads; }

 private:
  static FeedOptions SmallRing() {
    FeedOptions options;
    options.ring.entries_max = 4;
    return options;
  }

  void Step() {
    world_.clock().Advance(seconds(1));
    switch (random_() % 8) {
      case 0:
      case 1:
        Change();
        break;
      case 2:
        Trim();
        break;
      case 3:
        followers_[random_() % followers_.size()].Break();
        break;
      default:
        RunFollowers();
        break;
    }
  }
  // Between two steps of a follower's reader.
  void StepIn() {
    if (stepping_in_ || settling_ || random_() % 6 > 0) return;
    stepping_in_ = true;
    world_.clock().Advance(seconds(1));
    random_() % 2 == 0 ? Change() : Trim();
    stepping_in_ = false;
  }

  void Change() {
    const uint64_t what = random_() % 20;
    if (what == 0) return DeleteCollection();
    if (what < 5) return Delete();
    Write();
  }
  void Write() {
    const std::string collection = random_() % 3 == 0 ? "others" : "things";
    std::vector<versioning::Change> changes;
    std::set<std::string> ids;
    const size_t count = 1 + random_() % 5;
    while (ids.size() < count) ids.insert(std::string(1, static_cast<char>('a' + random_() % 7)));
    std::vector<std::string> events;
    for (const std::string& id : ids) {
      const int32_t by = random_() % 2 == 0 ? 1 : -1;
      changes.push_back(
          versioning::testing::Adding(versioning::testing::Named(id, collection), by));
      State& state = documents_[{collection, id}];
      state.number = state.number.value_or(0) + by;
      events.push_back(collection + "/" + id + "@" + std::to_string(++state.version));
    }
    ASSERT_THAT(versioning::testing::Commit(
                    world_.process(), versioning::testing::UnitOf(std::move(changes),
                                                                  "t" + std::to_string(++units_))),
                IsOk());
    Log(std::move(events));
  }
  void Delete() {
    for (auto& [name, state] : documents_) {
      if (!state.number || random_() % 3 > 0) continue;
      versioning::WriteRequest request = versioning::testing::Request(name.second);
      request.name.collection = name.first;
      ASSERT_THAT(world_->Delete(std::move(request)), IsOk());
      state.number.reset();
      return Log({name.first + "/" + name.second + "@" + std::to_string(++state.version)});
    }
  }
  void DeleteCollection() {
    const std::string collection = documents_.begin()->first.first;
    std::promise<absl::Status> deleted;
    world_->documents().collections().Delete(
        {.name = collection, .force = true},
        [&](const auto& result) { deleted.set_value(result.status()); });
    ASSERT_THAT(deleted.get_future().get(), IsOk());
    std::erase_if(documents_, [&](const auto& each) { return each.first.first == collection; });
    Log({collection});
    if (documents_.empty()) Write();
  }
  void Log(std::vector<std::string> events) {
    const CommitPosition position = world_.engine().LastPosition();
    for (std::string& event : events) log_.emplace_back(position, std::move(event));
  }

  void Trim() {
    if (trimming_) return;
    trimming_ = true;
    const auto before = versioning::ReadLedgerFloor(world_.engine());
    ASSERT_THAT(trimmer_.Trim(), IsOk());
    trimmers_store_.RaiseFloor();
    const auto after = versioning::ReadLedgerFloor(world_.engine());
    trims_ += after->position > before->position ? 1 : 0;
    trimming_ = false;
  }

  void RunFollowers() {
    if (running_) return;
    running_ = true;
    for (Follower& follower : followers_) {
      if (!follower.is_open()) follower.Open(feed_);
    }
    executor_.RunDue();
    for (Follower& follower : followers_) {
      if (settling_ || random_() % 3 > 0) follower.Take();
    }
    running_ = false;
  }

  // The engine may tell of a commit a moment after it was answered.
  void Settle() {
    settling_ = true;
    const auto give_up =
        std::chrono::steady_clock::now() +
        (fault_ == Fault::kToldBeforeItCanBeRead ? milliseconds(200) : milliseconds(20'000));
    do {
      RunFollowers();
      std::this_thread::yield();
    } while (feed_.tail().end() < world_.engine().LastPosition() &&
             std::chrono::steady_clock::now() < give_up);
    const auto is_at_the_end = [this](const Follower& follower) {
      return follower.place().value_or(0) >= world_.engine().LastPosition();
    };
    for (int round = 0; round < 3000; ++round) {
      if (std::all_of(followers_.begin(), followers_.end(), is_at_the_end)) break;
      world_.clock().Advance(seconds(1));
      RunFollowers();
    }
  }

  void Check() {
    for (const Follower& follower : followers_) {
      wrong_.insert(wrong_.end(), follower.wrong().begin(), follower.wrong().end());
      if (follower.unexplained()) wrong_.push_back("versions in between are missing");
      if (follower.what() == Follower::What::kEventsFromNow) {
        std::vector<std::string> expected;
        for (const auto& [position, event] : log_) {
          if (position > follower.began()) expected.push_back(event);
        }
        if (follower.events() != expected) {
          const auto [got, wanted] = std::mismatch(
              follower.events().begin(), follower.events().end(), expected.begin(), expected.end());
          wrong_.push_back(
              "the events since " + std::to_string(follower.began()) +
              " are not those of the log: " + (got == follower.events().end() ? "none" : *got) +
              " instead of " + (wanted == expected.end() ? "none" : *wanted));
        }
        continue;
      }
      std::map<DocumentIds, int64_t> expected;
      for (const auto& [name, state] : documents_) {
        if (!state.number) continue;
        if (follower.what() == Follower::What::kFilteredCopy && *state.number != kFilteredNumber) {
          continue;
        }
        expected[name] = state.version;
      }
      if (follower.copy() != expected) wrong_.push_back("a copy does not end as the documents");
    }
  }

  const Fault fault_;
  versioning::testing::World world_;
  std::mt19937_64 random_;
  FaultyStore store_;
  TrimmersStore trimmers_store_;
  test_support::ManualExecutor executor_;
  versioning::testing::Process reading_;
  Feed feed_;
  versioning::FloorHolders holders_;
  versioning::LedgerTrimmer trimmer_;
  std::vector<Follower> followers_;  // no watch outlives the feed
  std::map<DocumentIds, State> documents_;
  std::vector<std::pair<CommitPosition, std::string>> log_;
  int units_ = 0;
  int trims_ = 0;
  bool stepping_in_ = false;
  bool trimming_ = false;
  bool running_ = false;
  bool settling_ = false;
  std::vector<std::string> wrong_;
};

std::vector<std::string> Wrong(Fault fault, uint64_t runs) {
  return FirstWrong(runs, [fault](uint64_t seed) { return Scenario(seed, fault).Run(); });
}

TEST(ReaderFaults, WithItsRulesNothingIsLostRepeatedOrOutOfOrder) {
  EXPECT_THAT(Wrong(Fault::kNone, test_support::Sampled(60, 2)), IsEmpty());
  int trims = 0;
  int64_t catch_up_reads = 0;
  constexpr int kScenarios = test_support::Sampled(5, 1);
  for (uint64_t seed = 1; seed <= kScenarios; ++seed) {
    Scenario scenario(seed, Fault::kNone);
    scenario.Run();
    trims += scenario.trims();
    catch_up_reads += scenario.catch_up_reads();
  }
  EXPECT_GT(trims, 4 * kScenarios);
  EXPECT_GT(catch_up_reads, 20 * kScenarios);
}

class PlantedReaderFault : public ::testing::TestWithParam<std::pair<std::string, Fault>> {};

INSTANTIATE_TEST_SUITE_P(
    All, PlantedReaderFault,
    ::testing::Values(std::pair("FloorBeforeTheScan", Fault::kFloorBeforeTheScan),
                      std::pair("PositionBeforeTheCommit", Fault::kPositionBeforeTheCommit),
                      std::pair("ToldBeforeItCanBeRead", Fault::kToldBeforeItCanBeRead),
                      std::pair("CopyOfTheLatest", Fault::kCopyOfTheLatest),
                      std::pair("DeletesBeforeTheFloor", Fault::kDeletesBeforeTheFloor),
                      std::pair("TrimsAboveAFollower", Fault::kTrimsAboveAFollower),
                      std::pair("PlaceBeforeTheCommitIsWhole", Fault::kPlaceBeforeTheCommitIsWhole),
                      std::pair("TailFromElsewhere", Fault::kTailFromElsewhere),
                      std::pair("CopyGoesOnElsewhere", Fault::kCopyGoesOnElsewhere),
                      std::pair("StartsAtTheFirstEvent", Fault::kStartsAtTheFirstEvent),
                      std::pair("ForgetsWhatLeftTheFilter", Fault::kForgetsWhatLeftTheFilter),
                      std::pair("ForgetsDeletedCollections", Fault::kForgetsDeletedCollections)),
    [](const auto& planted) { return planted.param.first; });

// Ends with the first run that finds it; what depends on how threads meet may take many.
TEST_P(PlantedReaderFault, IsFound) { EXPECT_THAT(Wrong(GetParam().second, 400), Not(IsEmpty())); }

}  // namespace
}  // namespace strata::feed::testing
