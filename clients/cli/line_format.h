// The lines of import and export: one version of one document each.
//
//   {"collection": "compat", "id": "css/color", "time": "2016-11-29T11:33:29Z", "actor": "…",
//    "on_behalf_of": "…", "reason": "…", "labels": {"ticket": "12"}, "content": {…}}
//
// or "deleted": true instead of content. Only id and one of the last two are needed (and
// collection, unless the command line names one). "evidence" may stand there too, an object:
//
//   {"version": 3, "kind": "restored", "commit_time": "…", "request_id": "…",
//    "transaction_id": "…", "content_hash": "ab34…", "chain_hash": "…"}
//
// It tells of the version that was exported, and nothing is made of it. Other members are refused,
// so that nothing is lost silently.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace strata::cli {

// The label that keeps a line's time: the server's commit time says when it was imported.
inline constexpr std::string_view kTimeLabel = "time";

// How the request ids of all imports begin.
inline constexpr std::string_view kImportPrefix = "import-";

struct VersionLine {
  std::string collection;
  std::string id;
  std::string time;  // As written; empty: none.
  std::string actor;
  std::string on_behalf_of;
  std::string reason;
  std::map<std::string, std::string> labels;  // Without kTimeLabel.
  bool deleted = false;
  std::string content;   // BSON; empty if deleted.
  std::string evidence;  // A JSON object, to be written; empty: none. Not read.
};

// Reads one line, without its end. INVALID_ARGUMENT says what is wrong with it.
absl::StatusOr<VersionLine> ParseVersionLine(std::string_view text);

// The line, without its end; ParseVersionLine gives an equal one again, content to the byte.
// Members that are empty are left out. INVALID_ARGUMENT if the content is damaged.
absl::StatusOr<std::string> FormatVersionLine(const VersionLine& line);

// "import-<16 hexadecimal digits>-<number>": the digits are the first 64 bits of a SHA-256 over
// what the line says, but its evidence; `number` counts the lines of its document, from 1. So the
// same version imported again, wherever its line stands in whatever file and however it is spelled,
// makes the same call; and equal versions of a document stay two. An id only has to differ from the
// others of one document, for which 64 bits are plenty; each further 64 would take 8 bytes in every
// ledger entry, and 16 in every version's header and request's record.
std::string ImportRequestId(const VersionLine& line, int64_t number);

}  // namespace strata::cli
