#include <utility>

#include "bench/strategies/measure.h"
#include "bench/strategies/subject.h"
#include "schemas/versioning/verify.h"
#include "tests/support/single_record_store.h"

namespace strata::bench {
namespace {

using test_support::SingleRecordStore;

constexpr char kDocument[] = "document";
constexpr int64_t kVersionsBefore = 3;

const engines::Engine& Weakest() {
  // Any engine will do: what the decorator takes away makes all alike.
  for (const engines::Engine& engine : engines::AllEngines()) {
    if (engine.name == "memory") return engine;
  }
  Fail("there is no memory engine");
}

std::vector<versioning::Finding> Verify(store::Store& store, Subject& subject) {
  versioning::Verification verification(store, subject.documents().collections(), Clock::System(),
                                        {.collection = kCollection, .id = kDocument});
  std::vector<versioning::Finding> findings;
  while (true) {
    auto step = verification.Next();
    if (!step.ok()) Fail("verifying: " + step.status().ToString());
    for (versioning::Finding& finding : step->findings) findings.push_back(std::move(finding));
    if (step->complete) return findings;
  }
}

// Nothing once the update completes with no more than so many writes.
std::optional<CrashPoint> CrashAfter(int64_t writes, const versioning::StrategyEntry& strategy,
                                     const Histories& histories) {
  const auto engine = Open(Weakest(), "");
  {
    SingleRecordStore store(*engine);
    Subject subject(store, strategy);
    for (int64_t number = 1; number <= kVersionsBefore; ++number) {
      subject.Write(Repeated(histories, kDocument, number));
    }
    store.CrashAfter(static_cast<size_t>(writes));
    const auto answer =
        subject.TryWrite(Repeated(histories, kDocument, kVersionsBefore + 1), document::Content());
    if (!store.crashed()) return std::nullopt;
    if (answer.ok()) Fail("a write was acknowledged by a store that had died within it");
  }
  SingleRecordStore store(*engine);
  Subject subject(store, strategy);
  CrashPoint point;
  point.writes = writes;
  const auto read = subject.documents().Get({kCollection, kDocument}, versioning::At{});
  if (!read.ok()) Fail("reading after a crash: " + read.status().ToString());
  point.version_read = read->header.version;
  for (const versioning::Finding& finding : Verify(store, subject)) {
    if (!finding.recoverable) Fail("a crash did damage: " + finding.problem);
    point.findings.push_back(finding.problem);
  }
  point.next_update_succeeded =
      subject.TryWrite(Repeated(histories, kDocument, 1), document::Content()).ok();
  point.findings_after = static_cast<int64_t>(Verify(store, subject).size());
  return point;
}

}  // namespace

CrashResult MeasureCrashes(const versioning::StrategyEntry& strategy, const Histories& histories) {
  CrashResult result;
  result.strategy = strategy.name;
  for (int64_t writes = 0;; ++writes) {
    const auto point = CrashAfter(writes, strategy, histories);
    if (!point) return result;
    if (!point->next_update_succeeded) Fail("an update after a crash failed");
    result.points.push_back(*point);
  }
}

}  // namespace strata::bench
