// Documents with histories of several lengths under one strategy on one engine, made once and
// shared by all benchmarks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/document/content.h"
#include "schemas/store/store.h"
#include "schemas/versioning/documents.h"
#include "schemas/versioning/strategy.h"
#include "service/engines/engines.h"
#include "tests/support/executors.h"
#include "tests/support/temporary_directory.h"

namespace strata::bench {

// Of one document.
struct Shape {
  int64_t bytes = 0;  // of each version
  int64_t versions = 0;
};

// The growth with versions at one size, and with size at one number of versions.
inline constexpr Shape kShapes[] = {
    {300, 1}, {300, 100}, {300, 10'000}, {2'048, 100}, {20'480, 100}};

// The only engine without files, for what an engine has no share in.
inline constexpr std::string_view kNoFiles = "memory";

class World {
 public:
  // Empty.
  World(const versioning::StrategyEntry& strategy, std::string_view engine);

  // With a document of each shape; made at the first call, kept until DropShared.
  static World& Shared(const versioning::StrategyEntry& strategy, std::string_view engine);
  // Closes them and removes their files. To be called before main ends.
  static void DropShared();

  versioning::Documents& documents() { return *documents_; }
  versioning::ReadContext context() const { return {*store_, store_->capabilities()}; }
  // REQUIRES: a document was written.
  versioning::CollectionPtr collection() const;

  static DocumentName NameOf(const std::string& id) { return {"customers", id}; }
  static std::string IdOf(const Shape& shape);
  static versioning::WriteRequest RequestFor(const std::string& id);

 private:
  void Fill();
  absl::Status MakeHistory(const Shape& shape);

  const test_support::TemporaryDirectory directory_;
  const std::unique_ptr<store::Store> store_;
  test_support::InlineExecutor executor_;
  std::unique_ptr<versioning::Documents> documents_;
};

}  // namespace strata::bench
