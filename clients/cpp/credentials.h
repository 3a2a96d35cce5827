// What a caller presents to the server, and by what it trusts the server.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace strata::client {

// What whoever gives the files calls them, for what is said of them.
struct CredentialNames {
  std::string_view tls_ca;
  std::string_view tls_certificate;
  std::string_view tls_key;
  std::string_view token;
};
inline constexpr CredentialNames kCredentialFlags{"--tls-ca", "--tls-certificate", "--tls-key",
                                                  "--token-file"};
inline constexpr CredentialNames kCredentialOptions{"tls.authorities", "tls.certificate", "tls.key",
                                                    "token"};

// The names of files. Empty: not given.
struct CredentialFiles {
  CredentialNames names = kCredentialFlags;
  std::string tls_ca = {};  // PEM; "system": the authorities that this machine trusts
  std::string tls_certificate = {};
  std::string tls_key = {};
  std::string token_file = {};
};

// What they hold.
struct Credentials {
  bool tls = false;
  std::string authorities;  // PEM; empty: those that this machine trusts
  std::string certificate;  // PEM, with its key: both or neither
  std::string key;
  std::string token;

  // The `authorization` header; empty without a token.
  std::string authorization() const { return token.empty() ? "" : "Bearer " + token; }
};

// INVALID_ARGUMENT, naming option and file: it cannot be read, or does not hold what it should; a
// certificate without its key, without TLS, or with another one's key; a token that others can
// read, or that would travel in the clear: without TLS, to a `server` that is not this machine.
absl::StatusOr<Credentials> ReadCredentials(const CredentialFiles& files, std::string_view server);

// The same for a token that is at hand; an empty one is none.
absl::Status SetToken(std::string_view token, std::string_view server, Credentials& credentials);

// Whether what is sent to "host:port" stays on this machine, as far as the name tells.
bool IsLoopback(std::string_view server);

// For channels. The token is not among it.
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const Credentials& credentials);

}  // namespace strata::client
