// Those who follow a feed over gRPC, Strata's or a peer's: streams of which nothing is looked at
// but how many events they bring, in one thread for all, because a client built otherwise is what
// would be measured.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "bench/load/followers.h"

namespace strata::bench {

struct WatchersSettings {
  std::string address;
  std::string method;      // "/package.Service/Method"
  std::string request;     // the bytes of the one message that each stream sends
  int events_field = 1;    // the number of the repeated field that holds a message's events
  bool half_close = true;  // false: the stream is kept open for further messages
  int64_t count = 1;
  // How long each waits between a message and the next that it takes in. 0: not at all.
  std::chrono::milliseconds pause{0};
};

// All open from construction to destruction, 100 on a connection.
class Watchers final : public Followers {
 public:
  explicit Watchers(WatchersSettings settings);
  ~Watchers() override;

  // Until each has had a message, which is how a server says that it listens. Throws
  // std::runtime_error if that takes longer than `patience`, or one of them ends.
  void AwaitGreeted(std::chrono::milliseconds patience);
  // When each event of the first watcher came, in order.
  std::vector<Clock::time_point> arrivals() const;

 private:
  struct Stream {
    explicit Stream(size_t its_number) : number(its_number) {}
    const size_t number;  // among the followers
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
    grpc::ByteBuffer message;
    grpc::Status status;
    bool greeted = false;
    enum Step { kStarted, kWritten, kRead, kFinished };
    struct Tag {
      Stream* stream;
      Step step;
    };
    // Their addresses tell the steps of a stream apart.
    Tag tags[4] = {{this, kStarted}, {this, kWritten}, {this, kRead}, {this, kFinished}};
  };

  void Run();
  void Take(const Stream::Tag& tag, bool ok);
  void TakeMessage(Stream& stream);
  void Read(Stream& stream);
  void Finish(Stream& stream);
  // Reads of those whose pause is over.
  void Resume();

  const WatchersSettings settings_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::deque<std::pair<Clock::time_point, Stream*>> pausing_;  // the thread's
  int64_t pending_ = 0;                                        // operations; the thread's
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> greeted_{0};
  mutable absl::Mutex mutex_;
  std::vector<Clock::time_point> arrivals_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace strata::bench
