// One strategy on one engine, as the measurements use it: the facade over a store, with answers
// waited for.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/strategies/histories.h"
#include "schemas/versioning/documents.h"
#include "schemas/versioning/strategy.h"
#include "service/engines/engines.h"
#include "tests/support/executors.h"

namespace strata::bench {

class Subject {
 public:
  // Over `store`, which outlives it.
  Subject(store::Store& store, const versioning::StrategyEntry& strategy);
  ~Subject();

  versioning::Documents& documents() { return *documents_; }

  // Makes the next version of `version.id` with `content`, and waits until it is durable.
  absl::StatusOr<versioning::WriteResult> TryWrite(const RealVersion& version,
                                                   const document::Content& content);
  // The same; ends the program if it fails.
  void Write(const RealVersion& version, const document::Content& content);
  void Write(const RealVersion& version) { Write(version, version.content); }

  // The next versions of different documents, all with this content, at once.
  void WriteAll(const std::vector<const RealVersion*>& versions, const document::Content& content);

  // Calls `done` instead of waiting.
  void Start(const RealVersion& version, const document::Content& content,
             versioning::WriteCallback done);

 private:
  test_support::ThreadExecutor executor_;
  std::unique_ptr<versioning::Documents> documents_;
  int64_t writes_ = 0;
};

// Makes many versions with few commits: those of one document that wait together become one. Ends
// at the first refusal and returns it.
absl::Status Fill(store::Store& store, const versioning::StrategyEntry& strategy,
                  const std::vector<const RealVersion*>& versions);

// Opens an engine in a directory, or ends the program.
std::unique_ptr<store::Store> Open(const engines::Engine& engine,
                                   const std::filesystem::path& directory);

}  // namespace strata::bench
