// SHA-256 by libcrypto.
#include "schemas/base/sha256.h"

#include <openssl/evp.h>

#include <cstdlib>
#include <utility>

namespace strata {
namespace {

// Looked up once: EVP_sha256() makes OpenSSL 3 search its providers at each use.
const EVP_MD* Method() {
  static const EVP_MD* const method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return method;
}

// A hash that is not one would go unnoticed until the chain is verified, so there is no going on.
void Require(int openssl_result) {
  if (openssl_result != 1) std::abort();
}

}  // namespace

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();

  State() { Require(EVP_DigestInit_ex(context, Method(), nullptr)); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Making one costs as much as hashing a short text, so each thread keeps one to begin anew with.
  static thread_local std::unique_ptr<State> spare;
};

thread_local std::unique_ptr<Sha256::State> Sha256::State::spare;

Sha256::Sha256() : state_(std::move(State::spare)) {
  if (state_ == nullptr) {
    state_ = std::make_unique<State>();
  } else {
    Require(EVP_DigestInit_ex(state_->context, nullptr, nullptr));
  }
}

Sha256::~Sha256() {
  if (State::spare == nullptr) State::spare = std::move(state_);
}

Sha256& Sha256::Update(std::string_view bytes) {
  Require(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()));
  return *this;
}

Hash Sha256::Finish() {
  Hash hash{};
  Require(EVP_DigestFinal_ex(state_->context, hash.data(), nullptr));
  return hash;
}

}  // namespace strata
