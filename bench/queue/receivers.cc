#include "bench/queue/receivers.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <strata/v1/queue_service.pb.h>

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/queue/queue_workloads.h"

namespace strata::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kReceive[] = "/strata.v1.QueueService/Receive";
constexpr std::chrono::milliseconds kIdle{10};
constexpr std::chrono::seconds kSilenceMax{30};

struct Stream {
  enum Step : uint8_t { kStarted, kWritten, kHalfClosed, kRead, kFinished };
  struct Tag {
    Stream* stream;
    Step step;
  };

  Tag tags[5] = {
      {this, kStarted}, {this, kWritten}, {this, kHalfClosed}, {this, kRead}, {this, kFinished}};
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
  grpc::ByteBuffer message;
  grpc::Status status;
  bool writing = false;
  std::deque<std::string> tokens;  // to be acknowledged
};

class Receivers {
 public:
  Receivers(const std::shared_ptr<grpc::Channel>& channel, const ReceiversSettings& settings,
            int64_t messages)
      : settings_(settings), messages_(messages), stub_(channel) {
    for (int i = 0; i < settings.streams; ++i) {
      Stream& stream = *streams_.emplace_back(std::make_unique<Stream>());
      stream.call = stub_.PrepareCall(&stream.context, kReceive, &queue_);
      stream.call->StartCall(&stream.tags[Stream::kStarted]);
      ++pending_;
    }
  }
  // What is left then waits for what may never come; cancelled, it does.
  ~Receivers() {
    for (const auto& stream : streams_) stream->context.TryCancel();
    queue_.Shutdown();
    void* found = nullptr;
    for (bool ok = false; queue_.Next(&found, &ok);) {
    }
  }
  Receivers(const Receivers&) = delete;
  Receivers& operator=(const Receivers&) = delete;

  Received Run() {
    while (received_.messages < messages_) TakeOne();
    received_.duration = last_ - begin_;
    // An acknowledgement too many would have been answered by the time that the streams end.
    leaving_ = true;
    for (const auto& stream : streams_) {
      while (stream->writing) TakeOne();
      stream->call->WritesDone(&stream->tags[Stream::kHalfClosed]);
      ++pending_;
    }
    while (pending_ > 0) TakeOne();
    if (received_.messages != messages_) throw std::runtime_error("messages came too often");
    return received_;
  }

 private:
  void TakeOne();
  void Take(const Stream::Tag& tag, bool ok);
  void TakeMessage(Stream& stream);
  void TakeResults(const v1::ReceiveResponse::Results& results);
  void Write(Stream& stream, const v1::ReceiveRequest& request);
  // If there are so many.
  void Acknowledge(Stream& stream, size_t least);
  void Read(Stream& stream) {
    stream.call->Read(&stream.message, &stream.tags[Stream::kRead]);
    ++pending_;
  }

  const ReceiversSettings settings_;
  int64_t messages_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<Stream>> streams_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;  // acknowledgement
  int pending_ = 0;
  bool leaving_ = false;
  Received received_;
  v1::ReceiveRequest request_;
  v1::ReceiveResponse response_;
};

void Receivers::TakeOne() {
  void* found = nullptr;
  bool ok = false;
  const auto wake = std::chrono::system_clock::now() + kIdle;
  if (queue_.AsyncNext(&found, &ok, wake) == grpc::CompletionQueue::GOT_EVENT) {
    --pending_;
    return Take(*static_cast<Stream::Tag*>(found), ok);
  }
  if (Clock::now() - last_ > kSilenceMax) {
    throw std::runtime_error("of " + std::to_string(messages_) + " messages only " +
                             std::to_string(received_.messages) + " came");
  }
  for (const auto& stream : streams_) Acknowledge(*stream, 1);
}

void Receivers::Take(const Stream::Tag& tag, bool ok) {
  Stream& stream = *tag.stream;
  switch (tag.step) {
    case Stream::kStarted: {
      v1::ReceiveRequest request;
      request.mutable_open()->set_queue(settings_.queue);
      request.mutable_open()->set_credits(settings_.credits);
      request.mutable_open()->set_encoding(v1::ENCODING_BSON);
      Write(stream, request);
      return Read(stream);
    }
    case Stream::kWritten:
      stream.writing = false;
      return Acknowledge(stream, static_cast<size_t>(settings_.batch));
    case Stream::kHalfClosed:
      return;
    case Stream::kRead:
      if (ok) return TakeMessage(stream);
      stream.call->Finish(&stream.status, &stream.tags[Stream::kFinished]);
      ++pending_;
      return;
    case Stream::kFinished:
      if (leaving_ && stream.status.ok()) return;
      throw std::runtime_error("a stream ended: " + stream.status.error_message());
  }
}

void Receivers::TakeMessage(Stream& stream) {
  grpc::Slice slice;
  const bool joined =
      stream.message.TrySingleSlice(&slice).ok() || stream.message.DumpToSingleSlice(&slice).ok();
  if (!joined || !response_.ParseFromArray(slice.begin(), static_cast<int>(slice.size()))) {
    throw std::runtime_error("a stream's answer is malformed");
  }
  stream.message.Clear();
  if (response_.has_results()) TakeResults(response_.results());
  if (response_.has_messages()) {
    for (v1::QueueMessage& message : *response_.mutable_messages()->mutable_messages()) {
      if (!IsFresh(message)) throw std::runtime_error("a message came that should not");
      stream.tokens.push_back(std::move(*message.mutable_token()));
    }
    Acknowledge(stream, static_cast<size_t>(settings_.batch));
  }
  Read(stream);
}

void Receivers::TakeResults(const v1::ReceiveResponse::Results& results) {
  const bool right =
      results.results_size() == results.tokens_size() &&
      std::none_of(results.results().begin(), results.results().end(),
                   [](const v1::TokenResult& one) { return one.replayed() || one.has_error(); });
  if (!right) throw std::runtime_error("an acknowledgement was refused");
  received_.messages += results.results_size();
  last_ = Clock::now();
}

void Receivers::Write(Stream& stream, const v1::ReceiveRequest& request) {
  const grpc::Slice bytes(request.SerializeAsString());
  stream.call->Write(grpc::ByteBuffer(&bytes, 1), &stream.tags[Stream::kWritten]);
  stream.writing = true;
  ++pending_;
}

void Receivers::Acknowledge(Stream& stream, size_t least) {
  if (leaving_ || stream.writing || stream.tokens.size() < least) return;
  auto& tokens = *request_.mutable_acknowledge()->mutable_tokens();
  tokens.Clear();
  while (!stream.tokens.empty() && tokens.size() < settings_.batch) {
    *tokens.Add() = std::move(stream.tokens.front());
    stream.tokens.pop_front();
  }
  Write(stream, request_);
}

}  // namespace

Received ReceiveAll(const std::shared_ptr<grpc::Channel>& channel,
                    const ReceiversSettings& settings, int64_t messages) {
  return Receivers(channel, settings, messages).Run();
}

}  // namespace strata::bench
