// What a write says, whether it is a call of its own or a part of a transaction.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "strata/client/documents.h"
#include "strata/v1/document_service.pb.h"

namespace strata::client {

absl::Status FillCreate(const std::string& collection, const std::string& id, const Value& content,
                        v1::CreateRequest& request);
// INVALID_ARGUMENT too for a change that says nothing, or replaces and patches.
absl::Status FillUpdate(const std::string& collection, const std::string& id, const Change& change,
                        v1::UpdateRequest& request);

// The ledger's entries, of all collections unless the options name one.
Range<AuditEntry> AuditOf(const std::shared_ptr<Core>& core, const AuditOptions& options);

}  // namespace strata::client
