// What goes wrong while a document is written and read: crashes, races, readers in the middle.

#include <utility>

#include "tests/versioning/check_processes.h"
#include "tests/versioning/strategy_checks.h"

namespace strata::versioning::checks {
namespace {

bool IsRefusal(const absl::Status& status) {
  return status.code() == absl::StatusCode::kFailedPrecondition ||
         status.code() == absl::StatusCode::kAlreadyExists ||
         status.code() == absl::StatusCode::kNotFound;
}

std::string Number(size_t number) { return number == kNever ? "never" : std::to_string(number); }

// A document of 1 to 7 versions: enough to pass a keyframe interval of three twice.
std::vector<Operation> Updates(int count) {
  std::vector<Operation> operations = {
      Create("create", R"({"title": "Moby", "stock": 3, "tags": ["sea", "whale"]})")};
  for (int i = 1; i <= count; ++i) {
    const std::string number = std::to_string(i);
    operations.push_back(Set("update " + number, R"({"stock": )" + number + "}"));
  }
  return operations;
}

std::vector<Operation> And(std::vector<Operation> operations, Operation last) {
  operations.push_back(std::move(last));
  return operations;
}

struct Scenario {
  std::vector<Operation> prelude;
  std::vector<Operation> operations;
};

std::vector<Scenario> CrashScenarios(bool atomic) {
  const Operation anew = Create("create anew", R"({"again": true})");
  std::vector<Scenario> scenarios = {
      {{}, Updates(0)},
      {Updates(1), {Delete("delete")}},
      {And(Updates(1), Delete("delete before")), {anew}},
      {Updates(3), {Restore("restore", 2)}},
      {And(Updates(1), Delete("delete before")), {Restore("restore", 1)}},
      {And(And(Updates(0), Delete("delete before")), anew), {Set("update", R"({"a": 1})")}},
  };
  for (const int count : {0, 1, 2, 3, 4, 6}) {
    scenarios.push_back({Updates(count), {Set("update", R"({"a": 1})")}});
  }
  if (!atomic) return scenarios;
  const std::vector<Operation> three = {Set("first", R"({"a": 1})"), Set("second", R"({"b": 2})"),
                                        Set("third", R"({"a": 3})")};
  scenarios.push_back({{}, Updates(2)});
  for (const int count : {0, 1, 2, 3, 4}) scenarios.push_back({Updates(count), three});
  scenarios.push_back({Updates(1), {Delete("delete"), anew, three[0]}});
  return scenarios;
}

}  // namespace

// The dimensions of one race. Crashes: before which write.
struct StrategyChecks::Race {
  std::vector<Operation> prelude;
  Operation first;   // of the writer that is interrupted
  Operation second;  // of the writer that runs in the middle
  size_t event = 0;
  size_t leftover_crash = kNever;  // of a writer before both
  size_t first_crash = kNever;
  size_t second_crash = kNever;

  std::string Text() const {
    return "'" + second.name + "' (crash: " + Number(second_crash) + ") at call " + Number(event) +
           " of '" + first.name + "' (crash: " + Number(first_crash) +
           "), crash before both: " + Number(leftover_crash) + ", over " +
           std::to_string(prelude.size()) + " versions: ";
  }
};

struct StrategyChecks::RaceResult {
  std::string problem{};
  bool fired = false;  // the second writer ran
  bool leftover_died = false;
  bool first_died = false;
  bool second_died = false;
};

// One write and what is known of it.
struct StrategyChecks::Attempt {
  absl::Status status;
  bool died = false;

  // Empty, or why the result is none that a write may have.
  std::string Problem(const Operation& operation) const {
    if (status.ok() || died || IsRefusal(status)) return "";
    return "'" + operation.name + "' fails: " + std::string(status.message());
  }
  bool MustBeThere() const { return status.ok(); }
  bool MayBeThere() const { return status.ok() || died; }
};

std::string StrategyChecks::Crashes() {
  for (const Scenario& scenario : CrashScenarios(mode_ == Mode::kAtomic)) {
    std::string problem = CrashAll(scenario.prelude, scenario.operations);
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string StrategyChecks::CrashAll(const std::vector<Operation>& prelude,
                                     const std::vector<Operation>& operations) {
  bool first_died = true;
  for (size_t first = 0; first_died; ++first) {
    bool second_died = true;
    for (size_t second = depth_ == Depth::kDeep ? 0 : kNever; second_died; ++second) {
      const std::string problem =
          CrashTwice(prelude, operations, first, second, first_died, second_died);
      if (problem.empty()) continue;
      return "crash before write " + Number(first) + " of '" + operations[0].name + "' over " +
             std::to_string(prelude.size()) + " versions, then before write " + Number(second) +
             " of the next: " + problem;
    }
  }
  return "";
}

std::string StrategyChecks::CrashTwice(const std::vector<Operation>& prelude,
                                       const std::vector<Operation>& operations, size_t first_crash,
                                       size_t second_crash, bool& first_died, bool& second_died) {
  const std::string id = BeginDocument();
  std::vector<StoredVersion> known;
  std::string problem = WriteAll(id, prelude);
  if (problem.empty()) problem = CheckDocument(id, {}, known);
  std::vector<Operation> write = operations;
  for (const bool is_first : {true, false}) {
    if (!problem.empty()) return problem;
    Process process(*past_, mode_, is_first ? first_crash : second_crash);
    const Attempt attempt{subject_.Write(process.store(), id, write), process.died()};
    (is_first ? first_died : second_died) = attempt.died;
    problem = attempt.Problem(write[0]);
    std::vector<StoredVersion> history;
    if (problem.empty()) problem = CheckDocument(id, known, history);
    if (!problem.empty()) return problem;
    const size_t made = history.size() - known.size();
    if (made != write.size() && (attempt.MustBeThere() || made != 0)) {
      return std::to_string(made) + " of " + std::to_string(write.size()) + " versions are there";
    }
    std::vector<bool> used;
    problem = CheckMadeBy(history, known.size(), write, used);
    known = std::move(history);
    const bool live = !known.empty() && !known.back().deleted();
    write = {live ? Set("recovery", R"({"recovered": 1})")
                  : Create("recovery", R"({"recovered": 2})")};
  }
  return problem.empty() ? CheckNextUpdate(id, known) : problem;
}

std::string StrategyChecks::Races() {
  const Operation set_a = Set("set a", R"({"a": 1})");
  const Operation set_b = Set("set b", R"({"b": 1})");
  const Operation create_a = Create("create a", R"({"made": "a"})");
  const Operation create_b = Create("create b", R"({"made": "b"})");
  const std::vector<Race> races = {
      {.prelude = {}, .first = create_a, .second = create_b},
      {.prelude = Updates(0), .first = set_a, .second = set_b},
      {.prelude = Updates(1), .first = set_a, .second = set_b},
      {.prelude = Updates(2), .first = set_a, .second = set_b},
      {.prelude = Updates(3), .first = set_a, .second = set_b},
      {.prelude = Updates(1), .first = set_a, .second = Delete("delete")},
      {.prelude = Updates(1), .first = Delete("delete"), .second = set_b},
      {.prelude = And(Updates(1), Delete("before")), .first = create_a, .second = create_b},
  };
  for (const Race& race : races) {
    std::string problem = RaceAll(race);
    if (!problem.empty()) return problem;
  }
  return "";
}

// Tries every crash of both writers and of one before them, at every event. No crash comes first; a
// crash point that is not reached ends its dimension.
std::string StrategyChecks::RaceAll(const Race& race) {
  const bool deep = depth_ == Depth::kDeep;
  Race run = race;
  RaceResult seen{.leftover_died = true};
  for (size_t leftover = 0; seen.leftover_died; ++leftover) {
    seen.first_died = true;
    for (size_t first = 0; seen.first_died; ++first) {
      seen.second_died = true;
      for (size_t second = 0; seen.second_died; ++second) {
        run.leftover_crash = leftover - 1;  // 0 - 1 is kNever
        run.first_crash = first - 1;
        run.second_crash = second - 1;
        std::string problem = RaceEvents(run, seen);
        if (!problem.empty()) return run.Text() + problem;
        if (second == 0) seen.second_died = deep;
      }
      if (first == 0) seen.first_died = deep;
    }
    if (leftover == 0) seen.leftover_died = deep && !race.prelude.empty();
  }
  return "";
}

// One race at every event. `seen`: who died at any of them.
std::string StrategyChecks::RaceEvents(Race& race, RaceResult& seen) {
  seen = {};
  bool fired = true;
  for (race.event = 0; fired; ++race.event) {
    RaceResult result = RunRace(race);
    if (!result.problem.empty()) return result.problem;
    fired = result.fired;
    seen.leftover_died |= result.leftover_died;
    seen.first_died |= result.first_died;
    seen.second_died |= result.second_died;
  }
  return "";
}

StrategyChecks::RaceResult StrategyChecks::RunRace(const Race& race) {
  const std::string id = BeginDocument();
  const std::vector<Operation> operations = {Set("leftover", R"({"left": 1})"), race.first,
                                             race.second};
  std::vector<Attempt> attempts(3, {absl::NotFoundError("not tried")});
  const auto write = [&](Process& process, size_t which) {
    const absl::Status status = subject_.Write(process.store(), id, {&operations[which], 1});
    attempts[which] = {status, process.died()};
  };
  RaceResult result;
  std::vector<StoredVersion> known;
  result.problem = WriteAll(id, race.prelude);
  if (result.problem.empty()) result.problem = CheckDocument(id, {}, known);
  if (!result.problem.empty()) return result;
  if (race.leftover_crash != kNever) {
    Process process(*past_, mode_, race.leftover_crash);
    write(process, 0);
  }
  Process first(*past_, mode_, race.first_crash);
  first.At(race.event, [&] {
    Process second(*past_, mode_, race.second_crash);
    write(second, 2);
  });
  write(first, 1);
  result.fired = first.fired();
  result.leftover_died = attempts[0].died;
  result.first_died = attempts[1].died;
  result.second_died = attempts[2].died;
  result.problem = CheckAttempts(id, known, operations, attempts);
  return result;
}

// After writes of which each was acknowledged, refused or cut off.
std::string StrategyChecks::CheckAttempts(const std::string& id,
                                          std::span<const StoredVersion> known,
                                          std::span<const Operation> operations,
                                          std::span<const Attempt> attempts) {
  std::vector<StoredVersion> history;
  std::string problem = CheckDocument(id, known, history);
  if (!problem.empty()) return problem;
  std::vector<bool> used;
  problem = CheckMadeBy(history, known.size(), operations, used);
  if (!problem.empty()) return problem;
  for (size_t i = 0; i < operations.size(); ++i) {
    problem = attempts[i].Problem(operations[i]);
    if (!problem.empty()) return problem;
    if (!used[i] && attempts[i].MustBeThere()) return "an acknowledged write is not there";
    if (used[i] && !attempts[i].MayBeThere()) return "a refused write is there";
  }
  return CheckNextUpdate(id, history);
}

std::string StrategyChecks::Reads() {
  for (const bool newest_first : {false, true}) {
    for (const bool leftover : {false, true}) {
      bool fired = true;
      for (size_t event = 0; fired; ++event) {
        const std::string problem = RunRead(newest_first, leftover, event, fired);
        if (problem.empty()) continue;
        return std::string("a history read ") + (newest_first ? "downward" : "upward") +
               ", two updates at its call " + std::to_string(event) +
               (leftover ? ", after a crash: " : ": ") + problem;
      }
    }
  }
  return "";
}

std::string StrategyChecks::RunRead(bool newest_first, bool leftover, size_t event, bool& fired) {
  const std::string id = BeginDocument();
  std::string problem = WriteAll(id, Updates(3));
  if (!problem.empty()) return problem;
  if (leftover) {
    Process process(*past_, mode_, 1);
    const Operation operation = Set("leftover", R"({"left": 1})");
    subject_.Write(process.store(), id, {&operation, 1}).IgnoreError();
  }
  std::vector<StoredVersion> before;
  problem = CheckDocument(id, {}, before);
  if (!problem.empty()) return problem;
  Process reader(*past_, mode_);
  reader.At(event, [&] {
    const std::vector<Operation> two = {Set("one", R"({"a": 1})"), Set("two", R"({"b": 1})")};
    problem = WriteAll(id, two);
  });
  auto answer = subject_.ReadVersions(
      reader.store(), id, {.first = 1, .last = 0, .newest_first = newest_first}, Part::kContent);
  fired = reader.fired();
  if (!problem.empty()) return problem;
  if (!answer.ok()) return std::string(answer.status().message());
  std::vector<StoredVersion> after;
  problem = CheckDocument(id, before, after);
  if (!problem.empty()) return problem;
  if (answer->size() < before.size()) return "an acknowledged version is left out";
  for (size_t i = 0; i < answer->size(); ++i) {
    const size_t place = newest_first ? answer->size() - 1 - i : i;
    if (place >= after.size() || (*answer)[i].header != after[place].header ||
        (*answer)[i].content != after[place].content) {
      return "place " + std::to_string(i) + " of the answer is " + Describe((*answer)[i]);
    }
  }
  return "";
}

}  // namespace strata::versioning::checks
