// A client of HTTP/1.1 that sends whatever a test likes, byte by byte if need be.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/certificates.h"

namespace strata::http_test {

// How long anything may take whose time is not the claim.
inline constexpr std::chrono::seconds kPatience{30};

struct Response {
  int status = 0;                              // 0: there was none
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // without the marks of chunks

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

// One message of a stream.
struct Message {
  int flags = -1;  // -1: there was none
  std::string text;
};

using RequestHeaders = std::vector<std::pair<std::string, std::string>>;

struct Target {
  int port = 0;
  // By TLS, believing this authority; empty: in the clear.
  std::string ca{};
  std::optional<test_support::Certificate> certificate{};
};

// A POST with its body, as HTTP has it. Another header of the same name replaces the one that would
// be there by itself; an empty value leaves it out.
std::string Post(const std::string& path, std::string_view body, RequestHeaders headers = {});
std::string Get(const std::string& path, RequestHeaders headers = {});

// One connection to 127.0.0.1. Waits, but not for ever. Not thread-safe.
class HttpClient {
 public:
  explicit HttpClient(const Target& target);
  explicit HttpClient(int port) : HttpClient(Target{.port = port}) {}
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // By TLS: the handshake came about. (Under TLS 1.3 the server may still refuse the certificate.)
  bool connected() const { return connected_; }

  // Whether the kernel took everything.
  bool Send(std::string_view bytes);
  // The answer to the oldest request that has none. `head`: to a HEAD, which has no body.
  Response Read(bool head = false);
  Response Call(std::string_view request) {
    Send(request);
    return Read();
  }

  // Of an answer that is a stream: its head, then one message after the other.
  Response ReadHead();
  Message ReadMessage();

  // Whether the other end closes, or breaks off, within so long; what it sends meanwhile is
  // dropped.
  bool IsClosed(std::chrono::milliseconds patience = kPatience);
  // Whether something has come that was not read, within so long.
  bool HasMore(std::chrono::milliseconds patience);
  // Its own end is closed, without a word.
  void Close();
  // Takes less of what is sent to it from now on: before anything is sent.
  void ShrinkWindow();

  std::string server_certificate() const;

 private:
  bool Fill();
  std::optional<std::string> TakeLine();
  std::optional<std::string> TakeBytes(size_t size);
  std::optional<std::string> TakeChunk();
  bool Await(int events, std::chrono::milliseconds patience) const;

  int socket_ = -1;
  bool connected_ = false;
  std::string arrived_;
  std::string chunks_;  // of a stream, not taken yet
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{nullptr, &SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{nullptr, &SSL_free};
};

// One request on a connection of its own.
Response CallOnce(const Target& target, std::string_view request);
inline Response CallOnce(int port, std::string_view request) {
  return CallOnce(Target{.port = port}, request);
}

// The text of a field of a flat JSON object, as a test needs it of error bodies; "" if there is
// none.
std::string JsonText(const std::string& json, const std::string& field);

}  // namespace strata::http_test
