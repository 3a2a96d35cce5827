// One stream from its registration to its end. Private to the event loop.
#pragma once

#include <grpcpp/alarm.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "service/server/event_queue.h"

namespace strata::server {

// Owns itself until its last event has come.
class StreamCall final : public Stream, private RoomLine::Waiter {
 public:
  StreamCall(EventQueue& queue, const Endpoint& endpoint);

  void Send(const google::protobuf::MessageLite& message) override;
  size_t waiting() const override;
  bool TakeRoom(size_t bytes) override;
  void KeepRoom(size_t bytes) override;
  void Finish(const absl::Status& status) override;

  // Cancels the call if its caller has not taken a message in for too long.
  void GiveUpIfStuck(std::chrono::steady_clock::time_point now);
  // Ends the stream if it has lasted for as long as one may.
  void FinishIfOld(std::chrono::steady_clock::time_point now);

 private:
  using Lock = std::unique_lock<std::mutex>;

  ~StreamCall() override = default;

  void OnStart(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool ok);
  void OnDone(bool ok);
  void OnLastRead(bool ok);
  void OnRoom(bool ok);
  void Wake() override;

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
  void Report(const absl::Status& status) const;

  EventQueue& queue_;
  const Endpoint& endpoint_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_{&context_};
  grpc::ByteBuffer message_;
  std::chrono::steady_clock::time_point arrival_;
  std::chrono::steady_clock::time_point old_at_;
  const bool takes_turns_;                  // it is told things in its caller's turns
  Executor* const handled_on_;              // else; null: the loop's own threads
  std::unique_ptr<StreamHandler> handler_;  // null: was not admitted
  // What the handler is told of, one after the other; made with the first.
  std::unique_ptr<google::protobuf::MessageLite> told_;
  int64_t unanswered_max_ = 0;
  bool answers_each_ = true;

  mutable std::mutex mutex_;  // guards what follows
  std::deque<grpc::ByteBuffer> outbox_;
  std::deque<size_t> unanswered_sizes_;  // of messages taken in, oldest first
  InFlight in_flight_;
  size_t room_ = 0;         // of it, for what is not made yet
  bool asks_room_ = false;  // and waits for it in the line
  QuotaUse quota_;
  size_t request_bytes_ = 0;
  size_t response_bytes_ = 0;
  int64_t unanswered_ = 0;           // messages taken in, less those answered
  std::optional<absl::Status> end_;  // how the stream is to end
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

  EventOf<StreamCall, &StreamCall::OnStart> start_event_{*this};
  EventOf<StreamCall, &StreamCall::OnRead> read_event_{*this};
  EventOf<StreamCall, &StreamCall::OnWritten> written_event_{*this};
  EventOf<StreamCall, &StreamCall::OnFinished> finished_event_{*this};
  EventOf<StreamCall, &StreamCall::OnDone> done_event_{*this};
  EventOf<StreamCall, &StreamCall::OnLastRead> last_read_event_{*this};
  EventOf<StreamCall, &StreamCall::OnRoom> room_event_{*this};
  std::optional<grpc::Alarm> last_read_alarm_;
  std::optional<grpc::Alarm> room_alarm_;
};

}  // namespace strata::server
