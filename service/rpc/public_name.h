// What callers call a message of the wire view.
#pragma once

#include <string>
#include <string_view>

namespace strata::rpc {

// "strata.v1.GetRequest", also for the message of the wire view.
template <typename Message>
std::string PublicName() {
  std::string name = Message::default_instance().GetTypeName();
  constexpr std::string_view kWire = "strata.wire.";
  if (name.rfind(kWire, 0) == 0) name.replace(0, kWire.size(), "strata.");
  return name;
}

}  // namespace strata::rpc
