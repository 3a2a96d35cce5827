#include "service/security/permission.h"

namespace strata::security {
namespace {

std::string_view KindName(ResourceKind kind) {
  switch (kind) {
    case ResourceKind::kCollection:
      return "collection";
    case ResourceKind::kQueue:
      return "queue";
    case ResourceKind::kLease:
      return "lease";
    case ResourceKind::kSubscription:
      return "subscription";
    case ResourceKind::kView:
      return "view";
    case ResourceKind::kServer:
      return "server";
  }
  return "";
}

}  // namespace

std::string_view PermissionName(Permission permission) {
  switch (permission) {
    case Permission::kOpen:
      return "open";
    case Permission::kPrincipal:
      return "principal";
    case Permission::kRead:
      return "read";
    case Permission::kAudit:
      return "audit";
    case Permission::kWrite:
      return "write";
    case Permission::kManage:
      return "manage";
    case Permission::kErase:
      return "erase";
    case Permission::kOperate:
      return "operate";
  }
  return "";
}

std::string Resource::text() const {
  std::string made(KindName(kind));
  if (kind == ResourceKind::kServer) return made;
  made += '/';
  made += name;
  return made;
}

}  // namespace strata::security
