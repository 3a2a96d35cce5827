// A facade over any engine, in any mode, with time and chance in the test's hands.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schemas/document/bson_builder.h"
#include "schemas/versioning/documents.h"
#include "service/engines/engines.h"
#include "tests/support/await_commit.h"
#include "tests/support/executors.h"
#include "tests/support/manual_clock.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/single_record_store.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tested_engines.h"

namespace strata::versioning::testing {

// How the store under the facade behaves.
enum class Mode {
  kAtomic,  // as the engine is
  kSingle,  // single-record writes
  kStale,   // single-record writes and stale scans
};

inline std::string_view ModeName(Mode mode) {
  switch (mode) {
    case Mode::kAtomic:
      return "atomic";
    case Mode::kSingle:
      return "single";
    case Mode::kStale:
      return "stale";
  }
  return "";
}

struct WorldOptions {
  std::string_view engine = "memory";
  Mode mode = Mode::kAtomic;
  std::string_view strategy = "deltas";
  uint64_t seed = 1;
  bool combining = true;
  int64_t collections_max = kCollectionsMaxDefault;
};

// One write's answer, waited for on any thread.
class Answer {
 public:
  WriteCallback Callback() {
    return [this](absl::StatusOr<WriteResult> result) {
      const std::lock_guard lock(mutex_);
      ASSERT_FALSE(result_) << "answered twice";
      result_ = std::move(result);
      answered_.notify_all();
    };
  }
  bool ready() {
    const std::lock_guard lock(mutex_);
    return result_.has_value();
  }
  const absl::StatusOr<WriteResult>& Wait() {
    std::unique_lock lock(mutex_);
    answered_.wait(lock, [this] { return result_.has_value(); });
    return *result_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable answered_;
  std::optional<absl::StatusOr<WriteResult>> result_;
};

// {"n": value} and {"name": text} as BSON.
inline document::Content Number(int64_t value) {
  return document::Content::FromTrusted(document::BsonBuilder().Int64("n", value).Take());
}
inline document::Content Text(std::string_view text) {
  return document::Content::FromTrusted(document::BsonBuilder().String("text", text).Take());
}
inline document::Patch Increment(std::string_view path, int32_t by) {
  document::Operation operation;
  operation.path = *document::Path::Parse(path);
  operation.kind = document::OperationKind::kIncrement;
  operation.operand.type = 0x10;  // int32
  operation.operand.bytes.assign(reinterpret_cast<const char*>(&by), sizeof by);
  document::Patch patch;
  patch.operations.push_back(std::move(operation));
  return patch;
}
inline document::Patch Set(std::string_view path, int32_t value) {
  document::Patch patch = Increment(path, value);
  patch.operations.front().kind = document::OperationKind::kSet;
  return patch;
}

// The document that a Request is about.
inline const DocumentName kName{"things", "a"};
inline WriteRequest Request(std::string_view id = "a", std::string_view request_id = "") {
  WriteRequest request;
  request.name = {"things", std::string(id)};
  request.request_id = request_id;
  return request;
}

// The process above one engine: store decorators and a facade. A new Process over the same engine
// is a restart, two at once are two processes.
class Process {
 public:
  Process(store::Store& engine, const WorldOptions& options, test_support::ManualClock& clock)
      : engine_(engine), entropy_(options.seed), store_(&engine) {
    if (options.mode != Mode::kAtomic) {
      test_support::SingleRecordOptions single;
      single.stale_writes = options.mode == Mode::kStale ? 6 : 0;
      single.seed = options.seed;
      single_ = std::make_unique<test_support::SingleRecordStore>(engine, single);
      store_ = single_.get();
    }
    DocumentsOptions documents;
    documents.write.default_strategy = FindStrategy(options.strategy);
    documents.write.combining = options.combining;
    documents.collections_max = options.collections_max;
    documents_ = std::make_unique<Documents>(*store_, clock, entropy_, executor_, documents);
  }

  ~Process() {
    executor_.Stop();
    // Commits under way may still call back into what dies here; they come before this one.
    store::WriteBatch last;
    last.Put(store::Keyspace::kMeta, "test/last", document::BsonBuilder().Take());
    test_support::AwaitCommit(engine_, std::move(last));
  }

  Documents& documents() { return *documents_; }
  store::Store& store() { return *store_; }
  test_support::SingleRecordStore& single() { return *single_; }

  absl::StatusOr<WriteResult> Create(WriteRequest request, document::Content content) {
    Answer answer;
    documents_->Create(std::move(request), std::move(content), answer.Callback());
    return answer.Wait();
  }
  absl::StatusOr<WriteResult> Update(WriteRequest request, Documents::NewContent content,
                                     bool allow_missing = false) {
    Answer answer;
    documents_->Update(std::move(request), std::move(content), allow_missing, answer.Callback());
    return answer.Wait();
  }
  absl::StatusOr<WriteResult> Delete(WriteRequest request) {
    Answer answer;
    documents_->Delete(std::move(request), answer.Callback());
    return answer.Wait();
  }
  absl::StatusOr<WriteResult> Restore(WriteRequest request, int64_t version) {
    Answer answer;
    documents_->Restore(std::move(request), version, answer.Callback());
    return answer.Wait();
  }
  // All versions, newest first.
  absl::StatusOr<std::vector<StoredVersion>> History(const DocumentName& name) {
    std::vector<StoredVersion> versions;
    HistoryQuery query;
    query.name = name;
    query.include_content = true;
    HistoryCursor cursor = documents_->History(std::move(query));
    while (cursor.Next()) versions.push_back(std::move(cursor.version()));
    if (!cursor.status().ok()) return cursor.status();
    return versions;
  }

 private:
  store::Store& engine_;
  test_support::SeededEntropy entropy_;
  std::unique_ptr<test_support::SingleRecordStore> single_;
  store::Store* store_;
  test_support::ThreadExecutor executor_;
  std::unique_ptr<Documents> documents_;
};

// An engine with one process above it.
class World {
 public:
  explicit World(WorldOptions options = {}) : options_(options) {
    engines::OpenOptions open;
    open.directory = directory_.path();
    open.clock = &clock_;
    auto opened = test_support::OpenTestedEngine(options.engine, open);
    if (!opened.ok()) {
      ADD_FAILURE() << opened.status();
      return;
    }
    engine_ = *std::move(opened);
    clock_.StepAtEachCall(std::chrono::microseconds(7));
    process_ = std::make_unique<Process>(*engine_, options_, clock_);
  }

  Process* operator->() { return process_.get(); }
  Process& process() { return *process_; }
  store::Store& engine() { return *engine_; }
  test_support::ManualClock& clock() { return clock_; }
  std::unique_ptr<Process> Another() {
    return std::make_unique<Process>(*engine_, options_, clock_);
  }
  void Restart() {
    process_.reset();
    process_ = Another();
  }

 private:
  const WorldOptions options_;
  test_support::TemporaryDirectory directory_;
  test_support::ManualClock clock_;
  std::unique_ptr<store::Store> engine_;
  std::unique_ptr<Process> process_;
};

// Every strategy on every engine as it is, and on the weakest store that the port allows. (That
// weakens every engine alike, so the reference engine stands for all of them there.) Besides, one
// of them on an engine without snapshots, and one where stamps begin anew.
struct Combination {
  std::string strategy;
  std::string engine;
  Mode mode;
};
inline std::vector<Combination> AllCombinations() {
  std::vector<Combination> all;
  for (const StrategyEntry& strategy : AllStrategies()) {
    for (const engines::Engine& engine : engines::AllEngines()) {
      all.push_back({std::string(strategy.name), std::string(engine.name), Mode::kAtomic});
    }
    all.push_back({std::string(strategy.name), "memory", Mode::kSingle});
    all.push_back({std::string(strategy.name), "memory", Mode::kStale});
  }
  // What these lack the strategies hardly notice, which have their own conformance over them.
  all.push_back({"deltas", "live", Mode::kAtomic});
  all.push_back({"shadow-collection", "restarting", Mode::kSingle});
  return all;
}
inline std::string CombinationName(const ::testing::TestParamInfo<Combination>& info) {
  std::string name = info.param.strategy + "_" + info.param.engine + "_";
  name += ModeName(info.param.mode);
  for (char& letter : name) {
    if (letter == '-') letter = '_';
  }
  return name;
}

class CombinationTest : public ::testing::TestWithParam<Combination> {
 protected:
  CombinationTest()
      : world({GetParam().engine, GetParam().mode, GetParam().strategy, /*seed=*/1, true}) {}

  World world;
};

#define STRATA_ALL_COMBINATIONS(suite) \
  INSTANTIATE_TEST_SUITE_P(All, suite, ::testing::ValuesIn(AllCombinations()), CombinationName)

}  // namespace strata::versioning::testing
