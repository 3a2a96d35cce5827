// Strata's client for C++. Include this, and typed.h and testing.h where needed.
//
//   auto client = strata::client::Client::Connect({.target = "127.0.0.1:50051", .actor = "ann"});
//   if (!client.ok()) …
//   auto books = client->collection("books");
//   auto written = books.Update("moby", Patch({Increment("/stock", -1)}), {.reason = "sold"});
//   if (!written.ok()) std::cerr << ErrorOf(written.status()).ToString() << "\n";
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "strata/client/collections.h"
#include "strata/client/documents.h"
#include "strata/client/enrollments.h"
#include "strata/client/error.h"
#include "strata/client/feed.h"
#include "strata/client/leases.h"
#include "strata/client/queues.h"
#include "strata/client/transactions.h"
#include "strata/client/value.h"

namespace strata::client {

// Names of files (PEM).
struct Tls {
  std::string authorities = {};  // empty: those that this machine trusts
  std::string certificate = {};  // with its key: both or neither
  std::string key = {};
};

struct ClientOptions {
  // "host:port", "host" (port 50051) or "[v6]:port".
  std::string target = "127.0.0.1:50051";
  std::optional<Tls> tls = {};  // unset: none
  std::string token = {};       // goes without TLS to this machine only
  // change.actor of each write that names none.
  std::string actor = {};
  // The deadline of one attempt; of a call that waits at the server, besides its wait.
  absl::Duration timeout = absl::Seconds(30);
  // How long after a call's first attempt the last one may begin. Zero: one attempt.
  absl::Duration retry_for = absl::Seconds(30);
  // The same as long as no connection ever stood; also how long connecting may take.
  absl::Duration connect_timeout = absl::Seconds(3);
};

struct ServerLimits {
  int64_t document_bytes = 0;
  int32_t document_depth = 0;
  int32_t document_nodes = 0;
  int64_t message_bytes = 0;
  int32_t page_size = 0;
  int32_t batch_size = 0;
  absl::Duration deadline = absl::ZeroDuration();
};

struct ServerInfo {
  std::string version = {};
  std::string commit = {};
  std::string engine = {};
  int32_t storage_format = 0;
  absl::Time start_time = absl::InfinitePast();
  bool writable = false;
  ServerLimits limits = {};
  std::vector<std::string> services = {};
};

// A connection to one server, shared by its copies and by the objects that it makes. Thread-safe.
class Client {
 public:
  // Does not wait until the server is reached. INVALID_ARGUMENT: the options contradict each other,
  // or a file cannot be read.
  static absl::StatusOr<Client> Connect(const ClientOptions& options);

  Collection collection(const std::string& name) const { return Collection(core_, name); }
  Collections collections() const { return Collections(core_); }
  Enrollments enrollments() const { return Enrollments(core_); }
  Subscriptions subscriptions() const { return Subscriptions(core_); }
  Leases leases() const { return Leases(core_); }
  Queues queues() const { return Queues(core_); }
  Transaction transaction() const { return Transaction(core_); }
  Transactions transactions() const { return Transactions(core_); }

  client::Watch Watch(const WatchOptions& options = {}) const {
    return client::Watch(core_, options);
  }
  absl::StatusOr<Feed> GetFeed() const;
  // Of every collection, unless the options name one.
  Range<AuditEntry> Audit(const AuditOptions& options = {}) const;
  absl::StatusOr<ServerInfo> GetServerInfo() const;

 private:
  explicit Client(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  std::shared_ptr<Core> core_;
};

}  // namespace strata::client
