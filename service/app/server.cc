#include "service/app/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/enrollment/enrollments.h"
#include "schemas/feed/feed.h"
#include "schemas/feed/subscriptions.h"
#include "schemas/lease/leases.h"
#include "schemas/queue/enrollment_sink.h"
#include "schemas/queue/queues.h"
#include "schemas/store/single_record_store.h"
#include "schemas/versioning/documents.h"
#include "schemas/versioning/ledger_floor.h"
#include "schemas/versioning/ledger_trimming.h"
#include "service/app/build_commit.h"
#include "service/app/executor.h"
#include "service/observability/access_log.h"
#include "service/observability/clock_watch.h"
#include "service/observability/health.h"
#include "service/observability/log.h"
#include "service/rpc/reflection.h"
#include "service/rpc/registry.h"

namespace strata::app {
namespace {

using observability::Log;
using observability::LogLevel;

struct Address {
  std::string host;
  std::string port;
};

std::optional<Address> SplitAddress(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == listen.size()) return std::nullopt;
  Address address{listen.substr(0, colon), listen.substr(colon + 1)};
  const bool digits = std::all_of(address.port.begin(), address.port.end(),
                                  [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || address.port.size() > 5 || std::stoi(address.port) > 65535) return std::nullopt;
  return address;
}

// "127.example.org" is a name, which stands for any address.
bool IsLoopback(const std::string& host) {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  return host == "localhost" || host == "[::1]";
}

absl::Status OptionError(std::string_view option, const std::string& problem) {
  return Error(ErrorReason::kInvalidField, "--" + std::string(option) + ": " + problem)
      .With("field", option);
}

std::string StrategyNames() {
  std::string names;
  for (const versioning::StrategyEntry& entry : versioning::AllStrategies()) {
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  return names;
}

versioning::DocumentsOptions ToDocumentsOptions(const ServerOptions& options) {
  versioning::DocumentsOptions made;
  made.limits.bytes_max = options.document_bytes_max;
  made.write.default_strategy = versioning::FindStrategy(options.default_strategy);
  made.write.create_collections = options.create_collections;
  made.collections_max = options.collections_max;
  return made;
}

rpc::ServerInfo ToServerInfo(const ServerOptions& options) {
  const engines::Engine* const engine = engines::FindEngine(options.engine);
  return {.version = STRATA_VERSION,
          .commit = std::string(kBuildCommit),
          .engine = options.engine,
          .storage_format = engine == nullptr ? 0 : engine->format,
          .start_time = options.clock->Now(),
          .message_bytes_max = options.loop.request_bytes_max,
          .reflection = options.reflection};
}

// What is of no use without the other.
struct Needs {
  std::string_view option;
  const std::string& value;
  std::string_view other;
  const std::string& other_value;
};

absl::Status CheckPairs(const SecurityOptions& security) {
  for (const Needs& pair :
       {Needs{"tls-certificate", security.tls_certificate, "tls-key", security.tls_key},
        Needs{"tls-key", security.tls_key, "tls-certificate", security.tls_certificate},
        Needs{"tls-client-ca", security.tls_client_ca, "tls-certificate", security.tls_certificate},
        Needs{"tls-client", security.tls_client, "tls-client-ca", security.tls_client_ca}}) {
    if (pair.value.empty() || !pair.other_value.empty()) continue;
    return OptionError(pair.option,
                       pair.value + " is of no use without --" + std::string(pair.other));
  }
  return absl::OkStatus();
}

// Addresses need not be named: the one that a connection comes to is known.
bool IsHostName(const std::string& name) {
  return !name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_';
  });
}

absl::Status CheckHttp(const ServerOptions& options) {
  const ServerOptions::Http& http = options.http;
  for (const std::string& name : http.hosts) {
    if (IsHostName(name)) continue;
    return OptionError("http-host", name +
                                        " is no name of a host, without scheme, port and path, "
                                        "such as strata.example.org");
  }
  if (http.listen.empty()) {
    if (http.access != "read" || !http.hosts.empty()) {
      return OptionError(http.hosts.empty() ? "http-access" : "http-host",
                         "is of no use without --http-listen");
    }
    return absl::OkStatus();
  }
  const std::optional<Address> address = SplitAddress(http.listen);
  if (!address) return OptionError("http-listen", "not HOST:PORT: " + http.listen);
  if (!IsLoopback(address->host) && !options.security.encrypted() && !options.insecure) {
    return OptionError("http-listen", http.listen +
                                          " is reachable from other machines and traffic is not "
                                          "encrypted; use --tls-certificate or a loopback "
                                          "address, or say --insecure");
  }
  if (!options.security.tokens.empty() && !options.security.encrypted() &&
      !IsLoopback(address->host)) {
    return OptionError("http-listen", http.listen +
                                          " would have tokens sent unencrypted; use "
                                          "--tls-certificate, or a loopback address");
  }
  if (http.access != "read" && http.access != "all") {
    return OptionError("http-access", "must be read or all, not " + http.access);
  }
  return absl::OkStatus();
}

absl::Status CheckSecurity(const SecurityOptions& security, bool loopback) {
  RETURN_IF_ERROR(CheckPairs(security));
  if (security.open && !security.policy.empty()) {
    return OptionError(
        "open",
        "allows every call to every caller, and --policy restricts them; give one of the two");
  }
  if (security.encrypted() && security.policy.empty() && !security.open) {
    return OptionError("tls-certificate",
                       "needs --policy, which gives callers permissions, or --open, which allows "
                       "every call to every caller");
  }
  if (!security.tokens.empty() && !security.encrypted() && !loopback) {
    return OptionError("tokens", security.tokens +
                                     " is of no use where tokens would be sent unencrypted; "
                                     "use --tls-certificate, or a loopback address");
  }
  if (!security.policy.empty() && security.tokens.empty() && security.tls_client_ca.empty()) {
    return OptionError("policy", security.policy +
                                     " would let no caller in, as none can prove its name; use "
                                     "--tokens or --tls-client-ca");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOptions(const ServerOptions& options) {
  const std::optional<Address> address = SplitAddress(options.loop.listener.listen);
  if (!address) return OptionError("listen", "not HOST:PORT: " + options.loop.listener.listen);
  const bool loopback = IsLoopback(address->host);
  const bool encrypted = options.security.encrypted() || options.loop.credentials != nullptr;
  if (!loopback && !encrypted && !options.insecure) {
    return OptionError("listen", options.loop.listener.listen +
                                     " is reachable from other machines and traffic is not "
                                     "encrypted; use --tls-certificate or a loopback address, or "
                                     "say --insecure");
  }
  RETURN_IF_ERROR(CheckSecurity(options.security, loopback));
  RETURN_IF_ERROR(CheckHttp(options));
  if (versioning::FindStrategy(options.default_strategy) == nullptr) {
    return OptionError("default-strategy", "no strategy " + options.default_strategy +
                                               "; there are " + StrategyNames());
  }
  if (options.document_bytes_max < 1024 ||
      options.document_bytes_max > document::Limits::kBytesCeiling) {
    return OptionError("document-bytes-max", "must be from 1024 to 2097152");
  }
  return SecurityFiles::Check(options.security, options.clock->Now());
}

std::string SecurityText(const SecurityOptions& options) {
  using Clients = server::TlsCredentials::ClientCertificates;
  std::string text = options.encrypted() ? "TLS" : "no TLS";
  if (options.client_certificates() == Clients::kOptional) text += ", client certificates optional";
  if (options.client_certificates() == Clients::kRequired) text += ", client certificates required";
  return text + (options.policy.empty() ? ", open" : ", policy");
}

std::string EngineText(const ServerOptions& options) {
  return options.engine + (options.single_record ? ", single records" : "");
}

int EventLoopsFor(const ServerOptions& options) {
  const std::optional<Address> address = SplitAddress(options.loop.listener.listen);
  const bool vouched_for = options.security.client_certificates() ==
                           server::TlsCredentials::ClientCertificates::kRequired;
  return address && !IsLoopback(address->host) && !vouched_for ? 2 : 1;
}

// Threads for what others wait for: they go on with write queues, after a pause or a large write,
// and know the time.
constexpr int kPromptThreads = 2;
// Where the engine's reads block: these wait for them.
constexpr int kPromptThreadsWhereReadsBlock = 64;
// Threads for those who follow the feed: neither do scans keep them waiting nor they anybody's
// writes. One is the tail's, one is for those who consume.
constexpr int kFeedThreads = feed::FeedOptions().turns_max + 2;

constexpr std::chrono::minutes kTrimInterval{1};
// For what those who consumed had, at the end.
constexpr std::chrono::seconds kGiveBackPatience{5};

// For callers over HTTP to hear how their calls ended.
constexpr std::chrono::milliseconds kHttpEndPatience{500};

// By the policy in use. What was ordered while no principal was known goes on until somebody orders
// it anew; a name that nobody is known to have pushed is nobody's to use.
class QueueGrants final : public queue::StandingGrants {
 public:
  explicit QueueGrants(security::Access& access) : access_(access) {}

  bool MayWriteCollection(const std::string& principal,
                          std::string_view collection) const override {
    return MayWrite(principal, {security::ResourceKind::kCollection, collection});
  }
  bool MayWriteQueue(const std::string& principal, std::string_view queue) const override {
    return MayWrite(principal, {security::ResourceKind::kQueue, queue});
  }
  absl::Status MayActFor(const std::string& principal, std::string_view name,
                         std::string_view collection) const override {
    return access_.AuthorizeActingFor({principal, ""},
                                      {security::ResourceKind::kCollection, collection}, name,
                                      "on_behalf_of", "a queue");
  }

 private:
  bool MayWrite(const std::string& principal, const security::Resource& resource) const {
    return principal.empty() ||
           access_.Permits({principal, ""}, security::Permission::kWrite, resource);
  }

  security::Access& access_;
};

// In the order of making; each is used by those below it. The executors come first because work
// that the store finishes late may still schedule more, which a stopped executor drops. There are
// three so that nothing that takes long holds up what somebody waits for: scans, verification and
// sweeps share the one, single reads and writes the other, and the third is for the feed.
struct Server::Parts {
  Parts(const ServerOptions& server_options, std::unique_ptr<store::Store> made)
      : options(server_options),
        clock_watch(*options.clock),
        access(*options.clock),
        security_files(options.security, *options.clock, access),
        executor(server_options.executor_threads),
        prompt(made->capabilities().blocking_reads ? kPromptThreadsWhereReadsBlock
                                                   : kPromptThreads),
        feed_threads(kFeedThreads),
        store(std::move(made)),
        info(ToServerInfo(options)) {}

  const ServerOptions options;
  observability::ClockWatch clock_watch;
  security::Access access;
  const QueueGrants queue_grants{access};
  SecurityFiles security_files;
  ThreadPool executor;
  ThreadPool prompt;
  ThreadPool feed_threads;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<versioning::Documents> documents;
  std::optional<enrollment::Enrollments> enrollments;
  std::optional<transaction::Transactions> transactions;
  versioning::FloorHolders floor_holders;
  std::optional<versioning::LedgerTrimmer> trimmer;
  std::optional<lease::Leases> leases;
  std::optional<feed::Feed> feed;
  std::optional<feed::Subscriptions> subscriptions;
  std::optional<queue::Queues> queues;
  std::optional<queue::EnrollmentSinks> enrollment_sinks;
  std::optional<observability::Health> health;
  std::optional<rpc::Reflection> reflection;
  const rpc::ServerInfo info;
  std::optional<rpc::Services> services;
  observability::AccessLog access_log;
  std::unique_ptr<server::ServerLoop> loop;
  std::string address;
  std::unique_ptr<http::Port> http_port;
  std::string http_address;
  bool drained = false;
  std::atomic<bool> stopping = false;

  absl::Status Serve();
  absl::Status ServeHttp();
  void Watch();
  void WatchFiles();
  void TrimLedger();
  void Drain();
  void Close();
};

// Looks each second, until its executor stops: at the clock, and whether storage takes writes.
void Server::Parts::Watch() {
  if (clock_watch.Look() < -kClockTolerance) leases->SetRight();
  health->SetWritable(store->Ready().ok());
  prompt.Schedule(observability::ClockWatch::kInterval, [this] { Watch(); });
}

// Apart from what else is watched: a file may be on a disk that does not answer.
void Server::Parts::WatchFiles() {
  security_files.Look();
  prompt.Schedule(SecurityFiles::kInterval, [this] { WatchFiles(); });
}

// Again and again, until its executor stops.
void Server::Parts::TrimLedger() {
  const absl::Status trimmed = trimmer->Trim([this] { return stopping.load(); });
  if (!trimmed.ok()) {
    Log(LogLevel::kWarning, "the ledger is not trimmed", {{"error", ToStd(trimmed.message())}});
  }
  executor.Schedule(kTrimInterval, [this] { TrimLedger(); });
}

absl::Status Server::Parts::Serve() {
  RETURN_IF_ERROR(security_files.Open());
  versioning::DocumentsOptions documents_options = ToDocumentsOptions(options);
  documents_options.write_executor = &prompt;
  documents = std::make_unique<versioning::Documents>(*store, *options.clock, *options.entropy,
                                                      executor, documents_options);
  enrollments.emplace(*documents);
  transaction::TransactionsOptions transactions_options = options.transactions;
  transactions_options.evaluations = &executor;
  transactions.emplace(*store, *documents, *options.clock, *options.entropy, prompt,
                       transactions_options);
  leases.emplace(*store, *options.clock, prompt);
  feed::FeedOptions feed_options;
  feed_options.retention = options.ledger_retention;
  feed_options.floor_holders = &floor_holders;
  feed.emplace(*store, *documents, *options.clock, feed_threads, feed_options);
  feed::SubscriptionsOptions subscriptions_options;
  subscriptions_options.consumer_age_max = options.loop.connection_age_max;
  subscriptions.emplace(*store, *feed, *leases, *options.clock, *options.entropy, feed_threads,
                        subscriptions_options);
  floor_holders.Add(
      [this](const store::Reader& reader) { return subscriptions->LowestPlace(reader); });
  queue::QueuesOptions queues_options;
  queues_options.grants = &queue_grants;
  queues_options.damaged_schedule = [](std::string_view queue, std::string_view schedule,
                                       const absl::Status& status) {
    Log(LogLevel::kError, "a schedule is damaged and does not fire; make it anew",
        {{"queue", std::string(queue)},
         {"schedule", std::string(schedule)},
         {"error", ToStd(status.message())}});
  };
  queues.emplace(*store, *options.clock, *options.entropy, prompt, queues_options);
  enrollment_sinks.emplace(*queues, *documents, *enrollments, store->capabilities(),
                           documents->limits(), executor, &queue_grants);
  const std::vector<std::string> names = rpc::ServiceNames(options.reflection);
  health.emplace(names);
  reflection.emplace(names);
  services.emplace(rpc::Services{
      *documents, *enrollments, *transactions, *leases, *feed, *subscriptions, *queues,
      *versioning::FindStrategy(options.default_strategy), *health, *reflection, access, info,
      options.loop.unary_deadline, options.loop.connection_age_max});
  // What cannot be counted now keeps nobody from reading; whoever makes a collection tries again.
  if (const absl::Status counted = documents->collections().Count(); !counted.ok()) {
    Log(LogLevel::kWarning, "collections are not counted", {{"error", ToStd(counted.message())}});
  }
  documents->collections().ResumeSweeps();
  transactions->StartSweeping();
  if (options.ledger_retention) {
    if (!store->capabilities().commit_positions) {
      return OptionError("ledger-retention",
                         "this engine numbers no commits, so it keeps no ledger");
    }
    trimmer.emplace(*store, *options.clock, *options.ledger_retention, floor_holders);
    executor.Schedule([this] { TrimLedger(); });
  }
  leases->StartSweeping();
  queues->StartBackground();
  enrollment_sinks->Start();
  Executor* const readers = store->capabilities().blocking_reads ? &prompt : nullptr;
  server::LoopOptions loop_options = options.loop;
  if (options.security.encrypted()) loop_options.credentials = security_files.credentials();
  ASSIGN_OR_RETURN(
      loop, server::ServerLoop::Start(loop_options, rpc::AllMethods(*services, options.reflection),
                                      {executor,
                                       access,
                                       store->cooperative(),
                                       {&access_log},
                                       readers,
                                       options.executor_threads}));
  address = SplitAddress(options.loop.listener.listen)->host + ":" + std::to_string(loop->port());
  if (!options.http.listen.empty()) RETURN_IF_ERROR(ServeHttp());
  Watch();
  if (security_files.any()) prompt.Schedule(SecurityFiles::kInterval, [this] { WatchFiles(); });
  health->SetServing(true);
  return absl::OkStatus();
}

absl::Status Server::Parts::ServeHttp() {
  const std::string host = SplitAddress(options.http.listen)->host;
  const http::PortOptions port_options = {
      .listen = options.http.listen,
      .loopback = IsLoopback(host),
      .reads_only = options.http.access != "all",
      .principals = !options.security.tokens.empty() || !options.security.tls_client_ca.empty(),
      .hosts = options.http.hosts,
      .limits = options.http.limits};
  http::PortParts parts;
  parts.calls = loop->calls();
  parts.version = info.version;
  parts.commit = info.commit;
  if (options.security.encrypted()) {
    parts.tls = std::make_unique<http::TlsContext>(
        options.security.client_certificates(), [this] { return security_files.certificates(); });
  }
  ASSIGN_OR_RETURN(http_port, http::Port::Start(port_options, std::move(parts)));
  http_address = (options.security.encrypted() ? "https://" : "http://") + host + ":" +
                 std::to_string(http_port->port()) + "/";
  return absl::OkStatus();
}

void Server::Parts::Drain() {
  if (std::exchange(drained, true)) return;
  if (loop != nullptr) {
    health->SetServing(false);
    if (http_port != nullptr) http_port->Drain();
    leases->StopWaiting();
    enrollment_sinks.reset();
    queues->StopWaiting();
    subscriptions->StopConsumers();
    loop->Shutdown(options.grace, [this] {
      if (http_port == nullptr) return;
      http_port->AwaitAnswers(kHttpEndPatience);
      http_port->Stop();
    });
    if (!subscriptions->AwaitGone(kGiveBackPatience)) {
      Log(LogLevel::kWarning,
          "partitions of subscriptions are not given back; others wait for them");
    }
  }
  stopping = true;
  executor.Stop();
  prompt.Stop();
  feed_threads.Stop();
}

void Server::Parts::Close() {
  Drain();
  enrollment_sinks.reset();
  queues.reset();
  subscriptions.reset();
  feed.reset();
  leases.reset();
  transactions.reset();
  documents.reset();
  store.reset();
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  engines::OpenOptions open;
  open.directory = options.data;
  open.clock = options.clock;
  open.values = options.engine_options;
  open.features.emplace(engines::kReadyAtOnceFeature);
  if (!options.security.tokens.empty() || !options.security.tls_client_ca.empty()) {
    open.features.emplace(engines::kPrincipalsFeature);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<store::Store> store, engines::OpenEngine(options.engine, open));
  if (options.single_record) {
    store = std::make_unique<store::SingleRecordStore>(std::move(store));
  }
  return Start(options, std::move(store));
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      std::unique_ptr<store::Store> store) {
  RETURN_IF_ERROR(CheckOptions(options));
  auto parts = std::make_unique<Parts>(options, std::move(store));
  std::unique_ptr<Server> server(new Server(std::move(parts)));  // closes what was opened, on error
  RETURN_IF_ERROR(server->parts_->Serve());
  Log(LogLevel::kInfo, "serving",
      {{"address", server->address()},
       {"engine", EngineText(options)},
       {"data", options.data},
       {"security", SecurityText(options.security)}});
  if (!options.http.listen.empty()) {
    Log(LogLevel::kInfo, "serving HTTP",
        {{"address", server->http_address()}, {"access", options.http.access}});
  }
  return server;
}

Server::~Server() { Shutdown(); }

int Server::port() const { return parts_->loop->port(); }

int Server::http_port() const {
  return parts_->http_port == nullptr ? 0 : parts_->http_port->port();
}

const std::string& Server::http_address() const { return parts_->http_address; }

const std::string& Server::address() const { return parts_->address; }

void Server::Reload() { parts_->security_files.Reload(); }

void Server::Drain() {
  if (parts_->drained) return;
  Log(LogLevel::kInfo, "draining");
  parts_->Drain();
}

bool Server::StorageFailed() const {
  return parts_->store != nullptr &&
         ReasonOf(parts_->store->Ready()) == ErrorReason::kStoreUnavailable;
}

void Server::Shutdown() {
  if (parts_->store == nullptr) return;
  const auto start = std::chrono::steady_clock::now();
  Drain();
  parts_->Close();
  const auto duration = std::chrono::steady_clock::now() - start;
  Log(LogLevel::kInfo, "stopped",
      {{"duration_ms",
        int64_t{std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()}}});
}

}  // namespace strata::app
