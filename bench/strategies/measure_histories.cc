// Updates, reads and bytes of the real histories.
#include <utility>

#include "bench/strategies/measure.h"
#include "bench/strategies/reads.h"
#include "bench/strategies/storage.h"
#include "bench/strategies/subject.h"
#include "bench/strategies/sync.h"

namespace strata::bench {
namespace {

// Into a store of its own: the same headers, request records and ledger, and next to no content.
StoredBytes MeasureBare(const engines::Engine& engine, const versioning::StrategyEntry& strategy,
                        const Histories& histories, const std::filesystem::path& directory) {
  const auto store = Open(engine, directory);
  Subject subject(*store, strategy);
  // Versions of different documents at once: commits of their own, as above, that share syncs.
  for (size_t number = 0;; ++number) {
    std::vector<const RealVersion*> versions;
    for (const auto& [id, indexes] : histories.documents) {
      if (number < indexes.size()) versions.push_back(&histories.versions[indexes[number]]);
    }
    if (versions.empty()) break;
    subject.WriteAll(versions, document::Content());
  }
  Compact(*store);
  return MeasureBytes(*store, directory);
}

Latency Load(Subject& subject, const Histories& histories) {
  Histogram updates;
  std::map<std::string, const RealVersion*> newest;
  for (const RealVersion& version : histories.versions) {
    const Nanoseconds time = Timed([&] { subject.Write(version); });
    const RealVersion*& before = newest[version.id];
    if (before != nullptr && !before->deleted && !version.deleted) updates.Add(time);
    before = &version;
  }
  return LatencyOf(updates);
}

Written AllOf(const Histories& histories) {
  Written written;
  for (const auto& [id, indexes] : histories.documents) {
    written.documents.push_back({id, static_cast<int64_t>(indexes.size())});
  }
  written.content = [&histories](const Written::Document& document, int64_t number) {
    const RealVersion& version = histories.VersionOf(document.id, number);
    return version.deleted ? nullptr : &version.content;
  };
  written.list_max = written.documents.size();
  return written;
}

}  // namespace

void MeasureHistories(const engines::Engine& engine, const versioning::StrategyEntry& strategy,
                      const Histories& histories, const std::filesystem::path& directory,
                      Result& result) {
  const auto store = Open(engine, directory / "real");
  Subject subject(*store, strategy);
  result.costs[static_cast<size_t>(Operation::kUpdate)] = Load(subject, histories);
  if (result.durable) result.sync_us = MeasureSync(directory);
  Compact(*store);
  result.bytes = MeasureBytes(*store, directory / "real");
  const Effort effort{.repetitions_max = 20'000, .time = std::chrono::milliseconds(400)};
  MeasureReads(subject.documents(), AllOf(histories), effort, result.costs);
  result.bare = MeasureBare(engine, strategy, histories, directory / "bare");
}

}  // namespace strata::bench
