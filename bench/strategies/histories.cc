#include "bench/strategies/histories.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "tests/fault/version_lines.h"

namespace strata::bench {
namespace {

int64_t MeanSize(const Histories& histories, const std::vector<size_t>& indexes) {
  int64_t bytes = 0;
  int64_t count = 0;
  for (const size_t index : indexes) {
    if (histories.versions[index].deleted) continue;
    bytes += static_cast<int64_t>(histories.versions[index].content.size());
    ++count;
  }
  return count == 0 ? 0 : bytes / count;
}

void ChooseRepeated(Histories& histories) {
  std::vector<int64_t> sizes;
  for (const auto& [id, indexes] : histories.documents) {
    sizes.push_back(MeanSize(histories, indexes));
  }
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  const std::vector<size_t>* longest = nullptr;
  for (const auto& [id, indexes] : histories.documents) {
    if (MeanSize(histories, indexes) > *middle) continue;
    if (longest != nullptr && indexes.size() <= longest->size()) continue;
    longest = &indexes;
    histories.repeated_id = id;
  }
  for (const size_t index : *longest) {
    const RealVersion& version = histories.versions[index];
    if (!version.deleted) histories.repeated.push_back(version.content);
  }
}

}  // namespace

void Fail(const std::string& why) {
  std::fprintf(stderr, "strategy_report: %s\n", why.c_str());
  // Stores may be open on other threads: no destructor of a global may run under them.
  std::_Exit(1);
}

Histories ReadHistories(const std::string& path) {
  Histories histories;
  histories.file = std::filesystem::path(path).filename();
  histories.json_bytes = static_cast<int64_t>(fault::ReadText(path).size());
  std::vector<std::pair<std::string, RealVersion>> by_time;
  for (auto& [id, lines] : fault::ReadVersionLines(path)) {
    for (const fault::VersionLine& line : lines) {
      RealVersion version;
      version.id = id;
      // As `strata import` writes it.
      version.change = {line.actor, "", line.reason, {{"time", line.time}}};
      version.deleted = line.deleted;
      if (!line.deleted) version.content = document::Content::FromTrusted(line.content);
      by_time.emplace_back(line.time, std::move(version));
    }
  }
  if (by_time.empty()) Fail("no versions in " + path);
  // The order of the file, but for documents that were changed at the same moment.
  std::stable_sort(by_time.begin(), by_time.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [time, version] : by_time) {
    histories.documents[version.id].push_back(histories.versions.size());
    histories.deletions += version.deleted;
    if (!version.deleted) histories.bson_bytes += static_cast<int64_t>(version.content.size());
    histories.versions.push_back(std::move(version));
  }
  ChooseRepeated(histories);
  return histories;
}

}  // namespace strata::bench
