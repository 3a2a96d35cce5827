// Runs verifications over a World and shows what they found.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "schemas/versioning/verify.h"
#include "service/engines/engines.h"
#include "tests/documents/world.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tested_engines.h"

namespace strata::versioning {

inline bool operator==(const Finding& a, const Finding& b) {
  return std::tie(a.id, a.version, a.kind) == std::tie(b.id, b.version, b.kind);
}

inline std::string_view KindName(FindingKind kind) {
  constexpr std::string_view kNames[] = {"",
                                         "VERSION_MISSING",
                                         "RECORD_CORRUPT",
                                         "CONTENT_MISMATCH",
                                         "CHAIN_BROKEN",
                                         "ORPHAN",
                                         "WRONG_FLAG",
                                         "EARLY_COPY",
                                         "WRONG_COPY",
                                         "LEDGER_ENTRY_MISSING",
                                         "LEDGER_ENTRY_ORPHAN",
                                         "LEDGER_MISMATCH",
                                         "REQUEST_MISMATCH",
                                         "LEDGER_BROKEN",
                                         "LEDGER_HEAD_MISMATCH",
                                         "REQUEST_MISSING",
                                         "COLLECTION_MISSING"};
  return kNames[static_cast<size_t>(kind)];
}

inline void PrintTo(const Finding& finding, std::ostream* out) {
  *out << finding.id << " v" << finding.version << " " << KindName(finding.kind) << " ("
       << finding.problem << ")" << (finding.recoverable ? " recoverable" : "")
       << (finding.repaired ? " repaired" : "");
}

}  // namespace strata::versioning

namespace strata::versioning::testing {

// The engines with a ledger: those of the registry, and one without snapshots.
inline std::vector<engines::Engine> EnginesWithLedger() {
  std::vector<engines::Engine> all = test_support::TestedEngines();
  std::erase_if(all, [](const engines::Engine& engine) {
    return engine.name == "remote" || engine.name == "restarting";
  });
  return all;
}

struct Verified {
  std::vector<Finding> findings;
  VerifyStep last;
  int steps = 0;
};

// All steps of one verification.
inline absl::StatusOr<Verified> Verify(store::Store& store, Collections& collections,
                                       const Clock& clock, const VerifyQuery& query,
                                       VerifyPlace place = {}) {
  Verified all;
  Verification verification(store, collections, clock, query, std::move(place));
  while (!all.last.complete) {
    auto step = verification.Next();
    if (!step.ok()) return step.status();
    for (Finding& finding : step->findings) all.findings.push_back(std::move(finding));
    step->findings.clear();
    all.last = *std::move(step);
    ++all.steps;
  }
  return all;
}

inline absl::StatusOr<Verified> Verify(Process& process, const Clock& clock,
                                       const VerifyQuery& query) {
  return Verify(process.store(), process.documents().collections(), clock, query);
}

}  // namespace strata::versioning::testing
