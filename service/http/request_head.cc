#include "service/http/request_head.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "schemas/base/strings.h"

namespace strata::http {
namespace {

constexpr size_t kLengthDigitsMax = 18;

bool IsTokenByte(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kOthers.find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenByte);
}

bool IsVisible(char c) { return c > ' ' && c <= '~'; }

// One digit after the dot: RFC 9112, 2.3.
bool IsVersionOne(std::string_view version) {
  constexpr std::string_view kBegin = "HTTP/1.";
  return version.size() == kBegin.size() + 1 && version.starts_with(kBegin) &&
         version.back() >= '0' && version.back() <= '9';
}

std::string_view WithoutBlanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Without its end, which is taken off `rest`.
std::string_view TakeLine(std::string_view& rest) {
  const std::string_view line = rest.substr(0, rest.find(kLineEnd));
  rest.remove_prefix(std::min(rest.size(), line.size() + kLineEnd.size()));
  return line;
}

std::optional<BadHead> ParseRequestLine(std::string_view line, RequestHead& head) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return BadHead{400, "the request line is not METHOD PATH HTTP/1.1"};
  }
  const std::string_view version = line.substr(last + 1);
  if (version.starts_with("HTTP/2") || version.starts_with("HTTP/3")) {
    return BadHead{505, "this port speaks HTTP/1.1 and HTTP/1.0"};
  }
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const bool well_formed =
      IsVersionOne(version) && IsToken(line.substr(0, first)) && !target.empty() &&
      std::all_of(target.begin(), target.end(), IsVisible) &&
      target.find('#') == std::string_view::npos && (target.front() == '/' || target == "*");
  if (!well_formed) return BadHead{400, "the request line is not METHOD PATH HTTP/1.1"};
  head.http_1_0 = version.back() == '0';
  head.method = line.substr(0, first);
  head.path = target.substr(0, target.find('?'));
  return std::nullopt;
}

std::optional<BadHead> ParseField(std::string_view line, Headers& headers) {
  if (line.front() == ' ' || line.front() == '\t') {
    return BadHead{400, "a header goes on in another line, which HTTP/1.1 has given up"};
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
    return BadHead{400, "a header is not NAME: VALUE, without a blank before the colon"};
  }
  headers.Add(absl::AsciiStrToLower(ToAbsl(line.substr(0, colon))),
              std::string(WithoutBlanks(line.substr(colon + 1))));
  return std::nullopt;
}

// Where two headers, or two programs, could disagree on it, there is no length.
std::optional<BadHead> ParseFraming(RequestHead& head) {
  const std::vector<std::string_view> lengths = head.headers.All("content-length");
  const std::vector<std::string_view> codings = head.headers.All("transfer-encoding");
  if (lengths.size() + codings.size() > 1) {
    return BadHead{400,
                   "the length of the body is given more than once: send one Content-Length, "
                   "or Transfer-Encoding: chunked"};
  }
  if (!codings.empty()) {
    // RFC 9112, 6.1: whoever does not know of chunks has understood the request otherwise.
    if (head.http_1_0) return BadHead{400, "HTTP/1.0 has no Transfer-Encoding"};
    if (absl::AsciiStrToLower(ToAbsl(codings.front())) != "chunked") {
      return BadHead{501, "Transfer-Encoding may only be chunked"};
    }
    head.chunked = true;
  }
  if (lengths.empty()) return std::nullopt;
  const std::string_view digits = lengths.front();
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), head.content_length);
  if (digits.empty() || digits.size() > kLengthDigitsMax || error != std::errc() ||
      end != digits.data() + digits.size()) {
    return BadHead{400, "Content-Length is no number of bytes"};
  }
  return std::nullopt;
}

std::optional<BadHead> ParseRest(RequestHead& head) {
  const std::vector<std::string_view> hosts = head.headers.All("host");
  if (hosts.size() != 1) return BadHead{400, "there has to be one Host header"};
  head.host = hosts.front();
  if (std::optional<BadHead> bad = ParseFraming(head)) return bad;
  const std::vector<std::string_view> expectations = head.headers.All("expect");
  if (expectations.empty() || head.http_1_0) return std::nullopt;
  if (expectations.size() > 1 ||
      absl::AsciiStrToLower(ToAbsl(expectations.front())) != "100-continue") {
    return BadHead{417, "Expect may only be 100-continue"};
  }
  head.expects_continue = true;
  return std::nullopt;
}

}  // namespace

size_t Headers::Count(std::string_view name) const {
  return static_cast<size_t>(std::count_if(fields_.begin(), fields_.end(),
                                           [&](const auto& field) { return field.first == name; }));
}

std::optional<std::string_view> Headers::Find(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::vector<std::string_view> Headers::All(std::string_view name) const {
  std::vector<std::string_view> all;
  for (const auto& [key, value] : fields_) {
    if (key == name) all.push_back(value);
  }
  return all;
}

std::optional<BadHead> FindBadByte(std::string_view text, size_t from) {
  for (size_t i = from; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool bare_end = c == '\n' && (i == 0 || text[i - 1] != '\r');
    const bool bare_return = i > 0 && text[i - 1] == '\r' && c != '\n';
    const bool control = (c < ' ' && c != '\t' && c != '\r' && c != '\n') || c == 0x7F;
    if (!bare_end && !bare_return && !control) continue;
    if (i < 3 && text[0] == 0x16) {
      return BadHead{400, "this port speaks HTTP without TLS: call http://, not https://"};
    }
    return BadHead{400, "the head of the request has a control character, or a line without CRLF"};
  }
  return std::nullopt;
}

std::variant<RequestHead, BadHead> ParseHead(std::string_view text) {
  RequestHead head;
  if (std::optional<BadHead> bad = ParseRequestLine(TakeLine(text), head)) return *std::move(bad);
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    if (line.empty()) break;
    if (std::optional<BadHead> bad = ParseField(line, head.headers)) return *std::move(bad);
  }
  if (std::optional<BadHead> bad = ParseRest(head)) return *std::move(bad);
  return head;
}

}  // namespace strata::http
