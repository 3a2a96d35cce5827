#include "bench/strategies/write_figures.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace strata::bench {
namespace {

Parameters With(Parameters parameters, const Parameter& one) {
  parameters.push_back(one);
  return parameters;
}

void Write(const Costs& costs, const Parameters& parameters, FigureLines& lines) {
  for (const OperationName& name : kOperations) {
    const auto& cost = costs[static_cast<size_t>(name.operation)];
    if (!cost) continue;
    const Parameters operation = With(parameters, {"operation", name.name});
    lines.Number("latency_p50", operation, cost->p50_us, Unit::kMicroseconds);
    lines.Number("latency_p99", operation, cost->p99_us, Unit::kMicroseconds);
  }
}

void Write(const Recovery& recovery, const Parameters& parameters, FigureLines& lines) {
  lines.Number("recovery", parameters, recovery.total_ms() * 1e3, Unit::kMicroseconds);
  lines.Number("recovery_open", parameters, recovery.open_ms * 1e3, Unit::kMicroseconds);
  lines.Number("recovery_first_read", parameters, recovery.first_read_ms * 1e3,
               Unit::kMicroseconds);
  lines.Number("recovery_log", parameters, static_cast<double>(recovery.log_bytes), Unit::kBytes);
}

void Write(const Point& point, const Parameters& result, FigureLines& lines) {
  const Parameters parameters = With(result, {"versions", point.versions});
  Write(point.costs, parameters, lines);
  if (point.sync_us > 0) {
    lines.Number("fdatasync", parameters, point.sync_us, Unit::kMicroseconds);
  }
  lines.Number("bytes_per_version", parameters, point.bytes_per_version(), Unit::kBytes);
  if (point.recovery) Write(*point.recovery, parameters, lines);
}

// Of the real histories. What the contents take is without the headers that share their records.
void WriteBytes(const Result& result, const Histories& histories, const Parameters& parameters,
                FigureLines& lines) {
  const auto versions = static_cast<double>(histories.versions.size());
  const auto write = [&](const char* part, int64_t bytes) {
    lines.Number("bytes_per_version", With(parameters, {"part", part}),
                 static_cast<double>(bytes) / versions, Unit::kBytes);
  };
  const StoredBytes& bytes = result.bytes;
  const int64_t headers = result.bare.contents();
  write("all", bytes.total());
  write("contents and headers", bytes.contents());
  write("contents", bytes.contents() - headers);
  write("headers", headers);
  write("requests", bytes.requests);
  write("ledger", bytes.ledger);
  write("all but contents", headers + bytes.requests + bytes.ledger);
  lines.Number("share_of_bson", parameters,
               static_cast<double>(bytes.total()) / static_cast<double>(histories.bson_bytes),
               Unit::kRatio);
}

}  // namespace

void Write(const Histories& histories, FigureLines& lines) {
  const auto versions = static_cast<double>(histories.versions.size());
  size_t longest = 0;
  for (const auto& [id, indexes] : histories.documents) {
    longest = std::max(longest, indexes.size());
  }
  int64_t repeated_bytes = 0;
  for (const document::Content& content : histories.repeated) {
    repeated_bytes += static_cast<int64_t>(content.size());
  }
  lines.Text("histories", {{"kind", "real"}},
             absl::StrCat(histories.versions.size(), " versions of ", histories.documents.size(),
                          " documents, at most ", longest, " of one (", histories.file, ", ",
                          histories.json_bytes, " bytes of JSON lines, ", histories.bson_bytes,
                          " of BSON)"));
  lines.Text("histories", {{"kind", "repeated"}},
             absl::StrCat("that of ", histories.repeated_id, ", ", histories.repeated.size(),
                          " versions of ",
                          repeated_bytes / static_cast<int64_t>(histories.repeated.size()),
                          " bytes in the mean, gone round as often as needed"));
  lines.Number("bson_bytes_per_version", {}, static_cast<double>(histories.bson_bytes) / versions,
               Unit::kBytes);
}

void Write(const Result& result, const Histories& histories, FigureLines& lines) {
  const Parameters parameters = {{"engine", result.engine}, {"strategy", result.strategy}};
  Write(result.costs, parameters, lines);
  if (result.sync_us > 0) {
    lines.Number("fdatasync", parameters, result.sync_us, Unit::kMicroseconds);
  }
  WriteBytes(result, histories, parameters, lines);
  if (result.recovery) Write(*result.recovery, parameters, lines);
  for (const Point& point : result.growth) Write(point, parameters, lines);
  if (result.limit) {
    lines.Text("limit", parameters,
               absl::StrCat("ends at ", result.limit->versions,
                            " versions of each document: ", result.limit->reason));
  }
}

void Write(const CrashResult& crash, FigureLines& lines) {
  for (const CrashPoint& point : crash.points) {
    const Parameters parameters = {{"strategy", crash.strategy}, {"writes", point.writes}};
    const auto count = [&](const char* figure, size_t value) {
      lines.Number(figure, parameters, static_cast<double>(value), Unit::kCount);
    };
    count("version_read", static_cast<size_t>(point.version_read));
    count("findings", point.findings.size());
    if (!point.findings.empty()) lines.Text("first_finding", parameters, point.findings.front());
    count("findings_after_next_update", static_cast<size_t>(point.findings_after));
  }
}

}  // namespace strata::bench
