// strata export.
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_unary_call.h>

#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>

#include "clients/cli/commands.h"
#include "clients/cli/line_format.h"
#include "clients/cli/line_stream.h"
#include "clients/cli/options.h"
#include "clients/cli/progress.h"
#include "clients/client/refusal.h"
#include "clients/client/time_text.h"

namespace strata::cli {
namespace {

using v1::DocumentService;

constexpr int32_t kIdsPerPage = 1000;
constexpr int32_t kVersionsPerPage = 100;
// Histories asked for ahead of the one that is written. A page has at most 3 MiB, so this bounds
// the memory to some 50 MiB.
constexpr size_t kAhead = 16;

VersionLine LineOf(const std::string& collection, const std::string& id,
                   const v1::Version& version) {
  VersionLine line;
  line.collection = collection;
  line.id = id;
  line.actor = version.change().actor();
  line.on_behalf_of = version.change().on_behalf_of();
  line.reason = version.change().reason();
  line.labels.insert(version.change().labels().begin(), version.change().labels().end());
  const auto time = line.labels.find(std::string(kTimeLabel));
  if (time != line.labels.end()) {
    line.time = time->second;
    line.labels.erase(time);
  } else {
    line.time =
        client::FormatTime({version.commit_time().seconds(), version.commit_time().nanos()});
  }
  line.deleted = version.kind() == v1::VERSION_KIND_DELETED;
  line.content = version.content().bson();
  return line;
}

// The first page of one document's history, asked for ahead of its turn.
struct PendingHistory {
  v1::HistoryRequest request;
  v1::HistoryResponse response;
  grpc::ClientContext context;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::HistoryResponse>> reader;
  bool done = false;
};

// Writes collections document by document in the order of their ids, each with its versions from
// the first on. So memory is bounded, the order is always the same, and import needs nothing else.
class Exporter {
 public:
  Exporter(Session& session, LineWriter& lines)
      : session_(session),
        lines_(lines),
        progress_(session.err(), session.terminal().err_is_terminal && !session.json) {}

  ~Exporter() {
    for (auto& history : ahead_) history->context.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  int Run(const std::string& collection);
  void PrintSummary();

 private:
  void Ask(const std::string& collection, const std::string& id);
  int WriteFirst();
  int WritePage(const v1::HistoryRequest& request, const v1::HistoryResponse& response);

  Session& session_;
  LineWriter& lines_;
  Progress progress_;
  grpc::CompletionQueue queue_;
  std::deque<std::unique_ptr<PendingHistory>> ahead_;
  int64_t documents_ = 0;
  int64_t versions_ = 0;
};

int Exporter::Run(const std::string& collection) {
  v1::ListRequest request;
  request.set_collection(collection);
  request.set_show_deleted(true);
  request.set_page_size(kIdsPerPage);
  request.set_encoding(v1::ENCODING_BSON);
  request.add_fields("/");  // Only ids are wanted: a member that hardly any document has.
  do {
    v1::ListResponse response;
    const grpc::Status status = session_.Call(&DocumentService::Stub::List, request, &response);
    if (!status.ok()) return session_.Refuse(status, collection);
    for (const v1::Document& document : response.documents()) {
      Ask(collection, document.id());
      if (ahead_.size() < kAhead) continue;
      const int exit_status = WriteFirst();
      if (exit_status != kExitOk) return exit_status;
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  while (!ahead_.empty()) {
    const int exit_status = WriteFirst();
    if (exit_status != kExitOk) return exit_status;
  }
  return kExitOk;
}

void Exporter::Ask(const std::string& collection, const std::string& id) {
  auto history = std::make_unique<PendingHistory>();
  history->request.set_collection(collection);
  history->request.set_id(id);
  history->request.set_oldest_first(true);
  history->request.set_include_content(true);
  history->request.set_encoding(v1::ENCODING_BSON);
  history->request.set_page_size(kVersionsPerPage);
  session_.SetDeadline(history->context);
  history->reader =
      session_.connection().documents->AsyncHistory(&history->context, history->request, &queue_);
  history->reader->Finish(&history->response, &history->status, history.get());
  ahead_.push_back(std::move(history));
}

// Writes the document that was asked for first.
int Exporter::WriteFirst() {
  PendingHistory& history = *ahead_.front();
  void* tag = nullptr;
  bool ok = false;
  while (!history.done && queue_.Next(&tag, &ok)) static_cast<PendingHistory*>(tag)->done = true;
  const std::string where = history.request.collection() + " " + history.request.id();
  grpc::Status status = history.status;
  while (true) {
    if (!status.ok()) return session_.Refuse(status, where);
    const int exit_status = WritePage(history.request, history.response);
    if (exit_status != kExitOk) return exit_status;
    if (history.response.next_page_token().empty()) break;
    history.request.set_page_token(history.response.next_page_token());
    status = session_.Call(&DocumentService::Stub::History, history.request, &history.response);
  }
  ++documents_;
  ahead_.pop_front();
  return kExitOk;
}

int Exporter::WritePage(const v1::HistoryRequest& request, const v1::HistoryResponse& response) {
  for (const v1::Version& version : response.versions()) {
    const auto line = FormatVersionLine(LineOf(request.collection(), request.id(), version));
    if (!line.ok()) {
      return session_.Fail(request.collection() + " " + request.id() + ", version " +
                           std::to_string(version.version()) + ": " +
                           std::string(line.status().message()));
    }
    if (!lines_.Write(*line)) return session_.Fail("cannot write the export");
    progress_.Show(++versions_, "versions", 0);
  }
  return kExitOk;
}

void Exporter::PrintSummary() {
  progress_.Clear();
  if (!session_.terminal().err_is_terminal || session_.json) return;
  char duration[32];
  std::snprintf(duration, sizeof duration, "%.2f", progress_.seconds());
  session_.err() << WithCommas(documents_) << " documents, " << WithCommas(versions_)
                 << " versions in " << duration << " s\n";
}

struct ExportOptions {
  std::string collection;
  std::vector<std::string> more_collections;
  std::string output;
};

int ExportTo(Session& session, const ExportOptions& options, std::ostream& out, bool compress) {
  LineWriter lines(out, compress);
  Exporter exporter(session, lines);
  int exit_status = exporter.Run(options.collection);
  for (const std::string& collection : options.more_collections) {
    if (exit_status == kExitOk) exit_status = exporter.Run(collection);
  }
  if (exit_status != kExitOk) return exit_status;
  if (!lines.Finish()) return session.Fail("cannot write the export");
  exporter.PrintSummary();
  return kExitOk;
}

// A file appears under its name only when it is whole; a pipe or device is written as it is.
int RunExport(Session& session, const ExportOptions& options) {
  if (options.output.empty()) return ExportTo(session, options, session.out(), false);
  std::error_code no_status;
  const bool in_place = std::filesystem::exists(options.output, no_status) &&
                        !std::filesystem::is_regular_file(options.output, no_status);
  const std::string part = options.output + (in_place ? "" : ".part");
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  if (!file) return session.Usage("cannot write " + part);
  int exit_status = ExportTo(session, options, file, options.output.ends_with(".zst"));
  file.close();
  const bool moved =
      in_place || exit_status != kExitOk || std::rename(part.c_str(), options.output.c_str()) == 0;
  if (exit_status == kExitOk && (!file || !moved)) {
    exit_status = session.Fail("cannot write " + options.output);
  }
  if (exit_status != kExitOk && !in_place) std::remove(part.c_str());
  return exit_status;
}

constexpr char kFooter[] =
    R"(Examples:
  strata export books > books.ndjson
  strata export books authors -o library.ndjson.zst

Every version of every document, deleted ones too, one a line as strata import reads them; the
documents of a collection in the order of their ids, each oldest version first. Imported again,
contents are equal to the byte and versions have the same numbers. `time` is the label of that name,
which import sets, or the commit time. Request ids and hashes are not part of an export, and a
restoration comes back as an update. Versions written during the export may or may not be in it.)";

}  // namespace

void AddExportCommand(CLI::App& app, Session& session) {
  CLI::App& command =
      *app.add_subcommand("export", "Print all versions of collections, for import");
  auto options = std::make_shared<ExportOptions>();
  command.add_option("COLLECTION", options->collection, "The collection")->required();
  command.add_option("MORE", options->more_collections, "More collections");
  command
      .add_option("-o,--output", options->output,
                  "Write to this file, compressed with zstd if it ends in .zst")
      ->type_name("FILE");
  command.footer(kFooter);
  command.callback([&session, options] {
    session.run = [&session, options] { return RunExport(session, *options); };
  });
}

}  // namespace strata::cli
