#include "service/server/caller.h"

#include <algorithm>
#include <vector>

namespace strata::server {

namespace {

// Each with its length, so that no two callers' are the same text.
void AppendTo(std::string& key, const std::vector<std::string_view>& texts) {
  key += '|';
  for (const std::string_view text : texts) {
    key += std::to_string(text.size());
    key += ':';
    key += text;
  }
}

}  // namespace

std::shared_ptr<Caller> Callers::Of(const std::string& principal, std::string_view address) {
  const std::string_view name = principal.empty() ? address : principal;
  const std::lock_guard lock(mutex_);
  auto found = callers_.find(name);
  if (found != callers_.end()) {
    if (std::shared_ptr<Caller> caller = found->second.lock()) return caller;
  } else {
    if (callers_.size() >= forget_at_) {
      std::erase_if(callers_, [](const auto& entry) { return entry.second.expired(); });
      forget_at_ = std::max<size_t>(1024, 2 * callers_.size());
    }
    found = callers_.try_emplace(std::string(name)).first;
  }
  auto caller = std::make_shared<Caller>(std::string(name),
                                         principal.empty() ? nullptr : access_.QuotaOf(principal));
  found->second = caller;
  return caller;
}

Recognized CallersSeen::Of(std::string_view peer, const security::Credentials& credentials) {
  const security::Access& access = callers_.access();
  if (const uint64_t now = access.generation(); now != std::exchange(generation_, now)) {
    seen_.clear();
  }
  std::string_view key = peer;
  if (!credentials.empty()) {
    key_ = peer;
    AppendTo(key_, credentials.authorization);
    AppendTo(key_, credentials.uris);
    AppendTo(key_, credentials.dns_names);
    key = key_;
  }
  auto found = seen_.find(key);
  if (found == seen_.end()) {
    Recognized recognized = Recognize(peer, credentials);
    // Whoever guesses tokens is not remembered, nor is what would take much room.
    if (!recognized.refusal.ok() || key.size() > kKeyBytesMax) return recognized;
    // Connections come and go; none of them says so.
    if (seen_.size() >= kSeenMax) seen_.clear();
    found = seen_.emplace(key, std::move(recognized)).first;
  }
  Recognized recognized = found->second;
  recognized.refusal = access.CheckStillValid(*recognized.identity);
  return recognized;
}

Recognized CallersSeen::Recognize(std::string_view peer,
                                  const security::Credentials& credentials) const {
  static const auto& nobody =
      *new std::shared_ptr<const security::Identity>(new security::Identity());
  const std::string address = AddressOfPeer(peer);
  absl::StatusOr<security::Identity> identity = callers_.access().Identify(credentials);
  if (!identity.ok()) return {callers_.Of("", address), nobody, identity.status()};
  return {callers_.Of(identity->principal, address),
          std::make_shared<const security::Identity>(*std::move(identity)), absl::OkStatus()};
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
