#include "service/server/introduction.h"

namespace strata::server {
namespace {

// Names of people may hold any byte, as a certificate does: those end in "-bin".
constexpr char kKey[] = "strata-port-key-bin";
constexpr char kPeer[] = "strata-port-peer";
constexpr char kUri[] = "strata-port-uri-bin";
constexpr char kDns[] = "strata-port-dns-bin";
constexpr char kAccess[] = "strata-port-access";
constexpr std::string_view kAll = "all";
constexpr std::string_view kRead = "read";

// In a time that tells nothing of how much of it is right.
bool IsKey(std::string_view said, std::string_view key) {
  if (key.empty() || said.size() != key.size()) return false;
  unsigned differences = 0;
  for (size_t i = 0; i < key.size(); ++i) {
    differences |= static_cast<unsigned char>(said[i]) ^ static_cast<unsigned char>(key[i]);
  }
  return differences == 0;
}

bool IsOfNetwork(std::string_view peer) {
  return peer.starts_with("ipv4:") || peer.starts_with("ipv6:") || peer.starts_with("unix:");
}

}  // namespace

void Introduce(const Introduction& introduction, const std::string& key,
               grpc::ClientContext& context) {
  context.AddMetadata(kKey, key);
  context.AddMetadata(kPeer, introduction.peer);
  for (const std::string& uri : introduction.uris) context.AddMetadata(kUri, uri);
  for (const std::string& name : introduction.dns_names) context.AddMetadata(kDns, name);
  context.AddMetadata(kAccess, std::string(introduction.reads_only ? kRead : kAll));
}

// The peer is asked first, as that is cheap and nearly all calls come over a network.
std::optional<Introduced> IntroducedBy(const grpc::ServerContext& context, std::string_view peer,
                                       std::string_view key) {
  if (IsOfNetwork(peer)) return std::nullopt;
  const auto& metadata = context.client_metadata();
  const auto said = metadata.find(kKey);
  if (said == metadata.end() || !IsKey(ToView(said->second), key)) return std::nullopt;
  Introduced introduced;
  introduced.reads_only = true;
  for (const auto& [name, value] : metadata) {
    if (name == kPeer) introduced.peer = ToView(value);
    if (name == kUri) introduced.uris.push_back(ToView(value));
    if (name == kDns) introduced.dns_names.push_back(ToView(value));
    if (name == kAccess) introduced.reads_only = ToView(value) != kAll;
  }
  return introduced;
}

}  // namespace strata::server
