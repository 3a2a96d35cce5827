// Holders of leases in the crowd: nobody has one while another believes to have it, and whoever
// lost it writes nothing by it any more.
#include <thread>
#include <utility>

#include "strata/v1/document_service.grpc.pb.h"
#include "strata/v1/lease_service.grpc.pb.h"
#include "tests/long/crowd.h"

namespace strata::fault {
namespace {

constexpr int kHolders = 4;
constexpr int kLeases = 2;
constexpr seconds kTtl{1};  // less than the server is stopped for

using Leases = v1::LeaseService::Stub;
using Documents = v1::DocumentService::Stub;

class LeaseCrowd final : public Part {
 public:
  explicit LeaseCrowd(Crowd& crowd) : crowd_(crowd) {}

  std::vector<std::string> callers() const override {
    std::vector<std::string> names;
    for (int i = 0; i < kHolders; ++i) names.push_back("holder-" + std::to_string(i));
    return names;
  }
  void SetUp(Caller& /*caller*/) override {}
  std::vector<std::function<void()>> Members() override {
    std::vector<std::function<void()>> members;
    for (const std::string& name : callers()) {
      members.push_back([this, name] { Hold(name); });
    }
    return members;
  }
  std::string Open(Caller& /*caller*/) override { return ""; }
  void Check(Caller& caller) override {
    // Each counted once under its token: so often as was told, or as was not answered besides.
    const auto documents = v1::DocumentService::NewStub(caller.channel());
    for (int i = 0; i < kLeases; ++i) {
      const std::lock_guard lock(mutex_);
      const Held& held = held_[i];
      if (held.counted + held.unknown == 0) continue;
      v1::GetRequest request;
      request.set_collection("fenced");
      request.set_id(NameOf(i));
      v1::GetResponse response;
      if (!caller.Do("Get", *documents, &Documents::Get, request, response)) continue;
      const auto counted = static_cast<int64_t>(
          response.document().content().json().fields().at("n").number_value());
      if (counted < held.counted || counted > held.counted + held.unknown) {
        crowd_.Break(NameOf(i) + " was counted " + std::to_string(counted) + " times, of " +
                     std::to_string(held.counted) + " and " + std::to_string(held.unknown) +
                     " unanswered");
      }
    }
  }

 private:
  // What all holders of this process know of a lease.
  struct Held {
    std::string holder;
    Steady::time_point until;  // it believes so long to have it
    int64_t token = 0;
    int64_t counted = 0;
    int64_t unknown = 0;
  };

  static std::string NameOf(int lease) { return "lease-" + std::to_string(lease); }

  // Counts the ttl from before it asked, as a careful holder does.
  void Believe(int lease, const std::string& holder, int64_t token, Steady::time_point asked) {
    const std::lock_guard lock(mutex_);
    Held& held = held_[lease];
    const auto now = Steady::now();
    if (token < held.token) {
      crowd_.Break(NameOf(lease) + ": token " + std::to_string(token) + " after " +
                   std::to_string(held.token));
    }
    // Only while both are within their time does one rob the other.
    if (asked + kTtl > now && held.until > now && !held.holder.empty() && held.holder != holder) {
      crowd_.Break(NameOf(lease) + " is held by " + held.holder + " and by " + holder);
    }
    if (token >= held.token) {
      held.holder = holder;
      held.token = token;
      held.until = asked + kTtl;
    }
  }
  void Unbelieve(int lease, int64_t token) {
    const std::lock_guard lock(mutex_);
    if (held_[lease].token == token) held_[lease].holder.clear();
  }

  void Hold(const std::string& name) {
    const Caller caller(crowd_, name);
    const auto leases = v1::LeaseService::NewStub(caller.channel());
    const auto documents = v1::DocumentService::NewStub(caller.channel());
    std::mt19937_64 random = crowd_.Random(name);
    for (int64_t turn = 0; crowd_.MayWork(Phase::kWork); ++turn) {
      const int lease = static_cast<int>(random() % kLeases);
      v1::AcquireRequest request;
      request.set_name(NameOf(lease));
      // So that no turn is taken for the restart of one before.
      request.set_holder(name + "." + std::to_string(turn));
      request.mutable_ttl()->set_seconds(kTtl.count());
      request.mutable_wait()->set_seconds(5);
      v1::AcquireResponse response;
      const auto asked = Steady::now();
      const grpc::Status status =
          caller.Try("Acquire", *leases, &Leases::Acquire, request, response);
      if (!status.ok()) {
        const client::Refusal refusal = client::RefusalOf(status);
        if (!refusal.IsRetryable() && refusal.reason != "LEASE_HELD") {
          crowd_.Break(name + ": Acquire: " + refusal.ToString());
        }
        crowd_.Pause(Phase::kWork, milliseconds(20));
        continue;
      }
      crowd_.Count("leases");
      const int64_t token = response.lease().token();
      Believe(lease, request.holder(), token, asked);
      Work(caller, *leases, *documents, lease, request.holder(), token, random);
    }
  }

  void Work(const Caller& caller, Leases& leases, Documents& documents, int lease,
            const std::string& holder, int64_t token, std::mt19937_64& random) {
    const int turns = static_cast<int>(random() % 4);
    for (int i = 0; i < turns; ++i) {
      if (!CountOne(caller, documents, lease, token)) return Unbelieve(lease, token);
      crowd_.Pause(Phase::kWork, milliseconds(random() % 400));
      v1::RenewRequest request;
      request.set_name(NameOf(lease));
      request.set_token(token);
      v1::RenewResponse response;
      const auto asked = Steady::now();
      const grpc::Status status = caller.Try("Renew", leases, &Leases::Renew, request, response);
      if (!status.ok()) return Unbelieve(lease, token);
      Believe(lease, holder, token, asked);
    }
    // One in three dies.
    if (random() % 3 == 0) return;
    Unbelieve(lease, token);
    v1::ReleaseRequest request;
    request.set_name(NameOf(lease));
    request.set_token(token);
    v1::ReleaseResponse response;
    caller.Try("Release", leases, &Leases::Release, request, response);
  }

  // False: the lease is lost.
  bool CountOne(const Caller& caller, Documents& documents, int lease, int64_t token) {
    v1::UpdateRequest request;
    request.set_collection("fenced");
    request.set_id(NameOf(lease));
    request.set_allow_missing(true);
    v1::Operation& count = *request.mutable_patch()->add_operations();
    count.set_path("/n");
    count.mutable_increment()->set_number_value(1);
    request.mutable_lease()->set_name(NameOf(lease));
    request.mutable_lease()->set_token(token);
    v1::UpdateResponse response;
    {
      const std::lock_guard lock(mutex_);
      ++held_[lease].unknown;
    }
    const grpc::Status status =
        caller.Try("Update", documents, &Documents::Update, request, response);
    const std::lock_guard lock(mutex_);
    Held& held = held_[lease];
    if (status.ok()) {
      --held.unknown;
      ++held.counted;
      return true;
    }
    const client::Refusal refusal = client::RefusalOf(status);
    if (refusal.reason == "LEASE_LOST") --held.unknown;
    if (refusal.reason != "LEASE_LOST" && !refusal.IsRetryable()) {
      crowd_.Break(caller.name() + ": Update: " + refusal.ToString());
    }
    return false;
  }

  Crowd& crowd_;
  std::mutex mutex_;  // guards what follows
  Held held_[kLeases];
};

}  // namespace

std::unique_ptr<Part> MakeLeaseCrowd(Crowd& crowd) { return std::make_unique<LeaseCrowd>(crowd); }

}  // namespace strata::fault
