// The bytes of a record.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace strata::store {

// Never change; copies share them, so who reads a record that an engine holds in memory copies
// nothing. Thread-safe.
class Bytes {
 public:
  Bytes() = default;        // none
  Bytes(std::string bytes)  // NOLINT(google-explicit-constructor): it is the same once more
      : shared_(std::make_shared<const std::string>(std::move(bytes))) {}
  // REQUIRES: not null.
  explicit Bytes(std::shared_ptr<const std::string> bytes) : shared_(std::move(bytes)) {}

  operator std::string_view() const {  // NOLINT(google-explicit-constructor)
    return shared_ == nullptr ? std::string_view() : std::string_view(*shared_);
  }
  size_t size() const { return shared_ == nullptr ? 0 : shared_->size(); }

  // Null if there never were any.
  const std::shared_ptr<const std::string>& shared() const { return shared_; }

  template <std::convertible_to<std::string_view> Other>
  friend bool operator==(const Bytes& a, const Other& b) {
    return std::string_view(a) == std::string_view(b);
  }

 private:
  std::shared_ptr<const std::string> shared_;
};

}  // namespace strata::store
