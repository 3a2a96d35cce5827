// What is said to one request, and how HTTP/1.1 has it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::http {

struct Answer {
  // Sends bytes of a body; false: the other end does not take them in.
  using Send = std::function<bool(std::string_view bytes)>;

  int status = 200;
  std::string_view content_type = "application/json";
  std::string body{};
  std::vector<std::pair<std::string_view, std::string>> headers{};
  // Sends a body that comes about meanwhile; false: it broke off.
  std::function<bool(const Send& send)> stream{};
};

// The status line and all headers, with the empty line. `chunked`: the body is a stream in chunks;
// `closes`: the connection ends with the answer, and so does a stream that is not chunked.
std::string HeadOf(const Answer& answer, bool chunked, bool closes);

std::string Chunk(std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace strata::http
