// Streams on which nothing happens.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace strata::bench {

class IdleStreams {
 public:
  // Opens `count` streams of a method, over as many connections as are needed.
  IdleStreams(const std::string& address, std::string method, int64_t count);
  ~IdleStreams();
  IdleStreams(const IdleStreams&) = delete;
  IdleStreams& operator=(const IdleStreams&) = delete;

  // Sends an empty message on each and waits for an answer, at most `patience` in all. How many
  // streams answered.
  int64_t Greet(std::chrono::seconds patience);

  int64_t connections() const { return static_cast<int64_t>(stubs_.size()); }

 private:
  // Their addresses tell the steps of a stream apart.
  struct Stream {
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
    grpc::ByteBuffer answer;
    grpc::Status status;
    enum Step { kStarted, kWritten, kRead, kFinished };
    struct Tag {
      Stream* stream;
      Step step;
    };
    Tag tags[4] = {{this, kStarted}, {this, kWritten}, {this, kRead}, {this, kFinished}};
  };

  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::vector<std::unique_ptr<Stream>> streams_;
  int64_t pending_ = 0;
};

}  // namespace strata::bench
