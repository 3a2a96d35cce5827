// Every way in which a commit can end, under groups of mixed writers at random: each answer must be
// explained by what was stored at some moment between call and answer. No answer ever names a
// version that is not stored, or a state that never was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "schemas/enrollment/enrollments.h"
#include "schemas/versioning/document_errors.h"
#include "tests/documents/held_commits.h"
#include "tests/documents/world.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"

namespace strata::versioning::testing {
namespace {

using std::chrono::microseconds;
using test_support::HasReason;
using test_support::IsOk;
using Time = std::chrono::steady_clock::time_point;

document::Content Padded(int64_t value, size_t padding) {
  document::BsonBuilder builder;
  builder.Int64("n", value);
  if (padding > 0) builder.String("padding", std::string(padding, 'x'));
  return document::Content::FromTrusted(builder.Take());
}

// What a call asks for, besides what its request says.
struct Task {
  enum Kind { kCreate, kReplace, kPatch, kDelete, kRestore, kMessage } kind = kCreate;
  document::Content content;
  document::Patch patch;
  bool allow_missing = false;
  int64_t version = 0;
  enrollment::Message message;
};

struct Call {
  WriteRequest
      request;  // its change's reason is a token of its own, which every record of it holds
  Task task;
  size_t called_at = 0;  // moments, see History
  size_t answered_at = 0;
  Time answer_time;
  int answers = 0;
  absl::Status refusal;
  WriteResult result;
  std::optional<enrollment::Applied> applied;

  const std::string& token() const { return request.change.reason; }
  ErrorReason reason() const { return ReasonOf(refusal).value_or(ErrorReason::kInternal); }
  int64_t number(std::string_view key) const {
    const std::optional<std::string> value = MetadataOf(refusal, key);
    return value && !value->empty() && isdigit(value->front()) ? std::stoll(*value) : -1;
  }
};

// What a call comes to on a state.
struct Outcome {
  std::optional<ErrorReason> refusal;
  bool changes = false;
  std::optional<document::Content> content;  // of the version that it makes or leaves
  enrollment::Result result = enrollment::Result::kApplied;
  bool enrolled = false;
};

Outcome Refuse(const absl::Status& status) {
  Outcome outcome;
  outcome.refusal = ReasonOf(status).value_or(ErrorReason::kInternal);
  return outcome;
}

// What was stored, moment by moment; versions are added and never change.
class History {
 public:
  struct Moment {
    int64_t head = 0;  // 0: never written
    bool collection = false;
  };

  size_t now() const { return moments_.size() - 1; }
  const Moment& at(size_t moment) const { return moments_[moment]; }
  const std::vector<StoredVersion>& versions() const { return versions_; }
  const StoredVersion* Find(int64_t version) const {
    const bool there = version >= 1 && static_cast<size_t>(version) <= versions_.size();
    return there ? &versions_[static_cast<size_t>(version - 1)] : nullptr;
  }

  void Read(Documents& documents, store::Store& store, store::CommitPosition position) {
    if (!moments_.empty() && position == position_) return;
    position_ = position;
    const auto collection = documents.collections().Find(store, kName.collection);
    ASSERT_THAT(collection, IsOk());
    const auto moment_of = [&](size_t versions) {
      return Moment{static_cast<int64_t>(versions), *collection != nullptr};
    };
    HistoryQuery query;
    query.name = kName;
    query.include_content = true;
    std::vector<StoredVersion> found;
    HistoryCursor cursor = documents.History(std::move(query));
    while (cursor.Next()) {
      const StoredVersion* const known = Find(cursor.version().header.version);
      if (known != nullptr) {
        EXPECT_EQ(known->header, cursor.version().header) << "a version changed";
        break;
      }
      found.push_back(std::move(cursor.version()));
    }
    if (found.empty()) moments_.push_back(moment_of(versions_.size()));
    // The versions of one commit follow each other, each a state of its own.
    for (; !found.empty(); found.pop_back()) {
      ASSERT_EQ(found.back().header.version, static_cast<int64_t>(versions_.size()) + 1);
      versions_.push_back(std::move(found.back()));
      moments_.push_back(moment_of(versions_.size()));
    }
  }

  // What the call would come to as the only one at that moment.
  Outcome Decide(const Call& call, size_t moment) const {
    Outcome outcome = Decide(call, at(moment).head);
    const bool missing =
        outcome.refusal && ReasonCode(*outcome.refusal) == absl::StatusCode::kNotFound;
    if (missing && !at(moment).collection) outcome.refusal = ErrorReason::kCollectionNotFound;
    return outcome;
  }

  // The same on version `head`.
  Outcome Decide(const Call& call, int64_t head) const {
    const Precondition& must = call.request.precondition;
    const StoredVersion* const current = Find(head);
    const bool live = current != nullptr && !current->deleted();
    Outcome outcome;
    if ((must.version && *must.version != head) || (must.exists && *must.exists != live)) {
      outcome.refusal = ErrorReason::kVersionConflict;
    } else if (must.filter && !(live && must.filter->Matches(*current->content))) {
      outcome.refusal = ErrorReason::kFilterNotMatched;
    } else {
      outcome = Apply(call.task, current);
    }
    if (outcome.refusal) return outcome;
    const bool same = live && outcome.content && call.task.kind != Task::kCreate &&
                      !call.request.keep_unchanged &&
                      document::SameMeaning(*current->content, *outcome.content);
    outcome.changes = !same;
    return outcome;
  }

 private:
  Outcome Apply(const Task& task, const StoredVersion* current) const {
    const bool live = current != nullptr && !current->deleted();
    const document::Limits limits;
    Outcome outcome;
    switch (task.kind) {
      case Task::kCreate:
        if (live) return Refuse(DocumentExists(kName, 0));
        outcome.content = task.content;
        return outcome;
      case Task::kReplace:
        if (!live && !task.allow_missing) return Refuse(NotLive(kName, current));
        outcome.content = task.content;
        return outcome;
      case Task::kPatch: {
        if (!live && !task.allow_missing) return Refuse(NotLive(kName, current));
        const auto patched =
            ApplyPatch(live ? *current->content : document::Content(), task.patch, limits);
        if (!patched.ok()) return Refuse(patched.status());
        outcome.content = *patched;
        return outcome;
      }
      case Task::kDelete:
        return live ? outcome : Refuse(NotLive(kName, current));
      case Task::kRestore: {
        if (current == nullptr) return Refuse(DocumentNotFound(kName));
        const int64_t head = current->header.version;
        if (task.version > head) return Refuse(VersionNotFound(kName, task.version, head));
        if (Find(task.version)->deleted()) return Refuse(DocumentDeleted(kName, task.version));
        outcome.content = Find(task.version)->content;
        return outcome;
      }
      case Task::kMessage: {
        if (current != nullptr && !live) return Refuse(DocumentDeleted(kName, 0));
        const auto decided = enrollment::ApplyMessage(
            live ? *current->content : document::Content(), kName.id, task.message, limits);
        if (!decided.ok()) return Refuse(decided.status());
        outcome.content = decided->content;
        outcome.result = decided->result;
        outcome.enrolled = decided->enrolled;
        return outcome;
      }
    }
    return outcome;
  }

  std::vector<StoredVersion> versions_;
  std::vector<Moment> moments_;
  store::CommitPosition position_ = 0;  // what is stored has changed if this has
};

// A commit that the test did not let end well.
struct Ended {
  size_t moment = 0;
  ErrorReason reason{};  // kVersionConflict: lost
  std::string records;   // all that it would have written

  bool makes_collection = false;  // for whoever would write then

  bool Holds(const Call& call) const { return records.find(call.token()) != std::string::npos; }
};

// Whether an answer is explained by what was stored, and by what the test did to commits.
class Judge {
 public:
  Judge(const History& history, const std::vector<Ended>& ended)
      : history_(history), ended_(ended) {}

  bool Explains(const Call& call) const {
    if (call.applied) return ExplainsApplied(call);
    return call.refusal.ok() ? ExplainsResult(call) : ExplainsRefusal(call);
  }

 private:
  template <typename Claim>
  bool AtSomeMoment(const Call& call, Claim claim) const {
    for (size_t m = call.called_at; m <= call.answered_at; ++m) {
      if (claim(history_.at(m).head, history_.Decide(call, m))) return true;
    }
    return false;
  }
  bool AddedMeanwhile(const Call& call, int64_t version) const {
    return version > history_.at(call.called_at).head &&
           version <= history_.at(call.answered_at).head;
  }
  // Version `version` is stored, by this call, and is what the call makes of the one before.
  bool Wrote(const Call& call, int64_t version) const {
    const StoredVersion* const stored = history_.Find(version);
    if (stored == nullptr || stored->header.change.reason != call.token()) return false;
    const Outcome outcome = history_.Decide(call, version - 1);
    return AddedMeanwhile(call, version) && !outcome.refusal && outcome.changes &&
           outcome.content == stored->content;
  }

  bool ExplainsResult(const Call& call) const {
    const StoredVersion& answer = call.result.version;
    const int64_t version = answer.header.version;
    const StoredVersion* const stored = history_.Find(version);
    if (call.request.validate_only && call.result.changed && !call.result.replayed) {
      return call.result.position == 0 && answer.position == 0 &&
             AtSomeMoment(call, [&](int64_t head, const Outcome& outcome) {
               return !outcome.refusal && outcome.changes && head + 1 == version &&
                      outcome.content == answer.content;
             });
    }
    if (stored == nullptr || stored->header != answer.header) return false;
    if (stored->content != answer.content || stored->position != answer.position) return false;
    if (call.result.replayed) {
      return version <= history_.at(call.answered_at).head &&
             stored->header.request_id == call.request.request_id &&
             stored->header.change.reason == call.token() &&
             call.result.position == stored->position;
    }
    if (call.result.changed) {
      return call.result.position == stored->position && Wrote(call, version);
    }
    return call.result.position == 0 &&
           AtSomeMoment(call, [&](int64_t head, const Outcome& outcome) {
             return head == version && !outcome.refusal && !outcome.changes;
           });
  }

  bool ExplainsApplied(const Call& call) const {
    const auto agrees = [&](const Outcome& outcome) {
      return outcome.result == call.applied->result && outcome.enrolled == call.applied->enrolled;
    };
    const int64_t version = call.applied->version;
    if (Wrote(call, version)) return agrees(history_.Decide(call, version - 1));
    return AtSomeMoment(call, [&](int64_t head, const Outcome& outcome) {
      return head == version && !outcome.refusal && !outcome.changes && agrees(outcome);
    });
  }

  bool ExplainsRefusal(const Call& call) const {
    const ErrorReason reason = call.reason();
    const auto refused_so = [&](int64_t, const Outcome& outcome) {
      return outcome.refusal == reason;
    };
    switch (reason) {
      case ErrorReason::kVersionConflict:
      case ErrorReason::kFilterNotMatched: {
        const int64_t actual = call.number("actual");
        return AtSomeMoment(call,
                            [&](int64_t head, const Outcome& outcome) {
                              return head == actual && outcome.refusal == reason;
                            }) ||
               (call.request.precondition.forbids_retry() && LostAgainst(call, actual));
      }
      case ErrorReason::kRetriesExhausted:
        return Ends(call, ErrorReason::kVersionConflict) >= call.request.max_attempts;
      case ErrorReason::kDeadlineExceeded:
        return call.request.deadline <= call.answer_time;
      case ErrorReason::kRequestIdReused: {
        const StoredVersion* const other = history_.Find(call.number("version"));
        return other != nullptr && other->header.version <= history_.at(call.answered_at).head &&
               other->header.request_id == call.request.request_id &&
               other->header.change.reason != call.token();
      }
      case ErrorReason::kLayoutLimit: {  // of the engine, or of the strategy's plan
        const auto would_write = [&](int64_t, const Outcome& outcome) {
          return !outcome.refusal && outcome.changes;
        };
        return Ends(call, reason) > 0 || AtSomeMoment(call, would_write);
      }
      case ErrorReason::kOverloaded:
      case ErrorReason::kStoreUnavailable:
      case ErrorReason::kOutcomeUnknown:
        return Ends(call, reason) > 0;
      default:
        return AtSomeMoment(call, refused_so);
    }
  }

  // How many commits ended so that would have written for the call.
  int Ends(const Call& call, ErrorReason reason) const {
    return static_cast<int>(std::count_if(ended_.begin(), ended_.end(), [&](const Ended& ended) {
      return ended.reason == reason && ended.moment >= call.called_at &&
             ended.moment <= call.answered_at && (ended.makes_collection || ended.Holds(call));
    }));
  }
  // The call lost a race and found `actual` then, in place of what it had named.
  bool LostAgainst(const Call& call, int64_t actual) const {
    return Ends(call, ErrorReason::kVersionConflict) > 0 && call.number("expected") < actual &&
           AtSomeMoment(call, [&](int64_t head, const Outcome&) { return head == actual; });
  }

  const History& history_;
  const std::vector<Ended>& ended_;
};

// What happened over all episodes: a test that never gets somewhere proves nothing there.
struct Counts {
  std::map<std::string, int> endings;
  std::map<std::string, int> answers;
  int calls = 0;

  void Print() const {
    std::printf("%d calls;", calls);
    for (const auto* const each : {&endings, &answers}) {
      for (const auto& [name, count] : *each) std::printf(" %s %d,", name.c_str(), count);
      std::printf("\n");
    }
  }
};

struct Setting {
  std::string strategy;
  Mode mode = Mode::kAtomic;
};

// One document's life: calls at random, commits that end at random.
class Episode {
 public:
  Episode(const Setting& setting, uint64_t seed, Counts& counts)
      : setting_(setting), random_(seed), entropy_(seed), counts_(counts) {
    engines::OpenOptions open;
    open.clock = &clock_;
    engine_ = *engines::OpenEngine("memory", open);
    store_ = engine_.get();
    if (setting.mode != Mode::kAtomic) {
      single_ = std::make_unique<test_support::SingleRecordStore>(*engine_);
      store_ = single_.get();
    }
    held_ = std::make_unique<HeldCommits>(*store_);
    DocumentsOptions options;
    options.write.default_strategy = FindStrategy(setting.strategy);
    options.write.group_versions_max = Pick({2, 5, 128});
    options.write.group_bytes_max = Pick<size_t>({100, 8 << 20});
    options.write.direct_bytes_max = Pick<size_t>({0, 256 << 10});
    documents_ = std::make_unique<Documents>(*held_, clock_, entropy_, executor_, options);
    enrollments_ = std::make_unique<enrollment::Enrollments>(*documents_);
    rival_ = std::make_unique<Documents>(*store_, clock_, entropy_, executor_, options);
    clock_.StepAtEachCall(microseconds(7));
    history_.Read(*rival_, *store_, engine_->LastPosition());
    held_->hold = true;
  }

  // Contents of about these sizes.
  void set_paddings(std::vector<size_t> paddings) { paddings_ = std::move(paddings); }
  void Fill(int versions, size_t bytes) {
    for (int i = 0; i < versions; ++i) {
      Rival(Padded(i, bytes));
    }
    Rival(Padded(0, 0));
  }

  void Run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      if (Chance(0.3)) clock_.Advance(microseconds(Number(3000)));
      if (held_->held.size() + executor_.pending() == 0 || Chance(0.5)) {
        for (int64_t calls = 1 + Number(6); calls > 0; --calls) CallOnce();
      } else if (executor_.pending() > 0 && (held_->held.empty() || Chance(0.5))) {
        executor_.RunAll(1);
      } else {
        EndCommit();
      }
      if (!late_.empty() && Chance(0.3)) WriteLate();
      Settle();
    }
    Drain();
  }

 private:
  // Chance.
  int64_t Number(int64_t below) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(below));
  }
  bool Chance(double share) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < share;
  }
  template <typename Value = int>
  Value Pick(const std::vector<Value>& from) {
    return from[random_() % from.size()];
  }

  // Calls.
  void CallOnce() {
    calls_.push_back(std::make_unique<Call>());
    Call& call = *calls_.back();
    const auto repeated = calls_[random_() % calls_.size()].get();
    if (!repeated->request.request_id.empty() && Chance(0.5)) {
      call.request = repeated->request;
      call.task = repeated->task;
      call.request.validate_only = Chance(0.1);
    } else {
      Invent(call);
      if (call.task.kind != Task::kMessage && Chance(0.1)) {
        call.request.request_id = repeated->request.request_id;
      }
    }
    call.called_at = history_.now();
    ++counts_.calls;
    Make(call);
    Settle();
  }

  void Invent(Call& call) {
    call.request.name = kName;
    call.request.change.reason = "<" + std::to_string(calls_.size()) + ">";
    call.task.kind =
        Pick<Task::Kind>({Task::kCreate, Task::kReplace, Task::kReplace, Task::kPatch, Task::kPatch,
                          Task::kDelete, Task::kRestore, Task::kMessage, Task::kMessage});
    call.task.content = Padded(Number(3), Pick(paddings_));
    call.task.patch = Chance(0.2)   ? Set("/n/deeper", 1)
                      : Chance(0.5) ? Set("/n", static_cast<int32_t>(Number(3)))
                                    : Increment("/m", 1);
    call.task.allow_missing = Chance(0.5);
    call.task.version = 1 + Number(static_cast<int64_t>(history_.versions().size()) + 2);
    if (Chance(0.2)) call.request.deadline = clock_.SteadyNow() + microseconds(Number(20'000));
    if (call.task.kind == Task::kMessage) return InventMessage(call.task.message);
    if (Chance(0.3)) call.request.request_id = "id" + std::to_string(calls_.size());
    if (Chance(0.1)) call.request.validate_only = true;
    if (Chance(0.1)) call.request.keep_unchanged = true;
    if (Chance(0.3)) call.request.max_attempts = 1;
    const int64_t newest = static_cast<int64_t>(history_.versions().size());
    if (Chance(0.2)) {
      call.request.precondition.version = std::max<int64_t>(0, newest - 1 + Number(4));
    } else if (Chance(0.15)) {
      call.request.precondition.exists = Chance(0.5);
    } else if (Chance(0.15)) {
      call.request.precondition.filter = *document::Filter::Compile(Padded(Number(3), 0));
    }
  }

  void InventMessage(enrollment::Message& message) {
    message.class_name = Chance(0.5) ? "CS 101" : "CS 102";
    message.sequence_number = 1 + Number(4);
    message.operation =
        Chance(0.5) ? enrollment::Operation::kEnroll : enrollment::Operation::kUnenroll;
  }

  void Make(Call& call) {
    auto done = [this, &call](absl::StatusOr<WriteResult> result) {
      if (result.ok()) {
        call.result = *std::move(result);
      } else {
        call.refusal = result.status();
      }
      Answered(call);
    };
    switch (call.task.kind) {
      case Task::kCreate:
        return documents_->Create(call.request, call.task.content, done);
      case Task::kReplace:
        return documents_->Update(call.request, call.task.content, call.task.allow_missing, done);
      case Task::kPatch:
        return documents_->Update(call.request, call.task.patch, call.task.allow_missing, done);
      case Task::kDelete:
        return documents_->Delete(call.request, done);
      case Task::kRestore:
        return documents_->Restore(call.request, call.task.version, done);
      case Task::kMessage:
        return enrollments_->Apply(
            {call.request.name, call.task.message, call.request.change, call.request.deadline},
            [this, &call](absl::StatusOr<enrollment::Applied> applied) {
              call.refusal = applied.status();
              if (applied.ok()) call.applied = *applied;
              Answered(call);
            });
    }
  }

  void Answered(Call& call) {
    EXPECT_EQ(++call.answers, 1);
    call.answer_time = clock_.SteadyNow();
    answered_.push_back(&call);
  }

  // Looks at what is stored now, and judges the answers that came.
  void Settle() {
    history_.Read(*rival_, *store_, engine_->LastPosition());
    for (Call* const call : answered_) {
      call->answered_at = history_.now();
      ++counts_.answers[NameOf(*call)];
      EXPECT_TRUE(Judge(history_, ended_).Explains(*call)) << Show(*call);
    }
    answered_.clear();
  }

  static std::string NameOf(const Call& call) {
    if (!call.refusal.ok()) return std::string(ReasonName(call.reason()));
    if (call.applied) return "result " + std::to_string(static_cast<int>(call.applied->result));
    if (call.result.replayed) return "replayed";
    return call.result.changed ? "changed" : "unchanged";
  }
  std::string Show(const Call& call) const {
    const int64_t version =
        call.applied ? call.applied->version : call.result.version.header.version;
    return NameOf(call) + " " + call.token() + ", kind " + std::to_string(call.task.kind) +
           ", version " + std::to_string(version) + ", heads " +
           std::to_string(history_.at(call.called_at).head) + " to " +
           std::to_string(history_.at(call.answered_at).head) + ", " + call.refusal.ToString();
  }

  // Ends of commits.
  void EndCommit() {
    using End = std::function<void(Episode&)>;
    static const auto* const ends = new std::vector<std::pair<std::string, End>>{
        {"committed", &Episode::LetGo},
        {"lost", [](Episode& e) { e.End(ErrorReason::kVersionConflict); }},
        {"lost to a rival", &Episode::LoseToRival},
        {"overloaded", [](Episode& e) { e.End(ErrorReason::kOverloaded); }},
        {"unavailable", [](Episode& e) { e.End(ErrorReason::kStoreUnavailable); }},
        {"layout limit", [](Episode& e) { e.End(ErrorReason::kLayoutLimit); }},
        {"unknown, not stored", [](Episode& e) { e.End(ErrorReason::kOutcomeUnknown); }},
        {"unknown, stored", &Episode::StoreUnseen},
        {"unknown, stored later", &Episode::StoreLate},
        {"unknown, begun", &Episode::StoreBeginning},
        {"too late", &Episode::WaitTooLong},
    };
    const auto& [name, end] = Chance(0.5) ? ends->front() : (*ends)[random_() % ends->size()];
    ++counts_.endings[name];
    end(*this);
  }

  void Note(ErrorReason reason) { Note(reason, held_->held.front().first); }
  void Note(ErrorReason reason, const store::WriteBatch& batch) {
    Ended ended;
    ended.moment = history_.now();
    ended.reason = reason;
    ended.makes_collection = true;
    for (const store::Write& write : batch.writes()) {
      ended.records += write.value;
      // What is no write of a document can only be in the way of one.
      const bool of_document = write.kind != store::WriteKind::kCheck &&
                               write.keyspace != store::Keyspace::kCollections &&
                               write.keyspace != store::Keyspace::kMeta;
      if (of_document) ended.makes_collection = false;
    }
    ended_.push_back(std::move(ended));
  }
  // As the store wants it to end.
  void LetGo() {
    auto [batch, done] = held_->Take();
    store_->Commit(batch, [this, batch = batch, done = done](const store::CommitResult& result) {
      if (result.status.ok() && !result.committed) Note(ErrorReason::kVersionConflict, batch);
      done(result);
    });
  }
  void End(ErrorReason reason) {
    Note(reason);
    if (reason == ErrorReason::kVersionConflict) return held_->Lose();
    held_->Fail(Error(reason, "so the test wants it"));
  }
  void Rival(const document::Content& content) {
    WriteRequest request;
    request.name = kName;
    request.change.reason = "<rival " + std::to_string(++rivals_) + ">";
    request.keep_unchanged = true;
    rival_->Update(request, content, true, [](const auto&) {});
    history_.Read(*rival_, *store_, engine_->LastPosition());
  }
  void LoseToRival() {
    Rival(Padded(Number(3), 0));
    LetGo();
  }
  void StoreUnseen() {
    Note(ErrorReason::kOutcomeUnknown);
    auto [batch, done] = held_->Take();
    test_support::AwaitCommit(*store_, std::move(batch));
    Unknown(done);
  }
  void StoreLate() {
    Note(ErrorReason::kOutcomeUnknown);
    auto [batch, done] = held_->Take();
    late_.push_back(std::move(batch));
    Unknown(done);
  }
  void WriteLate() {
    test_support::AwaitCommit(*store_, std::move(late_.back()));
    late_.pop_back();
  }
  // The engine stops between two writes.
  void StoreBeginning() {
    if (store_->capabilities().atomic_batches) return StoreUnseen();
    Note(ErrorReason::kOutcomeUnknown);
    auto [batch, done] = held_->Take();
    store::WriteBatch beginning;
    const size_t count = 1 + random_() % batch.writes().size();
    for (size_t i = 0; i < count; ++i) {
      beginning.Put(store::Keyspace::kMeta, "", "") = batch.writes()[i];
      if (i == batch.commit_point()) beginning.MarkCommitPoint();
    }
    test_support::AwaitCommit(*store_, std::move(beginning));
    Unknown(done);
  }
  static void Unknown(const store::CommitCallback& done) {
    store::CommitResult result;
    result.status = testing::Unknown();
    done(result);
  }
  void WaitTooLong() {
    const Time deadline = held_->held.front().first.deadline();
    if (deadline != Time::max() && deadline > clock_.SteadyNow()) {
      clock_.Advance(std::chrono::duration_cast<microseconds>(deadline - clock_.SteadyNow()) +
                     microseconds(1));
    }
    LetGo();
  }

  // To the end, and what must hold there.
  void Drain() {
    while (held_->held.size() + executor_.pending() > 0 && !::testing::Test::HasFailure()) {
      if (held_->held.empty()) {
        executor_.RunAll(1);
      } else {
        LetGo();
      }
      Settle();
    }
    while (!late_.empty()) WriteLate();
    Settle();
    if (::testing::Test::HasFailure()) return;
    for (const auto& call : calls_) EXPECT_EQ(call->answers, 1) << Show(*call);
    CheckChain();
    CheckTokens();
  }

  void CheckChain() {
    document::Hash chain = ChainStart(kName.collection, kName.id);
    for (const StoredVersion& version : history_.versions()) {
      chain = ChainHash(chain, version.header);
      EXPECT_EQ(chain, version.header.chain_hash);
    }
  }

  // Each request is stored once at most, and not at all if all that was answered are refusals.
  void CheckTokens() {
    std::map<std::string, int> stored;
    for (const StoredVersion& version : history_.versions()) ++stored[version.header.change.reason];
    std::map<std::string, int> acknowledged;
    std::set<std::string> possible;
    for (const auto& call : calls_) {
      const bool unknown = call->reason() == ErrorReason::kOutcomeUnknown && !call->refusal.ok();
      if (call->refusal.ok() || unknown) possible.insert(call->token());
      if (call->refusal.ok() && call->result.changed && !call->result.replayed &&
          !call->request.validate_only) {
        ++acknowledged[call->token()];
      }
    }
    for (const auto& [token, count] : stored) {
      EXPECT_EQ(count, 1) << token;
      if (token.find("rival") == std::string::npos) {
        EXPECT_TRUE(possible.contains(token)) << token << " was refused and is stored";
      }
    }
    for (const auto& [token, count] : acknowledged) {
      EXPECT_EQ(count, 1) << token;
      EXPECT_EQ(stored[token], 1) << token;
    }
  }

  const Setting setting_;
  std::mt19937_64 random_;
  test_support::ManualClock clock_;
  test_support::SeededEntropy entropy_;
  test_support::ManualExecutor executor_{clock_};
  std::unique_ptr<store::Store> engine_;
  std::unique_ptr<test_support::SingleRecordStore> single_;
  store::Store* store_ = nullptr;
  std::unique_ptr<HeldCommits> held_;
  std::unique_ptr<Documents> documents_;
  std::unique_ptr<enrollment::Enrollments> enrollments_;
  std::unique_ptr<Documents> rival_;
  std::vector<size_t> paddings_{0};
  std::vector<store::WriteBatch> late_;
  int rivals_ = 0;

  History history_;
  std::vector<Ended> ended_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<Call*> answered_;
  Counts& counts_;
};

class CommitEndingsTest : public ::testing::TestWithParam<Setting> {
 protected:
  // Runs episodes until one fails; its seed alone repeats it.
  void RunEpisodes(int episodes, const std::function<void(Episode&)>& run) {
    const uint64_t seed = test_support::TestSeed();
    for (int i = 0; i < episodes && !HasFailure(); ++i) {
      const uint64_t episode_seed = seed + static_cast<uint64_t>(i);
      STRATA_TRACE_SEED(episode_seed);
      Episode episode(GetParam(), episode_seed, counts_);
      run(episode);
    }
    std::printf("seed %llu: ", static_cast<unsigned long long>(seed));
    counts_.Print();
  }

  Counts counts_;
};

TEST_P(CommitEndingsTest, EachAnswerIsExplainedByWhatIsStored) {
  RunEpisodes(test_support::Sampled(120, 15), [](Episode& episode) { episode.Run(60); });
  if (test_support::Sampled(1, 0) == 0) return;  // too few to meet every ending
  EXPECT_EQ(counts_.endings.size(), 11u);
  for (const char* const answer :
       {"changed", "unchanged", "replayed", "VERSION_CONFLICT", "FILTER_NOT_MATCHED", "OVERLOADED",
        "OUTCOME_UNKNOWN", "DEADLINE_EXCEEDED", "LAYOUT_LIMIT", "STORE_UNAVAILABLE",
        "REQUEST_ID_REUSED", "RETRIES_EXHAUSTED", "INVALID_PATCH", "result 1", "result 2",
        "result 3", "result 4"}) {
    EXPECT_GT(counts_.answers[answer], 0) << answer;
  }
}

// Some versions of a group fit and some do not, and then only some by themselves.
TEST_P(CommitEndingsTest, NorDoesALayoutThatIsFullChangeThat) {
  if (GetParam().strategy != "embedded-history") GTEST_SKIP() << "exempt: has no limit";
  RunEpisodes(test_support::Sampled(6, 1), [](Episode& episode) {
    episode.Fill(4, 2'996'000);
    episode.set_paddings({0, 500, 4'000, 20'000});
    episode.Run(60);
  });
}

std::vector<Setting> AllSettings() {
  std::vector<Setting> all;
  for (const StrategyEntry& strategy : AllStrategies()) {
    for (const Mode mode : {Mode::kAtomic, Mode::kSingle}) {
      all.push_back({std::string(strategy.name), mode});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, CommitEndingsTest, ::testing::ValuesIn(AllSettings()),
                         [](const auto& each) {
                           std::string name = each.param.strategy + "_";
                           name += ModeName(each.param.mode);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The same by example, where there is nothing at random.
class EndingTest : public ::testing::Test {
 protected:
  explicit EndingTest(std::string_view strategy = "deltas") {
    DocumentsOptions options;
    options.write.default_strategy = FindStrategy(strategy);
    documents_ = std::make_unique<Documents>(held_, world_.clock(), entropy_, executor_, options);
    held_.hold = true;
  }

  Answer& Update(WriteRequest request, Documents::NewContent content, bool allow_missing = false) {
    answers_.push_back(std::make_unique<Answer>());
    documents_->Update(std::move(request), std::move(content), allow_missing,
                       answers_.back()->Callback());
    return *answers_.back();
  }
  // 0 for a refusal.
  static int64_t VersionOf(Answer& answer) {
    return answer.Wait().ok() ? answer.Wait()->version.header.version : 0;
  }
  int64_t Newest() {
    const auto head = documents_->Get(kName, {});
    return head.ok() ? head->header.version : 0;
  }
  // Lets everything happen.
  void Drain() {
    while (held_.held.size() + executor_.pending() > 0) {
      executor_.RunAll();
      if (!held_.held.empty()) held_.LetGo();
    }
  }

  World world_;
  HeldCommits held_{world_.engine()};
  test_support::ManualExecutor executor_{world_.clock()};
  test_support::SeededEntropy entropy_{3};
  std::unique_ptr<Documents> documents_;
  std::vector<std::unique_ptr<Answer>> answers_;
};

TEST_F(EndingTest, ACollectionThatCannotBeMadeHoldsNothingThatAnybodyRepeats) {
  for (int i = 0; i < 3; ++i) Update(Request(), Number(1), /*allow_missing=*/true);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(held_.held.size(), 1u) << i;
    held_.Fail(Overloaded());
    EXPECT_THAT(answers_[i]->Wait(), HasReason(ErrorReason::kOverloaded));
  }
  EXPECT_THAT(documents_->Get(kName, {}), HasReason(ErrorReason::kCollectionNotFound));
}

TEST_F(EndingTest, AMessageIsADuplicateOnlyOfOneThatIsStored) {
  enrollment::Enrollments enrollments(*documents_);
  std::vector<absl::StatusOr<enrollment::Applied>> answers;
  for (const char* const class_name : {"CS 100", "CS 101", "CS 101"}) {
    enrollment::ApplyRequest request;
    request.student = kName;
    request.message = {"classes", class_name, 1000, enrollment::Operation::kEnroll};
    enrollments.Apply(request, [&](const auto& applied) { answers.push_back(applied); });
  }
  held_.Fail(Overloaded());
  held_.Fail(Overloaded());  // of the other two, which were decided together
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_THAT(answers[1], HasReason(ErrorReason::kOverloaded));
  Drain();
  ASSERT_EQ(answers.size(), 3u);
  ASSERT_THAT(answers[2], IsOk());
  EXPECT_EQ(answers[2]->result, enrollment::Result::kApplied);
  EXPECT_EQ(Newest(), 1);
}

// A document whose record takes a little more, and no more than that.
class FullLayoutTest : public EndingTest {
 protected:
  FullLayoutTest() : EndingTest("embedded-history") {
    held_.hold = false;
    for (int i = 0; i < 4; ++i) {
      Update(Request(), Padded(i, 2'996'000), /*allow_missing=*/true);
      executor_.RunAll();
    }
    answers_.clear();
    held_.hold = true;
    EXPECT_EQ(Newest(), 4);
  }

  static constexpr size_t kTooMuch = 100'000;
};

TEST_F(FullLayoutTest, NothingIsDecidedOnAVersionThatDoesNotFit) {
  Answer& first = Update(Request(), Number(7));
  Answer& refused = Update(Request(), Padded(1, kTooMuch));
  Answer& same = Update(Request(), Padded(1, kTooMuch));
  WriteRequest named = Request();
  named.precondition.version = 5;
  Answer& on_the_first = Update(named, Number(8));
  Drain();
  EXPECT_EQ(VersionOf(first), 5);
  EXPECT_THAT(refused.Wait(), HasReason(ErrorReason::kLayoutLimit));
  EXPECT_THAT(same.Wait(), HasReason(ErrorReason::kLayoutLimit));
  EXPECT_EQ(VersionOf(on_the_first), 6);
  EXPECT_EQ(Newest(), 6);
}

// Those answered before, on what is stored, stand between those that would write.
TEST_F(FullLayoutTest, AGroupOfAllKindsIsAnsweredEachForItself) {
  Update(Request(), Number(7));
  for (int i = 0; i < 12; ++i) {
    WriteRequest request = Request();
    if (i % 4 == 1) request.precondition.version = 1;
    if (i % 4 == 2) request.validate_only = true;
    Update(request, i % 4 == 3 ? Documents::NewContent(Padded(i, kTooMuch))
                               : Documents::NewContent(Number(7)));
  }
  Drain();
  for (size_t i = 1; i < answers_.size(); ++i) {
    const absl::StatusOr<WriteResult>& answer = answers_[i]->Wait();
    switch ((i - 1) % 4) {
      case 1:
        EXPECT_EQ(MetadataOf(answer.status(), "actual"), "5");
        break;
      case 3:
        EXPECT_THAT(answer, HasReason(ErrorReason::kLayoutLimit));
        break;
      default:
        ASSERT_THAT(answer, IsOk());
        EXPECT_FALSE(answer->changed);
        EXPECT_EQ(answer->version.header.version, 5);
    }
  }
  EXPECT_EQ(Newest(), 5);
}

}  // namespace
}  // namespace strata::versioning::testing
