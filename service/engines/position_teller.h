// Listeners for a store's last commit position.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

#include "schemas/store/store.h"

namespace strata::engines {

// Thread-safe. Without a listener, a notification costs one load.
class PositionTeller {
 public:
  // As Store::OnPosition.
  void Set(store::PositionListener listener) {
    const std::lock_guard lock(telling_);
    listens_ = listener != nullptr;
    listener_ = std::move(listener);
  }

  // After the position that reads see has grown.
  void Tell() {
    if (!listens_) return;
    const std::lock_guard lock(telling_);
    if (listener_ != nullptr) listener_();
  }

 private:
  std::atomic<bool> listens_ = false;
  std::mutex telling_;  // held during a call, so that Set returns after the last one to the old
  store::PositionListener listener_;
};

}  // namespace strata::engines
