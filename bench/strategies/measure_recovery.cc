// How long a start takes after a process was killed with its log unflushed.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "bench/strategies/measure.h"
#include "bench/strategies/reads.h"
#include "bench/strategies/storage.h"
#include "bench/strategies/subject.h"
#include "tests/fault/child_process.h"

namespace strata::bench {
namespace {

constexpr int kRecoveries = 3;
constexpr char kLoaded[] = "loaded";
constexpr char kRecoveredDocument[] = "document";
constexpr char kReal[] = "real";

Recovery RecoverOnce(const engines::Engine& engine, const versioning::StrategyEntry& strategy,
                     const std::filesystem::path& directory, const Written& written) {
  Recovery recovery;
  recovery.log_bytes = FileBytes(directory, ".log");
  std::unique_ptr<store::Store> store;
  const Nanoseconds open = Timed([&] { store = Open(engine, directory); });
  Subject subject(*store, strategy);
  const Nanoseconds read = FetchOne(subject.documents(), written, written.documents.front());
  recovery.open_ms = static_cast<double>(open.count()) / 1e6;
  recovery.first_read_ms = static_cast<double>(read.count()) / 1e6;
  return recovery;
}

Recovery Recover(const engines::Engine& engine, const versioning::StrategyEntry& strategy,
                 const std::filesystem::path& directory, const Written& written) {
  std::vector<Recovery> recoveries;
  // A start after the kill repairs what was left, so each start gets a copy of its own.
  const std::filesystem::path copy = directory.string() + "-copy";
  for (int i = 0; i < kRecoveries; ++i) {
    std::filesystem::copy(directory, copy, std::filesystem::copy_options::recursive);
    recoveries.push_back(RecoverOnce(engine, strategy, copy, written));
    std::filesystem::remove_all(copy);
  }
  std::filesystem::remove_all(directory);
  const auto middle = recoveries.begin() + kRecoveries / 2;
  std::nth_element(
      recoveries.begin(), middle, recoveries.end(),
      [](const Recovery& a, const Recovery& b) { return a.total_ms() < b.total_ms(); });
  return *middle;
}

// The first document that is not deleted, for reading.
Written OneOf(const Histories& histories) {
  Written written;
  for (const auto& [id, indexes] : histories.documents) {
    if (histories.versions[indexes.back()].deleted) continue;
    written.documents.push_back({id, static_cast<int64_t>(indexes.size())});
    break;
  }
  written.content = [&histories](const Written::Document& document, int64_t number) {
    return &histories.VersionOf(document.id, number).content;
  };
  return written;
}

Written OneRepeated(const Histories& histories, int64_t versions) {
  Written written;
  written.documents.push_back({kRecoveredDocument, versions});
  written.content = [&histories](const Written::Document&, int64_t number) {
    return &histories.repeated[static_cast<size_t>(number - 1) % histories.repeated.size()];
  };
  return written;
}

void MustFill(store::Store& store, const versioning::StrategyEntry& strategy,
              const std::vector<const RealVersion*>& versions) {
  const absl::Status status = Fill(store, strategy, versions);
  if (!status.ok()) Fail("loading: " + status.ToString());
}

}  // namespace

void MeasureRecovery(const std::string& file, const engines::Engine& engine,
                     const versioning::StrategyEntry& strategy, const Histories& histories,
                     const std::filesystem::path& directory, Result& result) {
  std::vector<int64_t> growth;
  for (const Point& point : result.growth) growth.push_back(point.versions);
  const std::filesystem::path errors = directory / "errors";
  {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe");
    fault::ChildProcess child(
        {program, file, "--load", directory, "--engine", std::string(engine.name), "--strategy",
         std::string(strategy.name), "--growth", absl::StrJoin(growth, ",")},
        errors);
    if (child.ReadLine(std::chrono::minutes(5)) != kLoaded) {
      Fail("the process that is to be killed did not load: " + fault::ReadFile(errors));
    }
    child.Signal(SIGKILL);
    child.Wait();
  }
  result.recovery = Recover(engine, strategy, directory / kReal, OneOf(histories));
  for (Point& point : result.growth) {
    point.recovery = Recover(engine, strategy, directory / std::to_string(point.versions),
                             OneRepeated(histories, point.versions));
  }
}

void LoadAndWait(const engines::Engine& engine, const versioning::StrategyEntry& strategy,
                 const Histories& histories, const std::vector<int64_t>& growth,
                 const std::filesystem::path& directory) {
  std::deque<std::unique_ptr<store::Store>> stores;  // open to the end
  std::vector<const RealVersion*> all;
  // Document by document, which makes fewer commits.
  for (const auto& [id, indexes] : histories.documents) {
    for (const size_t index : indexes) all.push_back(&histories.versions[index]);
  }
  stores.push_back(Open(engine, directory / kReal));
  MustFill(*stores.back(), strategy, all);
  for (const int64_t count : growth) {
    std::deque<RealVersion> versions;
    std::vector<const RealVersion*> pointers;
    for (int64_t number = 1; number <= count; ++number) {
      pointers.push_back(&versions.emplace_back(Repeated(histories, kRecoveredDocument, number)));
    }
    stores.push_back(Open(engine, directory / std::to_string(count)));
    MustFill(*stores.back(), strategy, pointers);
  }
  std::puts(kLoaded);
  std::fflush(stdout);
  while (true) pause();
}

}  // namespace strata::bench
