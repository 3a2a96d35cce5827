// strata watch: what happens, as it happens.
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/interruption.h"
#include "clients/cli/message_json.h"
#include "clients/cli/options.h"
#include "clients/cli/version_cells.h"
#include "clients/client/repetition.h"
#include "clients/client/time_text.h"

namespace strata::cli {
namespace {

struct WatchOptions {
  std::string collection;
  std::string prefix;
  std::optional<int64_t> from;
  bool beginning = false;
  std::string since;
  bool snapshot = false;
  std::vector<std::string> kinds;
  FilterOption filter;
  bool content = false;
  bool changes = false;
  int64_t count = 0;  // 0: for ever
  std::string retry_for = "60s";
};

absl::Status FillStart(const WatchOptions& options, v1::WatchRequest& request) {
  if (options.from) request.set_after_position(*options.from);
  if (options.beginning) request.set_after_position(0);
  if (options.snapshot) request.mutable_snapshot();
  if (options.since.empty()) return absl::OkStatus();
  return FillTime("--since", options.since, request.mutable_start_time());
}

absl::Status FillRequest(const WatchOptions& options, v1::WatchRequest& request) {
  if (!options.collection.empty()) request.add_collections(options.collection);
  request.set_id_prefix(options.prefix);
  request.set_include_content(options.content);
  request.set_include_changes(options.changes);
  request.set_encoding(v1::ENCODING_BSON);
  for (const std::string& name : options.kinds) {
    const auto kind = ParseKind(name);
    if (!kind.ok()) return kind.status();
    request.add_kinds(*kind);
  }
  if (options.filter.given()) {
    const absl::Status status = options.filter.Fill(*request.mutable_filter());
    if (!status.ok()) return status;
  }
  return FillStart(options, request);
}

// A watch over as many streams as it takes: each goes on where the one before broke off.
class Watching {
 public:
  Watching(Session& session, v1::WatchRequest request, int64_t count, int64_t retry_ms)
      : session_(session),
        request_(std::move(request)),
        left_(count),
        endless_(count == 0),
        repetition_(retry_ms),
        table_({"COMMIT", "TIME", "COLLECTION", "ID", "VERSION", "KIND", "ACTOR", "REASON"},
               session.palette()) {
    table_.AlignRight(0);
    table_.AlignRight(4);
  }

  int Run() {
    const Interruption interruption([this] { Interrupt(); });
    grpc::Status status = OneStream();
    while (!Done() && IsBroken(status) && heard_ && AwaitNextTry(status)) status = OneStream();
    const bool done = Done();
    const int exit = done || status.ok() ? kExitOk : session_.Refuse(status);
    if (request_.start_case() == v1::WatchRequest::kAfterPosition && heard_) {
      session_.err() << "go on with: --from " << request_.after_position() << "\n";
    }
    return exit;
  }

 private:
  // A server that ends may end its calls so too.
  static bool IsBroken(const grpc::Status& status) {
    return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
           status.error_code() == grpc::StatusCode::CANCELLED;
  }

  bool Done() {
    const std::lock_guard lock(mutex_);
    return interrupted_ || (!endless_ && left_ == 0) || !session_.out();
  }

  void Interrupt() {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }

  // Until the stream ends, however it does, or enough has come.
  grpc::Status OneStream() {
    grpc::ClientContext context;
    session_.SetLongDeadline(context);
    if (!Begin(&context)) return grpc::Status::OK;
    const auto stream = session_.connection().feed->Watch(&context, request_);
    v1::WatchResponse response;
    while (!Done() && stream->Read(&response)) {
      heard_ = true;
      attempts_ = 0;
      if (Show(response)) GoOnBehind(response);
    }
    if (Done()) context.TryCancel();
    const grpc::Status status = stream->Finish();
    Begin(nullptr);
    return status;
  }

  // False: it was interrupted before.
  bool Begin(grpc::ClientContext* context) {
    const std::lock_guard lock(mutex_);
    context_ = context;
    return !interrupted_;
  }

  // False: it has been tried for long enough without hearing anything.
  bool AwaitNextTry(const grpc::Status& status) {
    if (attempts_++ == 0) trouble_since_ = client::Repetition::Clock::now();
    const auto next = repetition_.Next(client::RefusalOf(status), attempts_, trouble_since_);
    if (next) std::this_thread::sleep_until(*next);
    return next.has_value();
  }

  void GoOnBehind(const v1::WatchResponse& response) {
    if (response.has_snapshot() && !response.snapshot().complete()) {
      *request_.mutable_snapshot() = response.snapshot();
    } else {
      request_.set_after_position(response.resume_position());
    }
  }

  // Whether all of it was shown. A commit that the stream broke in comes again whole; what was
  // shown of it is left out.
  bool Show(const v1::WatchResponse& response) {
    bool all = true;
    for (const v1::Document& document : response.documents()) {
      all = all && Take();
      if (all) ShowDocument(document, response.snapshot().at_position());
    }
    for (const v1::Event& event : response.events()) {
      const std::pair place(event.position(), event.index());
      if (place <= shown_) continue;
      if (!Take()) {
        if (all) request_.set_after_position(event.position() - 1);
        all = false;
        break;
      }
      shown_ = place;
      ShowEvent(event);
    }
    table_.Flush(session_.out());
    session_.out().flush();
    return all;
  }

  // Whether one more line is wanted.
  bool Take() {
    const std::lock_guard lock(mutex_);
    if (endless_) return true;
    if (left_ == 0) return false;
    --left_;
    return true;
  }

  void ShowDocument(const v1::Document& document, int64_t position) {
    if (session_.json) {
      session_.out() << MessageJson(document) << "\n";
      return;
    }
    table_.AddRow(
        {std::to_string(position), TimeCell(document.has_update_time(), document.update_time()),
         document.collection(), document.id(), std::to_string(document.version()), "copy", "", ""});
  }

  void ShowEvent(const v1::Event& event) {
    if (session_.json) {
      session_.out() << MessageJson(event) << "\n";
      return;
    }
    const std::string place = PlaceCell(event.position(), event.index());
    if (event.type() != v1::EVENT_TYPE_VERSION) {
      table_.AddRow({place, "-", event.collection(), "-", "-", "collection deleted", "", ""});
      return;
    }
    const std::vector<std::string> version = VersionCells(event.version());
    table_.AddRow({place, version[2], event.collection(), event.id(), version[0], version[1],
                   version[3], version[4]});
    if (event.left_filter()) table_.AddNote({"(left the filter)"});
    if (event.content_missing()) table_.AddNote({"(its collection has been deleted)"});
    if (event.truncated()) table_.AddNote({"(too large to be shown: strata get has it)"});
    table_.AddNote(TransactionNote(event.version()));
    table_.AddNote(ContentLines(event.version()));
    table_.AddNote(ChangeNotes(event.version(), session_.palette()));
  }

  Session& session_;
  v1::WatchRequest request_;
  int64_t left_;  // lines, unless endless
  const bool endless_;
  client::Repetition repetition_;
  Table table_;
  std::pair<int64_t, int32_t> shown_{0, -1};  // the last event
  bool heard_ = false;                        // the server is there: it answered something
  int attempts_ = 0;                          // since the last message
  client::Repetition::Clock::time_point trouble_since_;

  std::mutex mutex_;  // guards left_ and what follows
  bool interrupted_ = false;
  grpc::ClientContext* context_ = nullptr;  // of the stream that is open
};

int RunWatch(Session& session, const WatchOptions& options) {
  const absl::StatusOr<int64_t> retry_ms = client::ParseDurationMs(options.retry_for);
  if (!retry_ms.ok()) return session.Usage(retry_ms.status());
  const int starts = (options.from ? 1 : 0) + (options.beginning ? 1 : 0) +
                     (options.since.empty() ? 0 : 1) + (options.snapshot ? 1 : 0);
  if (starts > 1) {
    return session.Usage("--from, --beginning, --since and --snapshot: name one of them");
  }
  v1::WatchRequest request;
  const absl::Status filled = FillRequest(options, request);
  if (!filled.ok()) return session.Usage(filled);
  return Watching(session, std::move(request), options.count, *retry_ms).Run();
}

}  // namespace

void AddWatchCommand(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("watch", "What happens, as it happens, in commit order");
  auto options = std::make_shared<WatchOptions>();
  command.add_option("COLLECTION", options->collection, "Only this collection");
  command.add_option("PREFIX", options->prefix, "Only documents whose id begins with this");
  command
      .add_option("--from", options->from,
                  "Begin behind this commit, as the last run said when it ended")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  command.add_flag("--beginning", options->beginning, "Begin with the first commit");
  command
      .add_option("--since", options->since, "Begin with the first commit of this time or later")
      ->type_name("TIME");
  command.add_flag("--snapshot", options->snapshot,
                   "Begin with a copy of the documents as they are, a line each");
  AddRepeated(command, "--kind", options->kinds,
              "Only created, updated, deleted or restored; may be repeated")
      ->type_name("KIND");
  options->filter.AddTo(command, "--where", "the content, or the one before,");
  command.add_flag("--content", options->content, "With the content of each version");
  command.add_flag("--changes", options->changes, "With what changed in each version");
  command.add_option("--count", options->count, "End after so many lines")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command
      .add_option("--retry-for", options->retry_for,
                  "How long to try to go on when the stream breaks; 60s unless given")
      ->type_name("TIME");
  command.footer(
      std::string("Begins now unless told otherwise, and goes on until Ctrl-C, over a new stream\n"
                  "where one breaks; each line comes once. When it ends it says where to go on.\n"
                  "Examples:\n"
                  "  strata watch books --where 'stock<5' --changes\n"
                  "  strata watch --from 4711 --json\n") +
      kTimesHelp + "\n" + kConditionsHelp);
  command.callback([&session, options] {
    session.run = [&session, options] { return RunWatch(session, *options); };
  });
}

}  // namespace strata::cli
