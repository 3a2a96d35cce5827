#include "schemas/feed/subscription.h"

#include <charconv>

namespace strata::feed {
namespace {

constexpr std::string_view kLeasePrefix = "$sub/";
constexpr std::string_view kMemberPart = "member/";

// A number as it is printed, and nothing else.
std::optional<int64_t> ParseNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 ||
      std::to_string(number) != text) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

int32_t PartitionOf(std::string_view collection, std::string_view id, int32_t partitions) {
  return static_cast<int32_t>(HashOfDocument(collection, id) % static_cast<uint64_t>(partitions));
}

std::string SubscriptionLeasePrefix(int64_t incarnation) {
  return std::string(kLeasePrefix) + std::to_string(incarnation) + "/";
}

std::string PartitionLeaseName(int64_t incarnation, int32_t partition) {
  return SubscriptionLeasePrefix(incarnation) + std::to_string(partition);
}

std::string MemberLeasePrefix(int64_t incarnation) {
  return SubscriptionLeasePrefix(incarnation) + std::string(kMemberPart);
}

std::optional<PartitionLease> ParsePartitionLease(std::string_view lease_name) {
  if (!lease_name.starts_with(kLeasePrefix)) return std::nullopt;
  lease_name.remove_prefix(kLeasePrefix.size());
  const size_t slash = lease_name.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::optional<int64_t> incarnation = ParseNumber(lease_name.substr(0, slash));
  const std::optional<int64_t> partition = ParseNumber(lease_name.substr(slash + 1));
  if (!incarnation || !partition || *partition >= kPartitionsMax) return std::nullopt;
  return PartitionLease{*incarnation, static_cast<int32_t>(*partition)};
}

std::optional<int64_t> IncarnationOfPartitionLease(std::string_view lease_name) {
  const std::optional<PartitionLease> lease = ParsePartitionLease(lease_name);
  if (!lease) return std::nullopt;
  return lease->incarnation;
}

}  // namespace strata::feed
