// The bytes of HTTP/2 and gRPC as a client sends them, made by hand: a library sends nothing that
// is not allowed, and what is not allowed is the point.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::withstand {

// RFC 9113, section 6.
enum class FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};
inline constexpr uint8_t kEndStream = 1;
inline constexpr uint8_t kAcknowledgement = 1;
inline constexpr uint8_t kEndHeaders = 4;

inline constexpr size_t kFrameHeaderBytes = 9;
inline constexpr size_t kFramePayloadMax = 16'384;  // where nobody has asked for more

using Metadata = std::vector<std::pair<std::string, std::string>>;

// Big-endian, as all numbers of HTTP/2.
std::string Number(uint32_t number, int bytes);
uint32_t NumberAt(std::string_view text, size_t at, size_t bytes);

// REQUIRES: `payload` has at most kFramePayloadMax bytes.
std::string Frame(FrameType type, uint8_t flags, uint32_t stream, std::string_view payload);

// The preface, and SETTINGS that let the server send so many bytes on each stream.
std::string Hello(uint32_t initial_window);

// RFC 7541, section 6.2.2: a literal that is not indexed, without Huffman's code.
std::string HeaderField(std::string_view name, std::string_view value);

// The header block of a gRPC call, such as of "/strata.v1.DocumentService/Get".
std::string CallHeaders(std::string_view method, const Metadata& metadata = {});

// HEADERS and what has to CONTINUE them, for a block of any size.
std::string HeaderFrames(uint32_t stream, std::string_view block);

// A whole unary call: its headers and its one message. REQUIRES: the message is small, as the
// windows that the server grants are not looked at.
std::string Call(uint32_t stream, std::string_view headers, std::string_view message);

// RST_STREAM, with CANCEL.
std::string Reset(uint32_t stream);

}  // namespace strata::withstand
