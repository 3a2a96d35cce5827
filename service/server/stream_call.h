// One stream of any port, from its arrival to its end. Private to the ports.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "service/server/call.h"
#include "service/server/call_life.h"

namespace strata::server {

// A port derives from it: what the stream asks for is over when the port says so by an event. At
// most one read and one write are under way.
class StreamCall : public Stream, public LiveCall, private RoomLine::Waiter {
 public:
  void Send(const google::protobuf::MessageLite& message) override;
  size_t waiting() const override;
  bool TakeRoom(size_t bytes) override;
  void KeepRoom(size_t bytes) override;
  void Finish(const absl::Status& status) override;

  void Drain() override;
  void Look(std::chrono::steady_clock::time_point now) override;

  // The events, each on a thread of the port. After the last one the stream may be gone.
  void OnRead(bool ok);  // what message_ holds; false: the caller sends no more
  void OnWritten(bool ok);
  void OnFinished(bool ok);
  void OnDone(bool ok);      // the caller is served or gone: nothing more can reach it
  void OnLastRead(bool ok);  // a moment after the last read
  void OnRoom(bool ok);      // Wake was called

 protected:
  StreamCall(std::shared_ptr<LoopState> state, const Endpoint& endpoint);
  ~StreamCall() override = default;

  // First of all.
  void Arrive(Arrival arrival);
  // Admits the stream and opens its handler; from now on events may come.
  void Begin();

  const Endpoint& endpoint() const { return life_.endpoint(); }
  LoopState& state() const { return life_.state(); }

  // What the stream asks its port for, with the lock held.
  virtual void Read(grpc::ByteBuffer& message) = 0;
  virtual void Write(const grpc::ByteBuffer& message) = 0;
  virtual void WriteEnd(const absl::Status& status) = 0;
  virtual void Cancel() = 0;
  virtual void AskForLastRead() = 0;
  // The last that the stream does: without the lock, on any thread.
  virtual void EndTransport() = 0;

 private:
  using Lock = std::unique_lock<std::mutex>;

  // With the lock held.
  bool FindRoom(size_t bytes);
  void ReadNext();
  void WriteNext();
  void TellLastLater();
  bool Over();

  // Of the oldest message that is not answered yet: it is now. Its bytes.
  size_t TakeAnswered();

  // Tells the handler of a message, or that it is refused.
  void TellMessage(const grpc::Slice& bytes);
  void TellRefusal(const absl::Status& refusal);
  void CountTold();
  absl::Status Understand(const grpc::Slice& bytes);

  // Lets `work` tell the handler something, here or on the executor, without the lock; then as
  // EndIfOver.
  template <typename Work>
  void Tell(Lock lock, Work work);
  void ScheduleTelling();
  absl::Status ScheduleNext();
  void TellNext();

  // The last that an event does: the stream may be gone then, or another thread may end it.
  void EndIfOver(Lock lock);

  CallLife life_;  // what of it changes: guarded by mutex_
  grpc::ByteBuffer message_;
  std::chrono::steady_clock::time_point old_at_;
  const bool takes_turns_;                  // it is told things in its caller's turns
  Executor* const handled_on_;              // else; null: the port's own threads
  std::unique_ptr<StreamHandler> handler_;  // null: was not admitted
  // What the handler is told of, one after the other; made with the first.
  std::unique_ptr<google::protobuf::MessageLite> told_;
  int64_t unanswered_max_ = 0;
  bool answers_each_ = true;

  mutable std::mutex mutex_;  // guards what follows
  std::deque<grpc::ByteBuffer> outbox_;
  std::deque<size_t> unanswered_sizes_;  // of messages taken in, oldest first
  size_t room_ = 0;                      // of what it holds, for what is not made yet
  bool asks_room_ = false;               // and waits for it in the line
  int64_t unanswered_ = 0;               // messages taken in, less those answered
  std::optional<absl::Status> end_;      // how the stream is to end
  bool reading_ = false;
  bool read_all_ = false;
  bool telling_last_ = false;  // a moment later
  bool writing_ = false;
  std::chrono::steady_clock::time_point writing_since_;
  bool finishing_ = false;
  bool finished_ = false;
  bool done_ = false;
  std::deque<std::function<void()>> untold_;  // what the handler is still to hear, elsewhere
  bool telling_ = false;                      // until it has heard all of it, or the stream ends
};

}  // namespace strata::server
