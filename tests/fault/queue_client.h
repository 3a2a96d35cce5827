// Clients of queues of a real server that is killed under them.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "strata/v1/document_service.grpc.pb.h"
#include "strata/v1/enrollment_service.grpc.pb.h"
#include "strata/v1/queue_service.grpc.pb.h"
#include "strata/v1/transaction_service.grpc.pb.h"
#include "tests/fault/server_process.h"
#include "tests/support/temporary_directory.h"

namespace strata::fault {

// A server that has the same address and the same data in each of its lives.
class RevivedServer {
 public:
  explicit RevivedServer(std::vector<std::string> flags = {});

  // A connection of its own, which finds the server again.
  std::shared_ptr<grpc::Channel> Connect() const;
  const std::string& address() const { return settings_.listen; }
  // Of this life.
  pid_t pid() const { return process_->pid(); }

  // kill -9, and the next life.
  void Kill();
  // SIGTERM, and the exit status.
  int Stop() { return process_->Stop(); }

 private:
  test_support::TemporaryDirectory directory_;
  ServerSettings settings_;
  std::unique_ptr<ServerProcess> process_;
};

// Whether the call may be made again as it was, or was not answered.
bool IsUnanswered(const grpc::Status& status);
// Why it was refused: "RESERVATION_LOST"; the code where there is no reason.
std::string ReasonOf(const grpc::Status& status);

// {"number": 7}, and a text of so many bytes beside it if there is to be one.
v1::Content NumberedContent(int64_t number, size_t padding = 0);
// Of a message or document like that; -1: it is none.
int64_t NumberOf(const v1::Content& content);
v1::PushedMessage NumberedMessage(int64_t number, size_t padding = 0);

// Makes calls again until they are answered, for a minute at most. What goes wrong otherwise fails
// the test. Thread-safe.
class QueueClient {
 public:
  using Queues = v1::QueueService;
  explicit QueueClient(const std::shared_ptr<grpc::Channel>& channel);

  void Create(const std::string& queue, const v1::QueueSettings& settings = {});
  // None: they are being counted.
  std::optional<v1::QueueStatistics> ExactStatistics(const std::string& queue);
  // Waits until they have been counted.
  v1::QueueStatistics Statistics(const std::string& queue);
  // Give the messages request ids if they are to come once.
  std::vector<v1::PushResult> Push(const v1::PushRequest& request);
  // Numbers from `first` up to and without `end`, 100 in a call; each as `shape` leaves it.
  void PushNumbers(const std::string& queue, int64_t first, int64_t end,
                   const std::function<void(v1::PushedMessage&)>& shape = {});
  std::vector<v1::QueueMessage> Reserve(const v1::ReserveRequest& request);
  std::vector<v1::QueueMessage> Reserve(const std::string& queue, int count,
                                        std::chrono::milliseconds wait = {});
  v1::TokenResult Acknowledge(const std::string& token);
  v1::TokenResult Rollback(const v1::RollbackRequest& request);
  // Whatever the answer is.
  grpc::Status Commit(const v1::CommitRequest& request, v1::CommitResponse& response);
  // All of that state; unset: that are not finished.
  std::vector<v1::QueueMessage> List(const std::string& queue, v1::MessageState state = {});
  // All of a collection.
  std::vector<v1::Document> Documents(const std::string& collection);

  v1::QueueService::Stub& queues() { return *queues_; }
  v1::DocumentService::Stub& documents() { return *documents_; }
  v1::TransactionService::Stub& transactions() { return *transactions_; }
  v1::EnrollmentService::Stub& enrollments() { return *enrollments_; }

  // Makes a call of any service until it is answered.
  template <typename Stub, typename Request, typename Response>
  static grpc::Status Call(Stub& stub,
                           grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                        Response*),
                           const Request& request, Response& response) {
    return Answered([&](grpc::ClientContext& context) {
      response.Clear();
      return (stub.*method)(&context, request, &response);
    });
  }

 private:
  static grpc::Status Answered(const std::function<grpc::Status(grpc::ClientContext&)>& call);

  const std::unique_ptr<v1::QueueService::Stub> queues_;
  const std::unique_ptr<v1::DocumentService::Stub> documents_;
  const std::unique_ptr<v1::TransactionService::Stub> transactions_;
  const std::unique_ptr<v1::EnrollmentService::Stub> enrollments_;
};

class ReceiveStream;

// What breaks off streams in the end, those too that are opened later. Thread-safe.
class StreamsEnd {
 public:
  void BreakOffAll();

 private:
  friend class ReceiveStream;
  void Add(ReceiveStream& stream);
  void Remove(ReceiveStream& stream);

  std::mutex mutex_;
  bool over_ = false;  // guarded by mutex_, as what follows
  std::vector<ReceiveStream*> open_;
};

// One stream of messages. Used by one thread, but for BreakOff.
class ReceiveStream {
 public:
  // Waits for the server. `end`, if there is one, outlives it.
  ReceiveStream(QueueClient& client, const std::string& queue, int credits,
                StreamsEnd* end = nullptr);
  // Breaks off what has not ended.
  ~ReceiveStream();
  ReceiveStream(const ReceiveStream&) = delete;
  ReceiveStream& operator=(const ReceiveStream&) = delete;

  // The next answer; false: there is none any more.
  bool Read(v1::ReceiveResponse& response) { return stream_->Read(&response); }
  bool Acknowledge(const std::vector<std::string>& tokens);
  // As a client does that dies. On any thread.
  void BreakOff() { context_.TryCancel(); }
  // Says that no more is wanted, and takes in what still comes. How it ended.
  grpc::Status Leave();

 private:
  StreamsEnd* const end_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ReceiveRequest, v1::ReceiveResponse>> stream_;
  bool finished_ = false;
};

// The number that the variable of the environment says, or `usual`.
int64_t Wanted(const char* variable, int64_t usual);
// How much memory a process has, in bytes.
int64_t ResidentBytes(pid_t pid);

}  // namespace strata::fault
