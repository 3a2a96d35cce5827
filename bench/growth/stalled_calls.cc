#include "bench/growth/stalled_calls.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <string_view>

namespace strata::bench {
namespace {

// RFC 9113, section 6.
constexpr char kData = 0;
constexpr char kHeaders = 1;
constexpr char kReset = 3;
constexpr char kSettings = 4;
constexpr char kPing = 6;
constexpr char kWindowUpdate = 8;
constexpr char kAcknowledgement = 1;
constexpr char kEndHeaders = 4;
constexpr uint32_t kInitialWindowSize = 4;
constexpr uint32_t kMaxFrameSize = 5;
constexpr size_t kFrameHeaderBytes = 9;
constexpr size_t kSettingBytes = 6;
constexpr int64_t kFirstCredit = 65'535;
constexpr int64_t kFirstFrameMax = 16'384;

// gRPC's own: a byte for the compression, four for the length.
constexpr int64_t kMessageHeaderBytes = 5;

constexpr size_t kOutMax = size_t{256} << 10;
constexpr std::chrono::seconds kStill{1};

void AppendNumber(std::string& text, uint32_t number, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(number >> (8 * i));
}

uint32_t NumberAt(std::string_view text, size_t at, size_t bytes) {
  uint32_t number = 0;
  for (size_t i = 0; i < bytes; ++i) number = number << 8 | static_cast<uint8_t>(text[at + i]);
  return number;
}

void AppendFrame(std::string& out, char type, char flags, uint32_t stream,
                 std::string_view payload) {
  AppendNumber(out, static_cast<uint32_t>(payload.size()), 3);
  out += type;
  out += flags;
  AppendNumber(out, stream, 4);
  out += payload;
}

// RFC 7541, section 6.2.2: names and values as they are.
std::string Headers() {
  std::string block;
  const auto add = [&](std::string_view name, std::string_view value) {
    block += '\0';
    block += static_cast<char>(name.size());
    block += name;
    block += static_cast<char>(value.size());
    block += value;
  };
  add(":method", "POST");
  add(":scheme", "http");
  add(":path", "/strata.v1.DocumentService/Update");
  add(":authority", "localhost");
  add("te", "trailers");
  add("content-type", "application/grpc");
  return block;
}

}  // namespace

StalledCalls::StalledCalls(int port, int connections, int64_t calls, int64_t message_bytes)
    : message_bytes_(message_bytes), connections_(static_cast<size_t>(connections)) {
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_port = htons(static_cast<uint16_t>(port));
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (Connection& connection : connections_) {
    connection.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(connection.socket, reinterpret_cast<const sockaddr*>(&server), sizeof server) !=
        0) {
      throw std::runtime_error("cannot connect");
    }
    connection.credit = kFirstCredit;
    connection.initial_credit = kFirstCredit;
    connection.frame_max = kFirstFrameMax;
    connection.out = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    AppendFrame(connection.out, kSettings, 0, 0, "");
  }
  const std::string headers = Headers();
  for (int64_t i = 0; i < calls; ++i) {
    Connection& connection = connections_[static_cast<size_t>(i) % connections_.size()];
    const auto id = static_cast<uint32_t>(2 * connection.streams.size() + 1);
    connection.streams.push_back({id, kMessageHeaderBytes + message_bytes - 1, 0, false, false});
    AppendFrame(connection.out, kHeaders, kEndHeaders, id, headers);
  }
}

StalledCalls::~StalledCalls() {
  for (Connection& connection : connections_) Close(connection);
}

void StalledCalls::Close(Connection& connection) {
  if (connection.socket >= 0) close(connection.socket);
  connection.socket = -1;
}

void StalledCalls::Send(std::chrono::seconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  auto moved = std::chrono::steady_clock::now();
  for (auto now = moved; now < end && now - moved < kStill;
       now = std::chrono::steady_clock::now()) {
    std::vector<pollfd> waits;
    for (Connection& connection : connections_) {
      Fill(connection);
      const int events = connection.out.empty() ? POLLIN : POLLIN | POLLOUT;
      waits.push_back({connection.socket, static_cast<short>(events), 0});
    }
    poll(waits.data(), waits.size(), 100);
    for (size_t i = 0; i < waits.size(); ++i) {
      Connection& connection = connections_[i];
      if (waits[i].revents == 0 || connection.socket < 0) continue;
      moved = std::chrono::steady_clock::now();
      if (!Receive(connection) || !Flush(connection)) {
        for (const Stream& stream : connection.streams) refused_ += stream.ended ? 0 : 1;
        connection.streams.clear();
        Close(connection);
      }
    }
  }
}

bool StalledCalls::Receive(Connection& connection) {
  char buffer[16384];
  const ssize_t count = recv(connection.socket, buffer, sizeof buffer, MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN;
  if (count == 0) return false;
  std::string& in = connection.in;
  in.append(buffer, static_cast<size_t>(count));
  size_t begin = 0;
  while (in.size() - begin >= kFrameHeaderBytes) {
    const size_t length = NumberAt(in, begin, 3);
    if (in.size() - begin < kFrameHeaderBytes + length) break;
    TakeFrame(connection, in[begin + 3], in[begin + 4], NumberAt(in, begin + 5, 4),
              in.substr(begin + kFrameHeaderBytes, length));
    begin += kFrameHeaderBytes + length;
  }
  in.erase(0, begin);
  return true;
}

void StalledCalls::TakeFrame(Connection& connection, char type, char flags, uint32_t stream,
                             const std::string& payload) {
  const auto index = static_cast<size_t>(stream / 2);
  const bool known = stream % 2 == 1 && index < connection.streams.size();
  if (type == kSettings && flags != kAcknowledgement) {
    for (size_t at = 0; at + kSettingBytes <= payload.size(); at += kSettingBytes) {
      const uint32_t name = NumberAt(payload, at, 2);
      const uint32_t value = NumberAt(payload, at + 2, 4);
      if (name == kInitialWindowSize) connection.initial_credit = value;
      if (name == kMaxFrameSize) connection.frame_max = value;
    }
    AppendFrame(connection.out, kSettings, kAcknowledgement, 0, "");
  } else if (type == kPing && flags != kAcknowledgement) {
    AppendFrame(connection.out, kPing, kAcknowledgement, 0, payload);
  } else if (type == kWindowUpdate && stream == 0) {
    connection.credit += NumberAt(payload, 0, 4);
  } else if (type == kWindowUpdate && known) {
    connection.streams[index].credit += NumberAt(payload, 0, 4);
  } else if ((type == kReset || type == kHeaders) && known && !connection.streams[index].ended) {
    ++refused_;
    connection.streams[index].ended = true;
  }
}

// As much as the server takes, and a little at a time, from all streams in turn.
void StalledCalls::Fill(Connection& connection) {
  if (!connection.out.empty()) return;
  for (Stream& stream : connection.streams) {
    if (connection.out.size() >= kOutMax) return;
    const int64_t bytes = std::min({stream.left, connection.credit, connection.frame_max,
                                    connection.initial_credit + stream.credit});
    if (bytes < kMessageHeaderBytes || stream.ended) continue;
    std::string payload;
    if (!stream.begun) {
      payload += '\0';
      AppendNumber(payload, static_cast<uint32_t>(message_bytes_), 4);
      stream.begun = true;
    }
    payload.resize(static_cast<size_t>(bytes), 'x');
    AppendFrame(connection.out, kData, 0, stream.id, payload);
    stream.left -= bytes;
    stream.credit -= bytes;
    connection.credit -= bytes;
    sent_ += bytes;
  }
}

bool StalledCalls::Flush(Connection& connection) {
  if (connection.out.empty()) return true;
  const ssize_t count = send(connection.socket, connection.out.data(), connection.out.size(),
                             MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN;
  connection.out.erase(0, static_cast<size_t>(count));
  return true;
}

}  // namespace strata::bench
