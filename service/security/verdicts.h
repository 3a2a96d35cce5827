// What the policy said before of who may do what, so that it is seldom asked.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "service/security/permission.h"
#include "service/security/policy.h"

namespace strata::security {

// Thread-safe.
class Verdicts {
 public:
  static constexpr size_t kShards = 64;
  static constexpr size_t kVerdictsMax = 65'536;
  // Nothing that can exist is named longer. Whoever asks for more is not remembered.
  static constexpr size_t kNameBytesMax = 256;

  // From when it returns on no verdict is of another policy.
  void Use(std::shared_ptr<const Policy> policy);

  bool has_policy() const { return has_policy_.load(std::memory_order_acquire); }
  // Without a policy: everything is.
  bool Permits(std::string_view principal, const Demand& demand);

  // How many are remembered.
  size_t size();

 private:
  struct Key {
    std::string principal;
    std::string name;
    unsigned what = 0;  // permission and kind
  };
  // The same without owning its texts.
  struct KeyView {
    std::string_view principal;
    std::string_view name;
    unsigned what = 0;
    KeyView(std::string_view of_principal, const Demand& demand);
    KeyView(const Key& key)  // NOLINT(google-explicit-constructor)
        : principal(key.principal), name(key.name), what(key.what) {}
    friend bool operator==(const KeyView&, const KeyView&) = default;
  };
  struct HashOf {
    using is_transparent = void;
    size_t operator()(const KeyView& key) const;
  };
  struct Same {
    using is_transparent = void;
    bool operator()(const KeyView& a, const KeyView& b) const { return a == b; }
  };
  using Map = absl::flat_hash_map<Key, bool, HashOf, Same>;

  struct alignas(64) Shard {
    std::mutex mutex;  // guards what follows
    // Which policy's. A verdict of another one comes too late, or too early, to be kept.
    uint64_t generation = 0;
    Map verdicts;
  };
  struct InUse {
    std::shared_ptr<const Policy> policy;
    uint64_t generation = 0;
  };

  InUse in_use();
  bool Ask(std::string_view principal, const Demand& demand, Shard* shard);

  std::atomic<bool> has_policy_ = false;
  std::mutex mutex_;  // guards in_use_; taken before a shard's
  InUse in_use_;
  std::array<Shard, kShards> shards_;
};

}  // namespace strata::security
