// The asynchronous client of the import: one completion queue, polled by the calling thread, which
// is the cheapest shape of a gRPC client; reading and parsing happen between two polls.
#include "clients/cli/importer.h"

#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_unary_call.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "clients/cli/arguments.h"
#include "clients/cli/line_format.h"
#include "clients/client/repetition.h"

namespace strata::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How far lines are read ahead to find documents that have no call under way. Export writes
// document after document, so this many lines hold some hundred documents; bytes bound the memory.
constexpr int64_t kReadAheadLines = 8192;
constexpr size_t kReadAheadBytes = size_t{64} << 20;

// One line, ready to be sent.
struct Write {
  int64_t line = 0;
  size_t bytes = 0;
  bool is_deletion = false;
  v1::UpdateRequest update;
  v1::DeleteRequest deletion;
  int attempts = 0;
  Clock::time_point first_sent;
};

// The lines of one document that are not yet done; the first one is under way, waits for its
// repetition, or stands in the ready queue.
struct Document {
  std::deque<Write> writes;
};

// One call under way.
struct Call {
  Document* document = nullptr;
  std::string key;
  grpc::ClientContext context;
  grpc::Status status;
  v1::UpdateResponse updated;
  v1::DeleteResponse deleted;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::UpdateResponse>> update_reader;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::DeleteResponse>> delete_reader;
};

template <typename Request>
void FillWrite(const VersionLine& version, const std::string& request_id, Request& request) {
  request.set_collection(version.collection);
  request.set_id(version.id);
  request.set_request_id(request_id);
  v1::ChangeInfo& change = *request.mutable_change();
  change.set_actor(version.actor);
  change.set_on_behalf_of(version.on_behalf_of);
  change.set_reason(version.reason);
  change.mutable_labels()->insert(version.labels.begin(), version.labels.end());
  if (!version.time.empty()) {
    (*change.mutable_labels())[std::string(kTimeLabel)] = version.time;
  }
}

// The number that a deletion keeps is a label of the server's own, which it makes of this.
void TakeNewer(VersionLine& version, v1::DeleteRequest& deletion) {
  constexpr std::string_view kPrefix = "newer:";
  const auto label = version.labels.lower_bound(std::string(kPrefix));
  if (label == version.labels.end() || !label->first.starts_with(kPrefix)) return;
  int64_t value = 0;
  const char* const end = label->second.data() + label->second.size();
  const std::from_chars_result read = std::from_chars(label->second.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) return;
  v1::Newer& newer = *deletion.mutable_precondition()->mutable_newer();
  newer.set_path(label->first.substr(kPrefix.size()));
  newer.set_value(value);
  version.labels.erase(label);
}

class Importer {
 public:
  Importer(Session& session, const ImportSettings& settings, LineReader& lines,
           ImportCounts& counts)
      : session_(session),
        settings_(settings),
        lines_(lines),
        counts_(counts),
        repetition_(settings.retry_ms) {}

  ~Importer() {
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  std::optional<ImportFailure> Run(const std::function<void()>& progress);

 private:
  void StartCalls();
  bool ReadUntilReady();
  bool ReadOne();
  bool EnsureCollection(const std::string& name, int64_t line);
  void Enqueue(Write write, const VersionLine& version);
  void Start(const std::string& key);
  void AwaitSome();
  void Finish(std::unique_ptr<Call> call);
  void Succeed(const Call& call);
  bool RetryLater(const Call& call, const client::Refusal& refusal);
  void WakeDelayed();
  void Fail(int64_t line, client::Refusal refusal);
  std::string Describe(const std::string& name, v1::Strategy actual) const;

  Session& session_;
  const ImportSettings& settings_;
  LineReader& lines_;
  ImportCounts& counts_;

  grpc::CompletionQueue queue_;
  std::unordered_map<std::string, Document> documents_;  // Those with lines not yet done.
  std::deque<std::string> ready_;                        // Keys whose first line can be sent.
  std::multimap<Clock::time_point, std::string>
      delayed_;  // Keys whose first line is repeated then.
  std::unordered_map<void*, std::unique_ptr<Call>> calls_;  // Under way, by tag.
  std::set<std::string> collections_;                       // Known to exist.
  int64_t lines_ahead_ = 0;
  size_t bytes_ahead_ = 0;
  bool at_end_ = false;
  std::optional<ImportFailure> failure_;
  std::string text_;
  client::Repetition repetition_;
};

std::optional<ImportFailure> Importer::Run(const std::function<void()>& progress) {
  while (true) {
    StartCalls();
    progress();
    if (calls_.empty() && (failure_.has_value() || delayed_.empty())) return failure_;
    AwaitSome();
    WakeDelayed();
  }
}

// Calls that wait for their repetition keep their place: a server in trouble is not asked for more.
void Importer::StartCalls() {
  const auto in_flight_max = static_cast<size_t>(settings_.in_flight);
  while (!failure_.has_value() && calls_.size() + delayed_.size() < in_flight_max) {
    if (!ReadUntilReady()) return;
    const std::string key = std::move(ready_.front());
    ready_.pop_front();
    Start(key);
  }
}

// Reads ahead until some document has a line that can be sent. False: none has.
bool Importer::ReadUntilReady() {
  while (ready_.empty()) {
    const bool full = lines_ahead_ >= kReadAheadLines || bytes_ahead_ >= kReadAheadBytes;
    if (full || at_end_ || !ReadOne()) return false;
  }
  return true;
}

// Reads one line, sets at_end_, or fails (false).
bool Importer::ReadOne() {
  const absl::StatusOr<bool> more = lines_.Next(text_);
  if (!more.ok()) {
    Fail(counts_.lines + 1, client::RefusalOf(more.status()));
    return false;
  }
  at_end_ = !*more;
  if (at_end_) return false;
  const int64_t line = ++counts_.lines;
  if (text_.empty()) return true;
  absl::StatusOr<VersionLine> version = ParseVersionLine(text_);
  if (!version.ok()) {
    Fail(line, client::RefusalOf(version.status()));
    return false;
  }
  if (!settings_.collection.empty()) version->collection = settings_.collection;
  if (!EnsureCollection(version->collection, line)) return false;
  Write write;
  write.line = line;
  write.bytes = version->content.size() + text_.size() / 8;
  write.is_deletion = version->deleted;
  const std::string request_id = ImportRequestId(text_, line);
  if (version->deleted) {
    TakeNewer(*version, write.deletion);
    FillWrite(*version, request_id, write.deletion);
  } else {
    FillWrite(*version, request_id, write.update);
    write.update.set_allow_missing(true);
    write.update.set_keep_unchanged(true);
    write.update.set_omit_content(true);
    write.update.mutable_replace()->set_bson(std::move(version->content));
  }
  Enqueue(std::move(write), *version);
  return true;
}

// Makes a collection when its first line comes, if a strategy was asked for.
bool Importer::EnsureCollection(const std::string& name, int64_t line) {
  if (name.empty()) {
    Fail(line,
         client::RefusalOf(absl::InvalidArgumentError("no collection; name one: --collection")));
    return false;
  }
  if (!settings_.create.has_value() || !collections_.insert(name).second) return true;
  v1::CreateCollectionRequest request = *settings_.create;
  request.set_name(name);
  v1::CreateCollectionResponse created;
  grpc::Status status =
      session_.Call(&v1::CollectionService::Stub::CreateCollection, request, &created);
  if (status.ok()) return true;
  client::Refusal refusal = client::RefusalOf(status);
  if (refusal.reason == "COLLECTION_EXISTS") {
    v1::GetCollectionRequest get;
    v1::GetCollectionResponse existing;
    get.set_name(name);
    status = session_.Call(&v1::CollectionService::Stub::GetCollection, get, &existing);
    if (status.ok() && existing.collection().strategy() == settings_.create->strategy())
      return true;
    if (status.ok()) {
      refusal.message = Describe(name, existing.collection().strategy());
    } else {
      refusal = client::RefusalOf(status);
    }
  }
  Fail(line, std::move(refusal));
  return false;
}

std::string Importer::Describe(const std::string& name, v1::Strategy actual) const {
  return "collection " + name + " has the strategy " + StrategyName(actual) + ", not " +
         StrategyName(settings_.create->strategy());
}

void Importer::Enqueue(Write write, const VersionLine& version) {
  ++lines_ahead_;
  bytes_ahead_ += write.bytes;
  const std::string key = version.collection + '\0' + version.id;
  Document& document = documents_[key];
  document.writes.push_back(std::move(write));
  if (document.writes.size() == 1) ready_.push_back(key);
}

void Importer::Start(const std::string& key) {
  Document& document = documents_.find(key)->second;
  Write& write = document.writes.front();
  if (write.attempts++ == 0) write.first_sent = Clock::now();
  auto call = std::make_unique<Call>();
  call->document = &document;
  call->key = key;
  session_.SetDeadline(call->context);
  v1::DocumentService::Stub& stub = *session_.connection().documents;
  void* tag = call.get();
  if (write.is_deletion) {
    call->delete_reader = stub.AsyncDelete(&call->context, write.deletion, &queue_);
    call->delete_reader->Finish(&call->deleted, &call->status, tag);
  } else {
    call->update_reader = stub.AsyncUpdate(&call->context, write.update, &queue_);
    call->update_reader->Finish(&call->updated, &call->status, tag);
  }
  calls_[tag] = std::move(call);
}

// Waits until a call is answered or the next repetition is due, then takes all answers there are.
void Importer::AwaitSome() {
  Clock::time_point wake = Clock::now() + milliseconds(200);  // For the progress line.
  if (!failure_.has_value() && !delayed_.empty()) wake = std::min(wake, delayed_.begin()->first);
  auto deadline = std::chrono::system_clock::now() +
                  std::chrono::duration_cast<std::chrono::microseconds>(wake - Clock::now());
  void* tag = nullptr;
  bool ok = false;
  while (queue_.AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::GOT_EVENT) {
    auto node = calls_.extract(tag);
    Finish(std::move(node.mapped()));
    deadline = std::chrono::system_clock::time_point();  // Long past: what is there already.
  }
}

void Importer::Finish(std::unique_ptr<Call> call) {
  if (call->status.ok()) return Succeed(*call);
  client::Refusal refusal = client::RefusalOf(call->status);
  if (RetryLater(*call, refusal)) return;
  Fail(call->document->writes.front().line, std::move(refusal));
}

void Importer::Succeed(const Call& call) {
  Document& document = *call.document;
  const Write& write = document.writes.front();
  const bool replayed = write.is_deletion ? call.deleted.replayed() : call.updated.replayed();
  const bool changed = write.is_deletion ? call.deleted.changed() : call.updated.changed();
  ++(replayed ? counts_.replayed : changed ? counts_.written : counts_.unchanged);
  --lines_ahead_;
  bytes_ahead_ -= write.bytes;
  document.writes.pop_front();
  if (document.writes.empty()) {
    documents_.erase(call.key);
  } else {
    ready_.push_back(call.key);
  }
}

// True: the call will be made again.
bool Importer::RetryLater(const Call& call, const client::Refusal& refusal) {
  const Write& write = call.document->writes.front();
  if (failure_.has_value() || !refusal.IsRetryable()) return false;
  const auto next = repetition_.Next(refusal, write.attempts, write.first_sent);
  if (!next.has_value()) return false;
  ++counts_.retries;
  delayed_.emplace(*next, call.key);
  return true;
}

void Importer::WakeDelayed() {
  const Clock::time_point now = Clock::now();
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    ready_.push_back(std::move(delayed_.begin()->second));
    delayed_.erase(delayed_.begin());
  }
}

void Importer::Fail(int64_t line, client::Refusal refusal) {
  if (failure_.has_value() && failure_->line <= line) return;
  failure_ = ImportFailure{.line = line, .refusal = std::move(refusal)};
}

}  // namespace

std::optional<ImportFailure> Import(Session& session, const ImportSettings& settings,
                                    LineReader& lines, ImportCounts& counts,
                                    const std::function<void()>& progress) {
  return Importer(session, settings, lines, counts).Run(progress);
}

}  // namespace strata::cli
