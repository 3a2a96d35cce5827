// Sends the versions of a file to the server: many calls at once, those of one document in order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "clients/cli/line_stream.h"
#include "clients/cli/session.h"
#include "clients/cpp/refusal.h"
#include "strata/v1/collection_service.pb.h"

namespace strata::cli {

// What becomes of lines whose document the store has already, with versions of others.
enum class OnExisting {
  kFail,    // They stop the import, before anything of that document is written.
  kSkip,    // They are left out.
  kAppend,  // They are written on top.
};

struct ImportSettings {
  // Overrides the lines' own. Empty: theirs.
  std::string collection;
  // Collections are made so, but for the name, or must have its strategy already. Unset: by the
  // server, with its default.
  std::optional<v1::CreateCollectionRequest> create;
  // Calls under way at a time, each of another document.
  int in_flight = 64;
  // How long one line is tried again before the import stops.
  int64_t retry_ms = 60'000;
  OnExisting on_existing = OnExisting::kFail;
};

struct ImportCounts {
  int64_t lines = 0;      // Read so far.
  int64_t written = 0;    // New versions.
  int64_t replayed = 0;   // Written by an earlier import of the same lines.
  int64_t unchanged = 0;  // Answered without a version.
  int64_t skipped = 0;    // Left out, for their document is there already.
  int64_t retries = 0;    // Calls made again.

  int64_t done() const { return written + replayed + unchanged + skipped; }
};

// Why an import stopped.
struct ImportFailure {
  int64_t line = 0;  // The smallest line number that failed. 0: no line is to blame.
  client::Refusal refusal;
  bool exists = false;  // For the line's document is there already.
};

// What is to be known of where lines come from, and whether more are wanted; asked often.
struct ImportSource {
  std::function<bool()> readable;  // Reading does not wait.
  // No more calls begin, those under way are awaited, and the failure has no line.
  std::function<bool()> stopped;
};

// Imports all lines; each is a version: content replaces the document's (creating it if missing,
// writing a version even if nothing changed), "deleted": true deletes it. Each call carries
// ImportRequestId and wants the version before to be the current one. Where that fails, the
// document's history tells which of the lines it holds, by their request ids: those are not written
// again. So an import may be repeated and gone on with at any time, and whatever moved in the file
// meanwhile; versions that are not the file's are seen, and settings.on_existing says what then.
//
// A line is sent when the one before of the same document has been answered; lines of other
// documents overtake it, as far as a bounded read-ahead goes. Calls that may succeed if made again
// (Refusal::IsRetryable) are, with the same request id, until retry_ms have passed. Any other
// refusal, and a line that is not understood, stops the import: calls under way are still awaited.
//
// One thread, the caller's, drives everything. `progress` is called often.
std::optional<ImportFailure> Import(Session& session, const ImportSettings& settings,
                                    LineReader& lines, ImportCounts& counts,
                                    const std::function<void()>& progress,
                                    const ImportSource& source);

}  // namespace strata::cli
