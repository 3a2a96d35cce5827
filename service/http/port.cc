#include "service/http/port.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "schemas/base/status_macros.h"
#include "service/http/connection.h"
#include "service/http/slots.h"
#include "service/observability/log.h"
#include "service/server/listener.h"

namespace strata::http {
namespace {

// Connections without a slot, at once.
constexpr int kDoorMax = 8;
// For a connection without a slot.
constexpr std::chrono::milliseconds kRefusalTime{2'000};

void Reset(int descriptor) {
  const linger at_once = {1, 0};
  setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close(descriptor);
}

// OpenSSL writes to sockets that nobody reads any more without a word to the kernel about it.
void BlockBrokenPipes() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

class HttpPort final : public Port {
 public:
  HttpPort(const PortOptions& options, PortParts parts)
      : tls_(std::move(parts.tls)),
        state_(options, std::move(parts)),
        slots_(options.limits.connections_max, kDoorMax, options.principals) {}
  ~HttpPort() override { Stop(); }

  absl::Status Listen() {
    server::ListenerOptions listener;
    listener.listen = state_.options.listen;
    listener.connections_max = state_.options.limits.connections_max + kDoorMax;
    listener.connections_per_address_max = 0;  // a proxy's are all from one
    ASSIGN_OR_RETURN(listener_, server::Listener::Open(listener));
    port_ = listener_->port();
    listener_->Start([this](int descriptor) { Take(descriptor); });
    return absl::OkStatus();
  }

  int port() const override { return port_; }
  void Drain() override { state_.draining = true; }
  void AwaitAnswers(std::chrono::milliseconds at_most) override;
  void Stop() override;

 private:
  struct Worker {
    std::thread thread;
    std::optional<Slots::Slot> slot;
    Socket* socket = nullptr;
    std::atomic<bool> idle = false;  // between two requests
    bool done = false;
  };

  // On the listener's thread.
  void Take(int descriptor);
  void Work(Worker& worker, int descriptor);
  void Serve(Worker& worker, Socket& socket);
  // With the lock held, which is released where threads are waited for.
  void ForgetDone();
  void EndOneThatIsIdle();

  const std::unique_ptr<TlsContext> tls_;
  PortState state_;
  Slots slots_;
  std::unique_ptr<server::Listener> listener_;
  int port_ = 0;
  std::mutex mutex_;  // guards what follows
  std::list<Worker> workers_;
  bool stopping_ = false;
};

void HttpPort::ForgetDone() {
  for (auto it = workers_.begin(); it != workers_.end();) {
    if (!it->done) {
      ++it;
      continue;
    }
    it->thread.join();  // which has nothing more to do
    it = workers_.erase(it);
  }
}

// An idle connection gives way, one of the caller that has most of them.
void HttpPort::EndOneThatIsIdle() {
  Worker* found = nullptr;
  int most = 0;
  for (Worker& worker : workers_) {
    if (worker.socket == nullptr || !worker.idle) continue;
    const int of_caller = worker.slot->of_caller();
    if (of_caller > most) {
      most = of_caller;
      found = &worker;
    }
  }
  if (found != nullptr) found->socket->Cut();
}

void HttpPort::Take(int descriptor) {
  const std::lock_guard lock(mutex_);
  ForgetDone();
  std::optional<Slots::Slot> slot = slots_.Take(AddressOf(descriptor));
  if (stopping_ || !slot) return Reset(descriptor);
  if (slot->at_door()) EndOneThatIsIdle();
  Worker& worker = workers_.emplace_back();
  worker.slot.emplace(*std::move(slot));
  try {
    worker.thread = std::thread([this, &worker, descriptor] { Work(worker, descriptor); });
  } catch (const std::exception&) {  // the machine has no thread left
    workers_.pop_back();
    return Reset(descriptor);
  }
}

void HttpPort::Work(Worker& worker, int descriptor) {
  using observability::Log;
  using observability::LogLevel;
  BlockBrokenPipes();
  absl::StatusOr<SslPointer> ssl = SslPointer();
  if (tls_ != nullptr) ssl = tls_->Accept();
  if (ssl.ok()) {
    Socket socket(descriptor, *std::move(ssl));
    Serve(worker, socket);
  } else {
    Log(LogLevel::kError, "no TLS for an HTTP connection",
        {{"error",
          std::string_view(ssl.status().message().data(), ssl.status().message().size())}});
    Reset(descriptor);
  }
  const std::lock_guard lock(mutex_);
  worker.slot.reset();
  worker.done = true;
}

void HttpPort::Serve(Worker& worker, Socket& socket) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    worker.socket = &socket;
  }
  Limits at_door = state_.options.limits;
  at_door.request = at_door.answer = kRefusalTime;
  const Limits& limits = worker.slot->at_door() ? at_door : state_.options.limits;
  if (socket.ShakeHands(Clock::now() + limits.request)) {
    ServeConnection(state_, socket, limits, *worker.slot, worker.idle);
  }
  const std::lock_guard lock(mutex_);
  worker.socket = nullptr;
}

void HttpPort::AwaitAnswers(std::chrono::milliseconds at_most) {
  std::unique_lock lock(state_.mutex);
  state_.changed.wait_for(lock, at_most, [this] { return state_.answers == 0; });
}

void HttpPort::Stop() {
  if (listener_ != nullptr) listener_->Stop();
  std::list<Worker> left;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (Worker& worker : workers_) {
      if (worker.socket != nullptr) worker.socket->Cut();
    }
    // Each thread still knows its worker, whose place in memory stays.
    left.splice(left.begin(), workers_);
  }
  for (Worker& worker : left) worker.thread.join();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Port>> Port::Start(const PortOptions& options, PortParts parts) {
  auto port = std::make_unique<HttpPort>(options, std::move(parts));
  RETURN_IF_ERROR(port->Listen());
  return std::unique_ptr<Port>(std::move(port));
}

}  // namespace strata::http
