// The reads that are measured. Each is held against what was written; one that differs ends the
// program.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/strategies/figures.h"
#include "bench/strategies/histories.h"
#include "bench/strategies/stopwatch.h"
#include "schemas/versioning/documents.h"

namespace strata::bench {

// What stands in the store: documents and the contents of all their versions.
struct Written {
  struct Document {
    std::string id;
    int64_t versions = 0;
  };
  std::vector<Document> documents;  // by id
  // Null for a deletion.
  std::function<const document::Content*(const Document& document, int64_t version)> content;
  // How many a list asks for.
  size_t list_max = 0;
};

// All operations but the update, after a read of every version of every document.
void MeasureReads(const versioning::Documents& documents, const Written& written,
                  const Effort& effort, Costs& costs);

// How long reading the current version of a document took.
Nanoseconds FetchOne(const versioning::Documents& documents, const Written& written,
                     const Written::Document& document);

}  // namespace strata::bench
