#include "service/server/caller.h"

#include <algorithm>

namespace strata::server {

std::shared_ptr<Caller> Callers::Of(std::string_view address) {
  const std::lock_guard lock(mutex_);
  auto found = callers_.find(address);
  if (found != callers_.end()) {
    if (std::shared_ptr<Caller> caller = found->second.lock()) return caller;
  } else {
    if (callers_.size() >= forget_at_) {
      std::erase_if(callers_, [](const auto& entry) { return entry.second.expired(); });
      forget_at_ = std::max<size_t>(1024, 2 * callers_.size());
    }
    found = callers_.try_emplace(std::string(address)).first;
  }
  auto caller = std::make_shared<Caller>(std::string(address));
  found->second = caller;
  return caller;
}

const std::shared_ptr<Caller>& CallersSeen::Of(std::string_view peer) {
  if (const auto found = seen_.find(peer); found != seen_.end()) return found->second;
  // Connections come and go; none of them says so.
  if (seen_.size() >= kSeenMax) seen_.clear();
  return seen_.emplace(peer, callers_.Of(AddressOfPeer(peer))).first->second;
}

std::string AddressOfPeer(std::string_view peer) {
  constexpr std::string_view kV4 = "ipv4:";
  constexpr std::string_view kV6 = "ipv6:%5B";
  constexpr std::string_view kV6End = "%5D";
  if (peer.starts_with(kV4)) {
    peer.remove_prefix(kV4.size());
    return std::string(peer.substr(0, peer.rfind(':')));
  }
  if (peer.starts_with(kV6)) {
    peer.remove_prefix(kV6.size());
    return std::string(peer.substr(0, peer.find(kV6End)));
  }
  return std::string(peer);
}

}  // namespace strata::server
