// A store without snapshots: what the code above the port has to live with where reading from one
// moment would hold something back in the database.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "schemas/store/forwarding_store.h"

namespace strata::test_support {

// How GetMany reads.
enum class Many {
  kOneMoment,  // all as of one moment
  kEach,       // one after the other, as a store without atomic batches may
};

// Hands everything to `inner`, but Snapshot() is the live store. Capabilities are the inner store's
// without snapshots. `inner` has them for kOneMoment, and must outlive it where it is borrowed.
class LiveStore final : public store::ForwardingStore {
 public:
  explicit LiveStore(store::Store& inner, Many many = Many::kOneMoment)
      : ForwardingStore(inner), many_(many) {}
  explicit LiveStore(std::unique_ptr<store::Store> inner, Many many = Many::kOneMoment)
      : ForwardingStore(std::move(inner)), many_(many) {}

  store::Capabilities capabilities() const override {
    store::Capabilities capabilities = inner().capabilities();
    capabilities.snapshots = false;
    return capabilities;
  }
  std::vector<absl::StatusOr<std::optional<store::Record>>> GetMany(
      std::span<const store::RecordKey> keys) const override {
    if (many_ == Many::kEach) return Reader::GetMany(keys);
    return inner().Snapshot()->GetMany(keys);
  }
  std::unique_ptr<store::Reader> Snapshot() const override {
    return std::make_unique<store::ForwardingReader>(*this);
  }

 private:
  const Many many_;
};

}  // namespace strata::test_support
