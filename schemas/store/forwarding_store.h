// What a decorator derives from: stores, readers and cursors that hand every call on to another
// one, so that a decorator is made of what it changes and nothing else.
//
// Whatever is not overridden goes to the inner one directly, past what is: whoever changes
// - Get overrides GetMany too; `return Reader::GetMany(keys)` makes it Gets of this reader;
// - Get or Scan overrides Snapshot too, whose readers are the inner store's;
// - Commit need not care for cooperative(), unless it waits for the inner store's answer.
//
// Each either owns the inner one or borrows it; one that is borrowed must outlive it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/store/store.h"

namespace strata::store {

class ForwardingCursor : public Cursor {
 public:
  explicit ForwardingCursor(std::unique_ptr<Cursor> inner) : inner_(std::move(inner)) {}

  bool Valid() const override { return inner_->Valid(); }
  std::string_view key() const override { return inner_->key(); }
  std::string_view value() const override { return inner_->value(); }
  Stamp stamp() const override { return inner_->stamp(); }
  CommitPosition position() const override { return inner_->position(); }
  void Next() override { inner_->Next(); }
  void Seek(std::string_view key) override { inner_->Seek(key); }
  absl::Status status() const override { return inner_->status(); }

 private:
  const std::unique_ptr<Cursor> inner_;
};

class ForwardingReader : public Reader {
 public:
  explicit ForwardingReader(const Reader& inner) : inner_(inner) {}
  explicit ForwardingReader(std::unique_ptr<Reader> inner)
      : owned_(std::move(inner)), inner_(*owned_) {}

  absl::StatusOr<std::optional<Record>> Get(Keyspace keyspace,
                                            std::string_view key) const override {
    return inner_.Get(keyspace, key);
  }
  std::vector<absl::StatusOr<std::optional<Record>>> GetMany(
      std::span<const RecordKey> keys) const override {
    return inner_.GetMany(keys);
  }
  void Prefetch(std::span<const RecordKey> keys) const override { inner_.Prefetch(keys); }
  std::unique_ptr<Cursor> Scan(Keyspace keyspace, const Range& range) const override {
    return inner_.Scan(keyspace, range);
  }

 private:
  const std::unique_ptr<Reader> owned_;  // null: borrowed
  const Reader& inner_;
};

class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(Store& inner) : inner_(inner) {}
  explicit ForwardingStore(std::unique_ptr<Store> inner)
      : owned_(std::move(inner)), inner_(*owned_) {}

  Store& inner() const { return inner_; }

  Capabilities capabilities() const override { return inner_.capabilities(); }
  absl::Status Ready() const override { return inner_.Ready(); }
  absl::StatusOr<std::optional<Record>> Get(Keyspace keyspace,
                                            std::string_view key) const override {
    return inner_.Get(keyspace, key);
  }
  std::vector<absl::StatusOr<std::optional<Record>>> GetMany(
      std::span<const RecordKey> keys) const override {
    return inner_.GetMany(keys);
  }
  void Prefetch(std::span<const RecordKey> keys) const override { inner_.Prefetch(keys); }
  std::unique_ptr<Cursor> Scan(Keyspace keyspace, const Range& range) const override {
    return inner_.Scan(keyspace, range);
  }
  std::unique_ptr<Reader> Snapshot() const override { return inner_.Snapshot(); }
  void Commit(WriteBatch batch, CommitCallback done) override {
    inner_.Commit(std::move(batch), std::move(done));
  }
  RangeEstimate Estimate(Keyspace keyspace, const Range& range) const override {
    return inner_.Estimate(keyspace, range);
  }
  CommitPosition LastPosition() const override { return inner_.LastPosition(); }
  CommitPosition StartPosition() const override { return inner_.StartPosition(); }
  void OnPosition(PositionListener listener) override { inner_.OnPosition(std::move(listener)); }
  // Goes round no Commit: a thread that has joined commits what waits in the inner store, and that
  // has come through this store's Commit, with the callback that it was given there. A store whose
  // Commit waits for the inner one's answer returns null: on a thread that has joined, nobody would
  // commit what it waits for.
  CooperativeCommitter* cooperative() override { return inner_.cooperative(); }

 private:
  const std::unique_ptr<Store> owned_;  // null: borrowed
  Store& inner_;
};

}  // namespace strata::store
