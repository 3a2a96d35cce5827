// The same against the number of versions of a document.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <iterator>
#include <utility>

#include "bench/strategies/measure.h"
#include "bench/strategies/reads.h"
#include "bench/strategies/storage.h"
#include "bench/strategies/subject.h"
#include "bench/strategies/sync.h"
#include "schemas/base/error.h"

namespace strata::bench {
namespace {

// A list asks for so many documents at every point, so that all points can be compared.
constexpr int64_t kListed = 4;

// Many documents where versions are few, so that updates can be repeated without growing them much.
int64_t DocumentsWith(int64_t versions) {
  return std::clamp<int64_t>(4'000 / versions, kListed, 100);
}

std::string IdOf(int64_t document) {
  char id[32];
  std::snprintf(id, sizeof id, "document-%03d", static_cast<int>(document));
  return id;
}

Written WrittenOf(const Histories& histories, int64_t documents, int64_t versions) {
  Written written;
  for (int64_t i = 0; i < documents; ++i) written.documents.push_back({IdOf(i), versions});
  written.content = [&histories](const Written::Document&, int64_t number) {
    return &histories.repeated[static_cast<size_t>(number - 1) % histories.repeated.size()];
  };
  written.list_max = kListed;
  return written;
}

// Each document is updated a few times, so that it hardly grows.
Latency MeasureUpdates(Subject& subject, const Histories& histories, const Point& point) {
  const int64_t rounds = std::clamp<int64_t>(point.versions / 25, 1, 100);
  const Effort effort{.repetitions_min = 40,
                      .repetitions_max = rounds * point.documents,
                      .time = std::chrono::milliseconds(400)};
  return Repeat(effort, [&](int64_t i) {
    const RealVersion version =
        Repeated(histories, IdOf(i % point.documents), point.versions + 1 + i / point.documents);
    return Timed([&] { subject.Write(version); });
  });
}

class Growth {
 public:
  Growth(const engines::Engine& engine, const versioning::StrategyEntry& strategy,
         const Histories& histories, std::filesystem::path directory, Result& result)
      : engine_(engine),
        strategy_(strategy),
        histories_(histories),
        directory_(std::move(directory)),
        result_(result) {}

  // Adds a point, or the limit that stands before it.
  void Measure(int64_t versions) {
    Point point;
    point.versions = versions;
    point.documents = DocumentsWith(versions);
    const auto directory = directory_ / std::to_string(versions);
    const auto store = Open(engine_, directory);
    if (!FillAll(*store, point)) return;
    Compact(*store);
    point.bytes = MeasureBytes(*store, directory);
    Subject subject(*store, strategy_);
    MeasureReads(subject.documents(), WrittenOf(histories_, point.documents, versions), Effort{},
                 point.costs);
    point.costs[static_cast<size_t>(Operation::kUpdate)] =
        MeasureUpdates(subject, histories_, point);
    if (result_.durable) point.sync_us = MeasureSync(directory_);
    result_.growth.push_back(std::move(point));
  }

 private:
  bool FillAll(store::Store& store, const Point& point) {
    for (int64_t i = 0; i < point.documents; ++i) {
      std::deque<RealVersion> versions;
      std::vector<const RealVersion*> pointers;
      for (int64_t number = 1; number <= point.versions; ++number) {
        pointers.push_back(&versions.emplace_back(Repeated(histories_, IdOf(i), number)));
      }
      const absl::Status refusal = Fill(store, strategy_, pointers);
      if (refusal.ok()) continue;
      if (ReasonOf(refusal) != ErrorReason::kLayoutLimit) Fail(refusal.ToString());
      Subject subject(store, strategy_);
      const auto head = subject.documents().Get({kCollection, IdOf(i)}, versioning::At{});
      if (!head.ok()) Fail(head.status().ToString());
      result_.limit = {head->header.version, std::string(refusal.message())};
      return false;
    }
    return true;
  }

  const engines::Engine& engine_;
  const versioning::StrategyEntry& strategy_;
  const Histories& histories_;
  const std::filesystem::path directory_;
  Result& result_;
};

}  // namespace

RealVersion Repeated(const Histories& histories, const std::string& id, int64_t number) {
  RealVersion version;
  version.id = id;
  version.change = {"growth", "", "version " + std::to_string(number), {}};
  version.content = histories.repeated[static_cast<size_t>(number - 1) % histories.repeated.size()];
  return version;
}

void MeasureGrowth(const engines::Engine& engine, const versioning::StrategyEntry& strategy,
                   const Histories& histories, const std::filesystem::path& directory,
                   Result& result) {
  Growth growth(engine, strategy, histories, directory, result);
  for (const int64_t versions : kGrowth) {
    growth.Measure(versions);
    if (!result.limit) continue;
    // Once more, as near to the end as leaves room for the updates that are measured.
    const int64_t last = result.limit->versions * 19 / 20;
    if (result.growth.empty() || last > result.growth.back().versions) growth.Measure(last);
    return;
  }
}

}  // namespace strata::bench
