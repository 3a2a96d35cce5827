// The measurements, each on servers of its own. They write what they measure into `lines`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/support/figure_lines.h"

namespace strata::bench {

inline constexpr int kInFlight = 64;
// These get about twenty versions more, so that pages of ten are full.
inline constexpr size_t kDocumentsWithHistory = 1000;
inline constexpr int64_t kUpdatesForHistory = 20'000;

struct GrowthSettings {
  std::string folder;  // for data and logs
  bool full = false;
  bool longest = false;
};

// Fills one collection further and further and leaves its data in `folder`/documents.
void MeasureDocuments(const GrowthSettings& settings, FigureLines& lines);

// Holds what calls cost with 10^4 documents against what they cost with 10^6, or 10^7.
void MeasureScale(const GrowthSettings& settings, FigureLines& lines);

// What updates write to the disk while they go on for a minute, or for ten.
void MeasureSustained(const GrowthSettings& settings, FigureLines& lines);

void MeasureVersions(const GrowthSettings& settings, FigureLines& lines);
void MeasureIdle(const GrowthSettings& settings, FigureLines& lines);
void MeasureBursts(const GrowthSettings& settings, FigureLines& lines);

// Starts on nothing, and on what MeasureDocuments left.
void MeasureStarts(const GrowthSettings& settings, FigureLines& lines);

// As many open files as the system lets this process and its children have. Throws
// std::runtime_error if it cannot be asked for.
int64_t RaiseFileLimit();

}  // namespace strata::bench
