// Heads of HTTP requests: what is taken has one reading, and bytes that no head begins with are
// known before its end.
#include <algorithm>
#include <string>
#include <variant>

#include "service/http/request_head.h"
#include "tests/fuzz/input.h"

namespace strata::fuzz {
namespace {

using http::BadHead;
using http::RequestHead;

constexpr std::string_view kPieces[] = {"POST /strata.v1.DocumentService/Get HTTP/1.1\r\n",
                                        "GET / HTTP/1.1\r\n",
                                        "Host: localhost\r\n",
                                        "Content-Length: 2\r\n",
                                        "Content-Length: 02\r\n",
                                        "Transfer-Encoding: chunked\r\n",
                                        "Transfer-Encoding: gzip, chunked\r\n",
                                        "Expect: 100-continue\r\n",
                                        "Authorization: Bearer a\r\n",
                                        "Connection: close\r\n",
                                        " folded\r\n",
                                        "\r\n",
                                        "\n",
                                        ": ",
                                        "\t",
                                        "HTTP/1.0"};

std::string TextFrom(Input& input) {
  if (input.Below(4) == 0) return input.Rest();
  std::string text = input.Chance(2) ? std::string(kPieces[0]) + std::string(kPieces[2]) : "";
  while (!input.done()) {
    const size_t piece = input.Below(std::size(kPieces) + 1);
    if (piece < std::size(kPieces)) {
      text += kPieces[piece];
    } else {
      text += static_cast<char>(input.Byte());
    }
  }
  return text + "\r\n\r\n";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const std::string text = TextFrom(input);
  // As the port reads it: up to the first empty line.
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos) return 0;
  const std::string_view head = std::string_view(text).substr(0, end + 4);
  if (const auto bad = http::FindBadByte(head, 0)) {
    Require(!bad->problem.empty(), "a bad byte is told of");
    return 0;
  }
  const auto parsed = http::ParseHead(head);
  if (const auto* const bad = std::get_if<BadHead>(&parsed)) {
    Require(bad->status >= 400 && bad->status < 600, "a bad head has a status of errors");
    Require(!bad->problem.empty(), "a bad head is told why");
    return 0;
  }
  const auto& request = std::get<RequestHead>(parsed);
  Require(request.headers.Count("host") == 1, "a request is for one host");
  Require(request.headers.Count("content-length") <= 1, "a body has one length");
  Require(!request.chunked || !request.http_1_0, "HTTP/1.0 has no chunks");
  Require(!request.chunked || request.headers.Count("content-length") == 0,
          "a body has a length or is in chunks");
  Require(std::all_of(request.path.begin(), request.path.end(),
                      [](char c) { return c > ' ' && c <= '~'; }),
          "a path is printable");
  return 0;
}

}  // namespace strata::fuzz
