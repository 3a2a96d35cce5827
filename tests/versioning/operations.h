// Writes that a test makes, as pure functions, so that what a history should hold can be computed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/document/content.h"
#include "schemas/versioning/version.h"

namespace strata::versioning::checks {

// One version to be made.
struct Operation {
  std::string name;  // unique in its test
  VersionKind kind = VersionKind::kUpdated;
  document::Content content;                                            // kCreated
  std::function<document::Content(const document::Content&)> change{};  // kUpdated
  int64_t source = 0;  // kRestored: the version whose content comes back; 0: one below the head
};

// `json`: relaxed Extended JSON.
document::Content ContentOf(std::string_view json);
// Relaxed Extended JSON of a BSON document.
std::string JsonOf(std::string_view bson);

Operation Create(std::string name, std::string_view json);
// Sets one member, in its place or after all others, to the one member of `json`.
Operation Set(std::string name, std::string_view json);
Operation Remove(std::string name, std::string member);
Operation Delete(std::string name);
Operation Restore(std::string name, int64_t source = 0);

// What becomes of a document.
struct Outcome {
  VersionKind kind = VersionKind::kCreated;
  std::optional<document::Content> content;
};

// What `operation` makes of a document with this history; nothing where it does not apply (a
// creation over a live document, an update of none).
std::optional<Outcome> Apply(const Operation& operation, std::span<const StoredVersion> history);

// The version that an operation makes on top of `head` (null: the first). Time, salt and all else
// follow from the operation's name and the head, so every strategy makes the same.
StoredVersion NextVersion(std::string_view collection, std::string_view id,
                          const Operation& operation, const StoredVersion* head, Outcome outcome);

// Empty if `history`, oldest first, is what versions can be: dense from 1, content and chain hashes
// right, times never falling, deletions without content and all others with one. Else the problem.
std::string CheckHistory(std::string_view collection, std::string_view id,
                         std::span<const StoredVersion> history);

// Empty if the versions of `history` after the first `known` are made by the operations, each used
// at most once and each computed from the version right below its own; `used` is told which were.
std::string CheckMadeBy(std::span<const StoredVersion> history, size_t known,
                        std::span<const Operation> operations, std::vector<bool>& used);

// One line about a version, for messages.
std::string Describe(const StoredVersion& version);

}  // namespace strata::versioning::checks
