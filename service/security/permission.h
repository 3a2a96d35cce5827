// What may be done, and to what.
#pragma once

#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"

namespace strata::security {

// What a method asks of its caller.
enum class Permission {
  kOpen,       // nothing, not even who it is
  kPrincipal,  // to be somebody
  kRead,
  kAudit,
  kWrite,
  kManage,
  kErase,
  kOperate,
};

// "read"; as policies' roles are explained and errors tell it.
std::string_view PermissionName(Permission permission);

enum class ResourceKind { kCollection, kQueue, kLease, kSubscription, kView, kServer };

// One thing that a request concerns. What it names lives as long as the request.
struct Resource {
  ResourceKind kind = ResourceKind::kCollection;
  std::string_view name;  // kEvery: all of its kind; of the server: empty

  // "collection/books", "collection/*", "server": as policies write it.
  std::string text() const;
};

// No name of anything, so only a pattern that takes in all of a kind matches it.
inline constexpr std::string_view kEvery = "*";

// A resource and what is asked for on it.
struct Demand {
  Permission permission = Permission::kRead;
  Resource resource;
};

// All that one request asks for; it needs each of them.
using Demands = absl::InlinedVector<Demand, 2>;

}  // namespace strata::security
