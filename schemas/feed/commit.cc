#include "schemas/feed/commit.h"

#include <algorithm>
#include <string_view>

#include "schemas/versioning/ledger.h"

namespace strata::feed {
namespace {

EventType TypeOf(const store::LedgerEntryView& entry) {
  if (versioning::IsVersion(entry)) return EventType::kVersion;
  switch (static_cast<versioning::LedgerEvent>(entry.kind)) {
    case versioning::LedgerEvent::kCollectionDeleted:
      return EventType::kCollectionDeleted;
  }
  return EventType::kOther;
}

}  // namespace

Entry Entry::Of(const store::LedgerEntryView& entry) {
  Entry made;
  made.type = TypeOf(entry);
  made.collection = entry.collection;
  made.incarnation = entry.incarnation;
  made.id = entry.id;
  if (made.type == EventType::kVersion) made.header = versioning::HeaderOf(entry);
  return made;
}

size_t Entry::bytes() const {
  size_t bytes = sizeof(Entry) + collection.size() + id.size() + header.request_id.size() +
                 header.transaction_id.size() + header.change.actor.size() +
                 header.change.on_behalf_of.size() + header.change.reason.size();
  for (const auto& [name, value] : header.change.labels) {
    bytes += sizeof(name) + sizeof(value) + name.size() + value.size();
  }
  return bytes;
}

bool Selection::Wants(const Entry& entry) const {
  if (entry.type == EventType::kOther) return false;
  if (!collections.empty() &&
      !std::binary_search(collections.begin(), collections.end(), entry.collection)) {
    return false;
  }
  if (entry.type != EventType::kVersion) return true;
  if (std::string_view(entry.id).substr(0, id_prefix.size()) != id_prefix) return false;
  return kinds.empty() || std::find(kinds.begin(), kinds.end(), entry.header.kind) != kinds.end();
}

}  // namespace strata::feed
