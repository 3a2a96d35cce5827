// strata watch: what happens, as it happens.
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "clients/cli/arguments.h"
#include "clients/cli/commands.h"
#include "clients/cli/event_table.h"
#include "clients/cli/interruption.h"
#include "clients/cli/options.h"
#include "clients/cpp/repetition.h"
#include "clients/cpp/time_text.h"

namespace strata::cli {
namespace {

struct WatchOptions {
  std::string collection;
  std::string prefix;
  EventOptions events;
  bool snapshot = false;
  bool content = false;
  bool changes = false;
  int64_t count = 0;  // 0: for ever
  std::string retry_for = "60s";
  bool waits_for_server = false;
};

absl::Status FillRequest(const WatchOptions& options, v1::WatchRequest& request) {
  if (!options.collection.empty()) request.add_collections(options.collection);
  request.set_id_prefix(options.prefix);
  request.set_include_content(options.content);
  request.set_include_changes(options.changes);
  request.set_encoding(v1::ENCODING_BSON);
  if (options.snapshot) request.mutable_snapshot();
  return options.events.FillRequest(request);
}

// A watch over as many streams as it takes: each goes on where the one before broke off.
class Watching {
 public:
  Watching(Session& session, v1::WatchRequest request, int64_t count, int64_t retry_ms,
           bool waits_for_server)
      : session_(session),
        request_(std::move(request)),
        left_(count),
        endless_(count == 0),
        repetition_(retry_ms),
        waits_for_server_(waits_for_server),
        table_(session) {}

  int Run() {
    const Interruption interruption([this](int) { Interrupt(); });
    grpc::Status status = OneStream();
    while (!Done() && IsBroken(status) && (heard_ || waits_for_server_) && AwaitNextTry(status)) {
      status = OneStream();
    }
    const bool done = Done();
    const int exit = done || status.ok() ? kExitOk : session_.Refuse(status);
    // Of what nobody read it is not known how far that came.
    if (!session_.OutputIsRead()) return exit;
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
    if (!session_.OutputIsRead()) return true;
    const std::lock_guard lock(mutex_);
    return interrupted_ || (!endless_ && left_ == 0);
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
      if (all) table_.Add(document, response.snapshot().at_position());
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
      table_.Add(event);
    }
    table_.Flush();
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

  Session& session_;
  v1::WatchRequest request_;
  int64_t left_;  // lines, unless endless
  const bool endless_;
  client::Repetition repetition_;
  const bool waits_for_server_;
  EventTable table_;
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
  if (options.events.starts() + (options.snapshot ? 1 : 0) > 1) {
    return session.Usage("--from, --beginning, --since and --snapshot: name one of them");
  }
  v1::WatchRequest request;
  const absl::Status filled = FillRequest(options, request);
  if (!filled.ok()) return session.Usage(filled);
  return Watching(session, std::move(request), options.count, *retry_ms, options.waits_for_server)
      .Run();
}

}  // namespace

void AddWatchCommand(CLI::App& app, Session& session) {
  CLI::App& command = *app.add_subcommand("watch", "Print changes as they happen, in commit order");
  auto options = std::make_shared<WatchOptions>();
  command.add_option("COLLECTION", options->collection, "Only this collection");
  command.add_option("PREFIX", options->prefix, "Only documents whose id begins with this");
  options->events.AddTo(command);
  command.add_flag("--snapshot", options->snapshot,
                   "Begin with a copy of the documents as they are, a line each");
  command.add_flag("--content", options->content, "With the content of each version");
  command.add_flag("--changes", options->changes, "With the changes of each version");
  command.add_option("--count", options->count, "End after this number of lines")
      ->check(WholeNumber(1))
      ->type_name("N");
  command
      .add_option("--retry-for", options->retry_for,
                  "How long to try to resume a broken stream, 60s unless given; if given, also\n"
                  "to reach a server that is not up yet")
      ->each([options](const std::string&) { options->waits_for_server = true; })
      ->type_name("TIME");
  command.footer(
      std::string(
          "Begins now unless an option says otherwise, and runs until Ctrl-C, over a new stream\n"
          "if one breaks; each line comes once. At its end it prints where to continue.\n"
          "Examples:\n"
          "  strata watch books --where 'stock<5' --changes\n"
          "  strata watch --from 4711 --json\n") +
      kTimesHelp + "\n" + kConditionsHelp);
  command.callback([&session, options] {
    session.run = [&session, options] { return RunWatch(session, *options); };
  });
}

}  // namespace strata::cli
