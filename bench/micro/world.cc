#include "bench/micro/world.h"

#include <algorithm>
#include <latch>
#include <map>
#include <mutex>
#include <utility>

#include "bench/micro/must.h"
#include "bench/support/ten_fields.h"
#include "schemas/base/error.h"
#include "service/engines/rocksdb/rocksdb_store.h"

namespace strata::bench {
namespace {

using document::Content;
using versioning::WriteResult;

Content ContentOf(const Shape& shape, int64_t version) {
  return Content::FromTrusted(TenFields(1, version, static_cast<size_t>(shape.bytes)));
}

using Worlds = std::map<std::pair<std::string_view, std::string_view>, std::unique_ptr<World>>;

// Never destroyed by itself: at the end of the process an engine's library may be gone before.
Worlds& SharedWorlds() {
  static auto* const worlds = new Worlds();
  return *worlds;
}

}  // namespace

World::World(const versioning::StrategyEntry& strategy, std::string_view engine)
    : store_(Must(engines::OpenEngine(engine, {.directory = directory_.Join("data")}))) {
  versioning::DocumentsOptions options;
  options.write.default_strategy = &strategy;
  documents_ = std::make_unique<versioning::Documents>(*store_, Clock::System(), Entropy::System(),
                                                       executor_, options);
}

World& World::Shared(const versioning::StrategyEntry& strategy, std::string_view engine) {
  std::unique_ptr<World>& world = SharedWorlds()[{strategy.name, engine}];
  if (world == nullptr) {
    world = std::make_unique<World>(strategy, engine);
    world->Fill();
  }
  return *world;
}

void World::DropShared() { SharedWorlds().clear(); }

versioning::CollectionPtr World::collection() const {
  return Must(documents_->collections().Require(*store_, NameOf("").collection));
}

versioning::WriteRequest World::RequestFor(const std::string& id) {
  versioning::WriteRequest request;
  request.name = NameOf(id);
  request.change = {.actor = "alice", .on_behalf_of = "", .reason = "moved house", .labels = {}};
  return request;
}

std::string World::IdOf(const Shape& shape) {
  return std::to_string(shape.bytes) + "/" + std::to_string(shape.versions);
}

void World::Fill() {
  for (const Shape& shape : kShapes) {
    const absl::Status status = MakeHistory(shape);
    // Then the document has fewer versions, and its benchmarks say so.
    if (ReasonOf(status) != ErrorReason::kLayoutLimit) Must(status);
  }
  // Histories are old: they lie in files, not in what was written last.
  if (auto* const rocks = dynamic_cast<engines::rocks::RocksDbStore*>(store_.get())) {
    Must(rocks->CompactAll());
  }
}

absl::Status World::MakeHistory(const Shape& shape) {
  // The last update comes alone. A commit of many leaves work to the one after it, which planning
  // would be charged with.
  const int64_t together = std::max<int64_t>(shape.versions - 1, 1);
  std::latch first(together);
  std::latch last(shape.versions - together);
  std::mutex mutex;
  absl::Status first_error;
  const auto answered = [&](const absl::Status& status, std::latch& latch) {
    {
      const std::lock_guard lock(mutex);
      first_error.Update(status);
    }
    latch.count_down();
  };
  const std::string id = IdOf(shape);
  const auto update = [&](int64_t version, std::latch& latch) {
    documents_->Update(
        RequestFor(id), ContentOf(shape, version), /*allow_missing=*/false,
        [&](absl::StatusOr<WriteResult> result) { answered(result.status(), latch); });
  };
  documents_->Create(RequestFor(id), ContentOf(shape, 1), [&](absl::StatusOr<WriteResult> result) {
    answered(result.status(), first);
    // From within the callback, before whose end no other comes: so the updates wait in line and
    // are planned many at a time. One by one a layout that rewrites the history would need minutes.
    for (int64_t version = 2; version <= together; ++version) update(version, first);
  });
  first.wait();
  if (together < shape.versions) update(shape.versions, last);
  last.wait();
  return first_error;
}

}  // namespace strata::bench
