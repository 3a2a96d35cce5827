// gRPC itself takes "http://host" for a name and says no more than that it cannot be resolved.
#include "clients/cpp/target.h"

#include <charconv>
#include <cstdint>

namespace strata::client {
namespace {

constexpr std::string_view kDefaultPort = "50051";

absl::Status NoTarget(std::string_view text, const std::string& problem) {
  return absl::InvalidArgumentError("'" + std::string(text) + "' names no server: " + problem +
                                    "; write host, host:port or [v6]:port");
}

bool IsPort(std::string_view text) {
  uint32_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && rest == end && port >= 1 && port <= 65535;
}

}  // namespace

absl::StatusOr<std::string> TargetOf(std::string_view text) {
  if (text.starts_with("unix:") || text.starts_with("unix-abstract:")) return std::string(text);
  const size_t scheme = text.find("://");
  if (scheme != std::string_view::npos) {
    return NoTarget(text, "gRPC is no web page, so '" + std::string(text.substr(0, scheme + 3)) +
                              "' has no meaning here; TLS has options of its own");
  }
  if (text.find_first_of("/ \t") != std::string_view::npos) {
    return NoTarget(text, "it has a path or blanks");
  }
  std::string_view host = text;
  std::string_view port = kDefaultPort;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return NoTarget(text, "']' is missing");
    host = text.substr(0, end + 1);
    const std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && rest[0] != ':') return NoTarget(text, "what follows ']' is no port");
    if (!rest.empty()) port = rest.substr(1);
    if (host.size() == 2) return NoTarget(text, "there is no host");
  } else if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    if (text.find(':', colon + 1) != std::string_view::npos) {
      return NoTarget(text, "an address of version 6 stands in brackets");
    }
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (host.empty()) return NoTarget(text, "there is no host");
  if (!IsPort(port)) return NoTarget(text, "'" + std::string(port) + "' is no port");
  return std::string(host) + ":" + std::string(port);
}

}  // namespace strata::client
