#include "bench/feed/lease_workloads.h"

#include <strata/v1/document_service.pb.h>
#include <strata/v1/lease_service.pb.h>

#include <random>
#include <utility>

namespace strata::bench {
namespace {

using Outcome = Workload::Outcome;

constexpr char kAcquire[] = "/strata.v1.LeaseService/Acquire";
constexpr char kRenew[] = "/strata.v1.LeaseService/Renew";
constexpr int64_t kTtlSeconds = 3600;
// The first commit of all: there is one in every store that has documents.
constexpr int64_t kPosition = 1;

// Of the lease that a slot has chosen.
class AcquireWorkload : public Workload {
 public:
  explicit AcquireWorkload(std::vector<HeldLease>& leases) : leases_(leases) {
    request_.set_holder("bench");
    request_.mutable_ttl()->set_seconds(kTtlSeconds);
  }
  std::string name() const override { return "Acquire"; }
  std::string method() const override { return kAcquire; }
  Outcome Answered(int slot, std::string_view response) override {
    HeldLease& lease = leases_[chosen_[static_cast<size_t>(slot)]];
    const bool parsed =
        response_.ParseFromArray(response.data(), static_cast<int>(response.size()));
    const int64_t token = response_.lease().token();
    const bool right = parsed && token > lease.token;
    lease.token = token;
    return right ? Outcome::kRight : Outcome::kWrong;
  }

 protected:
  void Choose(int slot, size_t lease, std::string& request) {
    if (chosen_.size() <= static_cast<size_t>(slot)) chosen_.resize(static_cast<size_t>(slot) + 1);
    chosen_[static_cast<size_t>(slot)] = lease;
    request_.set_name(leases_[lease].name);
    request_.SerializeToString(&request);
  }
  std::vector<HeldLease>& leases_;

 private:
  v1::AcquireRequest request_;
  v1::AcquireResponse response_;
  std::vector<size_t> chosen_;  // by slot
};

class AcquireAllWorkload final : public AcquireWorkload {
 public:
  AcquireAllWorkload(std::vector<HeldLease>& leases, int64_t count) : AcquireWorkload(leases) {
    leases.resize(static_cast<size_t>(count));
    for (size_t i = 0; i < leases.size(); ++i) leases[i].name = "lease-" + std::to_string(i);
  }
  bool Next(int slot, std::string& request) override {
    if (next_ == leases_.size()) return false;
    Choose(slot, next_++, request);
    return true;
  }

 private:
  size_t next_ = 0;
};

class AcquireInTurnWorkload final : public AcquireWorkload {
 public:
  AcquireInTurnWorkload(std::vector<HeldLease>& leases, int in_flight)
      : AcquireWorkload(leases), rows_(static_cast<size_t>(in_flight)) {}
  bool Next(int slot, std::string& request) override {
    const size_t in_flight = rows_.size();
    size_t& row = rows_[static_cast<size_t>(slot)];
    Choose(slot, row * in_flight + static_cast<size_t>(slot), request);
    row = (row + 1) % (leases_.size() / in_flight);
    return true;
  }

 private:
  std::vector<size_t> rows_;  // by slot, which one is next
};

class AcquireAgainWorkload final : public AcquireWorkload {
 public:
  AcquireAgainWorkload(std::vector<HeldLease>& leases, int in_flight, uint64_t seed)
      : AcquireWorkload(leases), in_flight_(static_cast<size_t>(in_flight)), random_(seed) {}
  bool Next(int slot, std::string& request) override {
    std::uniform_int_distribution<size_t> rows(0, leases_.size() / in_flight_ - 1);
    Choose(slot, rows(random_) * in_flight_ + static_cast<size_t>(slot), request);
    return true;
  }

 private:
  const size_t in_flight_;
  std::mt19937_64 random_;
};

class RenewWorkload final : public Workload {
 public:
  explicit RenewWorkload(const std::vector<HeldLease>& leases) : leases_(leases) {}
  std::string name() const override { return "Renew"; }
  std::string method() const override { return kRenew; }
  bool Next(int slot, std::string& request) override {
    const HeldLease& lease = leases_[static_cast<size_t>(slot)];
    request_.set_name(lease.name);
    request_.set_token(lease.token);
    request_.SerializeToString(&request);
    return true;
  }
  Outcome Answered(int slot, std::string_view response) override {
    const bool parsed =
        response_.ParseFromArray(response.data(), static_cast<int>(response.size()));
    const bool right =
        parsed && response_.lease().token() == leases_[static_cast<size_t>(slot)].token;
    return right ? Outcome::kRight : Outcome::kWrong;
  }

 private:
  const std::vector<HeldLease>& leases_;
  v1::RenewRequest request_;
  v1::RenewResponse response_;
};

class FencedWorkload final : public Workload {
 public:
  FencedWorkload(std::unique_ptr<Workload> updates, std::vector<HeldLease>& leases, Fence fence)
      : updates_(std::move(updates)), leases_(leases), fence_(fence) {}
  std::string name() const override {
    return updates_->name() + (fence_ == Fence::kToken ? ", fenced" : ", fenced with place");
  }
  std::string method() const override { return updates_->method(); }
  bool Next(int slot, std::string& request) override {
    if (!updates_->Next(slot, request)) return false;
    HeldLease& lease = leases_[static_cast<size_t>(slot)];
    v1::UpdateRequest fence;
    fence.mutable_lease()->set_name(lease.name);
    fence.mutable_lease()->set_token(lease.token);
    if (fence_ == Fence::kPlace) {
      fence.mutable_lease()->set_position(kPosition);
      fence.mutable_lease()->set_index(lease.acknowledged++);
    }
    // Messages may be put one after the other.
    fence.AppendToString(&request);
    return true;
  }
  Outcome Answered(int slot, std::string_view response) override {
    return updates_->Answered(slot, response);
  }
  Outcome Refused(int slot, std::string_view message) override {
    return updates_->Refused(slot, message);
  }

 private:
  const std::unique_ptr<Workload> updates_;
  std::vector<HeldLease>& leases_;
  const Fence fence_;
};

}  // namespace

std::unique_ptr<Workload> AcquireAll(std::vector<HeldLease>& leases, int64_t count) {
  return std::make_unique<AcquireAllWorkload>(leases, count);
}

std::unique_ptr<Workload> AcquireInTurn(std::vector<HeldLease>& leases, int in_flight) {
  return std::make_unique<AcquireInTurnWorkload>(leases, in_flight);
}

std::unique_ptr<Workload> AcquireAgain(std::vector<HeldLease>& leases, int in_flight,
                                       uint64_t seed) {
  return std::make_unique<AcquireAgainWorkload>(leases, in_flight, seed);
}

std::unique_ptr<Workload> RenewOwn(const std::vector<HeldLease>& leases) {
  return std::make_unique<RenewWorkload>(leases);
}

std::unique_ptr<Workload> Fenced(std::unique_ptr<Workload> updates, std::vector<HeldLease>& leases,
                                 Fence fence) {
  return std::make_unique<FencedWorkload>(std::move(updates), leases, fence);
}

}  // namespace strata::bench
