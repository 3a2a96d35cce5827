#include "bench/http/http_loop.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/support/process.h"

namespace strata::bench {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::chrono::seconds kCallDeadline{30};
constexpr size_t kReadBytes = size_t{16} << 10;
constexpr size_t kShownBytes = 200;  // of an answer that is told of
constexpr int kOk = 200;

[[noreturn]] void Fail(const std::string& what) {
  throw std::runtime_error("HTTP: " + what + ": " + std::generic_category().message(errno));
}

[[noreturn]] void RefuseAnswer(const std::string& what, std::string_view answer) {
  throw std::runtime_error(
      absl::StrCat("HTTP: ", what, ": ", std::string(answer.substr(0, kShownBytes))));
}

// The number that is all of the text.
template <typename Number>
bool Parse(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace

HttpConnection::HttpConnection(int port)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (socket_ < 0) Fail("no socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    close(socket_);
    errno = error;
    Fail("cannot connect to port " + std::to_string(port));
  }
  const int one = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  const timeval patience{kCallDeadline.count(), 0};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

HttpConnection::~HttpConnection() { close(socket_); }

void HttpConnection::Send(std::string_view request) {
  arrived_.clear();
  head_bytes_ = 0;
  while (!request.empty()) {
    const ssize_t sent = send(socket_, request.data(), request.size(), MSG_NOSIGNAL);
    if (sent < 0) Fail("a request is not taken");
    request.remove_prefix(static_cast<size_t>(sent));
  }
}

bool HttpConnection::Take() {
  std::array<char, kReadBytes> bytes;
  const ssize_t count = recv(socket_, bytes.data(), bytes.size(), 0);
  if (count < 0) Fail("no answer");
  if (count == 0) RefuseAnswer("the server closed the connection, having said", arrived_);
  arrived_.append(bytes.data(), static_cast<size_t>(count));
  if (head_bytes_ == 0) {
    const size_t end = arrived_.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    ParseHead(end + 4);
  }
  if (arrived_.size() > head_bytes_ + body_bytes_) {
    RefuseAnswer("more was said than was asked for", arrived_);
  }
  return arrived_.size() == head_bytes_ + body_bytes_;
}

std::string_view HttpConnection::body() const {
  return std::string_view(arrived_).substr(head_bytes_);
}

void HttpConnection::ParseHead(size_t head_bytes) {
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  constexpr std::string_view kLength = "content-length:";
  const std::string_view head = std::string_view(arrived_).substr(0, head_bytes);
  if (!head.starts_with(kVersion) || !Parse(head.substr(kVersion.size(), 3), status_)) {
    RefuseAnswer("this is no answer", head);
  }
  for (size_t at = head.find("\r\n") + 2; at < head.size() - 2;) {
    const size_t end = head.find("\r\n", at);
    std::string_view line = head.substr(at, end - at);
    at = end + 2;
    if (!absl::StartsWithIgnoreCase({line.data(), line.size()}, {kLength.data(), kLength.size()})) {
      continue;
    }
    line.remove_prefix(kLength.size());
    while (line.starts_with(' ')) line.remove_prefix(1);
    if (!Parse(line, body_bytes_)) RefuseAnswer("its Content-Length is no number", head);
    head_bytes_ = head_bytes;
    return;
  }
  RefuseAnswer("an answer has no Content-Length", head);
}

namespace {

class HttpLoop {
 public:
  HttpLoop(int port, JsonGets& gets, const LoopSettings& settings)
      : gets_(gets), settings_(settings), poll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (poll_ < 0) Fail("no epoll");
    for (int i = 0; i < settings.in_flight; ++i) {
      slots_.push_back({.connection = std::make_unique<HttpConnection>(port), .sent = {}});
      epoll_event event{.events = EPOLLIN, .data = {.u64 = static_cast<uint64_t>(i)}};
      if (epoll_ctl(poll_, EPOLL_CTL_ADD, slots_.back().connection->socket(), &event) != 0) {
        Fail("no epoll");
      }
    }
  }
  ~HttpLoop() { close(poll_); }
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  Measurement Run() {
    const Steady::time_point start = Steady::now();
    for (size_t i = 0; i < slots_.size(); ++i) Send(i);
    while (open_ > 0) {
      const int count =
          epoll_wait(poll_, events_.data(), static_cast<int>(events_.size()),
                     static_cast<int>(std::chrono::milliseconds(kCallDeadline).count()));
      if (count < 0 && errno != EINTR) Fail("no epoll");
      if (count == 0) throw std::runtime_error("HTTP: no answer within 30 s");
      for (int i = 0; i < count; ++i) {
        const auto index = static_cast<size_t>(events_[static_cast<size_t>(i)].data.u64);
        if (!slots_[index].connection->Take()) continue;
        Answered(index);
        const Steady::time_point now = Steady::now();
        if (sending_ && !measuring_ && now - start >= settings_.warm_up) Begin();
        if (measuring_ && now - begin_ >= settings_.duration) End();
        Send(index);
      }
    }
    result_.workload = gets_.name();
    result_.in_flight = settings_.in_flight;
    return std::move(result_);
  }

 private:
  struct Slot {
    std::unique_ptr<HttpConnection> connection;
    Steady::time_point sent;
  };

  void Send(size_t index) {
    if (!sending_) return;
    ++open_;
    const std::string& request = gets_.Next(static_cast<int>(index));
    slots_[index].sent = Steady::now();
    slots_[index].connection->Send(request);
  }

  void Answered(size_t index) {
    const auto taken = Steady::now() - slots_[index].sent;
    --open_;
    const HttpConnection& connection = *slots_[index].connection;
    if (connection.status() != kOk || !gets_.IsRight(static_cast<int>(index), connection.body())) {
      if (result_.failures++ == 0) {
        std::cerr << gets_.name() << ": a wrong answer, " << connection.status() << ": "
                  << connection.body().substr(0, kShownBytes) << std::endl;
      }
    } else if (measuring_) {
      ++result_.calls;
      result_.latencies.Add(taken);
    }
  }

  void Begin() {
    measuring_ = true;
    begin_ = Steady::now();
    result_.server_cpu = CpuTime(settings_.server);
    result_.client_cpu = CpuTime(getpid());
  }

  void End() {
    measuring_ = false;
    sending_ = false;
    result_.duration = Steady::now() - begin_;
    result_.server_cpu = CpuTime(settings_.server) - result_.server_cpu;
    result_.client_cpu = CpuTime(getpid()) - result_.client_cpu;
  }

  JsonGets& gets_;
  const LoopSettings settings_;
  const int poll_;
  std::vector<Slot> slots_;
  std::array<epoll_event, 64> events_{};
  int open_ = 0;
  bool measuring_ = false;
  bool sending_ = true;
  Steady::time_point begin_;
  Measurement result_;
};

}  // namespace

Measurement RunHttpLoop(int port, JsonGets& gets, const LoopSettings& settings) {
  return HttpLoop(port, gets, settings).Run();
}

}  // namespace strata::bench
