// What messages are called.
#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace strata::queue {

// 16 bytes; as text 32 hexadecimal digits in lower case. Those that the server draws begin with the
// time, so that messages which live at the same time lie side by side in a store.
class MessageId {
 public:
  static constexpr size_t kBytes = 16;

  MessageId() = default;  // all zero: of no message

  // Nothing unless there are kBytes of them.
  static std::optional<MessageId> FromBytes(std::string_view bytes) {
    if (bytes.size() != kBytes) return std::nullopt;
    MessageId id;
    std::memcpy(id.bytes_.data(), bytes.data(), kBytes);
    return id;
  }
  // Nothing for a text that ToText does not make.
  static std::optional<MessageId> FromText(std::string_view text);

  std::string_view bytes() const { return {bytes_.data(), kBytes}; }
  std::string ToText() const;

  friend auto operator<=>(const MessageId&, const MessageId&) = default;
  template <typename Hash>
  friend Hash AbslHashValue(Hash hash, const MessageId& id) {
    return Hash::combine(std::move(hash), id.bytes_);
  }

 private:
  std::array<char, kBytes> bytes_ = {};
};

}  // namespace strata::queue
