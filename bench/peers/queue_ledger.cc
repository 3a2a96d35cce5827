#include "bench/peers/queue_ledger.h"

#include <charconv>

#include "bench/support/ten_fields.h"

namespace strata::bench {
namespace {

constexpr size_t kDigits = 16;

}  // namespace

QueueLedger::QueueLedger() {
  for (size_t i = 0; i < kFillings; ++i) {
    const auto number = static_cast<int64_t>(i);
    fillings_[i] = TenFieldsJson(number, number);
    fillings_[i].resize(kPayloadBytes - kDigits, ' ');
  }
}

std::string QueueLedger::NextPayload() {
  const size_t number = taken_.size();
  taken_.push_back(false);
  const std::string digits = std::to_string(number);
  std::string payload(kDigits - digits.size(), '0');
  payload.reserve(kPayloadBytes);
  payload += digits;
  payload += fillings_[number % kFillings];
  return payload;
}

bool QueueLedger::Take(std::string_view payload) {
  if (payload.size() != kPayloadBytes) return false;
  size_t number = 0;
  const char* const end = payload.data() + kDigits;
  const auto [stopped, error] = std::from_chars(payload.data(), end, number);
  if (error != std::errc() || stopped != end || number >= taken_.size() || taken_[number] ||
      payload.substr(kDigits) != fillings_[number % kFillings]) {
    return false;
  }
  taken_[number] = true;
  ++taken_count_;
  return true;
}

}  // namespace strata::bench
