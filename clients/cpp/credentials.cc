// Files are looked through before the first call, because gRPC says of a broken one no more than
// that it cannot connect.
#include "clients/cpp/credentials.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/status/status.h"

namespace strata::client {
namespace {

constexpr size_t kFileBytesMax = size_t{1} << 20;
// The server takes metadata of 8 KiB in all.
constexpr size_t kTokenBytesMax = 4096;
constexpr std::string_view kSystem = "system";

// A file that a flag names.
struct Named {
  std::string_view flag;
  const std::string& path;

  absl::Status Error(const std::string& problem) const {
    return absl::InvalidArgumentError(std::string(flag) + " " + path + ": " + problem);
  }
};

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  const int number_;
};

// `secret`: only its owner may be able to read it. What is looked at is what is read, whatever the
// name stands for a moment later.
absl::StatusOr<std::string> Read(const Named& file, bool secret) {
  const Descriptor descriptor(open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.number() < 0) return file.Error(std::strerror(errno));
  struct stat status {};
  if (fstat(descriptor.number(), &status) != 0) return file.Error(std::strerror(errno));
  if (secret && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return file.Error("others can read or change it; its mode has to be 0600 or 0400 (chmod 600)");
  }
  std::string content;
  char piece[16 * 1024];
  while (content.size() <= kFileBytesMax) {
    const ssize_t count = read(descriptor.number(), piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file.Error(std::strerror(errno));
    if (count == 0) return content;
    content.append(piece, static_cast<size_t>(count));
  }
  return file.Error("it has more than 1 MiB");
}

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Bio Open(const std::string& pem) {
  return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free};
}

// The first in the text; null: there is none.
Certificate FirstCertificate(const std::string& pem) {
  const Bio bio = Open(pem);
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free);
  ERR_clear_error();
  return certificate;
}

// Null also where it wants a passphrase, which nobody is asked for.
Key PrivateKey(const std::string& pem) {
  const Bio bio = Open(pem);
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr), EVP_PKEY_free);
  ERR_clear_error();
  return key;
}

bool Fit(const Certificate& certificate, const Key& key) {
  const bool fit = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  return fit;
}

absl::Status ReadAuthorities(const CredentialFiles& files, Credentials& credentials) {
  credentials.tls = true;
  if (files.tls_ca == kSystem) return absl::OkStatus();
  const Named file{files.names.tls_ca, files.tls_ca};
  absl::StatusOr<std::string> pem = Read(file, false);
  if (!pem.ok()) return pem.status();
  if (FirstCertificate(*pem) == nullptr) return file.Error("no certificate (PEM) is in it");
  credentials.authorities = *std::move(pem);
  return absl::OkStatus();
}

absl::Status ReadCertificate(const CredentialFiles& files, Credentials& credentials) {
  const std::string certificate_name(files.names.tls_certificate);
  const std::string key_name(files.names.tls_key);
  if (files.tls_certificate.empty() != files.tls_key.empty()) {
    const bool no_key = files.tls_key.empty();
    return absl::InvalidArgumentError(
        no_key
            ? certificate_name + " is given without " + key_name + ": a certificate needs its key"
            : key_name + " is given without " + certificate_name + ", whose key it is");
  }
  if (!credentials.tls) {
    return absl::InvalidArgumentError(certificate_name + " and " + key_name +
                                      " are of use with TLS alone: give " +
                                      std::string(files.names.tls_ca) + " too (a file, or system)");
  }
  const Named certificate_file{files.names.tls_certificate, files.tls_certificate};
  const Named key_file{files.names.tls_key, files.tls_key};
  absl::StatusOr<std::string> certificate_pem = Read(certificate_file, false);
  if (!certificate_pem.ok()) return certificate_pem.status();
  absl::StatusOr<std::string> key_pem = Read(key_file, false);
  if (!key_pem.ok()) return key_pem.status();
  const Certificate certificate = FirstCertificate(*certificate_pem);
  if (certificate == nullptr) return certificate_file.Error("no certificate (PEM) is in it");
  const Key key = PrivateKey(*key_pem);
  if (key == nullptr) return key_file.Error("no private key (PEM, without passphrase) is in it");
  if (!Fit(certificate, key)) {
    return key_file.Error("it is not the key of the certificate in " + files.tls_certificate);
  }
  credentials.certificate = *std::move(certificate_pem);
  credentials.key = *std::move(key_pem);
  return absl::OkStatus();
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

absl::Status InTheClear(std::string_view server) {
  return absl::InvalidArgumentError("a token must not travel in the clear, and " +
                                    std::string(server) + " is not this machine: use TLS");
}

// Why what somebody presents as a token is none; empty: it may be one.
std::string ProblemOf(std::string_view token) {
  const bool graphic =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (!graphic) return "is no token: it has blanks or other bytes";
  if (token.size() > kTokenBytesMax) return "is no token: it has more than 4096 bytes";
  return "";
}

absl::Status ReadToken(const CredentialFiles& files, std::string_view server,
                       Credentials& credentials) {
  const Named file{files.names.token, files.token_file};
  if (!credentials.tls && !IsLoopback(server)) {
    return file.Error("a token must not travel in the clear, and " + std::string(server) +
                      " is not this machine: give " + std::string(files.names.tls_ca) +
                      " (a file, or system)");
  }
  absl::StatusOr<std::string> text = Read(file, true);
  if (!text.ok()) return text.status();
  const std::string_view token = Trimmed(std::string_view(*text).substr(0, text->find('\n')));
  if (token.empty()) return file.Error("its first line is empty; it has to be the token");
  const std::string problem = ProblemOf(token);
  if (!problem.empty()) return file.Error("its first line " + problem);
  credentials.token = std::string(token);
  return absl::OkStatus();
}

// ":50051".
bool IsPort(std::string_view text) {
  return text.size() > 1 && text[0] == ':' &&
         text.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

}  // namespace

absl::StatusOr<Credentials> ReadCredentials(const CredentialFiles& files, std::string_view server) {
  Credentials credentials;
  absl::Status status;
  if (!files.tls_ca.empty()) status.Update(ReadAuthorities(files, credentials));
  if (status.ok() && !(files.tls_certificate.empty() && files.tls_key.empty())) {
    status.Update(ReadCertificate(files, credentials));
  }
  if (status.ok() && !files.token_file.empty()) {
    status.Update(ReadToken(files, server, credentials));
  }
  if (!status.ok()) return status;
  return credentials;
}

absl::Status SetToken(std::string_view token, std::string_view server, Credentials& credentials) {
  if (token.empty()) return absl::OkStatus();
  const std::string problem = ProblemOf(token);
  if (!problem.empty()) return absl::InvalidArgumentError("token " + problem);
  if (!credentials.tls && !IsLoopback(server)) return InTheClear(server);
  credentials.token = std::string(token);
  return absl::OkStatus();
}

bool IsLoopback(std::string_view server) {
  if (server.starts_with("unix:") || server.starts_with("unix-abstract:")) return true;
  for (const std::string_view scheme : {"dns:///", "dns:", "ipv4:", "ipv6:"}) {
    if (!server.starts_with(scheme)) continue;
    server.remove_prefix(scheme.size());
    break;
  }
  const bool bracketed = server.starts_with('[');
  if (bracketed) server.remove_prefix(1);
  const size_t end = std::min(server.find(bracketed ? ']' : ':'), server.size());
  const std::string host(server.substr(0, end));
  const std::string_view rest = server.substr(std::min(end + (bracketed ? 1 : 0), server.size()));
  // Whatever else stands there, it is no port, and the name is not understood.
  if (!rest.empty() && !IsPort(rest)) return false;
  in_addr four{};
  in6_addr six{};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  if (inet_pton(AF_INET6, host.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
  return host == "localhost";
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const Credentials& credentials) {
  if (!credentials.tls) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({.pem_root_certs = credentials.authorities,
                               .pem_private_key = credentials.key,
                               .pem_cert_chain = credentials.certificate});
}

}  // namespace strata::client
