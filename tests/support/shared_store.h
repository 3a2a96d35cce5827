// Several processes over one store, in one process.
#pragma once

#include <map>
#include <mutex>
#include <utility>

#include "schemas/store/forwarding_store.h"

namespace strata::test_support {

// The listener of an engine, which has one, on behalf of all its processes. Thread-safe; `engine`
// outlives it, and it outlives its processes.
class Fleet {
 public:
  explicit Fleet(store::Store& engine) : engine_(engine) {
    engine_.OnPosition([this] { Tell(); });
  }
  ~Fleet() { engine_.OnPosition(nullptr); }
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // Null: no more. When this returns, the one that was there before is not called any more.
  void Set(const void* process, store::PositionListener listener) {
    const std::lock_guard lock(mutex_);
    if (listener == nullptr) {
      listeners_.erase(process);
    } else {
      listeners_.insert_or_assign(process, std::move(listener));
    }
  }

 private:
  void Tell() {
    const std::lock_guard lock(mutex_);
    for (const auto& [process, listener] : listeners_) listener();
  }

  store::Store& engine_;
  std::mutex mutex_;
  std::map<const void*, store::PositionListener> listeners_;
};

// The store as one of several processes has it: with a listener of its own. `inner` forwards to the
// fleet's engine and outlives it.
class SharedStore final : public store::ForwardingStore {
 public:
  SharedStore(store::Store& inner, Fleet& fleet) : ForwardingStore(inner), fleet_(fleet) {}
  ~SharedStore() override { fleet_.Set(this, nullptr); }

  void OnPosition(store::PositionListener listener) override {
    fleet_.Set(this, std::move(listener));
  }

 private:
  Fleet& fleet_;
};

}  // namespace strata::test_support
