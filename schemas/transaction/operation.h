// Operations: a write of one document as a value, which can be stored and made into a change of the
// write path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/statusor.h"
#include "schemas/document/content.h"
#include "schemas/document/patch.h"
#include "schemas/enrollment/sequence_guard.h"
#include "schemas/versioning/write_path.h"

namespace strata::transaction {

struct Create {
  document::Content content;
};
struct Update {
  std::variant<document::Content, document::Patch> new_content;
  bool allow_missing = false;
};
struct Delete {};
struct Restore {
  int64_t version = 0;
};
// Enroll and Unenroll.
struct Enroll {
  enrollment::Message message;
};

struct Operation {
  DocumentName name;
  std::variant<Create, Update, Delete, Restore, Enroll> what;
  versioning::Precondition precondition;
  versioning::ChangeInfo change;
  bool keep_unchanged = false;
};

// The change that does it; the Mutation's note is the enrollment::Result of a message, else 0.
// Errors that the mutator answers name fields as inside a Write of strata.v1: "update.patch…".
versioning::Change ToChange(const Operation& operation, const document::Limits& limits);

// INVALID_NAME, INVALID_FIELD, … as the call of that kind checks its request before it is decided,
// with the field inside the Write.
absl::Status Validate(const Operation& operation);

// BSON: equal iff the operations are. And back: RECORD_CORRUPT.
//
//   operation = { collection, id: string, kind: int32 (1 create, 2 replace, 3 patch, 4 delete,
//                 5 restore, 6 message), content: document, merge: document,
//                 operations: [ { path: string, kind: int32, type: int32, operand: binary } … ],
//                 allow_missing: bool, version: int64, set, class: string, sequence: int64,
//                 enroll: bool, if_version: int64, if_exists: bool, if_matches: document,
//                 newer: string (path), newer_value: int64,
//                 actor, for, reason: string, labels: { name: string … }, keep: bool }
//
// Members that do not belong to the kind, or are empty or false, are left out.
std::string Encode(const Operation& operation);
absl::StatusOr<Operation> Decode(std::string_view bytes);

}  // namespace strata::transaction
