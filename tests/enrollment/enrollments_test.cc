// The facade over every strategy, engine and mode: messages in any order, from many threads and
// processes, through crashes, end as the oracle says and read as what happened.
#include "schemas/enrollment/enrollments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "tests/documents/world.h"
#include "tests/enrollment/oracle.h"
#include "tests/support/executors.h"
#include "tests/support/hooked_store.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"

namespace strata::enrollment::testing {
namespace {

using document::Content;
using document::Doc;
using test_support::HasReason;
using test_support::IsOk;
using test_support::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using versioning::ChainHash;
using versioning::ChainStart;
using versioning::StoredVersion;
using versioning::VersionKind;
using versioning::testing::AllCombinations;
using versioning::testing::Combination;
using versioning::testing::CombinationName;
using versioning::testing::Mode;
using versioning::testing::Process;
using versioning::testing::World;
using versioning::testing::WorldOptions;

constexpr char kStudents[] = "students";

// One answer, waited for on any thread.
template <typename T>
class Waiter {
 public:
  std::function<void(absl::StatusOr<T>)> Callback() {
    return [this](absl::StatusOr<T> result) {
      const std::lock_guard lock(mutex_);
      ASSERT_FALSE(result_) << "answered twice";
      result_ = std::move(result);
      answered_.notify_all();
    };
  }
  absl::StatusOr<T> Wait() {
    std::unique_lock lock(mutex_);
    answered_.wait(lock, [this] { return result_.has_value(); });
    return *result_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable answered_;
  std::optional<absl::StatusOr<T>> result_;
};

absl::StatusOr<Applied> Apply(versioning::Documents& documents, ApplyRequest request) {
  Enrollments enrollments(documents);
  Waiter<Applied> waiter;
  enrollments.Apply(std::move(request), waiter.Callback());
  return waiter.Wait();
}
absl::StatusOr<Applied> Apply(Process& process, const std::string& student, const Message& message,
                              const std::string& actor = "", const std::string& reason = "") {
  ApplyRequest request;
  request.student = {kStudents, student};
  request.message = message;
  request.change.actor = actor;
  request.change.reason = reason;
  return Apply(process.documents(), std::move(request));
}
absl::StatusOr<Applied> Apply(Process& process, const std::string& student,
                              const std::string& message) {
  return Apply(process, student, OneMessage(message));
}

absl::StatusOr<Purged> Purge(Process& process, PurgeRequest request) {
  Enrollments enrollments(process.documents());
  Waiter<Purged> waiter;
  enrollments.Purge(std::move(request), waiter.Callback());
  return waiter.Wait();
}
PurgeRequest PurgeOf(const std::string& student, int64_t through) {
  PurgeRequest request;
  request.collection = kStudents;
  request.student_id = student;
  request.through = through;
  return request;
}

versioning::WriteRequest WriteOf(const std::string& student) {
  versioning::WriteRequest request;
  request.name = {kStudents, student};
  return request;
}

// A student's document after `messages`, from nothing.
Content Expected(const std::string& student, const std::vector<Message>& messages) {
  const Classes classes = OracleClasses(NoDocument(), messages);
  return Doc("{\"student_id\":\"" + student + "\"," + SetJson(classes, 0) + "}");
}

Content CurrentContent(Process& process, const std::string& student) {
  const auto version = process.documents().Get({kStudents, student}, {});
  EXPECT_THAT(version, IsOk());
  return version.ok() && version->content ? *version->content : Content();
}

void ExpectChain(const std::string& student, const std::vector<StoredVersion>& newest_first) {
  document::Hash chain = ChainStart(kStudents, student);
  for (size_t i = newest_first.size(); i-- > 0;) {
    chain = ChainHash(chain, newest_first[i].header);
    EXPECT_EQ(chain, newest_first[i].header.chain_hash);
  }
}

class EnrollmentsTest : public ::testing::TestWithParam<Combination> {
 protected:
  EnrollmentsTest() : world({GetParam().engine, GetParam().mode, GetParam().strategy, 1, true}) {}

  bool stale() const { return GetParam().mode == Mode::kStale; }
  Process& process() { return world.process(); }

  struct RosterPage {
    std::map<std::string, int64_t> students;  // with numbers
    int pages = 0;
  };
  absl::StatusOr<RosterPage> Roster(RosterQuery query, int page_size = 1000) {
    const Enrollments enrollments(world->documents());
    query.collection = kStudents;
    RosterPage roster;
    std::string last;
    for (;;) {
      ++roster.pages;
      RosterCursor students = enrollments.Roster(query);
      for (int taken = 0; students.Next() && taken < page_size; ++taken) {
        EXPECT_LT(last, students.student_id());
        last = students.student_id();
        EXPECT_TRUE(students.enrollment().enrolled);
        EXPECT_EQ(students.enrollment().class_name, query.class_name);
        EXPECT_GE(students.version(), 1);
        roster.students.emplace(last, students.enrollment().sequence_number);
      }
      if (!students.status().ok()) return students.status();
      if (!students.resume_after()) return roster;
      query.after_id = *students.resume_after();
    }
  }
  absl::StatusOr<RosterPage> RosterOf(const std::string& class_name) {
    RosterQuery query;
    query.class_name = class_name;
    return Roster(query);
  }

  World world;
};

TEST_P(EnrollmentsTest, AnUnknownStudentIsMadeInTheArticlesShape) {
  ASSERT_OK_AND_ASSIGN(const Applied applied,
                       Apply(process(), "1", {"classes", "CS 101", 1000, Operation::kEnroll}));
  EXPECT_EQ(applied.result, Result::kApplied);
  EXPECT_TRUE(applied.enrolled);
  EXPECT_EQ(applied.version, 1);
  EXPECT_EQ(CurrentContent(process(), "1"),
            Doc(R"({"student_id":"1","classes":[{"name":"CS 101","seq":{"$numberLong":"1000"}}],
                   "deleted_classes":[]})"));
  ASSERT_OK_AND_ASSIGN(const auto history, world->History({kStudents, "1"}));
  ASSERT_EQ(history.size(), 1u);
  EXPECT_EQ(history[0].header.kind, VersionKind::kCreated);
}

TEST_P(EnrollmentsTest, TheArticlesMessagesEndTheSameInBothOrders) {
  const Message enroll{"classes", "CS 101", 1000, Operation::kEnroll};
  const Message unenroll{"classes", "CS 101", 1001, Operation::kUnenroll};
  ASSERT_THAT(Apply(process(), "1", enroll), IsOk());
  ASSERT_OK_AND_ASSIGN(const Applied in_order, Apply(process(), "1", unenroll));
  EXPECT_EQ(in_order.result, Result::kApplied);
  EXPECT_EQ(in_order.version, 2);
  ASSERT_THAT(Apply(process(), "2", unenroll), IsOk());
  ASSERT_OK_AND_ASSIGN(const Applied late, Apply(process(), "2", enroll));
  EXPECT_EQ(late.result, Result::kSuperseded);
  EXPECT_FALSE(late.enrolled);
  EXPECT_EQ(late.version, 1) << "nothing is written for a message without effect";
  EXPECT_EQ(CurrentContent(process(), "1"), Expected("1", {enroll, unenroll}));
  EXPECT_EQ(CurrentContent(process(), "2"), Expected("2", {enroll, unenroll}));
}

// A crowd: messages for five students from eight threads, in a random order and some again.
// STRATA_CROWD_MESSAGES and STRATA_CROWD_STUDENTS say how many.
class CrowdTest : public EnrollmentsTest {
 protected:
  struct Sent {
    std::string student;
    Message message;
  };

  static size_t Setting(const char* name, size_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? std::stoul(text) : otherwise;
  }

  // Two thirds of them are each one of its own.
  static std::vector<Sent> RandomMessages(std::mt19937_64& random) {
    const size_t count = Setting("STRATA_CROWD_MESSAGES", 150) * 2 / 3;
    const size_t students = Setting("STRATA_CROWD_STUDENTS", 5);
    std::vector<Sent> sent;
    for (size_t i = 0; i < count; ++i) {
      Message message;
      message.class_name = std::string(1, static_cast<char>('A' + random() % 4));
      message.sequence_number = static_cast<int64_t>(1 + random() % 12);
      message.operation = random() % 2 == 0 ? Operation::kEnroll : Operation::kUnenroll;
      sent.push_back({std::to_string(1 + random() % students), std::move(message)});
    }
    for (size_t i = 0; i < count / 2; ++i) sent.push_back(sent[random() % count]);
    std::shuffle(sent.begin(), sent.end(), random);
    return sent;
  }

  void Run(const std::vector<Process*>& processes) {
    constexpr size_t kThreads = 8;
    const uint64_t seed = test_support::TestSeed();
    STRATA_TRACE_SEED(seed);
    std::mt19937_64 random(seed);
    const std::vector<Sent> sent = RandomMessages(random);
    std::mutex mutex;
    std::map<std::string, std::map<int64_t, std::string>> written;  // student, version -> reason
    std::map<std::string, std::vector<Message>> messages;
    for (const Sent& one : sent) messages[one.student].push_back(one.message);
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = t; i < sent.size(); i += kThreads) {
          const std::string actor = "consumer " + std::to_string(t);
          const std::string reason = Show(sent[i].message) + " as " + std::to_string(i);
          Process& process = *processes[t % processes.size()];
          const auto applied = Apply(process, sent[i].student, sent[i].message, actor, reason);
          EXPECT_THAT(applied, IsOk());
          if (!applied.ok()) continue;
          const bool unenroll = sent[i].message.operation == Operation::kUnenroll;
          const std::lock_guard lock(mutex);
          switch (applied->result) {
            case Result::kApplied:
              EXPECT_TRUE(
                  written[sent[i].student].emplace(applied->version, actor + reason).second);
              EXPECT_EQ(applied->enrolled, !unenroll);
              break;
            case Result::kConflict:
              // Writes a version if it is the unenroll; the enroll finds it settled.
              EXPECT_FALSE(applied->enrolled);
              if (unenroll) {
                EXPECT_TRUE(
                    written[sent[i].student].emplace(applied->version, actor + reason).second);
              }
              break;
            case Result::kBelowFloor:
              ADD_FAILURE() << "there is no floor";
              break;
            default:
              break;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    std::printf("%zu messages for %zu students, %.0f a second\n", sent.size(), messages.size(),
                static_cast<double>(sent.size()) / spent.count());
    for (const auto& [student, theirs] : messages) {
      SCOPED_TRACE("student " + student);
      EXPECT_EQ(CurrentContent(process(), student), Expected(student, theirs));
      ExpectHistory(student, theirs, written[student]);
    }
  }

 private:
  // One version for each message that took effect, by whom and why, and none for any other.
  void ExpectHistory(const std::string& student, const std::vector<Message>& messages,
                     const std::map<int64_t, std::string>& written) {
    ASSERT_OK_AND_ASSIGN(const auto history, world->History({kStudents, student}));
    ASSERT_EQ(history.size(), written.size());
    ExpectChain(student, history);
    Start before = NoDocument();
    for (size_t i = history.size(); i-- > 0;) {
      const versioning::VersionHeader& header = history[i].header;
      const auto found = written.find(header.version);
      ASSERT_NE(found, written.end());
      ASSERT_EQ(header.change.actor + header.change.reason, found->second);
      // The version is the one before and the message that its reason names.
      const std::string text = header.change.reason.substr(0, header.change.reason.find(' '));
      before.classes = OracleClasses(before, {OneMessage(text)});
      ASSERT_EQ(*history[i].content,
                Doc("{\"student_id\":\"" + student + "\"," + SetJson(before.classes, 0) + "}"));
    }
    EXPECT_EQ(before.classes, OracleClasses(NoDocument(), messages));
    versioning::AuditQuery audit;
    audit.collection = kStudents;
    audit.id = student;
    std::map<int64_t, std::string> audited;
    versioning::AuditCursor rows = world->documents().Audit(audit);
    while (rows.Next()) {
      const versioning::VersionHeader& header = rows.row().version.header;
      audited.emplace(header.version, header.change.actor + header.change.reason);
    }
    ASSERT_THAT(rows.status(), IsOk());
    EXPECT_EQ(audited, written);
  }
};

TEST_P(CrowdTest, ManyThreadsEndAsTheOracleAndReadAsWhatHappened) { Run({&process()}); }

TEST_P(CrowdTest, TwoProcessesWithoutCombiningDoToo) {
  const WorldOptions options{GetParam().engine, GetParam().mode, GetParam().strategy, 7, false};
  Process one(world.engine(), options, world.clock());
  Process two(world.engine(), options, world.clock());
  Run({&one, &two});
}

TEST_P(EnrollmentsTest, OnlyMessagesThatTakeEffectMakeAVersion) {
  const struct {
    const char* message;
    Result result;
    int64_t version;
  } kSteps[] = {{"A+2", Result::kApplied, 1},    {"A+2", Result::kDuplicate, 1},
                {"A-1", Result::kSuperseded, 1}, {"A-2", Result::kConflict, 2},
                {"A+2", Result::kConflict, 2},   {"B-1", Result::kApplied, 3},
                {"A-3", Result::kApplied, 4}};
  for (const auto& step : kSteps) {
    SCOPED_TRACE(step.message);
    ASSERT_OK_AND_ASSIGN(const Applied applied, Apply(process(), "1", step.message));
    EXPECT_EQ(applied.result, step.result);
    EXPECT_EQ(applied.version, step.version);
  }
  ASSERT_OK_AND_ASSIGN(const auto history, world->History({kStudents, "1"}));
  EXPECT_EQ(history.size(), 4u);
  ExpectChain("1", history);
}

TEST_P(EnrollmentsTest, ADeletedStudentIsNotResurrectedByAMessage) {
  ASSERT_THAT(Apply(process(), "1", "A+1"), IsOk());
  ASSERT_THAT(world->Delete(WriteOf("1")), IsOk());
  for (const char* message : {"A+1", "A+2", "A-2", "B+1"}) {
    const auto refused = Apply(process(), "1", message);
    EXPECT_THAT(refused, HasReason(ErrorReason::kDocumentDeleted));
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_EQ(MetadataOf(refused.status(), "id"), "1");
    EXPECT_EQ(MetadataOf(refused.status(), "version"), "2");
  }
  const Enrollments enrollments(world->documents());
  ASSERT_OK_AND_ASSIGN(const StudentEnrollments gone, enrollments.Get({kStudents, "1"}, "classes"));
  EXPECT_THAT(gone.all, IsEmpty());
  EXPECT_EQ(gone.version, 2);
  EXPECT_THAT(Purge(process(), PurgeOf("1", 5)), HasReason(ErrorReason::kDocumentDeleted));
  ASSERT_OK_AND_ASSIGN(auto history, world->History({kStudents, "1"}));
  EXPECT_EQ(history.size(), 2u);

  ASSERT_THAT(world->Restore(WriteOf("1"), 1), IsOk());
  ASSERT_OK_AND_ASSIGN(const Applied restored, Apply(process(), "1", "A+1"));
  EXPECT_EQ(restored.result, Result::kDuplicate);
  ASSERT_THAT(world->Delete(WriteOf("1")), IsOk());
  ASSERT_THAT(world->Create(WriteOf("1"), Doc(R"({"name":"John Doe"})")), IsOk());
  ASSERT_OK_AND_ASSIGN(const Applied made_anew, Apply(process(), "1", "A-2"));
  EXPECT_EQ(made_anew.result, Result::kApplied);
  EXPECT_EQ(made_anew.version, 6);
}

TEST_P(EnrollmentsTest, OnlyApplyMakesACollection) {
  const Enrollments enrollments(world->documents());
  EXPECT_THAT(enrollments.Get({kStudents, "1"}, "classes"),
              HasReason(ErrorReason::kCollectionNotFound));
  EXPECT_THAT(RosterOf("A"), HasReason(ErrorReason::kCollectionNotFound));
  EXPECT_THAT(Purge(process(), PurgeOf("1", 1)), HasReason(ErrorReason::kCollectionNotFound));
  EXPECT_THAT(Purge(process(), PurgeOf("", 1)), HasReason(ErrorReason::kCollectionNotFound));
  ASSERT_THAT(Apply(process(), "1", "A+1"), IsOk());
  ASSERT_OK_AND_ASSIGN(const StudentEnrollments there,
                       enrollments.Get({kStudents, "1"}, "classes"));
  EXPECT_THAT(there.all, ElementsAre(Enrollment{"A", 1, true}));
  EXPECT_EQ(there.version, 1);
  ASSERT_OK_AND_ASSIGN(const StudentEnrollments nobody,
                       enrollments.Get({kStudents, "2"}, "classes"));
  EXPECT_THAT(nobody.all, IsEmpty());
  EXPECT_EQ(nobody.version, 0);
  EXPECT_THAT(Purge(process(), PurgeOf("2", 1)), HasReason(ErrorReason::kDocumentNotFound));
}

TEST_P(EnrollmentsTest, AMalformedStudentIsRefusedAndLeftAsItIs) {
  const Content odd = Doc(R"({"classes":[{"name":"A","seq":"1"}]})");
  ASSERT_THAT(world->Create(WriteOf("1"), odd), IsOk());
  const Enrollments enrollments(world->documents());
  for (const absl::Status& status :
       {Apply(process(), "1", "A+1").status(), Purge(process(), PurgeOf("1", 1)).status(),
        enrollments.Get({kStudents, "1"}, "classes").status()}) {
    EXPECT_THAT(status, HasReason(ErrorReason::kEnrollmentShape));
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_EQ(MetadataOf(status, "path"), "/classes/0/seq");
    EXPECT_EQ(MetadataOf(status, "collection"), kStudents);
    EXPECT_EQ(MetadataOf(status, "id"), "1");
  }
  EXPECT_EQ(CurrentContent(process(), "1"), odd);
  ASSERT_OK_AND_ASSIGN(const auto history, world->History({kStudents, "1"}));
  EXPECT_EQ(history.size(), 1u);
}

TEST_P(EnrollmentsTest, ARosterIsWhatTheOracleSays) {
  if (stale()) GTEST_SKIP() << "exempt: a stale scan may miss recent changes";
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 random(seed);
  ASSERT_THAT(world->Create(WriteOf("old"), Doc(R"({"classes":["A","B"]})")), IsOk());
  ASSERT_THAT(world->Create(WriteOf("odd"), Doc(R"({"classes":"A"})")), IsOk());
  ASSERT_THAT(Apply(process(), "gone", "A+1"), IsOk());
  ASSERT_THAT(world->Delete(WriteOf("gone")), IsOk());
  std::map<std::string, Classes> model = {{"old", {{"A", {0, true}}, {"B", {0, true}}}}};
  const auto expected = [&](const std::string& class_name) {
    std::map<std::string, int64_t> students;
    for (const auto& [student, classes] : model) {
      const auto found = classes.find(class_name);
      if (found == classes.end() || !found->second.enrolled) continue;
      students.emplace(student, found->second.number);
    }
    return students;
  };
  UnixMicros then = 0;
  std::map<std::string, int64_t> then_expected;
  for (int i = 0; i < 120; ++i) {
    const std::string student = std::to_string(random() % 15);
    const Message message{"classes", std::string(1, static_cast<char>('A' + random() % 3)),
                          static_cast<int64_t>(1 + random() % 30),
                          random() % 3 == 0 ? Operation::kUnenroll : Operation::kEnroll};
    ASSERT_THAT(Apply(process(), student, message), IsOk());
    Start start = NoDocument();
    start.classes = model[student];
    model[student] = OracleClasses(start, {message});
    if (i == 60) {
      then = world.clock().Now();
      then_expected = expected("A");
    }
  }
  for (const char* class_name : {"A", "B", "C", "D"}) {
    RosterQuery query;
    query.class_name = class_name;
    ASSERT_OK_AND_ASSIGN(const RosterPage whole, Roster(query));
    EXPECT_EQ(whole.students, expected(class_name));
    ASSERT_OK_AND_ASSIGN(const RosterPage paged, Roster(query, 2));
    EXPECT_EQ(paged.students, expected(class_name));
    EXPECT_GE(paged.pages, static_cast<int>(whole.students.size() / 2));
  }
  RosterQuery query;
  query.class_name = "A";
  query.at_time = then;
  ASSERT_OK_AND_ASSIGN(const RosterPage past, Roster(query));
  EXPECT_EQ(past.students, then_expected);
  query.at_time = world.clock().Now() + 1'000'000'000;
  EXPECT_THAT(Roster(query), HasReason(ErrorReason::kInvalidField));
}

TEST_P(EnrollmentsTest, APurgeOfACollectionNamesWhatItLeavesAlone) {
  if (test_support::LeftOut(GetParam().engine != "memory")) GTEST_SKIP() << "sampled";
  if (stale()) GTEST_SKIP() << "exempt: a stale scan may miss recent changes";
  for (const char* student : {"1", "2", "3"}) {
    for (const char* message : {"A-1", "B-2", "C+1", "D-9"}) {
      ASSERT_THAT(Apply(process(), student, message), IsOk());
    }
  }
  ASSERT_THAT(Apply(process(), "live", "A+1"), IsOk());
  ASSERT_THAT(Apply(process(), "deleted", "A-1"), IsOk());
  ASSERT_THAT(world->Delete(WriteOf("deleted")), IsOk());
  ASSERT_THAT(world->Create(WriteOf("odd"), Doc(R"({"classes":7})")), IsOk());
  std::string names;
  for (int i = 0; i < 20'000; ++i) names += "\"" + std::to_string(i) + "\",";
  ASSERT_THAT(world->Create(WriteOf("large"),
                            Doc("{\"classes\":[" + names + "\"x\"],\"deleted_classes\":[\"y\"]}")),
              IsOk());
  PurgeRequest request = PurgeOf("", 5);
  request.change.actor = "janitor";
  ASSERT_OK_AND_ASSIGN(const Purged purged, Purge(process(), request));
  EXPECT_EQ(purged.examined, 6);
  EXPECT_EQ(purged.students, 3);
  EXPECT_EQ(purged.tombstones, 6);
  EXPECT_THAT(purged.refused, ::testing::UnorderedElementsAre("large", "odd"));
  EXPECT_EQ(purged.resume_after, std::nullopt);
  EXPECT_EQ(
      CurrentContent(process(), "1"),
      Doc("{\"student_id\":\"1\"," + SetJson({{"C", {1, true}}, {"D", {9, false}}}, 5) + "}"));
  ASSERT_OK_AND_ASSIGN(const auto history, world->History({kStudents, "1"}));
  EXPECT_EQ(history.size(), 5u);
  EXPECT_EQ(history[0].header.change.actor, "janitor");
  ExpectChain("1", history);
  ASSERT_OK_AND_ASSIGN(const Applied late, Apply(process(), "1", "A-1"));
  EXPECT_EQ(late.result, Result::kBelowFloor);
  EXPECT_EQ(late.version, 5);
  ASSERT_OK_AND_ASSIGN(const Purged again, Purge(process(), request));
  EXPECT_EQ(again.students, 0);
  EXPECT_EQ(again.tombstones, 0);
}

// One document that cannot be written does not keep the others from being purged, and where no
// document can be written any more the purge goes on with the first that was not.
TEST_P(EnrollmentsTest, APurgeOfACollectionPassesWhatCannotBeWritten) {
  if (stale()) GTEST_SKIP() << "exempt: a stale scan may miss recent changes";
  for (const char* student : {"1", "2", "3", "4"}) {
    ASSERT_THAT(Apply(process(), student, "A-1"), IsOk());
  }
  const auto purge_while = [&](ErrorReason reason, const std::string& student, bool and_after) {
    test_support::HookedStore hooked(process().store());
    test_support::StoreHooks hooks;
    hooks.instead_of_commit =
        [&](const store::WriteBatch& batch) -> std::optional<store::CommitResult> {
      bool refused = false;
      for (const store::Write& write : batch.writes()) {
        const std::string_view key = write.key;
        for (char each = student[0]; each <= (and_after ? '9' : student[0]); ++each) {
          refused = refused || key.find(std::string(1, each)) != std::string_view::npos;
        }
      }
      if (!refused) return std::nullopt;
      store::CommitResult result;
      result.status = Error(reason, "planted");
      return result;
    };
    hooked.set_hooks(hooks);
    test_support::SeededEntropy entropy(5);
    test_support::ThreadExecutor executor;
    versioning::Documents documents(hooked, world.clock(), entropy, executor, {});
    Enrollments enrollments(documents);
    Waiter<Purged> waiter;
    enrollments.Purge(PurgeOf("", 5), waiter.Callback());
    auto purged = waiter.Wait();
    executor.Stop();
    return purged;
  };
  ASSERT_OK_AND_ASSIGN(const Purged full, purge_while(ErrorReason::kDiskFull, "3", true));
  EXPECT_EQ(full.students, 2);
  EXPECT_EQ(full.resume_after, "2");
  EXPECT_THAT(purge_while(ErrorReason::kDiskFull, "3", true), HasReason(ErrorReason::kDiskFull));
  ASSERT_OK_AND_ASSIGN(const Purged passed, purge_while(ErrorReason::kLayoutLimit, "3", false));
  EXPECT_EQ(passed.students, 1);
  EXPECT_THAT(passed.refused, ElementsAre("3"));
  EXPECT_EQ(passed.resume_after, std::nullopt);
}

TEST_P(EnrollmentsTest, APurgeOfOneStudentCountsItsTombstones) {
  for (const char* message : {"A-1", "B-2", "C+1"}) {
    ASSERT_THAT(Apply(process(), "1", message), IsOk());
  }
  ASSERT_OK_AND_ASSIGN(const Purged purged, Purge(process(), PurgeOf("1", 1)));
  EXPECT_EQ(purged.examined, 1);
  EXPECT_EQ(purged.students, 1);
  EXPECT_EQ(purged.tombstones, 1);
  ASSERT_OK_AND_ASSIGN(const Purged again, Purge(process(), PurgeOf("1", 1)));
  EXPECT_EQ(again.students, 0);
  EXPECT_EQ(again.tombstones, 0);
  ASSERT_OK_AND_ASSIGN(const auto history, world->History({kStudents, "1"}));
  EXPECT_EQ(history.size(), 4u);
}

// A consumer dies between any two writes of one message; the queue delivers it again, to a consumer
// that may die too.
TEST_P(EnrollmentsTest, ACrashBetweenAnyTwoWritesIsMendedByTheMessageThatComesAgain) {
  if (GetParam().mode == Mode::kAtomic) GTEST_SKIP() << "exempt: an atomic batch has no between";
  int crashes = 0;
  for (const char* before : {"", "A-1", "A+1 B-7", "A-1 A+2 A-3"}) {
    const Message message = OneMessage("A+5");
    for (size_t crash_after = 0; crash_after < 12; ++crash_after) {
      bool crashed = false;
      for (size_t crash_again = 0; crash_again < 4; ++crash_again) {
        SCOPED_TRACE(std::string(before) + " after " + std::to_string(crash_after) + " and " +
                     std::to_string(crash_again));
        World fresh({GetParam().engine, GetParam().mode, GetParam().strategy, 5, true});
        std::vector<Message> messages = Messages(before);
        for (const Message& one : messages) {
          ASSERT_THAT(Apply(fresh.process(), "1", one), IsOk());
        }
        const size_t versions = messages.size() + 1;
        messages.push_back(message);
        fresh->single().CrashAfter(crash_after);
        const auto first = Apply(fresh.process(), "1", message);
        crashed = fresh->single().crashed();
        if (!crashed) {
          EXPECT_THAT(first, IsOk());
          break;
        }
        ++crashes;
        fresh.Restart();
        fresh->single().CrashAfter(crash_again);
        (void)Apply(fresh.process(), "1", message);
        fresh.Restart();
        ASSERT_OK_AND_ASSIGN(const Applied again, Apply(fresh.process(), "1", message));
        EXPECT_TRUE(again.result == Result::kApplied || again.result == Result::kDuplicate);
        EXPECT_TRUE(again.enrolled);
        EXPECT_EQ(again.version, static_cast<int64_t>(versions));
        EXPECT_EQ(CurrentContent(fresh.process(), "1"), Expected("1", messages));
        ASSERT_OK_AND_ASSIGN(const Applied next, Apply(fresh.process(), "1", "B-9"));
        EXPECT_EQ(next.version, static_cast<int64_t>(versions + 1));
        ASSERT_OK_AND_ASSIGN(const auto history, fresh->History({kStudents, "1"}));
        EXPECT_EQ(history.size(), versions + 1);
        ExpectChain("1", history);
      }
      if (!crashed) break;
    }
  }
  EXPECT_GT(crashes, 20);
}

STRATA_ALL_COMBINATIONS(EnrollmentsTest);
STRATA_ALL_COMBINATIONS(CrowdTest);

// What does not depend on how a document is stored.

TEST(RequestTest, AMessageIsCheckedBeforeAnythingIsWritten) {
  World world;
  const struct {
    const char* what;
    std::function<void(ApplyRequest&)> spoil;
    ErrorReason reason;
    const char* field;
  } kMalformed[] = {
      {"no class", [](auto& r) { r.message.class_name = ""; }, ErrorReason::kInvalidName,
       "class_name"},
      {"257 bytes", [](auto& r) { r.message.class_name = std::string(257, 'x'); },
       ErrorReason::kInvalidName, "class_name"},
      {"control", [](auto& r) { r.message.class_name = "a\nb"; }, ErrorReason::kInvalidName,
       "class_name"},
      {"zero byte", [](auto& r) { r.message.class_name = std::string("a\0b", 3); },
       ErrorReason::kInvalidName, "class_name"},
      {"DEL", [](auto& r) { r.message.class_name = "a\x7F"; }, ErrorReason::kInvalidName,
       "class_name"},
      {"C1 control", [](auto& r) { r.message.class_name = "\xC2\x85"; }, ErrorReason::kInvalidName,
       "class_name"},
      {"not UTF-8", [](auto& r) { r.message.class_name = "\xFF"; }, ErrorReason::kInvalidName,
       "class_name"},
      {"cut UTF-8", [](auto& r) { r.message.class_name = "a\xC3"; }, ErrorReason::kInvalidName,
       "class_name"},
      {"zero", [](auto& r) { r.message.sequence_number = 0; }, ErrorReason::kInvalidField,
       "sequence_number"},
      {"-1", [](auto& r) { r.message.sequence_number = -1; }, ErrorReason::kInvalidField,
       "sequence_number"},
      {"least", [](auto& r) { r.message.sequence_number = INT64_MIN; }, ErrorReason::kInvalidField,
       "sequence_number"},
      {"no set", [](auto& r) { r.message.set = ""; }, ErrorReason::kInvalidField, "set"},
      {"65 bytes", [](auto& r) { r.message.set = std::string(65, 'x'); },
       ErrorReason::kInvalidField, "set"},
      {"path", [](auto& r) { r.message.set = "a.b"; }, ErrorReason::kInvalidField, "set"},
      {"tombstones", [](auto& r) { r.message.set = "deleted_x"; }, ErrorReason::kInvalidField,
       "set"},
      {"floor", [](auto& r) { r.message.set = "purged_through"; }, ErrorReason::kInvalidField,
       "set"},
      {"id", [](auto& r) { r.message.set = "student_id"; }, ErrorReason::kInvalidField, "set"},
      {"no student", [](auto& r) { r.student.id = ""; }, ErrorReason::kInvalidName, "student_id"},
      {"long student", [](auto& r) { r.student.id = std::string(257, 'x'); },
       ErrorReason::kInvalidName, "student_id"},
      {"no collection", [](auto& r) { r.student.collection = ""; }, ErrorReason::kInvalidName,
       "collection"},
      {"collection", [](auto& r) { r.student.collection = "a\tb"; }, ErrorReason::kInvalidName,
       "collection"},
      {"actor", [](auto& r) { r.change.actor = std::string(257, 'x'); }, ErrorReason::kInvalidField,
       "change.actor"},
  };
  for (const auto& row : kMalformed) {
    SCOPED_TRACE(row.what);
    ApplyRequest request;
    request.student = {kStudents, "1"};
    request.message = OneMessage("A+1");
    row.spoil(request);
    const auto refused = Apply(world->documents(), request);
    EXPECT_THAT(refused, HasReason(row.reason));
    EXPECT_EQ(MetadataOf(refused.status(), "field"), row.field);
  }
  const Enrollments enrollments(world->documents());
  EXPECT_THAT(enrollments.Get({kStudents, "1"}, "classes"),
              HasReason(ErrorReason::kCollectionNotFound));
  ApplyRequest longest;
  longest.student = {kStudents, "1"};
  longest.message = {"classes", std::string(256, 'x'), INT64_MAX, Operation::kEnroll};
  EXPECT_THAT(Apply(world->documents(), longest), IsOk());
}

TEST(RequestTest, APurgeIsCheckedBeforeAnythingIsWritten) {
  World world;
  ASSERT_THAT(Apply(world.process(), "1", "A-1"), IsOk());
  for (const std::string& student : {std::string("1"), std::string()}) {
    for (const int64_t through : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
      const auto refused = Purge(world.process(), PurgeOf(student, through));
      EXPECT_THAT(refused, HasReason(ErrorReason::kInvalidField));
      EXPECT_EQ(MetadataOf(refused.status(), "field"), "through_sequence_number");
    }
    PurgeRequest request = PurgeOf(student, 1);
    request.set = "deleted_classes";
    EXPECT_EQ(MetadataOf(Purge(world.process(), request).status(), "field"), "set");
    request = PurgeOf(student, 1);
    request.collection = "";
    EXPECT_EQ(MetadataOf(Purge(world.process(), request).status(), "field"), "collection");
    request = PurgeOf(student, 1);
    request.change.reason = std::string(1025, 'x');
    EXPECT_EQ(MetadataOf(Purge(world.process(), request).status(), "field"), "change.reason");
  }
  ASSERT_OK_AND_ASSIGN(const auto history, world->History({kStudents, "1"}));
  EXPECT_EQ(history.size(), 1u);
}

TEST(RequestTest, NoMessageIsAppliedAfterItsDeadline) {
  World world;
  ApplyRequest request;
  request.student = {kStudents, "1"};
  request.message = OneMessage("A+1");
  request.deadline = world.clock().SteadyNow();
  EXPECT_THAT(Apply(world->documents(), request), HasReason(ErrorReason::kDeadlineExceeded));
}

TEST(PurgeTest, ALargeCollectionIsPurgedInPages) {
  World world;
  constexpr int kCount = 2500;
  for (int i = 0; i < kCount; ++i) {
    const std::string student = std::to_string(10'000 + i);
    ASSERT_THAT(Apply(world.process(), student, i % 5 == 0 ? "A+1" : "A-1"), IsOk());
    if (i % 100 == 1) {
      ASSERT_THAT(world->Delete(WriteOf(student)), IsOk());
    }
    if (i % 250 == 2) {
      ASSERT_THAT(world->Update(WriteOf(student), Doc(R"({"classes":1})")), IsOk());
    }
  }
  PurgeRequest request = PurgeOf("", 3);
  int64_t examined = 0;
  int64_t students = 0;
  int64_t tombstones = 0;
  int calls = 0;
  for (std::optional<std::string> after = ""; after;) {
    request.after_id = *after;
    ASSERT_OK_AND_ASSIGN(const Purged purged, Purge(world.process(), request));
    EXPECT_LE(purged.examined, kPurgeExaminedMax);
    EXPECT_LE(purged.refused.size(), kRefusedMax);
    EXPECT_FALSE(purged.refused.empty());
    examined += purged.examined;
    students += purged.students;
    tombstones += purged.tombstones;
    ++calls;
    after = purged.resume_after;
  }
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(examined, kCount - 25);
  EXPECT_EQ(students, 2000 - 25 - 10);
  EXPECT_EQ(tombstones, students);
  for (const int i : {3, 999, 1003, 2499}) {
    const std::string student = std::to_string(10'000 + i);
    EXPECT_EQ(CurrentContent(world.process(), student),
              Doc("{\"student_id\":\"" + student + "\"," + SetJson({}, 3) + "}"));
  }
}

}  // namespace
}  // namespace strata::enrollment::testing
