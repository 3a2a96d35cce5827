#include "service/security/quota.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"

namespace strata::security {
namespace {

constexpr double kMiB = 1 << 20;

// As people write it: "2000", "0.5", never "2e+06".
std::string NumberText(double number) {
  char text[400];
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, number, std::chars_format::fixed);
  return error == std::errc() ? std::string(text, end) : "?";
}

Error Exceeded(std::string_view quota, double limit, std::string_view of_what) {
  const std::string number = NumberText(limit);
  return Error(ErrorReason::kQuotaExceeded,
               "the quota of " + number + " " + std::string(of_what) + " is used up")
      .With("quota", quota)
      .With("limit", std::string_view(number));
}

}  // namespace

double Quota::Bucket::LeftAt(Time now) const {
  if (now <= filled) return left;
  const double seconds = std::chrono::duration<double>(now - filled).count();
  return std::min(capacity(), left + per_second * seconds);
}

std::chrono::microseconds Quota::Bucket::WaitFor(double needed, Time now) const {
  // The sum may round otherwise than the quotient, and the sum decides. Both grow with time, so
  // the right one is next to the first guess.
  const auto enough = [&](int64_t micros) {
    return LeftAt(now + std::chrono::microseconds(micros)) >= needed;
  };
  auto micros = static_cast<int64_t>(std::ceil((needed - LeftAt(now)) / per_second * 1e6));
  while (!enough(micros)) ++micros;
  while (micros > 0 && enough(micros - 1)) --micros;
  return std::chrono::microseconds(micros);
}

void Quota::Bucket::Limit(double new_per_second, Time now) {
  if (new_per_second == per_second) return;
  const bool was_none = per_second == 0;
  const double kept = LeftAt(now);
  per_second = new_per_second;
  left = was_none ? capacity() : std::min(capacity(), kept);
  filled = std::max(filled, now);
}

void Quota::Bucket::Take(double count, Time now) {
  left = LeftAt(now) - count;
  filled = std::max(filled, now);
}

void Quota::Limit(const QuotaLimits& limits, Time now) {
  const std::lock_guard lock(mutex_);
  limits_ = limits;
  calls_.Limit(limits.calls_per_second, now);
  bytes_.Limit(limits.bytes_per_second, now);
  limited_.store(limits.any(), std::memory_order_release);
}

absl::Status Quota::Exhausted(Time now) const {
  const auto wait = [now](const Bucket& bucket, double needed) {
    return bucket.per_second == 0 ? std::chrono::microseconds(0) : bucket.WaitFor(needed, now);
  };
  const auto for_calls = wait(calls_, 1);
  const auto for_bytes = wait(bytes_, 0);
  if (for_calls.count() <= 0 && for_bytes.count() <= 0) return absl::OkStatus();
  if (for_calls >= for_bytes) {
    return Exceeded("calls_per_second", limits_.calls_per_second, "calls a second")
        .RetryAfter(for_calls);
  }
  return Exceeded("mib_per_second", limits_.bytes_per_second / kMiB, "MiB a second")
      .RetryAfter(for_bytes);
}

absl::Status Quota::Crowded() const {
  const int64_t most = limits_.calls_in_flight;
  if (most <= 0 || in_flight_.load(std::memory_order_relaxed) < most) return absl::OkStatus();
  return Exceeded("calls_in_flight", static_cast<double>(most), "calls at the same time");
}

absl::Status Quota::Take(size_t request_bytes, Time now) {
  if (!limited_.load(std::memory_order_acquire)) return absl::OkStatus();
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Exhausted(now));
  if (calls_.per_second > 0) calls_.Take(1, now);
  if (bytes_.per_second > 0) bytes_.Take(static_cast<double>(request_bytes), now);
  return absl::OkStatus();
}

absl::Status Quota::Check(Time now) const {
  if (!limited_.load(std::memory_order_acquire)) return absl::OkStatus();
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Crowded());
  return Exhausted(now);
}

void Quota::Charge(size_t bytes, Time now) {
  if (!limited_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  if (bytes_.per_second > 0) bytes_.Take(static_cast<double>(bytes), now);
}

absl::Status Quota::Enter() {
  // Counted without limits too: there may be some before it ends.
  if (!limited_.load(std::memory_order_acquire)) {
    in_flight_.fetch_add(1, std::memory_order_relaxed);
    return absl::OkStatus();
  }
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Crowded());
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

void Quota::Leave() { in_flight_.fetch_sub(1, std::memory_order_relaxed); }

bool Quota::IsFull(Time now) const {
  const std::lock_guard lock(mutex_);
  const auto is_full = [now](const Bucket& bucket) {
    return bucket.per_second == 0 || bucket.LeftAt(now) >= bucket.capacity();
  };
  return in_flight_.load(std::memory_order_relaxed) == 0 && is_full(calls_) && is_full(bytes_);
}

}  // namespace strata::security
