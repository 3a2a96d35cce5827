// Reading what one collection holds, and walks over it that their callers pull. Internal to this
// folder but for what the cursors of the facade have from here.
//
// On an engine without snapshots records may vanish under a reader because their collection was
// deleted and is being swept. It then reads again, on the collection that bears the name by now,
// unless something of the one before was seen already.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/status_macros.h"
#include "schemas/store/store.h"
#include "schemas/versioning/collections.h"
#include "schemas/versioning/strategy.h"

namespace strata::versioning {

// A walk looks at no more than this many documents (List), versions (History with a filter, Audit
// of one document) or ledger entries (Audit).
inline constexpr int64_t kExaminedMax = 10'000;

// A collection as one snapshot shows it. Not thread-safe.
class CollectionReader {
 public:
  // Reads nothing yet. All must outlive it.
  CollectionReader(store::Store& store, Collections& collections, const ReadLimits& limits);

  // Takes a snapshot and finds the collection in it, in place of what was open.
  // COLLECTION_NOT_FOUND.
  absl::Status Open(std::string_view name);
  // After a read that failed: OK if it may be tried again, from Open on; why not otherwise.
  absl::Status ToTryAgain(absl::Status failure) const;

  // REQUIRES: Open answered OK.
  const Collection& collection() const { return *collection_; }
  const ReadContext& context() const { return *context_; }

  // Calls `function` on the open collection, once more if there is reason to try again.
  template <typename Function>
  absl::Status Read(std::string_view name, Function&& function) {
    while (true) {
      RETURN_IF_ERROR(Open(name));
      absl::Status status = function();
      if (status.ok()) return status;
      RETURN_IF_ERROR(ToTryAgain(std::move(status)));
    }
  }

 private:
  store::Store& store_;
  Collections& collections_;
  const ReadLimits& limits_;
  const store::Capabilities capabilities_;
  int attempts_ = 0;
  std::unique_ptr<store::Reader> reader_;
  std::optional<ReadContext> context_;
  CollectionPtr collection_;
};

// What the facade's cursors over one collection have in common. Each owns what it reads through,
// from the first Next on, and holds resources of the engine: let it go within a second or so. Not
// thread-safe; must not outlive the facade.
//
//   while (cursor.Next()) Use(cursor.version());
//   RETURN_IF_ERROR(cursor.status());
class CollectionWalk {
 public:
  CollectionWalk(const CollectionWalk&) = delete;
  CollectionWalk& operator=(const CollectionWalk&) = delete;

  // Moves to the next item; false at the end, where the walk has looked at all that one may look
  // at, and after an error; from then on, too.
  bool Next();

  // Why the walk ended: OK unless it failed.
  const absl::Status& status() const { return status_; }

  // Of the collection that the last item is of: a walk that goes on names it. 0: there was none.
  int64_t incarnation() const { return incarnation_; }

 protected:
  // `incarnation`: of a walk that goes on; COLLECTION_NOT_FOUND where the name is another
  // collection's by now. 0: of one that begins.
  CollectionWalk(store::Store& store, Collections& collections, std::string collection,
                 StopCheck stopped = {}, int64_t incarnation = 0);
  virtual ~CollectionWalk() = default;

  // Unless OK, the walk ends with this before it begins.
  void Refuse(absl::Status refusal);

  const CollectionReader& reader() const { return reader_; }

  const StopCheck& stopped() const { return limits_.stopped; }

 private:
  absl::StatusOr<bool> BeginAndAdvance();

  // Begins the walk, or begins it anew where it is, on what reader() has open.
  virtual absl::Status Begin() = 0;
  // Leaves the item stood on, which was taken, and moves to the next; false if there is none.
  virtual absl::StatusOr<bool> Advance() = 0;
  // Lets go of all that reads through reader().
  virtual void LetGo() = 0;

  const std::string name_;
  const ReadLimits limits_;
  CollectionReader reader_;
  int64_t incarnation_;
  bool begun_ = false;
  bool ended_ = false;
  absl::Status status_;
};

}  // namespace strata::versioning
