// A store as if it were far away: what the code above the port has to live with on an engine that
// is reached over a network.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "schemas/store/forwarding_store.h"

namespace strata::test_support {

// Hands everything to `inner`, but
// - every read blocks: each portion of a scan, each Get and each GetMany takes a moment, waits
// while
//   reads are held, and fails while reads fail (a scan in its midst, too);
// - commits are handed on by one thread of its own, in their order, and answered by two others, in
//   any order: never by the caller's thread.
// Capabilities are the inner store's, and blocking reads. The destructor waits for what is under
// way, callbacks included; nothing may be held then.
class RemoteStore final : public store::ForwardingStore {
 public:
  enum class Reads { kAll, kScans };

  explicit RemoteStore(std::unique_ptr<store::Store> inner,
                       std::chrono::microseconds read_time = std::chrono::microseconds(0));
  ~RemoteStore() override;

  // Lets no such read go on, until LetReadsGo.
  void HoldReads(Reads reads = Reads::kAll);
  void LetReadsGo();
  // How many wait.
  size_t reads_held() const;
  // Reads are answered STORE_UNAVAILABLE.
  void FailReads(bool fail);
  // Commits that come now are made, but not answered until LetAnswersGo.
  void HoldAnswers();
  void LetAnswersGo();
  size_t answers_held() const;

  store::Capabilities capabilities() const override;
  absl::StatusOr<std::optional<store::Record>> Get(store::Keyspace keyspace,
                                                   std::string_view key) const override;
  std::vector<absl::StatusOr<std::optional<store::Record>>> GetMany(
      std::span<const store::RecordKey> keys) const override;
  std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                      const store::Range& range) const override;
  std::unique_ptr<store::Reader> Snapshot() const override;
  void Commit(store::WriteBatch batch, store::CommitCallback done) override;
  store::CooperativeCommitter* cooperative() override { return nullptr; }  // at the other end

  // One way to the other end and back. What readers of this store call.
  absl::Status Travel(Reads kind) const;

 private:
  void CommitAll();
  void AnswerAll();

  const std::chrono::microseconds read_time_;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable changed_;
  bool holds_gets_ = false;
  bool holds_scans_ = false;
  mutable size_t reads_held_ = 0;
  bool fails_ = false;
  bool holds_answers_ = false;
  bool stopping_ = false;
  size_t open_ = 0;  // commits whose callback has not returned
  std::deque<std::pair<store::WriteBatch, store::CommitCallback>> commits_;
  std::deque<std::function<void()>> answers_;

  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace strata::test_support
