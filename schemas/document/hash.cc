// SHA-256 by libcrypto, over parts behind their lengths.
#include "schemas/document/hash.h"

#include <openssl/evp.h>

#include <cstdlib>

namespace strata::document {
namespace {

std::array<char, 8> BigEndian(uint64_t number) {
  std::array<char, 8> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>((number >> (8 * (7 - i))) & 0xFF);
  }
  return bytes;
}

// Looked up once: EVP_sha256() makes OpenSSL 3 search its providers at each use.
const EVP_MD* Sha256() {
  static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return sha256;
}

// A hash that is not one would go unnoticed until the chain is verified, so there is no going on.
void Require(int openssl_result) {
  if (openssl_result != 1) std::abort();
}

}  // namespace

struct PartHasher::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();

  State() = default;
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

PartHasher::PartHasher() : state_(std::make_unique<State>()) {
  Require(EVP_DigestInit_ex(state_->context, Sha256(), nullptr));
}

PartHasher::~PartHasher() = default;

PartHasher& PartHasher::Add(std::string_view part) {
  const std::array<char, 8> length = BigEndian(part.size());
  Require(EVP_DigestUpdate(state_->context, length.data(), length.size()));
  Require(EVP_DigestUpdate(state_->context, part.data(), part.size()));
  return *this;
}

PartHasher& PartHasher::Add(int64_t number) {
  const std::array<char, 8> bytes = BigEndian(static_cast<uint64_t>(number));
  return Add(std::string_view(bytes.data(), bytes.size()));
}

Hash PartHasher::Finish() {
  Hash hash{};
  Require(EVP_DigestFinal_ex(state_->context, hash.data(), nullptr));
  return hash;
}

Hash ContentHash(std::string_view salt, const Content& content) {
  return PartHasher().Add(salt).Add(content.bytes()).Finish();
}

}  // namespace strata::document
