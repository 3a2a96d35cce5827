#include "tests/versioning/strategy_checks.h"

#include <algorithm>
#include <random>
#include <utility>

#include "tests/versioning/check_processes.h"

namespace strata::versioning::checks {
namespace {

constexpr size_t kStatesMax = 12;

bool SameVersion(const StoredVersion& a, const StoredVersion& b, Part part) {
  return a.header == b.header && a.position == b.position &&
         (part == Part::kContent ? a.content == b.content : !a.content.has_value());
}

std::string RangeText(const VersionRange& range, Part part) {
  return "versions " + std::to_string(range.first) + " to " + std::to_string(range.last) +
         (range.newest_first ? " downward" : " upward") +
         (part == Part::kHeader ? ", headers" : "") + ": ";
}

std::string CompareVersions(std::span<const StoredVersion> history, const VersionRange& range,
                            Part part, const absl::StatusOr<std::vector<StoredVersion>>& answer) {
  const std::string what = RangeText(range, part);
  if (!answer.ok()) return what + std::string(answer.status().message());
  const auto count = static_cast<size_t>(range.last - range.first + 1);
  if (answer->size() != count) return what + std::to_string(answer->size()) + " answered";
  for (size_t i = 0; i < count; ++i) {
    const auto version = range.newest_first ? range.last - static_cast<int64_t>(i)
                                            : range.first + static_cast<int64_t>(i);
    const StoredVersion& expected = history[static_cast<size_t>(version - 1)];
    if (!SameVersion((*answer)[i], expected, part)) {
      return what + Describe((*answer)[i]) + " instead of " + Describe(expected);
    }
  }
  return "";
}

// All ranges of a short history; the whole, the ends and a few others of a long one.
std::vector<VersionRange> RangesOf(int64_t count) {
  std::vector<VersionRange> ranges;
  constexpr int64_t kShort = 5;
  std::mt19937_64 generator(static_cast<uint64_t>(count));
  for (const bool newest_first : {false, true}) {
    if (count > kShort) ranges.push_back({1, count, newest_first});
    for (int64_t first = 1; first <= std::min(count, kShort); ++first) {
      for (int64_t last = first; last <= std::min(count, kShort); ++last) {
        int64_t from = first;
        int64_t to = last;
        if (count > kShort) {
          from = 1 + static_cast<int64_t>(generator() % static_cast<uint64_t>(count));
          to = from + static_cast<int64_t>(generator() % static_cast<uint64_t>(count - from + 1));
        }
        ranges.push_back({from, to, newest_first});
      }
    }
  }
  return ranges;
}

}  // namespace

std::string_view ModeName(Mode mode) {
  switch (mode) {
    case Mode::kAtomic:
      return "atomic";
    case Mode::kSingle:
      return "single";
    case Mode::kStale:
      return "stale";
  }
  return "";
}

StrategyChecks::StrategyChecks(Subject& subject, store::Store& base, Mode mode, Depth depth)
    : subject_(subject),
      mode_(mode),
      depth_(depth),
      past_(std::make_unique<PastStore>(base, mode == Mode::kStale)) {}

StrategyChecks::~StrategyChecks() = default;

std::string StrategyChecks::BeginDocument() {
  past_->Begin();
  return std::string(ModeName(mode_)) + "-" + std::to_string(++cases_);
}

std::unique_ptr<store::Store> StrategyChecks::OpenStore() {
  if (mode_ == Mode::kAtomic) return std::make_unique<test_support::HookedStore>(*past_);
  past_->ScanFrom(mode_ == Mode::kStale ? PastStore::kAny : PastStore::kNow);
  return std::make_unique<test_support::SingleRecordStore>(*past_);
}

std::string StrategyChecks::WriteAll(const std::string& id, std::span<const Operation> operations) {
  for (const Operation& operation : operations) {
    Process process(*past_, mode_);
    const absl::Status status = subject_.Write(process.store(), id, {&operation, 1});
    if (!status.ok()) return operation.name + " fails: " + std::string(status.message());
  }
  return "";
}

std::string StrategyChecks::CheckView(store::Store& store, const std::string& id,
                                      std::span<const StoredVersion> history) {
  const auto head = subject_.ReadHead(store, id);
  if (!head.ok()) return "head: " + std::string(head.status().message());
  if (head->has_value() != !history.empty()) return "head: there or not there";
  if (history.empty()) return "";
  if (!SameVersion(**head, history.back(), Part::kContent)) return "head: " + Describe(**head);
  const auto count = static_cast<int64_t>(history.size());
  std::vector<VersionRange> ranges = {{1, count, false}, {1, count, true}};
  if (check_all_ranges_) ranges = RangesOf(count);
  for (const Part part : {Part::kHeader, Part::kContent}) {
    if (part == Part::kHeader && !check_all_ranges_) continue;
    for (const StoredVersion& expected : history) {
      const auto version = subject_.ReadVersion(store, id, expected.header.version, part);
      if (!version.ok()) return "one version: " + std::string(version.status().message());
      if (!SameVersion(*version, expected, part)) {
        return "one version: " + Describe(*version) + " instead of " + Describe(expected);
      }
    }
    for (const VersionRange& range : ranges) {
      std::string problem =
          CompareVersions(history, range, part, subject_.ReadVersions(store, id, range, part));
      if (!problem.empty()) return problem;
    }
  }
  return "";
}

std::string StrategyChecks::CheckDocument(const std::string& id,
                                          std::span<const StoredVersion> known,
                                          std::vector<StoredVersion>& history) {
  const std::unique_ptr<store::Store> store = OpenStore();
  const auto answer = subject_.ReadVersions(*store, id, {.first = 1, .last = 0}, Part::kContent);
  if (!answer.ok()) return "history: " + std::string(answer.status().message());
  history = *answer;
  std::string problem = CheckHistory(subject_.collection(), id, history);
  if (!problem.empty()) return problem;
  if (history.size() < known.size()) {
    return "versions are gone: " + std::to_string(history.size()) + " left of " +
           std::to_string(known.size());
  }
  for (size_t i = 0; i < known.size(); ++i) {
    if (SameVersion(history[i], known[i], Part::kContent)) continue;
    return "an old version changed: " + Describe(history[i]) + ", before " + Describe(known[i]);
  }
  problem = subject_.CheckRecords(*past_, id);
  if (!problem.empty()) return problem;
  if (mode_ != Mode::kStale) return CheckView(*store, id, history);
  // All of few states; of many, some of each age and the latest.
  const size_t step = 1 + past_->past() / (check_all_ranges_ ? kStatesMax : kStatesMax / 3);
  for (size_t state = past_->past() % step; state <= past_->past(); state += step) {
    past_->ScanFrom(state);
    problem = CheckView(*store, id, history);
    if (!problem.empty()) {
      return "scans as of write " + std::to_string(state) + ": " + problem;
    }
  }
  return "";
}

std::string StrategyChecks::CheckNextUpdate(const std::string& id,
                                            std::vector<StoredVersion>& known) {
  const bool live = !known.empty() && !known.back().deleted();
  const std::vector<Operation> next = {live ? Set("next", R"({"next": 1})")
                                            : Create("next", R"({"made": "anew"})")};
  std::string problem = WriteAll(id, next);
  if (!problem.empty()) return problem;
  std::vector<StoredVersion> history;
  problem = CheckDocument(id, known, history);
  if (!problem.empty()) return problem;
  std::vector<bool> used;
  problem = CheckMadeBy(history, known.size(), next, used);
  if (problem.empty() && !used[0]) problem = "an acknowledged update is not there";
  known = std::move(history);
  return problem;
}

}  // namespace strata::versioning::checks
