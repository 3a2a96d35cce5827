#include <optional>

#include "schemas/base/error.h"
#include "service/rpc/context.h"
#include "service/rpc/handlers/health/state.h"

namespace strata::rpc::health_service {
namespace {

// Sends the state of the one service that the caller names, and each change of it.
class Watch final : public StreamHandler {
 public:
  Watch(observability::Health& health, Stream& stream) : health_(health), stream_(stream) {}

  void OnMessage(std::string_view bytes) override {
    grpc::health::v1::HealthCheckRequest request;
    if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return stream_.Finish(
          Error(ErrorReason::kInvalidMessage, "not a grpc.health.v1.HealthCheckRequest"));
    }
    if (subscription_) return;
    subscription_ = health_.Subscribe(
        request.service(),
        [this](observability::Health::State state) { stream_.Send(ToResponse(state)); });
  }

  // The caller sends one message and then listens.
  void OnLastMessage() override {
    if (!subscription_) {
      stream_.Finish(Error(ErrorReason::kInvalidMessage, "no message came"));
    }
  }

  void OnClosed() override {
    if (subscription_) health_.Unsubscribe(*subscription_);
  }

 private:
  observability::Health& health_;
  Stream& stream_;
  std::optional<int64_t> subscription_;
};

}  // namespace

std::unique_ptr<StreamHandler> OpenWatch(const Services& services, Stream& stream) {
  return std::make_unique<Watch>(services.health, stream);
}

}  // namespace strata::rpc::health_service
