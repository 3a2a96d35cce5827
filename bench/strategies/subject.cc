#include "bench/strategies/subject.h"

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "schemas/versioning/fingerprint.h"
#include "tests/support/await_commit.h"

namespace strata::bench {
namespace {

using versioning::WriteRequest;
using versioning::WriteResult;

// Holds commits back until Flush, so that versions of one document gather into one commit on
// engines that commit at once, too.
class HoldingStore final : public store::Store {
 public:
  explicit HoldingStore(store::Store& inner) : inner_(inner) {}

  // Does what was committed, and what that leads to.
  void Flush() {
    while (!held_.empty()) {
      Held held = std::move(held_.front());
      held_.pop_front();
      held.done(test_support::AwaitCommit(inner_, std::move(held.batch)));
    }
  }

  void Commit(store::WriteBatch batch, store::CommitCallback done) override {
    held_.push_back({std::move(batch), std::move(done)});
  }
  store::Capabilities capabilities() const override { return inner_.capabilities(); }
  absl::StatusOr<std::optional<store::Record>> Get(store::Keyspace keyspace,
                                                   std::string_view key) const override {
    return inner_.Get(keyspace, key);
  }
  std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                      const store::Range& range) const override {
    return inner_.Scan(keyspace, range);
  }
  std::unique_ptr<store::Reader> Snapshot() const override { return inner_.Snapshot(); }
  store::RangeEstimate Estimate(store::Keyspace keyspace,
                                const store::Range& range) const override {
    return inner_.Estimate(keyspace, range);
  }
  store::CommitPosition LastPosition() const override { return inner_.LastPosition(); }

 private:
  struct Held {
    store::WriteBatch batch;
    store::CommitCallback done;
  };
  store::Store& inner_;
  std::deque<Held> held_;
};

}  // namespace

Subject::Subject(store::Store& store, const versioning::StrategyEntry& strategy) {
  versioning::DocumentsOptions options;
  options.write.default_strategy = &strategy;
  documents_ = std::make_unique<versioning::Documents>(store, Clock::System(), Entropy::System(),
                                                       executor_, options);
}

Subject::~Subject() { executor_.Stop(); }

void Subject::Start(const RealVersion& version, const document::Content& content,
                    versioning::WriteCallback done) {
  WriteRequest request;
  request.name = {kCollection, version.id};
  request.change = version.change;
  request.keep_unchanged = true;
  char request_id[64];
  // As long and as hard to compress as an import's.
  const std::string random = Entropy::System().Bytes(16);
  int size = std::snprintf(request_id, sizeof request_id, "import-");
  for (const char byte : random) {
    size += std::snprintf(request_id + size, sizeof request_id - static_cast<size_t>(size), "%02x",
                          static_cast<unsigned char>(byte));
  }
  request.request_id = std::string(request_id) + "-" + std::to_string(++writes_);
  request.request_fingerprint = versioning::Fingerprint("Update", request, content.bytes());
  if (version.deleted) {
    documents_->Delete(std::move(request), std::move(done));
  } else {
    documents_->Update(std::move(request), content, /*allow_missing=*/true, std::move(done));
  }
}

absl::StatusOr<WriteResult> Subject::TryWrite(const RealVersion& version,
                                              const document::Content& content) {
  std::mutex mutex;
  std::condition_variable answered;
  std::optional<absl::StatusOr<WriteResult>> answer;
  Start(version, content, [&](absl::StatusOr<WriteResult> result) {
    // Notified under the lock: once it is released, the waiter may take the variables away.
    const std::lock_guard lock(mutex);
    answer = std::move(result);
    answered.notify_one();
  });
  std::unique_lock lock(mutex);
  answered.wait(lock, [&] { return answer.has_value(); });
  return *std::move(answer);
}

void Subject::Write(const RealVersion& version, const document::Content& content) {
  const auto written = TryWrite(version, content);
  if (!written.ok()) Fail("writing " + version.id + ": " + written.status().ToString());
}

void Subject::WriteAll(const std::vector<const RealVersion*>& versions,
                       const document::Content& content) {
  std::mutex mutex;
  std::condition_variable answered;
  size_t waiting = versions.size();
  for (const RealVersion* version : versions) {
    Start(*version, content, [&](const absl::StatusOr<WriteResult>& result) {
      if (!result.ok()) Fail("writing: " + result.status().ToString());
      const std::lock_guard lock(mutex);
      if (--waiting == 0) answered.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  answered.wait(lock, [&] { return waiting == 0; });
}

absl::Status Fill(store::Store& store, const versioning::StrategyEntry& strategy,
                  const std::vector<const RealVersion*>& versions) {
  constexpr size_t kWindow = 2048;  // versions in memory at once
  HoldingStore holding(store);
  Subject subject(holding, strategy);
  absl::Status refusal;
  for (size_t i = 0; i < versions.size() && refusal.ok(); ++i) {
    subject.Start(*versions[i], versions[i]->content,
                  [&refusal](const absl::StatusOr<WriteResult>& result) {
                    if (!result.ok() && refusal.ok()) refusal = result.status();
                  });
    if ((i + 1) % kWindow == 0) holding.Flush();
  }
  holding.Flush();
  return refusal;
}

std::unique_ptr<store::Store> Open(const engines::Engine& engine,
                                   const std::filesystem::path& directory) {
  engines::OpenOptions options;
  options.directory = directory;
  auto opened = engine.open(options);
  if (!opened.ok()) {
    Fail("opening " + std::string(engine.name) + ": " + opened.status().ToString());
  }
  return *std::move(opened);
}

}  // namespace strata::bench
