// A port for a server that is started again at the same address.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace strata::fault {

inline std::string FreePort() {
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(listening, reinterpret_cast<const sockaddr*>(&address), size);
  getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size);
  close(listening);
  return std::to_string(ntohs(address.sin_port));
}

}  // namespace strata::fault
