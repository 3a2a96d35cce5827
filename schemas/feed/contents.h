// The contents of a turn's versions, read by document.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/feed/commit.h"
#include "schemas/store/key_codec.h"
#include "schemas/store/store.h"
#include "schemas/versioning/collections.h"
#include "schemas/versioning/read_limits.h"
#include "schemas/versioning/strategy.h"

namespace strata::feed {

// Reads from one snapshot. Of each document it reads the head once and the versions in one scan,
// as the entries are asked for: so no more contents are held than there are documents whose
// versions lie interleaved. Not thread-safe; let it go within a second or so.
class Contents {
 public:
  Contents(store::Store& store, versioning::Collections& collections, StopCheck stopped,
           bool with_before);

  // The entry, of a version, will be asked for after those expected before. Not after the first
  // Read: the scans under way refer to what is kept of their documents.
  void Expect(const Entry& entry);

  struct Pair {
    versioning::StoredVersion version;
    std::optional<document::Content> before;  // nothing: there was none, or it was not asked for
  };
  // What the version holds, and the one before it; nothing if its collection has been deleted
  // since. RECORD_CORRUPT, STORE_UNAVAILABLE, CANCELLED. REQUIRES: it was expected, and those
  // expected before have been asked for.
  absl::StatusOr<std::optional<Pair>> Read(const Entry& entry);

 private:
  // Of one document.
  struct Expected {
    int64_t last = 0;      // the version to be asked for last
    int64_t expected = 0;  // so many are still to be asked for
    store::DocumentKey key;
    versioning::CollectionPtr collection;
    std::optional<versioning::Head> head;
    std::unique_ptr<versioning::VersionCursor> versions;
    std::optional<versioning::StoredVersion> newest;  // that the scan has given
  };
  struct Key {
    int64_t incarnation = 0;
    std::string_view id;

    friend bool operator==(const Key&, const Key&) = default;
    template <typename Hash>
    friend Hash AbslHashValue(Hash hash, const Key& key) {
      return Hash::combine(std::move(hash), key.incarnation, key.id);
    }
  };

  absl::StatusOr<std::optional<Pair>> ReadOf(const Entry& entry, Expected& document);
  bool IsSwept(const Entry& entry, const absl::Status& failure);
  absl::StatusOr<bool> Open(const Entry& entry, Expected& document);
  absl::Status MoveTo(int64_t version, Expected& document);

  store::Store& store_;
  versioning::Collections& collections_;
  const versioning::ReadLimits limits_;
  const bool with_before_;
  std::unique_ptr<store::Reader> reader_;  // null: nothing has been read
  std::optional<versioning::ReadContext> context_;
  absl::flat_hash_map<Key, Expected> documents_;
};

}  // namespace strata::feed
