// A store whose stamps say no more than they have to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "schemas/store/forwarding_store.h"

namespace strata::test_support {

// Hands everything to `inner`, but the stamps of a key are 1, 2, 3 and so on, from 1 again once it
// was deleted, and commits have no positions. Capabilities are the inner store's without
// commit_positions.
//
// `inner` has positions, and takes all its commits from here. Commit waits for its answer, and
// calls `done` on the caller's thread: not from a callback of an inner store that completes on a
// thread of its own.
class RestartingStamps final : public store::ForwardingStore {
 public:
  explicit RestartingStamps(store::Store& inner) : ForwardingStore(inner) {}
  explicit RestartingStamps(std::unique_ptr<store::Store> inner)
      : ForwardingStore(std::move(inner)) {}

  store::Capabilities capabilities() const override;
  absl::StatusOr<std::optional<store::Record>> Get(store::Keyspace keyspace,
                                                   std::string_view key) const override;
  std::vector<absl::StatusOr<std::optional<store::Record>>> GetMany(
      std::span<const store::RecordKey> keys) const override;
  std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                      const store::Range& range) const override;
  std::unique_ptr<store::Reader> Snapshot() const override;
  void Commit(store::WriteBatch batch, store::CommitCallback done) override;
  store::CommitPosition LastPosition() const override { return 0; }
  store::CommitPosition StartPosition() const override { return 0; }
  void OnPosition(store::PositionListener /*listener*/) override {}
  // Nobody: Commit waits for the inner store.
  store::CooperativeCommitter* cooperative() override { return nullptr; }

  // What the key's record has in place of its stamp. What readers of this store call.
  store::Stamp StampOf(store::Keyspace keyspace, std::string_view key, store::Stamp inner) const;

 private:
  using Place = std::pair<store::Keyspace, std::string>;

  store::CommitResult CommitLocked(store::WriteBatch batch);
  store::Stamp StampOfLocked(const Place& place, store::Stamp inner) const;

  mutable std::mutex mutex_;  // held over a commit; guards what follows
  // By the key, and the stamp that the inner store gave its record.
  mutable absl::flat_hash_map<std::pair<Place, store::Stamp>, store::Stamp> stamps_;
};

}  // namespace strata::test_support
