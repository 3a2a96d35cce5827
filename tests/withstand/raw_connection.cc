#include "tests/withstand/raw_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace strata::withstand {
namespace {

using Clock = std::chrono::steady_clock;

sockaddr_in Address(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

const sockaddr* Generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

void SetOption(int socket, int level, int option) {
  const int on = 1;
  setsockopt(socket, level, option, &on, sizeof on);
}

}  // namespace

RawConnection::RawConnection(const ConnectionSettings& settings) : settings_(settings) {
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket_ < 0) return;
  SetOption(socket_, IPPROTO_TCP, TCP_NODELAY);
  // So that the port is picked when the other end is known, and the same one may lead elsewhere.
  SetOption(socket_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT);
  const sockaddr_in source = Address(settings.source, 0);
  const sockaddr_in target = Address("127.0.0.1", settings.port);
  if (bind(socket_, Generic(source), sizeof source) != 0 ||
      (connect(socket_, Generic(target), sizeof target) != 0 && errno != EINPROGRESS)) {
    Close();
  } else {
    Send(Hello(settings.window));
  }
}

RawConnection::~RawConnection() { Close(); }

void RawConnection::Close() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  for (auto& [number, stream] : streams_) {
    if (!stream.over) End(stream, Outcome::kReset);
  }
}

uint32_t RawConnection::NextStream() {
  const uint32_t stream = next_stream_;
  next_stream_ += 2;
  return stream;
}

uint32_t RawConnection::Begin(std::string_view headers, std::string_view message) {
  const uint32_t stream = NextStream();
  Send(Call(stream, headers, message));
  streams_[stream] = {};
  if (closed()) End(streams_[stream], Outcome::kReset);
  return stream;
}

void RawConnection::Cancel(uint32_t stream) {
  if (!over(stream)) Send(Reset(stream));
  streams_.erase(stream);
}

Outcome RawConnection::outcome(uint32_t stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? Outcome::kNone : found->second.outcome;
}

int64_t RawConnection::Count(Outcome outcome) const {
  return std::count_if(streams_.begin(), streams_.end(),
                       [&](const auto& entry) { return entry.second.outcome == outcome; });
}

int64_t RawConnection::open() const {
  return std::count_if(streams_.begin(), streams_.end(),
                       [](const auto& entry) { return !entry.second.over; });
}

bool RawConnection::over(uint32_t stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() || found->second.over;
}

pollfd RawConnection::Wanted() const {
  const int events = POLLIN | (unsent() > 0 ? POLLOUT : 0);
  return {socket_, static_cast<short>(events), 0};
}

void RawConnection::Advance() {
  if (closed()) return;
  Flush();
  while (!closed() && Receive()) TakeFrames();
  Flush();
}

void RawConnection::Flush() {
  while (!closed() && unsent() > 0) {
    const ssize_t count = send(socket_, out_.data() + sent_, unsent(), MSG_NOSIGNAL);
    if (count < 0) {
      // While it still connects, nothing can be sent either.
      if (errno != EAGAIN && errno != ENOTCONN) Close();
      return;
    }
    sent_ += static_cast<size_t>(count);
  }
  out_.clear();
  sent_ = 0;
}

// Whether anything has come.
bool RawConnection::Receive() {
  char buffer[65'536];
  const ssize_t count = recv(socket_, buffer, sizeof buffer, 0);
  if (count > 0) {
    in_.append(buffer, static_cast<size_t>(count));
    return true;
  }
  if (count == 0 || (errno != EAGAIN && errno != ENOTCONN)) Close();
  return false;
}

void RawConnection::TakeFrames() {
  size_t begin = 0;
  while (in_.size() - begin >= kFrameHeaderBytes) {
    const size_t length = NumberAt(in_, begin, 3);
    if (in_.size() - begin < kFrameHeaderBytes + length) break;
    TakeFrame(static_cast<FrameType>(in_[begin + 3]), static_cast<uint8_t>(in_[begin + 4]),
              NumberAt(in_, begin + 5, 4),
              std::string_view(in_).substr(begin + kFrameHeaderBytes, length));
    begin += kFrameHeaderBytes + length;
  }
  in_.erase(0, begin);
}

void RawConnection::TakeFrame(FrameType type, uint8_t flags, uint32_t stream,
                              std::string_view payload) {
  const bool acknowledgement = (flags & kAcknowledgement) != 0;
  if (type == FrameType::kSettings && !acknowledgement) {
    greeted_ = true;
    if (settings_.acknowledges) Send(Frame(FrameType::kSettings, kAcknowledgement, 0, ""));
    return;
  }
  if (type == FrameType::kPing && !acknowledgement && settings_.acknowledges) {
    return Send(Frame(FrameType::kPing, kAcknowledgement, 0, payload));
  }
  if (type == FrameType::kData && !payload.empty()) {
    Send(Frame(FrameType::kWindowUpdate, 0, 0, Number(static_cast<uint32_t>(payload.size()), 4)));
  }
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second.over) return;
  Stream& its = found->second;
  if (type == FrameType::kReset) {
    End(its, Outcome::kReset);
  } else if (type == FrameType::kHeaders && (flags & kEndStream) != 0) {
    End(its, Outcome::kRefused);
  } else if (type == FrameType::kHeaders) {
    its.outcome = Outcome::kAnswered;
  }
}

// What was answered stays so, whatever comes of the rest.
void RawConnection::End(Stream& stream, Outcome outcome) {
  if (stream.outcome == Outcome::kNone) stream.outcome = outcome;
  stream.over = true;
}

void Advance(const std::vector<RawConnection*>& connections, std::chrono::milliseconds patience) {
  std::vector<pollfd> wanted;
  for (const RawConnection* connection : connections) wanted.push_back(connection->Wanted());
  poll(wanted.data(), wanted.size(), static_cast<int>(std::max<int64_t>(patience.count(), 0)));
  for (RawConnection* connection : connections) connection->Advance();
}

bool AdvanceUntil(const std::vector<RawConnection*>& connections,
                  std::chrono::milliseconds patience, const std::function<bool()>& done) {
  constexpr std::chrono::milliseconds kStep{20};
  const Clock::time_point end = Clock::now() + patience;
  while (!done()) {
    if (Clock::now() >= end) return false;
    Advance(connections, kStep);
  }
  return true;
}

}  // namespace strata::withstand
