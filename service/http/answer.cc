#include "service/http/answer.h"

#include <algorithm>
#include <charconv>

#include "service/http/request_head.h"

namespace strata::http {
namespace {

// With every answer. No Strict-Transport-Security: it would hold for the whole host, all other
// ports on it, and the port is often on "localhost".
constexpr std::pair<std::string_view, std::string_view> kSecurityHeaders[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

constexpr std::pair<int, std::string_view> kPhrases[] = {{200, "OK"},
                                                         {304, "Not Modified"},
                                                         {400, "Bad Request"},
                                                         {401, "Unauthorized"},
                                                         {403, "Forbidden"},
                                                         {404, "Not Found"},
                                                         {405, "Method Not Allowed"},
                                                         {408, "Request Timeout"},
                                                         {409, "Conflict"},
                                                         {413, "Payload Too Large"},
                                                         {415, "Unsupported Media Type"},
                                                         {417, "Expectation Failed"},
                                                         {421, "Misdirected Request"},
                                                         {429, "Too Many Requests"},
                                                         {431, "Request Header Fields Too Large"},
                                                         {501, "Not Implemented"},
                                                         {503, "Service Unavailable"},
                                                         {504, "Gateway Timeout"},
                                                         {505, "HTTP Version Not Supported"}};

std::string_view PhraseOf(int status) {
  for (const auto& [known, phrase] : kPhrases) {
    if (known == status) return phrase;
  }
  return "Internal Server Error";
}

void AddHeader(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ").append(value).append(kLineEnd);
}

}  // namespace

std::string HeadOf(const Answer& answer, bool chunked, bool closes) {
  std::string head = "HTTP/1.1 " + std::to_string(answer.status) + " ";
  head.append(PhraseOf(answer.status)).append(kLineEnd);
  for (const auto& [name, value] : answer.headers) AddHeader(head, name, value);
  for (const auto& [name, value] : kSecurityHeaders) AddHeader(head, name, value);
  const bool caches = std::any_of(answer.headers.begin(), answer.headers.end(),
                                  [](const auto& each) { return each.first == "Cache-Control"; });
  if (!caches) AddHeader(head, "Cache-Control", "no-store");
  if (answer.status != 304) AddHeader(head, "Content-Type", answer.content_type);
  if (chunked) AddHeader(head, "Transfer-Encoding", "chunked");
  if (answer.status != 304 && answer.stream == nullptr) {
    AddHeader(head, "Content-Length", std::to_string(answer.body.size()));
  }
  if (closes) AddHeader(head, "Connection", "close");
  return head.append(kLineEnd);
}

std::string Chunk(std::string_view bytes) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, bytes.size(), 16).ptr;
  std::string chunk(digits, end);
  chunk.reserve(chunk.size() + bytes.size() + 2 * kLineEnd.size());
  return chunk.append(kLineEnd).append(bytes).append(kLineEnd);
}

}  // namespace strata::http
