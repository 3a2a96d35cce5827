// Documents whose writers show a lease.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/documents/units.h"
#include "tests/lease/leases_world.h"

namespace strata::lease::testing {

using versioning::WriteRequest;
using versioning::WriteResult;
using versioning::testing::Number;
using versioning::testing::NumberIn;
using versioning::testing::Request;

inline LeaseToken Shown(const Lease& lease, std::optional<Place> place = {},
                        std::optional<Place> after = {}) {
  return {lease.name, lease.token, place, after};
}

class FencedTest : public LeasesTest {
 protected:
  explicit FencedTest(Engine engine) : LeasesTest(engine) {}
  FencedTest() = default;

  Lease Hold(const std::string& holder = "worker-1", const std::string& name = "jobs") {
    const auto lease = leases.Acquire(name, holder);
    EXPECT_THAT(lease, IsOk());
    return *lease;
  }
  WriteRequest Fenced(const LeaseToken& token, std::string_view id = "a",
                      std::string_view request_id = "") {
    WriteRequest request = Request(id, request_id);
    request.joined.push_back(leases->Fence(token));
    return request;
  }
  absl::StatusOr<WriteResult> Put(WriteRequest request, int64_t n) {
    return world->Update(std::move(request), Number(n), /*allow_missing=*/true);
  }
  Place PlaceOf(const std::string& name = "jobs") { return leases->Get(name)->place; }
  int64_t VersionOf(std::string_view id = "a") {
    const auto version = world->documents().Get(Request(id).name, {});
    return version.ok() ? version->header.version : 0;
  }
  store::CommitPosition Last() { return world->store().LastPosition(); }
};

}  // namespace strata::lease::testing
