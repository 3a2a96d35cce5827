#include <mutex>
#include <optional>

#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/health/state.h"
#include "service/rpc/server_stream.h"

namespace strata::rpc::health_service {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Sends the state of the one service that the caller names, and each change of it; to a caller that
// is slower than the changes, the last one.
class Watch final : public ServerStream<HealthCheckRequest, HealthCheckResponse> {
 public:
  Watch(observability::Health& health, Stream& stream) : ServerStream(stream), health_(health) {}

  void OnClosed() override {
    if (subscription_) health_.Unsubscribe(*subscription_);
  }

 private:
  using State = observability::Health::State;

  absl::Status Begin(const HealthCheckRequest& request) override {
    RETURN_IF_ERROR(CheckServiceName(request.service()));
    subscription_ = health_.Subscribe(request.service(), [this](State state) {
      const std::lock_guard lock(mutex_);
      latest_ = state;
      SendLatest();
    });
    return absl::OkStatus();
  }

  void OnReady() override {
    const std::lock_guard lock(mutex_);
    SendLatest();
  }

  void SendLatest() {
    if (latest_ == sent_) return;
    if (Send(ToResponse(*latest_))) sent_ = latest_;
  }

  observability::Health& health_;
  std::optional<int64_t> subscription_;

  std::mutex mutex_;  // guards what follows
  std::optional<State> latest_;
  std::optional<State> sent_;
};

}  // namespace

std::unique_ptr<HandlerOf<HealthCheckRequest>> OpenWatch(const Services& services, Stream& stream) {
  return std::make_unique<Watch>(services.health, stream);
}

}  // namespace strata::rpc::health_service
