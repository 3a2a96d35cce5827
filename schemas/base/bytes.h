// Bytes that are shared by whoever needs them, such as those of a record.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace strata {

// Never change; copies share them, so who reads a record that an engine holds in memory copies
// nothing. Thread-safe, as a shared_ptr is.
//
// They lie right after the count of their owners. A shared_ptr of a string takes more memory, in
// two places, of which the second is waited for after the first where no cache of the processor has
// them.
class Bytes {
 public:
  Bytes() = default;  // none, which is not the same as no bytes: there are none to share
  // NOLINTBEGIN(google-explicit-constructor): they are the same once more.
  // Copies them.
  Bytes(std::string_view bytes) : block_(Copied(bytes)) {}
  Bytes(const std::string& bytes) : Bytes(std::string_view(bytes)) {}
  // Takes them, where that is less work than to copy them.
  Bytes(std::string&& bytes)
      : block_(bytes.size() < kTakenFrom ? Copied(bytes) : new Taken(std::move(bytes))) {}
  // NOLINTEND(google-explicit-constructor)
  Bytes(const Bytes& other) : block_(other.block_) {
    if (block_ != nullptr) block_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  Bytes(Bytes&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Bytes& operator=(Bytes other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Bytes() {
    if (block_ != nullptr && block_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) Free();
  }

  operator std::string_view() const {  // NOLINT(google-explicit-constructor)
    return block_ == nullptr ? std::string_view() : block_->bytes;
  }
  size_t size() const { return block_ == nullptr ? 0 : block_->bytes.size(); }
  bool none() const { return block_ == nullptr; }

  template <std::convertible_to<std::string_view> Other>
  friend bool operator==(const Bytes& a, const Other& b) {
    return std::string_view(a) == std::string_view(b);
  }

 private:
  static constexpr size_t kTakenFrom = 1024;

  struct Block {
    std::atomic<uint32_t> owners = 1;
    bool taken = false;
    std::string_view bytes;  // right after this, unless they were taken
  };
  struct Taken : Block {
    explicit Taken(std::string&& from) : text(std::move(from)) {
      taken = true;
      bytes = text;
    }
    const std::string text;
  };

  static Block* Copied(std::string_view bytes) {
    void* const memory = ::operator new(sizeof(Block) + bytes.size());
    char* const behind = static_cast<char*>(memory) + sizeof(Block);
    if (!bytes.empty()) std::memcpy(behind, bytes.data(), bytes.size());
    auto* const block = new (memory) Block;
    block->bytes = {behind, bytes.size()};
    return block;
  }
  void Free() {
    if (block_->taken) return delete static_cast<Taken*>(block_);
    block_->~Block();
    ::operator delete(block_);
  }

  Block* block_ = nullptr;
};

}  // namespace strata
