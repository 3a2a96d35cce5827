#include "bench/strategies/subject.h"

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "schemas/base/status_macros.h"
#include "schemas/store/forwarding_store.h"
#include "schemas/versioning/fingerprint.h"
#include "tests/support/await_commit.h"

namespace strata::bench {
namespace {

using versioning::WriteRequest;
using versioning::WriteResult;

// Holds commits back until FlushUntil, so that versions of one document gather into one commit on
// engines that commit at once, too.
class HoldingStore final : public store::ForwardingStore {
 public:
  explicit HoldingStore(store::Store& inner) : ForwardingStore(inner) {}

  // Does what was committed, and what that leads to, until so many writes are answered; the first
  // refusal of any. A large group is planned on another thread, so there may be nothing to do
  // meanwhile.
  absl::Status FlushUntil(size_t answered) {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !held_.empty() || answered_ == answered; });
      if (held_.empty()) return refusal_;
      Held held = std::move(held_.front());
      held_.pop_front();
      lock.unlock();
      held.done(test_support::AwaitCommit(inner(), std::move(held.batch)));
      lock.lock();
    }
  }
  void Answered(const absl::Status& status) {
    const std::lock_guard lock(mutex_);
    if (refusal_.ok()) refusal_ = status;
    ++answered_;
    changed_.notify_all();
  }

  void Commit(store::WriteBatch batch, store::CommitCallback done) override {
    const std::lock_guard lock(mutex_);
    held_.push_back({std::move(batch), std::move(done)});
    changed_.notify_all();
  }

 private:
  struct Held {
    store::WriteBatch batch;
    store::CommitCallback done;
  };
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<Held> held_;
  size_t answered_ = 0;
  absl::Status refusal_;
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
  const std::string random = Entropy::System().Bytes(8);
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
  for (size_t i = 0; i < versions.size(); ++i) {
    subject.Start(
        *versions[i], versions[i]->content,
        [&](const absl::StatusOr<WriteResult>& result) { holding.Answered(result.status()); });
    if ((i + 1) % kWindow == 0 || i + 1 == versions.size()) {
      RETURN_IF_ERROR(holding.FlushUntil(i + 1));
    }
  }
  return absl::OkStatus();
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
