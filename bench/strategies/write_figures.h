// What was measured, as lines.
#pragma once

#include "bench/strategies/figures.h"
#include "bench/strategies/histories.h"
#include "bench/support/figure_lines.h"

namespace strata::bench {

// Of the real histories themselves.
void Write(const Histories& histories, FigureLines& lines);

void Write(const Result& result, const Histories& histories, FigureLines& lines);
void Write(const CrashResult& crash, FigureLines& lines);

}  // namespace strata::bench
