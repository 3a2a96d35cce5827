#include "tests/support/remote_store.h"

#include "schemas/base/error.h"

namespace strata::test_support {
namespace {

using store::Keyspace;

// Fetches so many records on one way.
constexpr int kPortion = 16;

class RemoteCursor final : public store::ForwardingCursor {
 public:
  RemoteCursor(const RemoteStore& store, std::unique_ptr<store::Cursor> inner)
      : ForwardingCursor(std::move(inner)), store_(store) {
    Fetch();
  }

  bool Valid() const override { return failure_.ok() && ForwardingCursor::Valid(); }
  void Next() override {
    ForwardingCursor::Next();
    if (--left_ == 0) Fetch();
  }
  void Seek(std::string_view key) override {
    ForwardingCursor::Seek(key);
    Fetch();
  }
  absl::Status status() const override {
    return failure_.ok() ? ForwardingCursor::status() : failure_;
  }

 private:
  void Fetch() {
    left_ = kPortion;
    failure_ = store_.Travel(RemoteStore::Reads::kScans);
  }

  const RemoteStore& store_;
  int left_ = 0;
  absl::Status failure_;
};

// The live store of the other end, if borrowed, or a snapshot of it.
class RemoteReader final : public store::ForwardingReader {
 public:
  template <typename Inner>
  RemoteReader(const RemoteStore& store, Inner&& inner)
      : ForwardingReader(std::forward<Inner>(inner)), store_(store) {}

  absl::StatusOr<std::optional<store::Record>> Get(Keyspace keyspace,
                                                   std::string_view key) const override {
    if (absl::Status failure = store_.Travel(RemoteStore::Reads::kAll); !failure.ok()) {
      return failure;
    }
    return ForwardingReader::Get(keyspace, key);
  }
  // All on one way.
  std::vector<absl::StatusOr<std::optional<store::Record>>> GetMany(
      std::span<const store::RecordKey> keys) const override {
    if (const absl::Status failure = store_.Travel(RemoteStore::Reads::kAll); !failure.ok()) {
      return std::vector<absl::StatusOr<std::optional<store::Record>>>(keys.size(), failure);
    }
    return ForwardingReader::GetMany(keys);
  }
  std::unique_ptr<store::Cursor> Scan(Keyspace keyspace, const store::Range& range) const override {
    return std::make_unique<RemoteCursor>(store_, ForwardingReader::Scan(keyspace, range));
  }

 private:
  const RemoteStore& store_;
};

}  // namespace

RemoteStore::RemoteStore(std::unique_ptr<store::Store> inner, std::chrono::microseconds read_time)
    : ForwardingStore(std::move(inner)), read_time_(read_time) {
  threads_.emplace_back([this] { CommitAll(); });
  for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { AnswerAll(); });
}

RemoteStore::~RemoteStore() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_ == 0; });
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void RemoteStore::HoldReads(Reads reads) {
  const std::lock_guard lock(mutex_);
  holds_scans_ = true;
  holds_gets_ = reads == Reads::kAll;
}

void RemoteStore::LetReadsGo() {
  {
    const std::lock_guard lock(mutex_);
    holds_gets_ = holds_scans_ = false;
  }
  changed_.notify_all();
}

size_t RemoteStore::reads_held() const {
  const std::lock_guard lock(mutex_);
  return reads_held_;
}

void RemoteStore::FailReads(bool fail) {
  const std::lock_guard lock(mutex_);
  fails_ = fail;
}

void RemoteStore::HoldAnswers() {
  const std::lock_guard lock(mutex_);
  holds_answers_ = true;
}

void RemoteStore::LetAnswersGo() {
  {
    const std::lock_guard lock(mutex_);
    holds_answers_ = false;
  }
  changed_.notify_all();
}

size_t RemoteStore::answers_held() const {
  const std::lock_guard lock(mutex_);
  return holds_answers_ ? answers_.size() : 0;
}

absl::Status RemoteStore::Travel(Reads kind) const {
  if (read_time_.count() > 0) std::this_thread::sleep_for(read_time_);
  std::unique_lock lock(mutex_);
  const bool& held = kind == Reads::kScans ? holds_scans_ : holds_gets_;
  ++reads_held_;
  changed_.wait(lock, [&] { return !held; });
  --reads_held_;
  if (!fails_) return absl::OkStatus();
  return Error(ErrorReason::kStoreUnavailable, "the connection to the store is lost");
}

store::Capabilities RemoteStore::capabilities() const {
  store::Capabilities capabilities = inner().capabilities();
  capabilities.blocking_reads = true;
  return capabilities;
}

absl::StatusOr<std::optional<store::Record>> RemoteStore::Get(Keyspace keyspace,
                                                              std::string_view key) const {
  return RemoteReader(*this, inner()).Get(keyspace, key);
}

std::vector<absl::StatusOr<std::optional<store::Record>>> RemoteStore::GetMany(
    std::span<const store::RecordKey> keys) const {
  return RemoteReader(*this, inner()).GetMany(keys);
}

std::unique_ptr<store::Cursor> RemoteStore::Scan(Keyspace keyspace,
                                                 const store::Range& range) const {
  return RemoteReader(*this, inner()).Scan(keyspace, range);
}

std::unique_ptr<store::Reader> RemoteStore::Snapshot() const {
  return std::make_unique<RemoteReader>(*this, inner().Snapshot());
}

void RemoteStore::Commit(store::WriteBatch batch, store::CommitCallback done) {
  {
    const std::lock_guard lock(mutex_);
    ++open_;
    commits_.emplace_back(std::move(batch), std::move(done));
  }
  changed_.notify_all();
}

void RemoteStore::CommitAll() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !commits_.empty(); });
    if (commits_.empty()) return;
    auto [batch, done] = std::move(commits_.front());
    commits_.pop_front();
    lock.unlock();
    inner().Commit(std::move(batch), [this, done = std::move(done)](store::CommitResult result) {
      {
        const std::lock_guard answers_lock(mutex_);
        answers_.push_back([done, result = std::move(result)] { done(result); });
      }
      changed_.notify_all();
    });
    lock.lock();
  }
}

void RemoteStore::AnswerAll() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || (!holds_answers_ && !answers_.empty()); });
    if (stopping_) return;
    std::function<void()> answer = std::move(answers_.front());
    answers_.pop_front();
    lock.unlock();
    answer();
    answer = nullptr;  // destroys what the callback held, without the lock
    lock.lock();
    if (--open_ == 0) changed_.notify_all();
  }
}

}  // namespace strata::test_support
