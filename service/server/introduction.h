// Whom a port of this same process speaks for. Calls over ServerLoop::InProcessChannel have no
// connection of their own that would tell who is behind them; the port has it, and says so in
// metadata, beside a key that nobody outside the process can have.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/string_ref.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace strata::server {

// Of what a call's context holds, as long as it lives.
inline std::string_view ToView(grpc::string_ref text) { return {text.data(), text.size()}; }

// One caller of a port.
struct Introduction {
  std::string peer;  // "ipv4:10.0.0.7:51234", as CallInfo::peer
  // Of the connection's verified certificate.
  std::vector<std::string> uris{};
  std::vector<std::string> dns_names{};
  bool reads_only = false;  // CallInfo::reads_only
};

// The same, whose texts live as long as the call's context.
struct Introduced {
  std::string_view peer;
  std::vector<std::string_view> uris;
  std::vector<std::string_view> dns_names;
  bool reads_only = false;
};

// What the server says to a caller before its message comes.
struct Welcome {
  absl::Status refusal;       // OK: none
  std::string caller{};       // Caller::name
  bool is_principal = false;  // it has shown good credentials
};

// What makes the server believe it. REQUIRES: `key` is the loop's.
void Introduce(const Introduction& introduction, const std::string& key,
               grpc::ClientContext& context);

// Nothing unless the call came over no network and its metadata has the key: from anybody else
// these names of metadata mean nothing. An introduction that does not say `reads_only` or
// otherwise reads only.
std::optional<Introduced> IntroducedBy(const grpc::ServerContext& context, std::string_view peer,
                                       std::string_view key);

}  // namespace strata::server
