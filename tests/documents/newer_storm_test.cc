// A storm of upserts and deletions in any order, some of them again: what each document is in the
// end is what the message with its greatest number says, in every layout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "schemas/versioning/document_errors.h"
#include "tests/documents/numbers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"
#include "tests/versioning/verify_world.h"

namespace strata::versioning::testing {
namespace {

using test_support::IsOk;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr size_t kWriters = 8;
constexpr int64_t kNumbersEach = 80;  // of a document
constexpr size_t kProblemsMax = 10'000;

// What a writer may do wrong.
enum class Fault { kNone, kDeletionForgetsItsNumber, kNothingIsThereToDelete };

struct Message {
  std::string id;
  int64_t number = 0;
  enum class What { kReplace, kPatch, kDelete } what = What::kReplace;
};

std::vector<Message> RandomMessages(size_t count, std::mt19937_64& random) {
  std::vector<Message> messages;
  for (size_t document = 0; messages.size() < count * 4 / 5; ++document) {
    for (int64_t number = 1; number <= kNumbersEach; ++number) {
      messages.push_back(
          {std::to_string(document), number, static_cast<Message::What>(random() % 3)});
    }
  }
  const size_t once = messages.size();
  while (messages.size() < count) messages.push_back(messages[random() % once]);
  std::shuffle(messages.begin(), messages.end(), random);
  return messages;
}

class Storm {
 public:
  Storm(World& world, std::vector<Message> messages, Fault fault)
      : world_(world), other_(world.Another()), messages_(std::move(messages)), fault_(fault) {}

  // What is wrong in the end.
  std::vector<std::string> Run() {
    std::vector<std::thread> writers;
    for (size_t writer = 0; writer < kWriters; ++writer) {
      Process& process = writer % 2 == 0 ? world_.process() : *other_;
      writers.emplace_back([&] {
        for (size_t i = next_++; i < messages_.size(); i = next_++) Send(process, messages_[i]);
      });
    }
    for (std::thread& writer : writers) writer.join();
    std::map<std::string, Message> last;
    for (const Message& message : messages_) {
      Message& known = last[message.id];
      if (message.number > known.number) known = message;
    }
    for (const auto& [id, message] : last) Check(message);
    CheckStored();
    return problems_;
  }

 private:
  void Send(Process& process, const Message& message) {
    WriteRequest request = NewerRequest(message.number, "/version", message.id);
    request.max_attempts = 1'000'000;
    absl::StatusOr<WriteResult> result;
    switch (message.what) {
      case Message::What::kReplace:
        result = process.Update(request, Number(message.number), true);
        break;
      case Message::What::kPatch:
        result = process.Update(request, Set("/n", static_cast<int32_t>(message.number)), true);
        break;
      case Message::What::kDelete:
        result = Delete(process, std::move(request));
        break;
    }
    if (!result.ok()) return Report(message.id + ": " + std::string(result.status().message()));
    if (result->stale == result->changed) Report(message.id + ": changed and stale are the same");
  }

  absl::StatusOr<WriteResult> Delete(Process& process, WriteRequest request) {
    if (fault_ == Fault::kNone) return process.Delete(std::move(request));
    Mutator faulty = [this, name = request.name,
                      remove = NewerDeleteMutator(request.name, *request.precondition.newer)](
                         const CurrentState& current) -> absl::StatusOr<Mutation> {
      const bool forgets = fault_ == Fault::kDeletionForgetsItsNumber;
      if (!forgets && !current.live()) return NotLive(name, current.version);
      absl::StatusOr<Mutation> mutation = remove(current);
      if (forgets && mutation.ok()) mutation->labels.clear();
      return mutation;
    };
    Answer answer;
    process.documents().Modify(std::move(request), std::move(faulty), answer.Callback());
    absl::StatusOr<WriteResult> result = answer.Wait();
    if (result.ok() || fault_ != Fault::kNothingIsThereToDelete) return result;
    WriteResult nothing;
    nothing.stale = true;
    return nothing;
  }

  void Check(const Message& last) {
    const auto history = world_->History({"things", last.id});
    if (!history.ok()) return Report(last.id + ": " + std::string(history.status().message()));
    const StoredVersion& newest = history->front();
    const bool deleted = last.what == Message::What::kDelete;
    if (newest.deleted() != deleted) {
      Report(last.id + (deleted ? " came back" : " is deleted"));
    } else if (NumberOf(newest) != last.number) {
      Report(last.id + " has another number than " + std::to_string(last.number));
    } else if (!deleted && IntegerIn(*newest.content, "n") != last.number) {
      Report(last.id + " has another content than that of " + std::to_string(last.number));
    }
    for (size_t i = 0; i + 1 < history->size(); ++i) {
      const auto number = NumberOf((*history)[i]);
      const auto before = NumberOf((*history)[i + 1]);
      if (number && before && *number > *before) continue;
      Report(last.id + ": the number does not grow with version " +
             std::to_string((*history)[i].header.version));
    }
  }

  void CheckStored() {
    const auto verified = Verify(world_.process(), world_.clock(), {"things", "", false});
    if (!verified.ok()) return Report(std::string(verified.status().message()));
    for (const Finding& finding : verified->findings) {
      if (!finding.recoverable) Report(finding.id + ": " + finding.problem);
    }
  }

  void Report(std::string problem) {
    const std::lock_guard lock(mutex_);
    if (problems_.size() < kProblemsMax) problems_.push_back(std::move(problem));
  }

  World& world_;
  const std::unique_ptr<Process> other_;
  const std::vector<Message> messages_;
  const Fault fault_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  std::vector<std::string> problems_;
};

// STRATA_NEWER_MESSAGES says how many.
size_t MessagesWanted() {
  return static_cast<size_t>(
      test_support::NumberOr("STRATA_NEWER_MESSAGES", test_support::Sampled(20'000, 4'000)));
}

using StormParam = std::tuple<std::string, Mode>;

class StormTest : public ::testing::TestWithParam<StormParam> {
 protected:
  // What is wrong in the end of a storm in a world of its own.
  std::vector<std::string> Run(size_t messages, Fault fault) {
    World world({.engine = "memory",
                 .mode = std::get<Mode>(GetParam()),
                 .strategy = std::get<std::string>(GetParam()),
                 .seed = random_()});
    return Storm(world, RandomMessages(messages, random_), fault).Run();
  }

  // Of the first of some storms in which anything like that is wrong: it takes a race to see it.
  std::vector<std::string> RunUntilWrong(Fault fault, const std::string& end) {
    std::vector<std::string> wrong;
    for (int storm = 0; storm < 20; ++storm) {
      wrong = Run(4'000, fault);
      if (std::any_of(wrong.begin(), wrong.end(),
                      [&](const std::string& problem) { return problem.ends_with(end); })) {
        break;
      }
    }
    return wrong;
  }

  const uint64_t seed_ = test_support::TestSeed();
  std::mt19937_64 random_{seed_};
};

std::vector<std::string> NamesOfStrategies() {
  std::vector<std::string> names;
  for (const StrategyEntry& strategy : AllStrategies()) names.emplace_back(strategy.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, StormTest,
                         ::testing::Combine(::testing::ValuesIn(NamesOfStrategies()),
                                            ::testing::Values(Mode::kAtomic, Mode::kSingle)),
                         [](const auto& where) {
                           std::string name = std::get<std::string>(where.param) + "_";
                           name += ModeName(std::get<Mode>(where.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(StormTest, TheGreatestNumberStandsInTheEnd) {
  STRATA_TRACE_SEED(seed_);
  EXPECT_THAT(Run(MessagesWanted(), Fault::kNone), IsEmpty());
}

TEST_P(StormTest, FindsADeletionWithoutItsNumber) {
  STRATA_TRACE_SEED(seed_);
  EXPECT_THAT(RunUntilWrong(Fault::kDeletionForgetsItsNumber, " came back"),
              Contains(EndsWith(" came back")));
}

TEST_P(StormTest, FindsADeletionThatWritesNothing) {
  STRATA_TRACE_SEED(seed_);
  EXPECT_THAT(RunUntilWrong(Fault::kNothingIsThereToDelete, ""), Not(IsEmpty()));
}

}  // namespace
}  // namespace strata::versioning::testing
