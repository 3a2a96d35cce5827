#include "clients/cli/alike_errors.h"

namespace strata::cli {
namespace {

constexpr int64_t kSaid = 10;

}  // namespace

void AlikeErrors::Report(const client::Refusal& refusal, const std::string& where) {
  const std::string kind = refusal.reason.empty() ? client::CodeName(refusal.code) : refusal.reason;
  if (++seen_[kind] <= kSaid || session_.json) session_.Report(refusal, where);
}

void AlikeErrors::PrintOthers() {
  if (session_.json) return;
  for (const auto& [kind, count] : seen_) {
    if (count > kSaid) {
      session_.err() << "and " << WithCommas(count - kSaid) << " more of " << kind << "\n";
    }
  }
}

}  // namespace strata::cli
