#include "bench/growth/idle_streams.h"

#include "bench/load/closed_loop.h"

namespace strata::bench {
namespace {

// What the server allows on one connection.
constexpr size_t kStreamsPerConnection = 100;

}  // namespace

IdleStreams::IdleStreams(const std::string& address, std::string method, int64_t count) {
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    if (i % kStreamsPerConnection == 0) {
      stubs_.push_back(std::make_unique<grpc::GenericStub>(Connect(address)));
    }
    Stream& stream = *streams_.emplace_back(std::make_unique<Stream>());
    stream.call = stubs_.back()->PrepareCall(&stream.context, method, &queue_);
    stream.call->StartCall(&stream.tags[Stream::kStarted]);
    ++pending_;
  }
}

// What the streams wait for does not come; cancelled, it does.
IdleStreams::~IdleStreams() {
  for (const auto& stream : streams_) stream->context.TryCancel();
  for (const auto& stream : streams_) {
    stream->call->Finish(&stream->status, &stream->tags[Stream::kFinished]);
  }
  queue_.Shutdown();
  void* tag = nullptr;
  for (bool ok = false; queue_.Next(&tag, &ok);) {
  }
}

int64_t IdleStreams::Greet(std::chrono::seconds patience) {
  const auto end = std::chrono::system_clock::now() + patience;
  int64_t answered = 0;
  void* found = nullptr;
  bool ok = false;
  while (pending_ > 0 && queue_.AsyncNext(&found, &ok, end) == grpc::CompletionQueue::GOT_EVENT) {
    --pending_;
    const auto& tag = *static_cast<Stream::Tag*>(found);
    if (tag.step == Stream::kStarted && ok) {
      const grpc::Slice nothing;
      tag.stream->call->Write(grpc::ByteBuffer(&nothing, 1), &tag.stream->tags[Stream::kWritten]);
      tag.stream->call->Read(&tag.stream->answer, &tag.stream->tags[Stream::kRead]);
      pending_ += 2;
    } else if (tag.step == Stream::kRead && ok) {
      ++answered;
    }
  }
  return answered;
}

}  // namespace strata::bench
