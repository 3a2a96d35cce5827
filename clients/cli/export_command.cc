// strata export.
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_unary_call.h>

#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>

#include "absl/strings/escaping.h"
#include "clients/cli/arguments.h"
#include "clients/cli/cancellation.h"
#include "clients/cli/commands.h"
#include "clients/cli/line_format.h"
#include "clients/cli/line_stream.h"
#include "clients/cli/options.h"
#include "clients/cli/progress.h"
#include "clients/cpp/extended_json.h"
#include "clients/cpp/refusal.h"
#include "clients/cpp/time_text.h"

namespace strata::cli {
namespace {

using v1::DocumentService;

constexpr int32_t kIdsPerPage = 1000;
constexpr int32_t kVersionsPerPage = 100;
// Histories asked for ahead of the one that is written. A page has at most 3 MiB, so this bounds
// the memory to some 50 MiB.
constexpr size_t kAhead = 16;

// What the server says of the version, and no import can make.
std::string EvidenceOf(const v1::Version& version) {
  std::string json = "{\"version\":" + std::to_string(version.version());
  const auto add = [&json](std::string_view name, std::string_view text) {
    if (text.empty()) return;
    json += ',';
    client::AppendJsonString(name, json);
    json += ':';
    client::AppendJsonString(text, json);
  };
  add("kind", KindName(version.kind()));
  add("commit_time",
      client::FormatTime({version.commit_time().seconds(), version.commit_time().nanos()}));
  add("request_id", version.request_id());
  add("transaction_id", version.transaction_id());
  add("content_hash", absl::BytesToHexString(version.content_hash()));
  add("chain_hash", absl::BytesToHexString(version.chain_hash()));
  return json + "}";
}

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
  // `full`: with evidence.
  Exporter(Session& session, LineWriter& lines, bool full, Cancellation& cancellation)
      : session_(session),
        lines_(lines),
        full_(full),
        cancellation_(cancellation),
        progress_(session.err(), session.terminal().err_is_terminal && !session.json) {}

  ~Exporter() {
    for (auto& history : ahead_) history->context.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  // The exit status.
  int Run(const std::string& collection);
  int FailToWrite();
  void PrintSummary();

 private:
  int RunTo(const std::string& collection);
  template <typename Method, typename Request, typename Response>
  grpc::Status Call(Method method, const Request& request, Response& response);
  void Await(PendingHistory& history);
  void Ask(const std::string& collection, const std::string& id);
  int WriteFirst();
  int WritePage(const v1::HistoryRequest& request, const v1::HistoryResponse& response);
  int Refuse(const grpc::Status& status, const std::string& where);

  Session& session_;
  LineWriter& lines_;
  const bool full_;
  Cancellation& cancellation_;
  Progress progress_;
  grpc::CompletionQueue queue_;
  std::deque<std::unique_ptr<PendingHistory>> ahead_;
  int64_t documents_ = 0;
  int64_t versions_ = 0;
};

int Exporter::Run(const std::string& collection) {
  const int exit_status = RunTo(collection);
  return cancellation_.asked() ? cancellation_.exit_status() : exit_status;
}

template <typename Method, typename Request, typename Response>
grpc::Status Exporter::Call(Method method, const Request& request, Response& response) {
  grpc::ClientContext context;
  session_.SetDeadline(context);
  const Cancellation::Call call(cancellation_, context);
  return (*session_.connection().documents.*method)(&context, request, &response);
}

// Says why, unless it is known: the end was asked for, or nobody reads what is written.
int Exporter::Refuse(const grpc::Status& status, const std::string& where) {
  progress_.Clear();
  return cancellation_.asked() ? kExitRefused : session_.Refuse(status, where);
}

int Exporter::FailToWrite() {
  progress_.Clear();
  return session_.OutputIsRead() ? session_.Fail("cannot write the export") : kExitRefused;
}

int Exporter::RunTo(const std::string& collection) {
  v1::ListRequest request;
  request.set_collection(collection);
  request.set_show_deleted(true);
  request.set_page_size(kIdsPerPage);
  request.set_encoding(v1::ENCODING_BSON);
  request.add_fields("/");  // Only ids are wanted: a member that hardly any document has.
  do {
    v1::ListResponse response;
    const grpc::Status status = Call(&DocumentService::Stub::List, request, response);
    if (!status.ok()) return Refuse(status, collection);
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

// Looks now and then whether to go on.
void Exporter::Await(PendingHistory& history) {
  while (!history.done) {
    const auto deadline = std::chrono::system_clock::now() + std::chrono::milliseconds(100);
    void* tag = nullptr;
    bool ok = false;
    if (queue_.AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::GOT_EVENT) {
      static_cast<PendingHistory*>(tag)->done = true;
    } else if (cancellation_.asked()) {
      for (auto& ahead : ahead_) ahead->context.TryCancel();
    }
  }
}

// Writes the document that was asked for first.
int Exporter::WriteFirst() {
  PendingHistory& history = *ahead_.front();
  Await(history);
  const std::string where = history.request.collection() + " " + history.request.id();
  grpc::Status status = history.status;
  while (true) {
    if (!status.ok()) return Refuse(status, where);
    const int exit_status = WritePage(history.request, history.response);
    if (exit_status != kExitOk) return exit_status;
    if (history.response.next_page_token().empty()) break;
    history.request.set_page_token(history.response.next_page_token());
    status = Call(&DocumentService::Stub::History, history.request, history.response);
  }
  ++documents_;
  ahead_.pop_front();
  return kExitOk;
}

int Exporter::WritePage(const v1::HistoryRequest& request, const v1::HistoryResponse& response) {
  for (const v1::Version& version : response.versions()) {
    if (cancellation_.asked()) return kExitRefused;
    VersionLine read = LineOf(request.collection(), request.id(), version);
    if (full_) read.evidence = EvidenceOf(version);
    const auto line = FormatVersionLine(read);
    if (!line.ok()) {
      return session_.Fail(request.collection() + " " + request.id() + ", version " +
                           std::to_string(version.version()) + ": " +
                           std::string(line.status().message()));
    }
    if (!lines_.Write(*line)) return FailToWrite();
    progress_.Show(++versions_, "versions", 0);
  }
  return kExitOk;
}

void Exporter::PrintSummary() {
  progress_.Clear();
  char duration[32];
  std::snprintf(duration, sizeof duration, "%.2f", progress_.seconds());
  const char* const interrupted = cancellation_.asked() ? "interrupted: " : "";
  if (session_.json) {
    session_.err() << "{\"summary\":{\"documents\":" << documents_ << ",\"versions\":" << versions_
                   << ",\"seconds\":" << duration
                   << ",\"complete\":" << (cancellation_.asked() ? "false" : "true") << "}}\n";
    return;
  }
  session_.err() << interrupted << WithCommas(documents_) << " documents, " << WithCommas(versions_)
                 << " versions in " << duration << " s\n";
}

struct ExportOptions {
  std::string collection;
  std::vector<std::string> more_collections;
  std::string output;
  bool full = false;
};

int ExportTo(Session& session, const ExportOptions& options, std::ostream& out, bool compress,
             Cancellation& cancellation) {
  LineWriter lines(out, compress);
  Exporter exporter(session, lines, options.full, cancellation);
  int exit_status = exporter.Run(options.collection);
  for (const std::string& collection : options.more_collections) {
    if (exit_status == kExitOk) exit_status = exporter.Run(collection);
  }
  if (exit_status == kExitOk && !lines.Finish()) exit_status = exporter.FailToWrite();
  if (exit_status == kExitOk || cancellation.asked()) exporter.PrintSummary();
  return exit_status;
}

// A file appears under its name only when it is whole; a pipe or device is written as it is.
int RunExport(Session& session, const ExportOptions& options) {
  if (options.output.empty()) {
    Cancellation cancellation;
    return ExportTo(session, options, session.out(), false, cancellation);
  }
  std::error_code no_status;
  const bool in_place = std::filesystem::exists(options.output, no_status) &&
                        !std::filesystem::is_regular_file(options.output, no_status);
  const std::string part = options.output + (in_place ? "" : ".part");
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  if (!file) return session.Usage("cannot write " + part);
  const auto remove_part = [&] {
    if (!in_place) std::remove(part.c_str());
  };
  Cancellation cancellation(nullptr, remove_part);
  int exit_status =
      ExportTo(session, options, file, options.output.ends_with(".zst"), cancellation);
  file.close();
  const bool moved =
      in_place || exit_status != kExitOk || std::rename(part.c_str(), options.output.c_str()) == 0;
  if (exit_status == kExitOk && (!file || !moved)) {
    exit_status = session.Fail("cannot write " + options.output);
  }
  if (exit_status != kExitOk) remove_part();
  return exit_status;
}

constexpr char kExportFooter[] =
    R"(Examples:
  strata export books > books.ndjson
  strata export books authors -o library.ndjson.zst

Every version of every document, deleted ones too, one a line as strata import reads them; the
documents of a collection in the order of their ids, each oldest version first. Imported again,
contents are equal to the byte and versions have the same numbers. `time` is the label of that name,
which import sets, or the commit time. A restoration comes back as an update. Versions written
during the export may or may not be in it.

Commit times, request ids and hashes come with --full, as evidence. An import reads such a file like
any other and cannot write them. Only a backup copies a history with its proof.
Ctrl-C leaves no file.)";

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
  command.add_flag("--full", options->full,
                   "With evidence: each version's number, commit time, request id and hashes");
  command.footer(kExportFooter);
  command.callback([&session, options] {
    session.run = [&session, options] { return RunExport(session, *options); };
  });
}

}  // namespace strata::cli
