// Crashes between the writes of one update, and what they leave.
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

// Any engine would do: what the decorator takes away makes all alike.
std::unique_ptr<store::Store> OpenMemory() {
  auto opened = engines::OpenEngine("memory", {});
  if (!opened.ok()) Fail("opening memory: " + opened.status().ToString());
  return *std::move(opened);
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

// The update that was cut short empties the document.
void CheckRead(const Histories& histories, const versioning::StoredVersion& read) {
  const int64_t version = read.header.version;
  const document::Content expected = version > kVersionsBefore
                                         ? document::Content()
                                         : Repeated(histories, kDocument, version).content;
  if (version < kVersionsBefore || version > kVersionsBefore + 1 || read.content != expected) {
    Fail("after a crash a reader finds what was never the current version");
  }
}

// Nothing once the update completes with no more than so many writes.
std::optional<CrashPoint> CrashAfter(int64_t writes, const versioning::StrategyEntry& strategy,
                                     const Histories& histories) {
  const auto engine = OpenMemory();
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
  CheckRead(histories, *read);
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
