// How units and writes wait for each other: at random, on few documents, in one process and in two
// over one store, with documents that others must not wait for. All are answered, once; nobody is
// overtaken; nobody waits for ever.
//
// STRATA_LINES_WRITES says how many there are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "schemas/base/waiter.h"
#include "tests/documents/units.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"
#include "tests/versioning/verify_world.h"

namespace strata::versioning::testing {
namespace {

using test_support::HasReason;
using test_support::IsOk;
using ::testing::IsEmpty;

constexpr int kDocuments = 5;
constexpr size_t kLargeDocuments = 2;
constexpr size_t kBriefBytes = 1000;
constexpr size_t kWaitingMax = 64;
constexpr size_t kClients = 4;
constexpr int64_t kProcessFactor = 1'000'000'000;  // above any number of a write

size_t Writes() {
  return static_cast<size_t>(
      test_support::NumberOr("STRATA_LINES_WRITES", test_support::Sampled(20'000, 1'000)));
}

// Does each commit when the test lets it go, in any order.
class LooseCommits final : public store::ForwardingStore {
 public:
  LooseCommits(store::Store& inner, bool reads_block)
      : ForwardingStore(inner), reads_block_(reads_block) {}

  store::Capabilities capabilities() const override {
    store::Capabilities capabilities = ForwardingStore::capabilities();
    capabilities.blocking_reads = reads_block_;
    return capabilities;
  }
  void Commit(store::WriteBatch batch, store::CommitCallback done) override {
    waiting_.emplace_back(std::move(batch), std::move(done));
  }
  bool LetOneGo(std::mt19937_64& random) {
    if (waiting_.empty()) return false;
    const auto which = waiting_.begin() + static_cast<ptrdiff_t>(random() % waiting_.size());
    auto [batch, done] = std::move(*which);
    waiting_.erase(which);
    inner().Commit(std::move(batch), std::move(done));
    return true;
  }

 private:
  const bool reads_block_;
  std::vector<std::pair<store::WriteBatch, store::CommitCallback>> waiting_;
};

// Has its turns when the test gives them, and sometimes none.
class Client final : public Waiter {
 public:
  explicit Client(std::mt19937_64& random) : random_(random) {}

  bool gone() const override { return false; }
  absl::Status Defer(std::function<void()> work) const override {
    if (random_() % 8 == 0) {
      ++refusals_;
      return Error(ErrorReason::kOverloaded, "too much waits");
    }
    deferred_.push_back(std::move(work));
    return absl::OkStatus();
  }
  const void* line() const override { return this; }
  bool RunOne() {
    if (deferred_.empty()) return false;
    const std::function<void()> work = std::move(deferred_.front());
    deferred_.pop_front();
    ++turns_;
    work();
    return true;
  }

  int turns() const { return turns_; }
  int refusals() const { return refusals_; }

 private:
  std::mt19937_64& random_;
  int turns_ = 0;
  mutable int refusals_ = 0;
  mutable std::deque<std::function<void()>> deferred_;
};

struct Lines {
  int processes = 1;
  bool takes_long = false;  // there are large documents
  bool reads_block = false;
};

void PrintTo(const Lines& lines, std::ostream* out) {
  *out << lines.processes << (lines.takes_long ? " long" : "")
       << (lines.reads_block ? " blocking" : "");
}

class UnitLinesTest : public ::testing::TestWithParam<Lines> {
 protected:
  struct Process {
    Process(store::Store& engine, test_support::ManualClock& clock, uint64_t seed)
        : commits(engine, GetParam().reads_block),
          entropy(seed),
          executor(clock),
          documents(commits, clock, entropy, executor, Options()) {}
    static DocumentsOptions Options() {
      DocumentsOptions options;
      options.write.brief_document_bytes_max = kBriefBytes;
      return options;
    }

    LooseCommits commits;
    test_support::SeededEntropy entropy;
    test_support::ManualExecutor executor;
    Documents documents;
  };

  static DocumentName NameOf(size_t document) { return Named("d" + std::to_string(document)); }

  // Something else each time, so that each write is a version that says whose it is.
  static document::Content ContentOf(size_t document, int64_t number) {
    const bool large = GetParam().takes_long && document < kLargeDocuments;
    return document::Content::FromTrusted(
        document::BsonBuilder()
            .Int64("n", number)
            .String("text", large ? std::string(2 * kBriefBytes, 'x') : "")
            .Take());
  }
  static Change Writing(size_t document, int64_t number) {
    Change change;
    change.request.name = NameOf(document);
    change.request.max_attempts = 1'000'000;
    change.mutate = [document, number](const CurrentState& current) -> absl::StatusOr<Mutation> {
      return Mutation{current.live() ? VersionKind::kUpdated : VersionKind::kCreated,
                      ContentOf(document, number)};
    };
    return change;
  }

  // Begins a write or a unit, in that process.
  void Begin(size_t process, std::mt19937_64& random) {
    const int64_t number = static_cast<int64_t>(process) * kProcessFactor + ++begun_;
    const auto waits = waiting_.emplace(waiting_.end(), world.clock().SteadyNow());
    std::vector<size_t> documents(kDocuments);
    for (size_t i = 0; i < documents.size(); ++i) documents[i] = i;
    std::shuffle(documents.begin(), documents.end(), random);
    const Waiter* const client = random() % 8 == 0 ? nullptr : &clients_[random() % kClients];
    const bool brief = random() % 4 != 0;
    if (random() % 2 == 0) {
      Change change = Writing(documents[0], number);
      change.request.waiter = client;
      change.request.brief = brief;
      processes_[process]->documents.Modify(
          std::move(change.request), std::move(change.mutate),
          [this, waits, document = documents[0]](const absl::StatusOr<WriteResult>& result) {
            if (!result.ok()) ExpectRefusal(result.status());
            End(waits, {document}, result.ok());
          });
      return;
    }
    UnitRequest unit = UnitOf({}, std::to_string(number));
    unit.max_attempts = 1'000'000;
    unit.waiter = client;
    unit.brief = brief;
    documents.resize(random() % 4);
    for (const size_t document : documents) unit.changes.push_back(Writing(document, number));
    const size_t read = random() % kDocuments;
    const bool reads =
        random() % 3 == 0 && std::find(documents.begin(), documents.end(), read) == documents.end();
    if (reads) unit.reads.push_back({NameOf(read), versions_[read]});
    processes_[process]->documents.Commit(
        std::move(unit), [this, waits, documents, reads](const absl::StatusOr<UnitResult>& result) {
          const bool conflict = ReasonOf(result.status()) == ErrorReason::kVersionConflict;
          if (!result.ok() && !(reads && conflict)) ExpectRefusal(result.status());
          End(waits, documents, result.ok());
        });
  }

  static void ExpectRefusal(const absl::Status& refusal) {
    EXPECT_TRUE(GetParam().takes_long);
    EXPECT_THAT(refusal, HasReason(ErrorReason::kOverloaded));
  }

  using Waits = std::list<std::chrono::steady_clock::time_point>;
  void End(Waits::iterator waits, const std::vector<size_t>& documents, bool done) {
    EXPECT_LT(world.clock().SteadyNow() - *waits, std::chrono::seconds(10));
    waiting_.erase(waits);
    ++ended_;
    if (!done) return;
    for (const size_t document : documents) ++versions_[document];
  }

  // Something that is under way goes on. False: there is nothing.
  bool GoOn(std::mt19937_64& random) {
    Process& process = *processes_[random() % processes_.size()];
    world.clock().Advance(std::chrono::microseconds(random() % 200));
    Client& client = clients_[random() % kClients];
    if (random() % 4 != 0 && process.commits.LetOneGo(random)) return true;
    if (random() % 2 == 0 && client.RunOne()) return true;
    return process.executor.RunDue() > 0 || process.commits.LetOneGo(random);
  }

  void ExpectOrder(size_t document) {
    ASSERT_OK_AND_ASSIGN(std::vector<StoredVersion> history, world->History(NameOf(document)));
    EXPECT_EQ(static_cast<int64_t>(history.size()), versions_[document]);
    std::vector<int64_t> newest(processes_.size(), 0);
    for (auto version = history.rbegin(); version != history.rend(); ++version) {
      const int64_t number = NumberIn(*version);
      int64_t& before = newest[static_cast<size_t>(number / kProcessFactor)];
      EXPECT_LT(before, number) << "v" << version->header.version << " was overtaken";
      before = number;
    }
  }

  World world;
  std::mt19937_64 turns_;
  std::vector<Client> clients_ = std::vector<Client>(kClients, Client(turns_));
  std::vector<std::unique_ptr<Process>> processes_;
  int64_t begun_ = 0;
  int64_t ended_ = 0;
  Waits waiting_;
  std::map<size_t, int64_t> versions_;
};

TEST_P(UnitLinesTest, AllAreAnsweredInTheirOrder) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 random(seed);
  turns_.seed(seed);
  for (int i = 0; i < GetParam().processes; ++i) {
    processes_.push_back(
        std::make_unique<Process>(world.engine(), world.clock(), seed + static_cast<uint64_t>(i)));
  }
  const auto wanted = static_cast<int64_t>(Writes());
  while (begun_ < wanted) {
    if (waiting_.size() < kWaitingMax && random() % 2 == 0) {
      Begin(random() % processes_.size(), random);
    } else {
      GoOn(random);
    }
    ASSERT_FALSE(HasFailure());
  }
  for (int idle = 0; !waiting_.empty(); idle = GoOn(random) ? 0 : idle + 1) {
    ASSERT_LT(idle, 100'000) << waiting_.size() << " wait for ever";
  }
  EXPECT_EQ(ended_, begun_);
  for (const Client& client : clients_) {
    EXPECT_EQ(client.turns() > 0, GetParam().takes_long);
    EXPECT_EQ(client.refusals() > 0, GetParam().takes_long);
  }
  for (size_t document = 0; document < kDocuments; ++document) ExpectOrder(document);
  VerifyQuery query;
  query.collection = "things";
  const auto verified = Verify(world.process(), world.clock(), query);
  ASSERT_THAT(verified, IsOk());
  EXPECT_THAT(verified->findings, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Processes, UnitLinesTest,
                         ::testing::Values(Lines{1}, Lines{2}, Lines{1, true}, Lines{2, true},
                                           Lines{1, true, true}, Lines{2, true, true}));

}  // namespace
}  // namespace strata::versioning::testing
