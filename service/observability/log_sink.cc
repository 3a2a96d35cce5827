#include "service/observability/log_sink.h"

#include <poll.h>
#include <spdlog/details/log_msg.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace strata::observability {
namespace {

bool TakesALine(int descriptor) {
  pollfd wait = {descriptor, POLLOUT, 0};
  return poll(&wait, 1, /*timeout=*/0) == 1 && (wait.revents & POLLOUT) != 0;
}

}  // namespace

void LogSink::sink_it_(const spdlog::details::log_msg& message) {
  if (dropped_ > 0) {
    const std::string text = say_dropped_(dropped_);
    const spdlog::details::log_msg notice(message.time, message.source, message.logger_name,
                                          spdlog::level::warn,
                                          spdlog::string_view_t(text.data(), text.size()));
    if (Write(notice)) dropped_ = 0;
  }
  if (dropped_ > 0 || !Write(message)) ++dropped_;
}

// A line that fails otherwise than for want of a reader is dropped too: there is nobody to tell.
bool LogSink::Write(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  if (line.size() > kLineBytesMax) {
    line.resize(kLineBytesMax);
    line[kLineBytesMax - 1] = '\n';
  }
  if (!TakesALine(descriptor_)) return false;
  return write(descriptor_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace strata::observability
