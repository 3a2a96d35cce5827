#include "tests/withstand/http2.h"

#include <algorithm>

namespace strata::withstand {
namespace {

constexpr uint32_t kInitialWindowSize = 4;  // RFC 9113, section 6.5.2
constexpr uint32_t kCancel = 8;             // section 7

// RFC 7541, section 5.1, where the first octet has seven bits for it.
std::string Length(size_t length) {
  constexpr size_t kInFirst = 127;
  if (length < kInFirst) return {static_cast<char>(length)};
  std::string octets = {static_cast<char>(kInFirst)};
  size_t rest = length - kInFirst;
  for (; rest >= 128; rest /= 128) octets += static_cast<char>(rest % 128 + 128);
  octets += static_cast<char>(rest);
  return octets;
}

}  // namespace

std::string Number(uint32_t number, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(number >> (8 * i));
  return text;
}

uint32_t NumberAt(std::string_view text, size_t at, size_t bytes) {
  uint32_t number = 0;
  for (size_t i = 0; i < bytes; ++i) number = number << 8 | static_cast<uint8_t>(text[at + i]);
  return number;
}

std::string Frame(FrameType type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string frame = Number(static_cast<uint32_t>(payload.size()), 3);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  frame += Number(stream, 4);
  frame += payload;
  return frame;
}

std::string Hello(uint32_t initial_window) {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
         Frame(FrameType::kSettings, 0, 0,
               Number(kInitialWindowSize, 2) + Number(initial_window, 4));
}

std::string HeaderField(std::string_view name, std::string_view value) {
  std::string field(1, '\0');
  field += Length(name.size());
  field += name;
  field += Length(value.size());
  field += value;
  return field;
}

std::string CallHeaders(std::string_view method, const Metadata& metadata) {
  std::string block = HeaderField(":method", "POST") + HeaderField(":scheme", "http") +
                      HeaderField(":path", method) + HeaderField(":authority", "localhost") +
                      HeaderField("te", "trailers") +
                      HeaderField("content-type", "application/grpc");
  for (const auto& [name, value] : metadata) block += HeaderField(name, value);
  return block;
}

std::string HeaderFrames(uint32_t stream, std::string_view block) {
  std::string frames;
  FrameType type = FrameType::kHeaders;
  do {
    const std::string_view part = block.substr(0, kFramePayloadMax);
    block.remove_prefix(part.size());
    frames += Frame(type, block.empty() ? kEndHeaders : uint8_t{0}, stream, part);
    type = FrameType::kContinuation;
  } while (!block.empty());
  return frames;
}

std::string Call(uint32_t stream, std::string_view headers, std::string_view message) {
  // gRPC's own: a byte for the compression, four for the length.
  const std::string framed =
      Number(0, 1) + Number(static_cast<uint32_t>(message.size()), 4) + std::string(message);
  std::string frames = HeaderFrames(stream, headers);
  for (std::string_view rest = framed; !rest.empty();) {
    const std::string_view part = rest.substr(0, kFramePayloadMax);
    rest.remove_prefix(part.size());
    frames += Frame(FrameType::kData, rest.empty() ? kEndStream : uint8_t{0}, stream, part);
  }
  return frames;
}

std::string Reset(uint32_t stream) {
  return Frame(FrameType::kReset, 0, stream, Number(kCancel, 4));
}

}  // namespace strata::withstand
