// The thread of the asynchronous calls, and what a client's options come to.
#include "clients/cpp/core.h"

#include <algorithm>

#include "clients/cpp/credentials.h"
#include "clients/cpp/error_status.h"
#include "clients/cpp/target.h"

namespace strata::client {
namespace {

// Longer than any call; an infinite duration has no milliseconds.
constexpr absl::Duration kLongest = absl::Hours(24 * 365);
// gRPC counts its milliseconds in 32 bits.
constexpr absl::Duration kLongestConnect = absl::Hours(24);

// What gRPC says itself of a call that it never sent.
bool SaysUnsent(const Refusal& refusal) {
  return refusal.code == grpc::StatusCode::UNAVAILABLE && refusal.reason.empty() &&
         (refusal.message.starts_with("failed to connect to all addresses") ||
          refusal.message.starts_with("DNS resolution failed"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Core>> Core::Make(const ClientOptions& options) {
  absl::StatusOr<std::string> target = TargetOf(options.target);
  if (!target.ok()) return target.status();
  if (options.timeout <= absl::ZeroDuration()) return RefusedField("timeout", "has to be positive");
  if (options.connect_timeout <= absl::ZeroDuration()) {
    return RefusedField("connect_timeout", "has to be positive");
  }
  CredentialFiles files{.names = kCredentialOptions};
  if (options.tls.has_value()) {
    files.tls_ca = options.tls->authorities.empty() ? "system" : options.tls->authorities;
    files.tls_certificate = options.tls->certificate;
    files.tls_key = options.tls->key;
  }
  absl::StatusOr<Credentials> credentials = ReadCredentials(files, *target);
  if (!credentials.ok()) return credentials.status();
  if (absl::Status status = SetToken(options.token, *target, *credentials); !status.ok()) {
    return status;
  }
  const auto connect_timeout =
      absl::ToChronoMilliseconds(std::min(options.connect_timeout, kLongestConnect));
  return std::make_shared<Core>(Connect(*target, *credentials, connect_timeout), options);
}

Core::Core(Connection connection, const ClientOptions& options)
    : connection_(std::move(connection)),
      actor_(options.actor),
      timeout_(absl::ToChronoMilliseconds(std::min(options.timeout, kLongest))),
      target_(options.target),
      retry_ms_(absl::ToInt64Milliseconds(std::min(options.retry_for, kLongest))),
      connect_ms_(std::min(retry_ms_, absl::ToInt64Milliseconds(
                                          std::min(options.connect_timeout, kLongestConnect)))) {}

std::optional<Attempts::Clock::time_point> Core::AfterFailure(Attempts& attempts, Refusal refusal) {
  // What stands beyond a proxy may have said it.
  refusal.unsent =
      SaysUnsent(refusal) && connection_.channel->GetState(false) != GRPC_CHANNEL_READY;
  int64_t patience_ms = retry_ms_;
  if (!refusal.unsent) {
    // What ran out of time may have waited for a connection.
    if (refusal.code != grpc::StatusCode::DEADLINE_EXCEEDED &&
        refusal.code != grpc::StatusCode::CANCELLED) {
      Connected();
    }
  } else if (!connected_.load(std::memory_order_relaxed)) {
    refusal.message =
        "no connection to " + target_ + ": is stratad running there? (" + refusal.message + ")";
    patience_ms = connect_ms_;
  }
  return attempts.Failed(std::move(refusal), patience_ms);
}

Core::~Core() {
  {
    std::unique_lock lock(mutex_);
    closing_ = true;
    for (Pending* const call : pending_) call->Cancel();
    none_pending_.wait(lock, [this] { return pending_.empty(); });
  }
  queue_.Shutdown();
  if (thread_.joinable()) {
    thread_.join();
  } else {
    RunQueue();  // A queue has to be drained, even one that nobody used.
  }
}

void Core::Add(Pending* call) {
  const std::lock_guard lock(mutex_);
  pending_.insert(call);
  if (!thread_.joinable()) thread_ = std::thread([this] { RunQueue(); });
}

void Core::Remove(Pending* call) {
  const std::lock_guard lock(mutex_);
  pending_.erase(call);
  if (pending_.empty()) none_pending_.notify_all();
}

void Core::RunQueue() {
  void* tag = nullptr;
  for (bool ok = false; queue_.Next(&tag, &ok);) static_cast<Pending*>(tag)->Proceed(ok);
}

}  // namespace strata::client
