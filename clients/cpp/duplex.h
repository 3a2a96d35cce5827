// Bidirectional streams that reconnect and resume.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "clients/cpp/attempts.h"
#include "clients/cpp/core.h"

namespace strata::client {

// Reads in one thread and writes in another, so that neither the server nor the caller waits for
// the other's messages. A derived class makes and handles the messages; its functions below are
// called with the mutex held. It calls Start in its constructor and Stop before its destruction.
template <typename Request, typename Response>
class Duplex {
 public:
  using Stream = grpc::ClientReaderWriter<Request, Response>;

  explicit Duplex(std::shared_ptr<Core> core)
      : core_(std::move(core)), attempts_(KindOf<Request>()) {}
  virtual ~Duplex() = default;
  Duplex(const Duplex&) = delete;
  Duplex& operator=(const Duplex&) = delete;

 protected:
  // Not with the mutex held.
  virtual std::unique_ptr<Stream> Open(grpc::ClientContext* context) = 0;
  // A stream begins; the server may not have got the messages of the one before.
  virtual void Opened() = 0;
  virtual void Received(Response& response) = 0;
  // The message to send now, if there is one.
  virtual bool HasWrite() = 0;
  virtual Request TakeWrite() = 0;
  // When a message falls due by time alone. Unset: changed_ is notified of each change.
  virtual std::optional<Attempts::Clock::time_point> NextWrite() { return std::nullopt; }
  // Whether the stream is to be half-closed once all messages are sent.
  virtual bool WantsEnd() = 0;
  // The stream has ended, without an error if `ok`. True: no other follows. Also asked while the
  // next one is awaited.
  virtual bool Ends(bool ok) = 0;
  // Why another stream must follow one that ended without an error.
  virtual Refusal EndedEarly() {
    Refusal refusal;
    refusal.code = grpc::StatusCode::UNAVAILABLE;
    refusal.message = "the server ended the stream";
    return refusal;
  }
  // There will be no further stream.
  virtual void Over() {}

  void Start() {
    reader_ = std::thread([this] { RunReader(); });
    writer_ = std::thread([this] { RunWriter(); });
  }

  // Ends the stream under way, and waits until it has ended.
  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      if (context_ != nullptr) context_->TryCancel();
      changed_.notify_all();
    }
    if (reader_.joinable()) reader_.join();
    if (writer_.joinable()) writer_.join();
  }

  // An answer settled something: troubles before it count no more.
  void Succeeded() { attempts_.Succeeded(); }

  const std::shared_ptr<Core> core_;
  std::mutex mutex_;  // guards all that follows
  // Notified of every event.
  std::condition_variable changed_;
  bool over_ = false;
  absl::Status status_;

 private:
  void RunReader() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      grpc::ClientContext context;
      context_ = &context;
      lock.unlock();
      std::unique_ptr<Stream> stream = Open(&context);
      lock.lock();
      stream_ = stream.get();
      half_closed_ = write_failed_ = false;
      Opened();
      changed_.notify_all();
      if (stopping_) context.TryCancel();
      lock.unlock();
      Response response;
      while (stream->Read(&response)) {
        core_->Connected();
        lock.lock();
        Received(response);
        changed_.notify_all();
        lock.unlock();
      }
      lock.lock();
      stream_ = nullptr;
      changed_.wait(lock, [this] { return !writing_; });
      lock.unlock();
      const grpc::Status status = stream->Finish();
      lock.lock();
      context_ = nullptr;
      if (stopping_ || Ends(status.ok())) break;
      if (!Pause(lock, status.ok() ? EndedEarly() : RefusalOf(status))) break;
    }
    over_ = true;
    Over();
    changed_.notify_all();
  }

  // False: there is to be no further stream.
  bool Pause(std::unique_lock<std::mutex>& lock, Refusal refusal) {
    const auto next = core_->AfterFailure(attempts_, std::move(refusal));
    if (!next.has_value()) {
      status_ = attempts_.status("");
      return false;
    }
    const auto enough = [this] { return stopping_ || Ends(/*ok=*/false); };
    return !changed_.wait_until(lock, *next, enough);
  }

  bool MayWrite() {
    return stream_ != nullptr && !half_closed_ && !write_failed_ && (HasWrite() || WantsEnd());
  }

  void AwaitWrite(std::unique_lock<std::mutex>& lock) {
    const bool may_say = stream_ != nullptr && !half_closed_ && !write_failed_;
    const auto next = may_say ? NextWrite() : std::nullopt;
    if (next.has_value()) {
      changed_.wait_until(lock, *next);
    } else {
      changed_.wait(lock);
    }
  }

  void RunWriter() {
    std::unique_lock lock(mutex_);
    while (true) {
      while (!over_ && !MayWrite()) AwaitWrite(lock);
      if (over_) return;
      Stream* const stream = stream_;
      const bool has_write = HasWrite();
      Request request;
      if (has_write) request = TakeWrite();
      writing_ = true;
      lock.unlock();
      const bool ok = has_write ? stream->Write(request) : stream->WritesDone();
      lock.lock();
      writing_ = false;
      // The reader learns why it broke.
      write_failed_ = write_failed_ || !ok;
      half_closed_ = half_closed_ || !has_write;
      changed_.notify_all();
    }
  }

  Attempts attempts_;
  bool stopping_ = false;
  Stream* stream_ = nullptr;  // null: none that may be written to
  grpc::ClientContext* context_ = nullptr;
  bool writing_ = false;
  bool write_failed_ = false;
  bool half_closed_ = false;
  std::thread reader_;
  std::thread writer_;
};

}  // namespace strata::client
