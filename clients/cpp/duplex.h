// Streams in both directions that are gone on with when their connection breaks.
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
// the other's words. What is said and heard, the class derived from it decides; its functions below
// are called with the mutex held. It calls Start when it is made and Stop before it is gone.
template <typename Request, typename Response>
class Duplex {
 public:
  using Stream = grpc::ClientReaderWriter<Request, Response>;

  explicit Duplex(std::shared_ptr<Core> core)
      : core_(std::move(core)), attempts_(kWrites, core_->retry_ms()) {}
  virtual ~Duplex() = default;
  Duplex(const Duplex&) = delete;
  Duplex& operator=(const Duplex&) = delete;

 protected:
  // Not with the mutex held.
  virtual std::unique_ptr<Stream> Open(grpc::ClientContext* context) = 0;
  // A stream begins; what was said on the one before was perhaps not heard.
  virtual void Opened() = 0;
  virtual void Received(Response& response) = 0;
  // Whether there is something to say now, and what.
  virtual bool HasWrite() = 0;
  virtual Request TakeWrite() = 0;
  // When there is something to say by itself. Unset: whenever that changes, changed_ is told.
  virtual std::optional<Attempts::Clock::time_point> NextWrite() { return std::nullopt; }
  // Whether the stream is to be half-closed once all is said.
  virtual bool WantsEnd() = 0;
  // The stream is over, without an error if `ok`. Whether that was all; else there is another.
  // Asked while waiting for that, too.
  virtual bool Ends(bool ok) = 0;
  // Why a stream that ended without an error was not all.
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

  // Ends what is under way, and waits until it has ended.
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
  // Told of everything that happens.
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
    const auto next = attempts_.Failed(std::move(refusal));
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
      // What broke it, the reader learns.
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
