// What every command has at hand: the terminal, the options that hold for all of them, the server.
#pragma once

#include <grpcpp/client_context.h>

#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "clients/cli/render.h"
#include "clients/cpp/connection.h"

namespace strata::client {
struct Refusal;
}

namespace strata::cli {

// Where a command reads and writes, and whether a person looks at it.
struct Terminal {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;  // One that draws a line anew, for progress.
  bool color = false;            // Allowed on `out`.
  // Whether whoever read `out` is gone; empty: that cannot be.
  std::function<bool()> reader_is_gone{};
  // What `in` reads; -1: nothing that a read could wait for. Long commands read it themselves, so
  // that Ctrl-C ends the wait.
  int in_descriptor = -1;
};

inline constexpr int kExitOk = 0;
inline constexpr int kExitRefused = 1;
inline constexpr int kExitUsage = 2;

class Session {
 public:
  explicit Session(Terminal terminal) : terminal_(terminal) {}

  // Set by the command line.
  static constexpr char kDefaultServer[] = "127.0.0.1:50051";
  std::string server = kDefaultServer;  // whole, HOST:PORT, from Prepare on
  client::CredentialFiles credential_files;
  std::string timeout;  // empty: not given
  bool json = false;
  // The command that was chosen; answers the exit status.
  std::function<int()> run;

  std::istream& in() { return terminal_.in; }
  std::ostream& out() { return terminal_.out; }
  std::ostream& err() { return terminal_.err; }
  // Whether what is written to `out` is taken by somebody; once it is not, `out` has failed.
  bool OutputIsRead();
  const Terminal& terminal() const { return terminal_; }
  Palette palette() const { return Palette(terminal_.color); }

  // Reads what the options say, and the files that they name; a usage error otherwise. Before the
  // first call.
  absl::Status Prepare();

  // Connects at the first use.
  client::Connection& connection();
  // Sets the deadline of one call.
  void SetDeadline(grpc::ClientContext& context) const;
  // The same for a call that takes as long as it takes: none unless --timeout was given.
  void SetLongDeadline(grpc::ClientContext& context) const;

  // One call of `method`, such as &v1::DocumentService::Stub::Get.
  template <typename Stub, typename Request, typename Response>
  grpc::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    SetDeadline(context);
    return (StubOf(static_cast<Stub*>(nullptr)).*method)(&context, request, response);
  }

  int64_t timeout_ms() const { return timeout_ms_; }

  // Says on stderr why the server refused (one JSON object with --json). `where`, if not empty,
  // stands before it: "file.ndjson:12".
  void Report(const client::Refusal& refusal, const std::string& where);
  // As Report; says too what to do, and answers kExitRefused.
  int Refuse(const grpc::Status& status, const std::string& where = "");
  int Refuse(const client::Refusal& refusal, const std::string& where = "");
  // The same for what went wrong on this side: a file, a damaged answer.
  int Fail(const std::string& message);
  // Says what was wrong with the command line, and answers kExitUsage.
  int Usage(const std::string& message);
  int Usage(const absl::Status& status) { return Usage(std::string(status.message())); }

 private:
  v1::DocumentService::Stub& StubOf(v1::DocumentService::Stub*) { return *connection().documents; }
  v1::CollectionService::Stub& StubOf(v1::CollectionService::Stub*) {
    return *connection().collections;
  }
  v1::EnrollmentService::Stub& StubOf(v1::EnrollmentService::Stub*) {
    return *connection().enrollments;
  }
  v1::TransactionService::Stub& StubOf(v1::TransactionService::Stub*) {
    return *connection().transactions;
  }
  v1::LeaseService::Stub& StubOf(v1::LeaseService::Stub*) { return *connection().leases; }
  v1::FeedService::Stub& StubOf(v1::FeedService::Stub*) { return *connection().feed; }
  v1::QueueService::Stub& StubOf(v1::QueueService::Stub*) { return *connection().queues; }
  v1::ServerService::Stub& StubOf(v1::ServerService::Stub*) { return *connection().servers; }

  Terminal terminal_;
  int64_t timeout_ms_ = 30'000;
  client::Credentials credentials_;
  std::unique_ptr<client::Connection> connection_;
};

// A refusal as one JSON object: {"code":…,"reason":…,"message":…,"metadata":{…}}.
std::string RefusalJson(const client::Refusal& refusal, const std::string& where = "");

}  // namespace strata::cli
