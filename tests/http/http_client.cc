#include "tests/http/http_client.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

namespace strata::http_test {
namespace {

using Clock = std::chrono::steady_clock;

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <typename Type>
using Owned = std::unique_ptr<Type, Free>;

Owned<BIO> Reading(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Owned<X509> CertificateOf(const std::string& pem) {
  return Owned<X509>(PEM_read_bio_X509(Reading(pem).get(), nullptr, nullptr, nullptr));
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string Format(const std::string& line, RequestHeaders defaults, const RequestHeaders& headers,
                   std::string_view body) {
  for (const auto& [name, value] : headers) {
    std::erase_if(defaults, [&, &wanted = name](const auto& header) {
      return Lower(header.first) == Lower(wanted);
    });
  }
  std::string request = line + " HTTP/1.1\r\n";
  for (const RequestHeaders* const list : {&std::as_const(defaults), &headers}) {
    for (const auto& [name, value] : *list) {
      if (!value.empty()) request += name + ": " + value + "\r\n";
    }
  }
  return request + "\r\n" + std::string(body);
}

int Connect(int port) {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close(made);
    return -1;
  }
  const int one = 1;
  setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  const timeval patience{kPatience.count(), 0};
  setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  return made;
}

}  // namespace

std::string Post(const std::string& path, std::string_view body, RequestHeaders headers) {
  return Format("POST " + path,
                {{"Host", "localhost"},
                 {"Content-Type", "application/json"},
                 {"Content-Length", std::to_string(body.size())}},
                headers, body);
}

std::string Get(const std::string& path, RequestHeaders headers) {
  return Format("GET " + path, {{"Host", "localhost"}}, headers, "");
}

HttpClient::HttpClient(const Target& target) : socket_(Connect(target.port)) {
  std::signal(SIGPIPE, SIG_IGN);
  if (socket_ < 0) return;
  connected_ = target.ca.empty();
  if (connected_) return;
  context_.reset(SSL_CTX_new(TLS_client_method()));
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), CertificateOf(target.ca).get());
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  if (target.certificate) {
    const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(Reading(target.certificate->key_pem).get(),
                                                      nullptr, nullptr, nullptr));
    SSL_CTX_use_certificate(context_.get(), CertificateOf(target.certificate->chain_pem).get());
    SSL_CTX_use_PrivateKey(context_.get(), key.get());
  }
  ssl_.reset(SSL_new(context_.get()));
  SSL_set_fd(ssl_.get(), socket_);
  connected_ = SSL_connect(ssl_.get()) == 1;
}

HttpClient::~HttpClient() { Close(); }

void HttpClient::Close() {
  ssl_.reset();
  if (socket_ >= 0) close(std::exchange(socket_, -1));
}

void HttpClient::ShrinkWindow() {
  const int bytes = 4096;
  setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

bool HttpClient::Await(int events, std::chrono::milliseconds patience) const {
  pollfd wait{socket_, static_cast<short>(events), 0};
  return poll(&wait, 1, static_cast<int>(patience.count())) > 0;
}

bool HttpClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ssl_ != nullptr
                              ? SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()))
                              : send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// False: closed, broken off, or silent for too long.
bool HttpClient::Fill() {
  std::array<char, 16384> bytes;
  const ssize_t count = ssl_ != nullptr ? SSL_read(ssl_.get(), bytes.data(), bytes.size())
                                        : recv(socket_, bytes.data(), bytes.size(), 0);
  if (count <= 0) return false;
  arrived_.append(bytes.data(), static_cast<size_t>(count));
  return true;
}

std::optional<std::string> HttpClient::TakeLine() {
  for (;;) {
    const size_t end = arrived_.find("\r\n");
    if (end != std::string::npos) {
      std::string line = arrived_.substr(0, end);
      arrived_.erase(0, end + 2);
      return line;
    }
    if (!Fill()) return std::nullopt;
  }
}

std::optional<std::string> HttpClient::TakeBytes(size_t size) {
  while (arrived_.size() < size) {
    if (!Fill()) return std::nullopt;
  }
  std::string bytes = arrived_.substr(0, size);
  arrived_.erase(0, size);
  return bytes;
}

// Empty: the last one.
std::optional<std::string> HttpClient::TakeChunk() {
  const std::optional<std::string> line = TakeLine();
  if (!line) return std::nullopt;
  const size_t size = std::strtoul(line->c_str(), nullptr, 16);
  std::optional<std::string> chunk = TakeBytes(size);
  return chunk && TakeLine() ? chunk : std::nullopt;
}

Response HttpClient::ReadHead() {
  Response response;
  std::optional<std::string> line = TakeLine();
  while (line && line->starts_with("HTTP/1.1 100 ")) {
    TakeLine();
    line = TakeLine();
  }
  if (!line || !line->starts_with("HTTP/1.1 ")) return response;
  const int status = std::atoi(line->c_str() + 9);
  while ((line = TakeLine()) && !line->empty()) {
    const size_t colon = line->find(": ");
    response.headers[Lower(line->substr(0, colon))] = line->substr(colon + 2);
  }
  if (line) response.status = status;
  return response;
}

Response HttpClient::Read(bool head) {
  Response response = ReadHead();
  if (response.status == 0 || head || response.status == 304) return response;
  if (response.header("transfer-encoding") == "chunked") {
    for (;;) {
      const std::optional<std::string> chunk = TakeChunk();
      if (!chunk) return Response();
      if (chunk->empty()) return response;
      response.body += *chunk;
    }
  }
  if (!response.headers.contains("content-length")) {
    while (Fill()) continue;
    response.body = std::exchange(arrived_, {});
    return response;
  }
  const auto body = TakeBytes(std::strtoul(response.header("content-length").c_str(), nullptr, 10));
  if (!body) return Response();
  response.body = *body;
  return response;
}

Message HttpClient::ReadMessage() {
  const auto take = [&](size_t size) {
    while (chunks_.size() < size) {
      const std::optional<std::string> chunk = TakeChunk();
      if (!chunk || chunk->empty()) return false;
      chunks_ += *chunk;
    }
    return true;
  };
  if (!take(5)) return {};
  size_t size = 0;
  for (size_t i = 1; i < 5; ++i) size = size << 8 | static_cast<unsigned char>(chunks_[i]);
  if (!take(5 + size)) return {};
  Message message{static_cast<unsigned char>(chunks_[0]), chunks_.substr(5, size)};
  chunks_.erase(0, 5 + size);
  return message;
}

bool HttpClient::IsClosed(std::chrono::milliseconds patience) {
  const Clock::time_point end = Clock::now() + patience;
  std::array<char, 16384> bytes;
  while (Clock::now() < end) {
    if (!Await(POLLIN, std::chrono::milliseconds(50))) continue;
    if (recv(socket_, bytes.data(), bytes.size(), 0) <= 0) return true;
  }
  return false;
}

bool HttpClient::HasMore(std::chrono::milliseconds patience) {
  return !arrived_.empty() || Await(POLLIN, patience);
}

std::string HttpClient::server_certificate() const {
  if (!connected_ || ssl_ == nullptr) return "";
  const Owned<X509> certificate(SSL_get1_peer_certificate(ssl_.get()));
  const Owned<BIO> out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate.get());
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<size_t>(size)};
}

Response CallOnce(const Target& target, std::string_view request) {
  HttpClient client(target);
  return client.Call(request);
}

std::string JsonText(const std::string& json, const std::string& field) {
  const std::string opening = "\"" + field + "\":\"";
  const size_t begin = json.find(opening);
  if (begin == std::string::npos) return "";
  std::string text;
  for (size_t i = begin + opening.size(); i < json.size() && json[i] != '"'; ++i) {
    if (json[i] == '\\') ++i;
    text += json[i];
  }
  return text;
}

}  // namespace strata::http_test
