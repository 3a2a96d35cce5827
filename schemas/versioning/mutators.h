// What Create, Update, Delete and Restore make of a document: the functions that the write path
// applies for them, wherever such a change comes from.
#pragma once

#include <cstdint>
#include <variant>

#include "schemas/base/names.h"
#include "schemas/document/content.h"
#include "schemas/document/patch.h"
#include "schemas/versioning/write_path.h"

namespace strata::versioning {

using NewContent = std::variant<document::Content, document::Patch>;

// Errors as of the calls of Documents.
Mutator CreateMutator(DocumentName name, document::Content content);
Mutator UpdateMutator(DocumentName name, NewContent new_content, bool allow_missing,
                      const document::Limits& limits);
Mutator DeleteMutator(DocumentName name);
// What `update` makes, with the number in it; stale where that is not newer. Errors as of newer.h
// besides.
Mutator NewerUpdateMutator(DocumentName name, Newer newer, Mutator update,
                           const document::Limits& limits);
// A deletion that keeps the number, also of what was deleted before or never written.
Mutator NewerDeleteMutator(DocumentName name, Newer newer);
Mutator RestoreMutator(DocumentName name, int64_t version);

}  // namespace strata::versioning
