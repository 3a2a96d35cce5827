// The step function: every prefix of its steps, in every order that seeds draw.
#include "schemas/transaction/two_phase.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "schemas/document/bson_builder.h"
#include "schemas/transaction/moment.h"
#include "tests/documents/world.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/tested_engines.h"
#include "tests/support/volume.h"
#include "tests/transaction/schedule.h"
#include "tests/transaction/transactions_world.h"

namespace strata::transaction::testing {
namespace {

using document::BsonReader;
using versioning::StoredVersion;
using versioning::VersionKind;
using versioning::VersionMark;

constexpr int64_t kMoney = 100;

TransactionRecord RecordOf(TransactionStatus status, size_t participants) {
  TransactionRecord record;
  record.status = status;
  record.participants.resize(participants);
  return record;
}

Step StepOf(TransactionStatus status, const std::vector<Slot>& slots) {
  return NextStep(RecordOf(status, slots.size()), slots);
}

TEST(NextStep, FillsSlotsInOrderAndNeverPassesOneThatIsNotItsOwn) {
  const auto pending = TransactionStatus::kPending;
  EXPECT_EQ(StepOf(pending, {Slot::kUnknown, Slot::kEmpty}), (Step{Action::kLook, 0}));
  EXPECT_EQ(StepOf(pending, {Slot::kEmpty, Slot::kUnknown}), (Step{Action::kApply, 0}));
  EXPECT_EQ(StepOf(pending, {Slot::kOurs, Slot::kUnknown}), (Step{Action::kLook, 1}));
  const Step cancels{Action::kBecome, 0, TransactionStatus::kCancelling};
  EXPECT_EQ(StepOf(pending, {Slot::kTaken, Slot::kEmpty}), cancels);
  EXPECT_EQ(StepOf(pending, {Slot::kOurs, Slot::kGone}), cancels);
  EXPECT_EQ(StepOf(pending, {Slot::kOurs, Slot::kPassed}),
            (Step{Action::kBecome, 0, TransactionStatus::kApplied}));
}

TEST(NextStep, ClosesTheFirstEmptySlotAndThenUndoesBackwards) {
  const auto cancelling = TransactionStatus::kCancelling;
  EXPECT_EQ(StepOf(cancelling, {Slot::kOurs, Slot::kEmpty, Slot::kUnknown}),
            (Step{Action::kClose, 1}));
  EXPECT_EQ(StepOf(cancelling, {Slot::kOurs, Slot::kOurs, Slot::kTaken}), (Step{Action::kUndo, 1}));
  EXPECT_EQ(StepOf(cancelling, {Slot::kOurs, Slot::kPassed, Slot::kTaken}),
            (Step{Action::kUndo, 0}));
  EXPECT_EQ(StepOf(cancelling, {Slot::kPassed, Slot::kTaken, Slot::kUnknown}),
            (Step{Action::kBecome, 0, TransactionStatus::kCancelled}));
}

TEST(NextStep, ADeletedCollectionNeitherEndsTheUndoingNorNeedsIt) {
  EXPECT_EQ(StepOf(TransactionStatus::kCancelling, {Slot::kGone, Slot::kOurs}),
            (Step{Action::kUndo, 1}));
  EXPECT_EQ(StepOf(TransactionStatus::kCancelling, {Slot::kGone, Slot::kPassed}),
            (Step{Action::kBecome, 0, TransactionStatus::kCancelled}));
}

// What one document says: its balance, and how often each transaction and the writers took effect.
struct Account {
  int64_t money = 0;
  std::map<std::string, int64_t> effects;
};

Account AccountOf(const document::Content& content) {
  Account account;
  BsonReader reader(content.bytes());
  while (reader.Next()) {
    if (reader.name() == "money") {
      account.money = reader.Int64();
    } else {
      account.effects[std::string(reader.name())] = reader.Int64();
    }
  }
  return account;
}

document::Patch Add(const std::vector<std::pair<std::string, int32_t>>& amounts) {
  document::Patch patch;
  for (const auto& [path, by] : amounts) {
    patch.operations.push_back(versioning::testing::Increment(path, by).operations.front());
  }
  return patch;
}

struct ScheduleOptions {
  std::string_view strategy = "deltas";
  bool single = true;
  uint64_t seed = 1;
  // Faults that are planted.
  StepFunction next_step = NextStep;
  bool blind_writer = false;
  bool unguarded_status = false;
};

// One schedule, on documents of its own.
class Schedule {
 public:
  Schedule(store::Store& engine, const Clock& clock, const ScheduleOptions& options)
      : engine_(engine),
        clock_(clock),
        options_(options),
        random_(options.seed),
        scheduler_(random_()),
        prefix_(std::to_string(options.seed)) {
    process_.strategy = options.strategy;
    process_.single = options.single;
    process_.next_step = options.next_step;
    for (int i = 0; i < 3; ++i) {
      accounts_.push_back({std::string(options.strategy), prefix_ + "/" + std::to_string(i)});
    }
  }

  // What is wrong after it; empty: nothing.
  std::string Run() {
    SetUp();
    AddAgents();
    scheduler_.Run(/*percent_frozen=*/static_cast<int>(random_() % 4));
    Settle();
    return problem_.empty() ? Check() : problem_;
  }

  const std::map<std::string, TransactionStatus>& ends() const { return ends_; }

 private:
  ProcessOptions Fresh() const {
    ProcessOptions fresh = process_;
    fresh.next_step = NextStep;
    fresh.seed = 1 + options_.seed;
    return fresh;
  }

  void SetUp() {
    ScheduledProcess process(engine_, clock_, Fresh(), nullptr);
    for (const DocumentName& account : accounts_) {
      versioning::WriteRequest request;
      request.name = account;
      process.documents().Create(
          std::move(request),
          document::Content::FromTrusted(document::BsonBuilder().Int64("money", kMoney).Take()),
          [this](const auto& created) { Expect(created.ok(), "cannot create"); });
      process.Finish();
    }
    // The first account, which both have, is the one that they fight about.
    Begin(process, "t1", {0, 1 + random_() % 2});
    Begin(process, "t2", {0, 1, 2});
  }

  void Begin(ScheduledProcess& process, const std::string& name, std::vector<size_t> documents) {
    TransactionRecord record;
    record.mode = TransactionMode::kTwoPhase;
    record.create_time = record.last_modified = clock_.Now();
    const int32_t amount = 7;
    for (size_t i = 0; i < documents.size(); ++i) {
      const int32_t by = i == 0 ? -amount * static_cast<int32_t>(documents.size() - 1) : amount;
      Operation operation;
      operation.name = accounts_[documents[i]];
      operation.what = Update{Add({{"/money", by}, {"/" + name, 1}})};
      record.data.push_back(Encode(operation));
      record.participants.emplace_back().name = operation.name;
    }
    const std::string id = Id(name);
    documents_[name] = std::move(documents);
    process.two_phase().Begin(id, std::move(record), Deadline::max(),
                              [this](const absl::StatusOr<bool>& begun) {
                                Expect(begun.ok() && *begun, "cannot begin");
                              });
    process.Finish();
  }

  std::string Id(const std::string& name) const {
    return name + "-" + std::string(options_.strategy) + (options_.single ? "-s-" : "-a-") +
           prefix_;
  }

  void AddAgents() {
    const size_t workers = 1 + random_() % 3;
    for (size_t i = 0; i < workers; ++i) AddWorker("t1");
    if (random_() % 2 == 0) AddWorker("t2");
    if (random_() % 2 == 0) AddCanceller("t1");
    if (random_() % 3 == 0) AddCanceller("t2");
    AddWriter(random_() % accounts_.size());
    if (random_() % 2 == 0) AddWriter(random_() % accounts_.size());
    AddReader();
  }

  void AddAgent(std::function<void(ScheduledProcess&)> start) {
    scheduler_.Add(engine_, clock_, process_, [this, start](ScheduledProcess& process) {
      if (options_.unguarded_status) process.store().change_batch = Unguarded;
      start(process);
    });
  }

  static store::WriteBatch Unguarded(store::WriteBatch batch) {
    store::WriteBatch changed;
    for (const store::Write& write : batch.writes()) {
      store::Write& copy = changed.Put(write.keyspace, "", "");
      copy = write;
      if (write.keyspace == store::Keyspace::kTransactions && write.guard == store::Guard::kStamp) {
        copy.guard = store::Guard::kAny;
      }
      if (changed.writes().size() == batch.commit_point() + 1) changed.MarkCommitPoint();
    }
    for (const store::LedgerEntry& entry : batch.ledger()) changed.AppendToLedger(entry);
    return changed;
  }

  void AddWorker(const std::string& name) {
    AddAgent([id = Id(name)](ScheduledProcess& process) {
      process.two_phase().Drive(id, Until::kFinished, std::nullopt, [](const auto&) {});
    });
  }

  void AddCanceller(const std::string& name) {
    AddAgent([this, name, id = Id(name)](ScheduledProcess& process) {
      process.two_phase().Drive(id, Until::kFinished, Cancellation{"asked for"},
                                [this, name](const absl::StatusOr<Driven>& driven) {
                                  if (driven.ok()) answered_[name] = driven->record.status;
                                });
    });
  }

  void AddWriter(size_t index) {
    AddAgent([this, index](ScheduledProcess& process) {
      if (options_.blind_writer) return WriteBlindly(process, index);
      versioning::WriteRequest request;
      request.name = accounts_[index];
      ++writes_begun_[index];
      process.documents().Update(std::move(request), Add({{"/w", 1}}), false,
                                 [this, index](const auto& written) {
                                   if (written.ok()) ++writes_answered_[index];
                                 });
    });
  }

  // As a writer who does not look at the mark.
  void WriteBlindly(ScheduledProcess& process, size_t index) {
    const DocumentName& name = accounts_[index];
    const auto collection = *process.documents().collections().Find(engine_, name.collection);
    const versioning::ReadContext context{engine_, engine_.capabilities()};
    const auto head = *collection->strategy->ReadHead(context, {collection->incarnation, name.id});
    versioning::SlotRequest slot;
    slot.name = name;
    slot.incarnation = collection->incarnation;
    slot.version = head->version.header.version + 1;
    slot.transaction_id = "blind";
    slot.mark = VersionMark::kNone;
    slot.mutate = versioning::UpdateMutator(name, Add({{"/w", 1}}), false, {});
    ++writes_begun_[index];
    process.documents().TakeSlot(std::move(slot), [this, index](const auto& took) {
      if (took.ok() && *took) ++writes_answered_[index];
    });
  }

  void AddReader() {
    AddAgent([this](ScheduledProcess& process) { ReadAll(process); });
  }

  // No transaction is ever seen in half, and no money is missing.
  void ReadAll(ScheduledProcess& process) {
    const absl::StatusOr<ReadDocuments> read =
        ReadMoment(process.store(), process.documents(), accounts_, {});
    if (ReasonOf(read.status()) == ErrorReason::kRetriesExhausted) return;
    if (!read.ok()) return Expect(false, "a reader: " + std::string(read.status().message()));
    std::vector<Account> seen;
    for (const auto& found : read->documents) seen.push_back(AccountOf(*found.version.content));
    if (seen.size() != accounts_.size()) return Expect(false, "a reader misses an account");
    int64_t money = 0;
    for (const Account& account : seen) money += account.money;
    Expect(money == kMoney * 3, "a reader sees " + std::to_string(money) + " in all");
    for (const auto& [name, documents] : documents_) {
      for (const size_t i : documents) {
        Expect(seen[i].effects[name] == seen[documents[0]].effects[name],
               "a reader sees half of " + name);
      }
    }
  }

  // Alone, a fresh worker brings everything to an end.
  void Settle() {
    ScheduledProcess process(engine_, clock_, Fresh(), nullptr);
    for (const auto& [name, documents] : documents_) {
      process.two_phase().Drive(Id(name), Until::kFinished, std::nullopt,
                                [this, name = name](const absl::StatusOr<Driven>& driven) {
                                  if (driven.ok()) ends_[name] = driven->record.status;
                                });
      process.Finish();
      Expect(ends_.contains(name), "a fresh worker does not end " + name);
    }
    for (size_t i = 0; i < accounts_.size(); ++i) {
      versioning::WriteRequest request;
      request.name = accounts_[i];
      ++writes_begun_[i];
      process.documents().Update(std::move(request), Add({{"/w", 1}}), false,
                                 [this, i](const auto& written) {
                                   Expect(written.ok(), "a fresh writer is refused");
                                   ++writes_answered_[i];
                                 });
      process.Finish();
    }
    ReadAll(process);
    process.Finish();
  }

  std::string Check() {
    ProcessOptions plain = Fresh();
    ScheduledProcess process(engine_, clock_, plain, nullptr);
    int64_t money = 0;
    for (size_t i = 0; i < accounts_.size(); ++i) {
      std::vector<StoredVersion> versions;
      versioning::HistoryQuery query;
      query.name = accounts_[i];
      query.oldest_first = true;
      query.include_content = true;
      auto cursor = process.documents().History(query);
      while (cursor.Next()) versions.push_back(cursor.version());
      if (!cursor.status().ok()) return "the history cannot be read";
      const Account account = AccountOf(*versions.back().content);
      money += account.money;
      CheckEffects(i, account);
      CheckVersions(versions);
    }
    Expect(money == kMoney * 3, "money: " + std::to_string(money));
    for (const auto& [name, status] : answered_) {
      Expect(ends_[name] == status, "the answer about " + name + " did not hold");
    }
    return problem_;
  }

  void CheckEffects(size_t index, const Account& account) {
    const auto count = [&](const std::string& name) {
      const auto found = account.effects.find(name);
      return found == account.effects.end() ? 0 : found->second;
    };
    for (const auto& [name, documents] : documents_) {
      const bool part = std::find(documents.begin(), documents.end(), index) != documents.end();
      const int64_t expected = part && ends_[name] == TransactionStatus::kDone ? 1 : 0;
      Expect(count(name) == expected, name + " took effect " + std::to_string(count(name)) +
                                          " times, not " + std::to_string(expected));
    }
    const int64_t writes = count("w");
    Expect(writes >= writes_answered_[index] && writes <= writes_begun_[index],
           "of " + std::to_string(writes_begun_[index]) + " writes " +
               std::to_string(writes_answered_[index]) + " were answered and " +
               std::to_string(writes) + " are there");
  }

  // What a cancelled transaction wrote is followed by its undoing and nothing else.
  void CheckVersions(const std::vector<StoredVersion>& versions) {
    for (size_t i = 0; i < versions.size(); ++i) {
      const versioning::VersionHeader& header = versions[i].header;
      if (header.mark != VersionMark::kApplied) continue;
      const bool done = (header.transaction_id == Id("t1") ? ends_["t1"] : ends_["t2"]) ==
                        TransactionStatus::kDone;
      if (done) continue;
      const bool undone = i + 1 < versions.size() &&
                          versions[i + 1].header.mark == VersionMark::kUndone &&
                          versions[i + 1].header.transaction_id == header.transaction_id;
      Expect(undone, "a version stands on an undecided one");
      if (undone && i > 0) {
        Expect(*versions[i + 1].content == *versions[i - 1].content, "the undoing is not exact");
      }
    }
  }

  void Expect(bool holds, const std::string& otherwise) {
    if (!holds && problem_.empty()) problem_ = otherwise;
  }

  store::Store& engine_;
  const Clock& clock_;
  const ScheduleOptions options_;
  ProcessOptions process_;
  std::mt19937_64 random_;
  Scheduler scheduler_;
  const std::string prefix_;
  std::vector<DocumentName> accounts_;
  std::map<std::string, std::vector<size_t>> documents_;
  std::map<size_t, int64_t> writes_begun_;
  std::map<size_t, int64_t> writes_answered_;
  std::map<std::string, TransactionStatus> answered_;
  std::map<std::string, TransactionStatus> ends_;
  std::string problem_;
};

class EngineInMemory {
 public:
  explicit EngineInMemory(std::string_view engine = "memory") {
    engines::OpenOptions open;
    open.clock = &clock;
    store = *test_support::OpenTestedEngine(engine, open);
  }

  test_support::ManualClock clock;
  std::unique_ptr<store::Store> store;
};

// Of all strategies, with and without atomic batches, or snapshots, so many of each.
TEST(TwoPhase, WhateverStopsItEachTransactionTakesEffectOnceOrNotAtAll) {
  const uint64_t seed = test_support::TestSeed();
  std::printf("STRATA_SEED=%llu\n", static_cast<unsigned long long>(seed));
  const int64_t of_each =
      test_support::NumberOr("STRATA_TRANSACTION_SCHEDULES", test_support::Sampled(5'000, 200)) /
      15;
  std::set<TransactionStatus> ends;
  for (const versioning::StrategyEntry& strategy : versioning::AllStrategies()) {
    for (const Ground& ground :
         {Ground{"memory", Mode::kSingle}, Ground{"memory"}, Ground{"live"}}) {
      std::unique_ptr<EngineInMemory> engine;
      for (int64_t i = 0; i < of_each; ++i) {
        if (i % 200 == 0) engine = std::make_unique<EngineInMemory>(ground.engine);
        ScheduleOptions options;
        options.strategy = strategy.name;
        options.single = ground.mode == Mode::kSingle;
        options.seed = seed + static_cast<uint64_t>(i);
        Schedule schedule(*engine->store, engine->clock, options);
        const std::string problem = schedule.Run();
        for (const auto& [name, status] : schedule.ends()) ends.insert(status);
        ASSERT_EQ(problem, "") << strategy.name << " over " << ::testing::PrintToString(ground)
                               << ", STRATA_SEED=" << options.seed;
      }
    }
  }
  EXPECT_EQ(ends, (std::set{TransactionStatus::kDone, TransactionStatus::kCancelled}));
}

// Whether one of so many schedules finds the fault.
bool IsFoundIn(int schedules, ScheduleOptions options) {
  EngineInMemory engine;
  for (int i = 0; i < schedules; ++i) {
    options.seed = static_cast<uint64_t>(i + 1);
    if (!Schedule(*engine.store, engine.clock, options).Run().empty()) return true;
  }
  return false;
}

Step WithoutClosing(const TransactionRecord& record, std::span<const Slot> slots) {
  std::vector<Slot> as_if(slots.begin(), slots.end());
  Step step = NextStep(record, as_if);
  while (step.action == Action::kClose) {
    as_if[step.participant] = Slot::kTaken;
    step = NextStep(record, as_if);
  }
  return step;
}

Step AppliedEarly(const TransactionRecord& record, std::span<const Slot> slots) {
  const Step step = NextStep(record, slots);
  const bool passes = record.status == TransactionStatus::kPending && step.participant > 0;
  return passes ? Step{Action::kBecome, 0, TransactionStatus::kApplied} : step;
}

TEST(PlantedFault, AFreeSlotThatIsNotClosedIsFound) {
  EXPECT_TRUE(IsFoundIn(2'000, {.next_step = WithoutClosing}));
}

TEST(PlantedFault, ATransactionThatIsAppliedBeforeAllSlotsAreFilledIsFound) {
  EXPECT_TRUE(IsFoundIn(200, {.next_step = AppliedEarly}));
}

TEST(PlantedFault, AWriterWhoDoesNotLookAtTheMarkIsFound) {
  EXPECT_TRUE(IsFoundIn(1'000, {.blind_writer = true}));
}

TEST(PlantedFault, AStatusThatIsWrittenWithoutItsGuardIsFound) {
  EXPECT_TRUE(IsFoundIn(1'000, {.unguarded_status = true}));
}

}  // namespace
}  // namespace strata::transaction::testing
