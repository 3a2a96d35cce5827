// Whether a request comes from a page of this very port, or from no page at all. A browser sends
// whatever any site in it asks for, from inside every firewall; what it says of where that came
// from is all there is to tell.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/http/request_head.h"

namespace strata::http {

// A request's refusal, before anything was done for it.
struct Refusal {
  int status = 0;
  std::string_view code;  // Connect's
  std::string message;
};

// The names that a port is known by. A site whose name is pointed at this machine (DNS rebinding)
// is told by its name, which the browser sends along: so names count and ports do not, which a
// tunnel may change.
class HostNames {
 public:
  // `listen` is HOST:PORT; `names` are others, without ports.
  HostNames(std::string_view listen, bool loopback, const std::vector<std::string>& names);

  // Whether a Host header says one of them, or the address that the connection came to
  // ("10.0.0.7", "[::1]"): an address cannot be pointed elsewhere.
  bool Has(std::string_view host, std::string_view own_address) const;

 private:
  std::vector<std::string> names_;  // in lower case
};

// "name" of "name:8080" and of "name", "[::1]" of "[::1]:8080"; nothing if it is neither.
std::optional<std::string_view> NameOfHost(std::string_view host);

// 403, or nothing: Origin and Sec-Fetch-Site, where they are sent, say that the request comes from
// the same origin, or from no site. `navigates`: it only asks for a page, which a link anywhere may
// lead to, and which nobody sees but who follows it.
std::optional<Refusal> CheckOrigin(const RequestHead& head, bool encrypted, bool navigates);

}  // namespace strata::http
