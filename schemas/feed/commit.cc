#include "schemas/feed/commit.h"

#include <algorithm>
#include <string_view>

#include "schemas/base/sha256.h"
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
  if (made.type == EventType::kVersion) {
    made.header = versioning::HeaderOf(entry);
  } else {
    made.header.commit_time = entry.time;
  }
  return made;
}

uint64_t HashOfDocument(std::string_view collection, std::string_view id) {
  const Hash hash =
      Sha256().Update(collection).Update(std::string_view("\0", 1)).Update(id).Finish();
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof number; ++i) number = (number << 8) | hash[i];
  return number;
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
  if (!kinds.empty() && std::find(kinds.begin(), kinds.end(), entry.header.kind) == kinds.end()) {
    return false;
  }
  if (partitions == 0) return true;
  const uint64_t hash =
      entry.document_hash.Get([&] { return HashOfDocument(entry.collection, entry.id); });
  return hash % static_cast<uint64_t>(partitions) == static_cast<uint64_t>(partition);
}

}  // namespace strata::feed
