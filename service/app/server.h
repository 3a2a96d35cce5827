// The life of a server: storage, documents, executor and event loop, opened and closed in order.
// The process, tests and benchmarks run the same one.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/store/store.h"
#include "schemas/transaction/transactions.h"
#include "schemas/versioning/collections.h"
#include "schemas/versioning/strategy.h"
#include "service/app/security_files.h"
#include "service/engines/engines.h"
#include "service/http/port.h"
#include "service/server/server_loop.h"

namespace strata::app {

struct ServerOptions {
  // Storage.
  std::string engine = "rocksdb";
  std::string data = "./data";
  engines::OptionValues engine_options;  // of the engine's own options, by their flags' names
  bool single_record = false;            // over a store::SingleRecordStore

  // Documents.
  std::string default_strategy{versioning::kDefaultStrategy};
  bool create_collections = true;
  int64_t collections_max = versioning::kCollectionsMaxDefault;
  size_t document_bytes_max = size_t{1} << 20;

  transaction::TransactionsOptions transactions;
  // How long the ledger tells of a commit, at least; unset: for ever.
  std::optional<std::chrono::seconds> ledger_retention;

  // Network.
  server::LoopOptions loop;
  bool insecure = false;   // listens beyond loopback without TLS
  bool reflection = true;  // tells what services there are

  // The HTTP port.
  struct Http {
    std::string listen{};              // HOST:PORT; empty: there is none
    std::string access = "read";       // or "all": whether it only reads, whatever callers may do
    std::vector<std::string> hosts{};  // other names that it is called by
    http::Limits limits{};
  };
  Http http;

  // Who may call. With a certificate, loop.credentials do not count.
  SecurityOptions security;

  int executor_threads = 4;
  std::chrono::milliseconds grace{10'000};  // for calls in progress, at the end

  // What tests replace. Outlive the server.
  const Clock* clock = &Clock::System();
  Entropy* entropy = &Entropy::System();
};

// INVALID_FIELD, naming the option as its flag without dashes; OK if a server may be started so.
// Reads the files of security.
absl::Status CheckOptions(const ServerOptions& options);

// "rocksdb", "rocksdb, single records": what stores the data.
std::string EngineText(const ServerOptions& options);

// "TLS, client certificates required, policy": how callers are met.
std::string SecurityText(const SecurityOptions& options);

// How many event loops serve if nobody says: two where strangers on other machines can connect, so
// that what one of them does to the loop that it is on leaves the others another; a Get costs a
// little more then.
int EventLoopsFor(const ServerOptions& options);

class Server {
 public:
  // Opens storage and serves. INVALID_FIELD as CheckOptions; STORE_UNAVAILABLE (the directory
  // cannot be used, the address cannot be listened on), RECORD_CORRUPT.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  // Over a store that the caller made; what is said of storage does not count.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       std::unique_ptr<store::Store> store);
  // As Shutdown.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  // Of ServerOptions::http; 0: there is none.
  int http_port() const;
  // The address of the HTTP port: "http://127.0.0.1:8080/". Empty: none.
  const std::string& http_address() const;
  // HOST:PORT that a client reaches it by.
  const std::string& address() const;

  // Reads the files of security again, now, and says in the log what came of each. Blocks while it
  // reads. Thread-safe.
  void Reload();

  // Health says NOT_SERVING, new calls are refused, calls in progress have the grace period,
  // streams end. Blocks. Once; again it does nothing.
  void Drain();
  // Whether storage failed (STORE_UNAVAILABLE of Store::Ready). Such a one is left, after Drain, by
  // ending the process: an engine may not survive being closed then. Nothing that was acknowledged
  // is lost by that.
  bool StorageFailed() const;
  // Drain, and then storage is closed. Nothing that was acknowledged is lost. Blocks. Once; again
  // it does nothing.
  void Shutdown();

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace strata::app
