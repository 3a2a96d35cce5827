#include "service/http/access_checks.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "schemas/base/strings.h"

namespace strata::http {
namespace {

bool IsPort(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Refusal FromElsewhere(const std::string& what) {
  return {403, "permission_denied",
          "a page of another site may not call this port (" + what +
              "); a program sends neither Origin nor Sec-Fetch-Site"};
}

}  // namespace

std::optional<std::string_view> NameOfHost(std::string_view host) {
  const size_t end = host.starts_with('[') ? host.find(']') : host.find(':');
  if (host.starts_with('[') && end == std::string_view::npos) return std::nullopt;
  const size_t size = host.starts_with('[') ? end + 1 : std::min(end, host.size());
  const std::string_view rest = host.substr(size);
  if (size == 0 || (!rest.empty() && (rest.front() != ':' || !IsPort(rest.substr(1))))) {
    return std::nullopt;
  }
  return host.substr(0, size);
}

HostNames::HostNames(std::string_view listen, bool loopback,
                     const std::vector<std::string>& names) {
  if (const auto name = NameOfHost(listen)) names_.push_back(absl::AsciiStrToLower(ToAbsl(*name)));
  if (loopback) {
    for (const char* const name : {"localhost", "127.0.0.1", "[::1]"}) names_.emplace_back(name);
  }
  for (const std::string& name : names) names_.push_back(absl::AsciiStrToLower(name));
}

bool HostNames::Has(std::string_view host, std::string_view own_address) const {
  const auto name = NameOfHost(host);
  if (!name) return false;
  const std::string lower = absl::AsciiStrToLower(ToAbsl(*name));
  return lower == own_address || std::find(names_.begin(), names_.end(), lower) != names_.end();
}

std::optional<Refusal> CheckOrigin(const RequestHead& head, bool encrypted, bool navigates) {
  for (const std::string_view site : head.headers.All("sec-fetch-site")) {
    const bool follows_link = navigates && head.headers.Find("sec-fetch-mode") == "navigate" &&
                              head.headers.Find("sec-fetch-dest") == "document";
    if (site != "same-origin" && site != "none" && !follows_link) {
      return FromElsewhere("Sec-Fetch-Site is neither same-origin nor none");
    }
  }
  const std::string host = absl::AsciiStrToLower(head.host);
  for (const std::string_view origin : head.headers.All("origin")) {
    const std::string lower = absl::AsciiStrToLower(ToAbsl(origin));
    // Where this port does not speak TLS, a proxy in front of it may.
    if (lower == "https://" + host || (!encrypted && lower == "http://" + host)) continue;
    return FromElsewhere("its Origin is not this port");
  }
  return std::nullopt;
}

}  // namespace strata::http
