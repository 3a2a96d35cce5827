#include "bench/load/watchers.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <stdexcept>

#include "bench/load/closed_loop.h"

namespace strata::bench {
namespace {

using google::protobuf::internal::WireFormatLite;

// What the server allows on one connection.
constexpr size_t kStreamsPerConnection = 100;
constexpr std::chrono::milliseconds kWatchersLook{20};

// How many elements a repeated field of a message has.
int64_t CountOf(int field, grpc::ByteBuffer& message) {
  grpc::ProtoBufferReader bytes(&message);
  google::protobuf::io::CodedInputStream in(&bytes);
  const uint32_t wanted = WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  int64_t count = 0;
  while (const uint32_t tag = in.ReadTag()) {
    if (tag == wanted) ++count;
    if (!WireFormatLite::SkipField(&in, tag)) break;
  }
  return count;
}

}  // namespace

Watchers::Watchers(WatchersSettings settings)
    : Followers(settings.method, settings.count), settings_(std::move(settings)) {
  for (size_t i = 0; i < static_cast<size_t>(settings_.count); ++i) {
    if (i % kStreamsPerConnection == 0) {
      stubs_.push_back(std::make_unique<grpc::GenericStub>(Connect(settings_.address)));
    }
    Stream& stream = *streams_.emplace_back(std::make_unique<Stream>(i));
    stream.call = stubs_.back()->PrepareCall(&stream.context, settings_.method, &queue_);
    stream.call->StartCall(&stream.tags[Stream::kStarted]);
    ++pending_;
  }
  thread_ = std::thread([this] { Run(); });
}

// What the streams wait for may never come; cancelled, it does.
Watchers::~Watchers() {
  stopping_ = true;
  for (const auto& stream : streams_) stream->context.TryCancel();
  thread_.join();
}

void Watchers::Run() {
  while (pending_ > 0 || !stopping_) {
    void* found = nullptr;
    bool ok = false;
    auto wake = std::chrono::system_clock::now() + kWatchersLook;
    const auto outcome = queue_.AsyncNext(&found, &ok, wake);
    if (outcome == grpc::CompletionQueue::GOT_EVENT) {
      --pending_;
      Take(*static_cast<Stream::Tag*>(found), ok);
    }
    Resume();
  }
  queue_.Shutdown();
  void* found = nullptr;
  for (bool ok = false; queue_.Next(&found, &ok);) {
  }
}

void Watchers::Take(const Stream::Tag& tag, bool ok) {
  Stream& stream = *tag.stream;
  switch (tag.step) {
    case Stream::kStarted: {
      if (!ok) return Finish(stream);
      const grpc::Slice request(settings_.request);
      grpc::WriteOptions options;
      if (settings_.half_close) options.set_last_message();
      stream.call->Write(grpc::ByteBuffer(&request, 1), options, &stream.tags[Stream::kWritten]);
      ++pending_;
      return Read(stream);
    }
    case Stream::kWritten:
      return;
    case Stream::kRead:
      if (!ok) return Finish(stream);
      return TakeMessage(stream);
    case Stream::kFinished:
      if (!stopping_) End("a stream ended: " + stream.status.error_message());
  }
}

void Watchers::TakeMessage(Stream& stream) {
  const Clock::time_point now = Clock::now();
  const int64_t count = CountOf(settings_.events_field, stream.message);
  stream.message.Clear();
  if (count > 0) {
    if (stream.number == 0) {
      const absl::MutexLock lock(&mutex_);
      arrivals_.insert(arrivals_.end(), static_cast<size_t>(count), now);
    }
    Count(stream.number, count, now);
  }
  if (!stream.greeted) ++greeted_;
  stream.greeted = true;
  if (settings_.pause.count() == 0) return Read(stream);
  pausing_.emplace_back(now + settings_.pause, &stream);
}

void Watchers::Read(Stream& stream) {
  stream.call->Read(&stream.message, &stream.tags[Stream::kRead]);
  ++pending_;
}

void Watchers::Finish(Stream& stream) {
  stream.call->Finish(&stream.status, &stream.tags[Stream::kFinished]);
  ++pending_;
}

// All pause equally long, so the one that began first ends first.
void Watchers::Resume() {
  const Clock::time_point now = Clock::now();
  while (!pausing_.empty() && (stopping_ || pausing_.front().first <= now)) {
    Stream& stream = *pausing_.front().second;
    pausing_.pop_front();
    Read(stream);
  }
}

void Watchers::AwaitGreeted(std::chrono::milliseconds patience) {
  const Clock::time_point end = Clock::now() + patience;
  while (greeted_ < settings_.count) {
    ThrowIfEnded();
    if (Clock::now() >= end) {
      throw std::runtime_error(name() + ": only " + std::to_string(greeted_) + " of " +
                               std::to_string(settings_.count) + " streams were answered");
    }
    std::this_thread::sleep_for(kWatchersLook);
  }
}

std::vector<Watchers::Clock::time_point> Watchers::arrivals() const {
  const absl::MutexLock lock(&mutex_);
  return arrivals_;
}

}  // namespace strata::bench
