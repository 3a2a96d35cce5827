#include "service/http/request_reader.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace strata::http {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
// A chunk's length in hexadecimal digits; nothing may stand behind it.
constexpr size_t kChunkLineBytesMax = 8;

std::string Seconds(std::chrono::milliseconds time) {
  return std::to_string(time.count() / 1000) + "." + std::to_string(time.count() / 100 % 10) + " s";
}

Refusal TooSlow(std::chrono::milliseconds limit) {
  return {408, "deadline_exceeded",
          "the request has not arrived within " + Seconds(limit) + " of its first byte"};
}

Refusal BrokenOff() { return {400, "invalid_argument", "the request ends before its body does"}; }

Refusal BadChunk() {
  return {400, "invalid_argument",
          "the body is not made of chunks as HTTP/1.1 has them, without extensions and trailers"};
}

Refusal TooLarge(const std::string& what, size_t limit) {
  return {413, "invalid_argument",
          "the body has " + what + " bytes, at most " + std::to_string(limit) + " are allowed"};
}

Refusal NoRoom() {
  return {429, "resource_exhausted",
          "requests and answers of this port would take too much memory; repeat it a little later"};
}

Refusal ToRefusal(const BadHead& bad) {
  const bool unknown = bad.status == 501 || bad.status == 505;
  return {bad.status, unknown ? "unimplemented" : "invalid_argument", bad.problem};
}

}  // namespace

std::variant<RequestHead, Refusal, RequestReader::Nothing> RequestReader::ReadHead() {
  // A connection on which nothing was said yet is given no longer than a request: it may be one of
  // many that only take up room.
  const Clock::time_point begin_by =
      Clock::now() + (std::exchange(first_, false) ? limits_.request : limits_.idle);
  bool begun = !arrived_.empty();
  if (begun) deadline_ = Clock::now() + limits_.request;
  at_request_end_ = false;
  size_t looked_at = 0;
  for (;;) {
    const size_t end = arrived_.find(kHeadEnd, looked_at < 3 ? 0 : looked_at - 3);
    const size_t known = end == std::string::npos ? arrived_.size() : end + kHeadEnd.size();
    if (auto bad = FindBadByte(std::string_view(arrived_).substr(0, known), looked_at)) {
      return ToRefusal(*bad);
    }
    looked_at = known;
    if (known > limits_.head_bytes_max) {
      return Refusal{431, "invalid_argument",
                     "the head of the request has more than " +
                         std::to_string(limits_.head_bytes_max) + " bytes"};
    }
    if (end != std::string::npos) break;
    const Socket::Ended ended =
        socket_.Read(arrived_, Socket::kReadBytesMax, begun ? deadline_ : begin_by);
    if (ended == Socket::Ended::kByDeadline && begun) return TooSlow(limits_.request);
    if (ended != Socket::Ended::kNo) return Nothing();
    if (!std::exchange(begun, true)) deadline_ = Clock::now() + limits_.request;
  }
  auto parsed = ParseHead(std::string_view(arrived_).substr(0, looked_at));
  arrived_.erase(0, looked_at);
  if (const BadHead* const bad = std::get_if<BadHead>(&parsed)) return ToRefusal(*bad);
  auto& head = std::get<RequestHead>(parsed);
  at_request_end_ = !head.has_body();
  return std::move(head);
}

std::variant<std::string, Refusal> RequestReader::ReadBody(const RequestHead& head,
                                                           Budget::Share& share) {
  std::string body;
  if (!head.has_body()) return body;
  if (head.content_length > limits_.body_bytes_max) {
    return TooLarge(std::to_string(head.content_length), limits_.body_bytes_max);
  }
  if (head.expects_continue && arrived_.empty()) {
    socket_.Write("HTTP/1.1 100 Continue\r\n\r\n", deadline_);
  }
  const std::optional<Refusal> refusal =
      head.chunked ? TakeChunks(share, body)
                   : TakeBytes(static_cast<size_t>(head.content_length), share, body);
  if (refusal) return *refusal;
  at_request_end_ = true;
  return body;
}

std::optional<Refusal> RequestReader::Await(size_t size) {
  while (arrived_.size() < size) {
    switch (socket_.Read(arrived_, Socket::kReadBytesMax, deadline_)) {
      case Socket::Ended::kNo:
        break;
      case Socket::Ended::kByPeer:
        return BrokenOff();
      case Socket::Ended::kByDeadline:
        return TooSlow(limits_.request);
    }
    // Somebody who sends without a pause, but slowly, has no longer either.
    if (arrived_.size() < size && Clock::now() >= deadline_) return TooSlow(limits_.request);
  }
  return std::nullopt;
}

// In pieces, so that a length which is only said takes no room.
std::optional<Refusal> RequestReader::TakeBytes(size_t size, Budget::Share& share,
                                                std::string& body) {
  while (size > 0) {
    if (arrived_.empty()) {
      if (std::optional<Refusal> refusal = Await(1)) return refusal;
    }
    const size_t piece = std::min(size, arrived_.size());
    if (!share.TryGrowTo(body.size() + piece)) return NoRoom();
    body.append(arrived_, 0, piece);
    arrived_.erase(0, piece);
    size -= piece;
  }
  return std::nullopt;
}

std::variant<std::string, Refusal> RequestReader::TakeLine(size_t bytes_max) {
  for (;;) {
    const size_t end = arrived_.find(kLineEnd);
    if (end != std::string::npos && end <= bytes_max) {
      std::string line = arrived_.substr(0, end);
      arrived_.erase(0, end + kLineEnd.size());
      return line;
    }
    if (arrived_.size() >= bytes_max + kLineEnd.size()) return BadChunk();
    if (std::optional<Refusal> refusal = Await(arrived_.size() + 1)) return *refusal;
  }
}

std::optional<Refusal> RequestReader::TakeChunks(Budget::Share& share, std::string& body) {
  for (;;) {
    const auto line = TakeLine(kChunkLineBytesMax);
    if (const Refusal* const refusal = std::get_if<Refusal>(&line)) return *refusal;
    const std::string& digits = std::get<std::string>(line);
    size_t size = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), size, 16);
    if (digits.empty() || digits.front() == '-' || error != std::errc() ||
        end != digits.data() + digits.size()) {
      return BadChunk();
    }
    if (size > limits_.body_bytes_max - body.size()) {
      return TooLarge("more than " + std::to_string(limits_.body_bytes_max),
                      limits_.body_bytes_max);
    }
    if (std::optional<Refusal> refusal = TakeBytes(size, share, body)) return refusal;
    const auto rest = TakeLine(0);
    if (const Refusal* const refusal = std::get_if<Refusal>(&rest)) return *refusal;
    if (size == 0) return std::nullopt;
  }
}

}  // namespace strata::http
