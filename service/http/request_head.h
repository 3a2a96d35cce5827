// What a request of HTTP/1.1 or HTTP/1.0 says before its body, read strictly: what two programs
// could understand differently is refused, so that nothing can be hidden from a proxy in front.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace strata::http {

inline constexpr std::string_view kLineEnd = "\r\n";

// Names are in lower case, in the order in which they came; values without blanks around.
class Headers {
 public:
  void Add(std::string name, std::string value) {
    fields_.emplace_back(std::move(name), std::move(value));
  }
  size_t Count(std::string_view name) const;
  // The first of this name.
  std::optional<std::string_view> Find(std::string_view name) const;
  std::vector<std::string_view> All(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

struct RequestHead {
  // Of a minor version above 1 it is what HTTP/1.1 makes of it (RFC 9110, 2.5). The sender of
  // HTTP/1.0, as some proxies are, knows neither chunks nor "100 Continue", and closes afterwards.
  bool http_1_0 = false;
  std::string method;  // "POST"
  std::string path;    // as it was sent, up to a "?": nothing is decoded
  std::string host;    // of the Host header
  Headers headers;

  // How long the body is: of so many bytes, or of chunks that say so themselves.
  uint64_t content_length = 0;
  bool chunked = false;
  bool expects_continue = false;  // waits for "100 Continue" before it sends its body

  bool has_body() const { return chunked || content_length > 0; }
};

// Why there is none: the status to answer by, and words.
struct BadHead {
  int status = 400;
  std::string problem;
};

// Whether no beginning of a head can have these bytes, so that there is no use in waiting for its
// end: control characters, ends of lines without CR.
std::optional<BadHead> FindBadByte(std::string_view text, size_t from);

// `text` is the head up to its empty line, which it includes.
std::variant<RequestHead, BadHead> ParseHead(std::string_view text);

}  // namespace strata::http
