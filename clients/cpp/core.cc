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

}  // namespace

absl::StatusOr<std::shared_ptr<Core>> Core::Make(const ClientOptions& options) {
  absl::StatusOr<std::string> target = TargetOf(options.target);
  if (!target.ok()) return target.status();
  if (options.timeout <= absl::ZeroDuration()) return RefusedField("timeout", "has to be positive");
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
  return std::make_shared<Core>(Connect(*target, *credentials), options);
}

Core::Core(Connection connection, const ClientOptions& options)
    : connection_(std::move(connection)),
      actor_(options.actor),
      timeout_(absl::ToChronoMilliseconds(std::min(options.timeout, kLongest))),
      retry_ms_(absl::ToInt64Milliseconds(std::min(options.retry_for, kLongest))) {}

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
