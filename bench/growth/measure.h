// The measurements, each on servers of its own.
#pragma once

#include <chrono>
#include <string>

#include "bench/growth/figures.h"

namespace strata::bench {

struct GrowthSettings {
  std::string folder;  // for data and logs
  bool full = false;
};

// Fills one collection further and further and leaves its data in `folder`/documents.
void MeasureDocuments(const GrowthSettings& settings, Figures& figures);

void MeasureVersions(const GrowthSettings& settings, Figures& figures);
void MeasureIdle(const GrowthSettings& settings, Figures& figures);
void MeasureBursts(const GrowthSettings& settings, Figures& figures);

// Starts on nothing, and on what MeasureDocuments left.
void MeasureStarts(const GrowthSettings& settings, Figures& figures);

// As many open files as the system lets this process and its children have. Throws
// std::runtime_error if it cannot be asked for.
int64_t RaiseFileLimit();

}  // namespace strata::bench
