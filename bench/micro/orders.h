// The document of the benchmarks of schemas/document: the more bytes, the more members, because it
// is members that these mechanisms work through.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string_view>

#include "schemas/document/content.h"

namespace strata::bench {

// Ten fields, and from 1 KB on an array "lines" of objects of ten fields. Exactly `bytes` (at least
// 300). Another `version` differs in three fields, and in three of the line in the middle.
document::Content Order(int64_t bytes, int64_t version);

// The same without its first line (the text of a field makes up for it): all others move by one.
document::Content OrderWithoutFirstLine(int64_t bytes, int64_t version);

// Relaxed Extended JSON.
document::Content ContentOf(std::string_view json);

// The sizes that every mechanism is measured with, as argument "bytes".
void Sizes(benchmark::internal::Benchmark* benchmark);

}  // namespace strata::bench
