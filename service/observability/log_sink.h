// Where the log's lines go: a descriptor that perhaps nobody reads.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace strata::observability {

// Never waits for a reader. A line that the descriptor cannot take right now is dropped, and before
// the next one that it takes stands a line that says how many were. Longer lines than kLineBytesMax
// are cut. Thread-safe.
class LogSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // As much as a pipe takes whole or not at all, once it says that it takes anything (PIPE_BUF).
  static constexpr size_t kLineBytesMax = 4096;

  // The descriptor outlives the sink. `say_dropped` makes what stands in a line's place for
  // the event and its fields, from how many lines are missing.
  using SayDropped = std::string (*)(int64_t lines);
  LogSink(int descriptor, SayDropped say_dropped)
      : descriptor_(descriptor), say_dropped_(say_dropped) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  bool Write(const spdlog::details::log_msg& message);

  const int descriptor_;
  const SayDropped say_dropped_;
  int64_t dropped_ = 0;
};

}  // namespace strata::observability
