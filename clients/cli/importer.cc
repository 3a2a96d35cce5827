// The asynchronous client of the import: one completion queue, polled by the calling thread, which
// is the cheapest shape of a gRPC client; reading and parsing happen between two polls.
#include "clients/cli/importer.h"

#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_unary_call.h>
#include <openssl/sha.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "clients/cli/arguments.h"
#include "clients/cli/line_format.h"
#include "clients/cpp/repetition.h"

namespace strata::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How far lines are read ahead to find documents that have no call under way. Export writes
// document after document, so this many lines hold some hundred documents; bytes bound the memory.
constexpr int64_t kReadAheadLines = 8192;
constexpr size_t kReadAheadBytes = size_t{64} << 20;
constexpr int32_t kVersionsPerPage = 1000;

// One line, ready to be sent.
struct Write {
  int64_t line = 0;
  size_t bytes = 0;
  bool is_deletion = false;
  v1::UpdateRequest update;
  v1::DeleteRequest deletion;
  int attempts = 0;
  int refusals = 0;  // for the document being in another state
  Clock::time_point first_sent;

  const std::string& request_id() const {
    return is_deletion ? deletion.request_id() : update.request_id();
  }
};

// Whose versions a document has.
enum class Standing : uint8_t {
  kOurs,     // The lines', as far as is known: each wants the one before to be the current version.
  kShared,   // Others' too: lines go on top.
  kSkipped,  // Others', and lines are left out.
};

// What is remembered of a document that lines have named, to the end: so it is little.
struct Known {
  int64_t version = 0;  // of the last line that is done; 0: none is
  uint32_t lines = 0;   // read so far
  Standing standing = Standing::kOurs;
};

// What the store holds of a document.
struct Stored {
  absl::flat_hash_map<std::string, int64_t> lines;  // versions, by the request ids of imports
  int64_t head = 0;                                 // the current version; 0: it was never written
};

// The lines of one document that are not yet done; the first one is under way, waits for its
// repetition, or stands in the ready queue.
struct Document {
  uint64_t digest = 0;  // of its name
  std::deque<Write> writes;
  std::optional<Stored> stored;              // once it was looked up
  std::optional<v1::HistoryRequest> lookup;  // while that goes on
};

// A collision would give two documents one count of lines: within 10 million documents it has a
// chance of one in 400,000, and harms only those who import both of them again.
uint64_t DigestOf(const std::string& key) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest);
  uint64_t first = 0;
  std::memcpy(&first, digest, sizeof first);
  return first;
}

// One call under way: a write, or a lookup.
struct Call {
  Document* document = nullptr;
  std::string key;
  grpc::ClientContext context;
  grpc::Status status;
  v1::UpdateResponse updated;
  v1::DeleteResponse deleted;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::UpdateResponse>> update_reader;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::DeleteResponse>> delete_reader;
  v1::HistoryResponse history;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::HistoryResponse>> history_reader;
};

// Whether the document was not as the write wants it, or the write was made before: what is stored
// tells.
bool IsOfAnotherState(const client::Refusal& refusal) {
  return refusal.reason == "VERSION_CONFLICT" || refusal.reason == "REQUEST_ID_REUSED";
}

// Of a document that is the lines' alone, the version before has to be the current one.
template <typename Request>
void WantCurrent(const Known& known, Request& request) {
  request.clear_precondition();
  if (known.standing == Standing::kOurs) {
    request.mutable_precondition()->set_version(known.version);
  }
}

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
           ImportCounts& counts, const ImportSource& source)
      : session_(session),
        settings_(settings),
        lines_(lines),
        counts_(counts),
        source_(source),
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
  void Enqueue(const std::string& key, uint64_t digest, Write write);
  void Start(const std::string& key);
  void LookUp(const std::string& key, Document& document);
  bool TakeStored(const std::string& key, Document& document);
  void Send(const std::string& key, Document& document);
  void AwaitSome();
  void Finish(std::unique_ptr<Call> call);
  void FinishLookup(const Call& call);
  void Succeed(const Call& call);
  void DropFirst(Document& document);
  void Exists(const Document& document, int64_t line);
  bool RetryLater(const Call& call, const client::Refusal& refusal);
  void WakeDelayed();
  void Fail(int64_t line, client::Refusal refusal);
  std::string Describe(const std::string& name, v1::Strategy actual) const;

  Session& session_;
  const ImportSettings& settings_;
  LineReader& lines_;
  ImportCounts& counts_;
  const ImportSource& source_;

  grpc::CompletionQueue queue_;
  std::unordered_map<std::string, Document> documents_;  // Those with lines not yet done.
  std::deque<std::string> ready_;                        // Keys whose first line can be sent.
  std::multimap<Clock::time_point, std::string>
      delayed_;  // Keys whose first line is repeated then.
  std::unordered_map<void*, std::unique_ptr<Call>> calls_;  // Under way, by tag.
  std::set<std::string> collections_;                       // Known to exist.
  absl::flat_hash_map<uint64_t, Known> known_;              // By the digests of names.
  int64_t lines_ahead_ = 0;
  size_t bytes_ahead_ = 0;
  bool at_end_ = false;
  std::optional<ImportFailure> failure_;
  std::string text_;
  client::Repetition repetition_;
};

std::optional<ImportFailure> Importer::Run(const std::function<void()>& progress) {
  while (true) {
    if (source_.stopped()) Fail(0, client::RefusalOf(absl::CancelledError("interrupted")));
    StartCalls();
    progress();
    const bool is_over = failure_.has_value() || (at_end_ && delayed_.empty());
    if (calls_.empty() && is_over) return failure_;
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
    if (full || at_end_) return false;
    // Answers are awaited rather than a pipe that is silent.
    if (lines_.needs_input() && !source_.readable()) return false;
    if (!ReadOne()) return false;
  }
  return true;
}

// Reads one line, sets at_end_, or fails (false).
bool Importer::ReadOne() {
  const absl::StatusOr<bool> more = lines_.Next(text_);
  if (source_.stopped()) return false;
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
  const std::string key = version->collection + '\0' + version->id;
  const uint64_t digest = DigestOf(key);
  Known& known = known_[digest];
  ++known.lines;
  if (known.standing == Standing::kSkipped) {
    ++counts_.skipped;
    return true;
  }
  Write write;
  write.line = line;
  write.bytes = version->content.size() + text_.size() / 8;
  write.is_deletion = version->deleted;
  const std::string request_id = ImportRequestId(*version, known.lines);
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
  Enqueue(key, digest, std::move(write));
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

void Importer::Enqueue(const std::string& key, uint64_t digest, Write write) {
  ++lines_ahead_;
  bytes_ahead_ += write.bytes;
  Document& document = documents_[key];
  document.digest = digest;
  document.writes.push_back(std::move(write));
  if (document.writes.size() == 1) ready_.push_back(key);
}

void Importer::Start(const std::string& key) {
  Document& document = documents_.find(key)->second;
  const Write& write = document.writes.front();
  const Known& known = known_[document.digest];
  // A write that cannot say which version it wants is only for who knows what is there.
  const bool says_nothing =
      known.standing == Standing::kShared ||
      (known.version == 0 && write.is_deletion && write.deletion.precondition().has_newer());
  if (document.lookup.has_value() || (says_nothing && !document.stored.has_value())) {
    LookUp(key, document);
  } else if (TakeStored(key, document)) {
    Send(key, document);
  }
}

// A page of its history; FinishLookup asks for the next one.
void Importer::LookUp(const std::string& key, Document& document) {
  Write& write = document.writes.front();
  if (write.attempts++ == 0) write.first_sent = Clock::now();
  if (!document.lookup.has_value()) {
    document.stored.reset();
    v1::HistoryRequest& request = document.lookup.emplace();
    request.set_collection(write.is_deletion ? write.deletion.collection()
                                             : write.update.collection());
    request.set_id(write.is_deletion ? write.deletion.id() : write.update.id());
    request.set_oldest_first(true);
    request.set_page_size(kVersionsPerPage);
  }
  auto call = std::make_unique<Call>();
  call->document = &document;
  call->key = key;
  session_.SetDeadline(call->context);
  void* tag = call.get();
  call->history_reader =
      session_.connection().documents->AsyncHistory(&call->context, *document.lookup, &queue_);
  call->history_reader->Finish(&call->history, &call->status, tag);
  calls_[tag] = std::move(call);
}

void Importer::FinishLookup(const Call& call) {
  Document& document = *call.document;
  if (!document.stored.has_value()) document.stored.emplace();
  if (!call.status.ok()) {
    client::Refusal refusal = client::RefusalOf(call.status);
    const bool is_new = call.status.error_code() == grpc::StatusCode::NOT_FOUND;
    if (!is_new && RetryLater(call, refusal)) return;
    if (!is_new) return Fail(document.writes.front().line, std::move(refusal));
  }
  for (const v1::Version& version : call.history.versions()) {
    document.stored->head = version.version();
    if (!version.request_id().starts_with(kImportPrefix)) continue;
    document.stored->lines.emplace(version.request_id(), version.version());
  }
  if (call.history.next_page_token().empty()) {
    document.lookup.reset();
  } else {
    document.lookup->set_page_token(call.history.next_page_token());
  }
  ready_.push_back(call.key);
}

// Takes lines off that are stored already. False: none is left that is to be sent.
bool Importer::TakeStored(const std::string& key, Document& document) {
  if (!document.stored.has_value()) return true;
  const Stored& stored = *document.stored;
  Known& known = known_[document.digest];
  while (!document.writes.empty()) {
    const auto line = stored.lines.find(document.writes.front().request_id());
    if (line == stored.lines.end()) break;
    known.version = line->second;
    ++counts_.replayed;
    DropFirst(document);
  }
  if (document.writes.empty()) {
    documents_.erase(key);
    return false;
  }
  if (known.standing == Standing::kShared || known.version == stored.head) return true;
  if (settings_.on_existing == OnExisting::kAppend) {
    known.standing = Standing::kShared;
    return true;
  }
  if (settings_.on_existing == OnExisting::kFail) {
    Exists(document, document.writes.front().line);
    return false;
  }
  known.standing = Standing::kSkipped;
  counts_.skipped += static_cast<int64_t>(document.writes.size());
  while (!document.writes.empty()) DropFirst(document);
  documents_.erase(key);
  return false;
}

void Importer::Exists(const Document& document, int64_t line) {
  const Write& write = document.writes.front();
  const std::string& collection =
      write.is_deletion ? write.deletion.collection() : write.update.collection();
  const std::string& id = write.is_deletion ? write.deletion.id() : write.update.id();
  const int64_t version = known_[document.digest].version;
  const std::string head = std::to_string(document.stored->head);
  client::Refusal refusal;
  refusal.code = grpc::StatusCode::ALREADY_EXISTS;
  refusal.message =
      collection + " " + id +
      (version == 0
           ? " is there already, at version " + head + ", and not from this file"
           : " is at version " + head + ", and this line would follow version " +
                 std::to_string(version) + ": the document was changed by others, or the file was");
  Fail(line, std::move(refusal));
  if (failure_->line == line) failure_->exists = true;
}

void Importer::Send(const std::string& key, Document& document) {
  Write& write = document.writes.front();
  const Known& known = known_[document.digest];
  if (!write.is_deletion) WantCurrent(known, write.update);
  if (write.is_deletion && !write.deletion.precondition().has_newer()) {
    WantCurrent(known, write.deletion);
  }
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
  // For the progress line; and for more lines, where they come slowly.
  Clock::time_point wake = Clock::now() + milliseconds(at_end_ || !calls_.empty() ? 200 : 20);
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
  if (call->history_reader != nullptr) return FinishLookup(*call);
  if (call->status.ok()) return Succeed(*call);
  client::Refusal refusal = client::RefusalOf(call->status);
  if (RetryLater(*call, refusal)) return;
  // A second time only if others write meanwhile.
  constexpr int kRefusalsMax = 3;
  const bool may_be_looked_up = !failure_.has_value() && IsOfAnotherState(refusal) &&
                                call->document->writes.front().refusals++ < kRefusalsMax;
  if (may_be_looked_up) return LookUp(call->key, *call->document);
  Fail(call->document->writes.front().line, std::move(refusal));
}

void Importer::Succeed(const Call& call) {
  Document& document = *call.document;
  const Write& write = document.writes.front();
  const bool replayed = write.is_deletion ? call.deleted.replayed() : call.updated.replayed();
  const bool changed = write.is_deletion ? call.deleted.changed() : call.updated.changed();
  ++(replayed ? counts_.replayed : changed ? counts_.written : counts_.unchanged);
  const int64_t version =
      write.is_deletion ? call.deleted.document().version() : call.updated.document().version();
  known_[document.digest].version = version;
  if (document.stored.has_value()) {
    document.stored->head = std::max(document.stored->head, version);
  }
  DropFirst(document);
  if (document.writes.empty()) {
    documents_.erase(call.key);
  } else {
    ready_.push_back(call.key);
  }
}

void Importer::DropFirst(Document& document) {
  --lines_ahead_;
  bytes_ahead_ -= document.writes.front().bytes;
  document.writes.pop_front();
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
  failure_ = ImportFailure{.line = line, .refusal = std::move(refusal), .exists = false};
}

}  // namespace

std::optional<ImportFailure> Import(Session& session, const ImportSettings& settings,
                                    LineReader& lines, ImportCounts& counts,
                                    const std::function<void()>& progress,
                                    const ImportSource& source) {
  return Importer(session, settings, lines, counts, source).Run(progress);
}

}  // namespace strata::cli
