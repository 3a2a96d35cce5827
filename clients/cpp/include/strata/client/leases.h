// Leases: the exclusive, expiring right to act for a name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "strata/client/documents.h"
#include "strata/client/range.h"

namespace strata::client {

class Core;

struct Lease {
  std::string name = {};
  std::string holder = {};  // empty: it was released
  int64_t token = 0;
  absl::Duration ttl = absl::ZeroDuration();
  absl::Time expire_time = absl::InfinitePast();
  std::map<std::string, std::string> metadata = {};
  int64_t position = 0;
  std::optional<int32_t> index = {};

  // For the `lease` of writes.
  operator LeaseToken() const { return {.name = name, .token = token}; }
};

struct AcquireOptions {
  std::optional<absl::Duration> ttl = {};
  std::map<std::string, std::string> metadata = {};
  std::optional<absl::Duration> wait = {};
};

struct RenewOptions {
  std::optional<absl::Duration> ttl = {};
  int64_t position = 0;
};

struct ListLeasesOptions {
  std::string prefix = {};
  int32_t page_size = 0;
};

// Thread-safe.
class Leases {
 public:
  explicit Leases(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  // ABORTED / LEASE_HELD if another holder has it, after options.wait. The call is not repeated
  // when its answer is lost: a second token would fence off the first.
  absl::StatusOr<Lease> Acquire(const std::string& name, const std::string& holder,
                                const AcquireOptions& options = {}) const;
  absl::StatusOr<Lease> Renew(const std::string& name, int64_t token,
                              const RenewOptions& options = {}) const;
  absl::StatusOr<Lease> Release(const std::string& name, int64_t token) const;
  absl::StatusOr<Lease> Get(const std::string& name) const;
  Range<Lease> List(const ListLeasesOptions& options = {}) const;

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace strata::client
