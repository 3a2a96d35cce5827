#include "tests/fault/queue_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "clients/cpp/refusal.h"

namespace strata::fault {
namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr std::chrono::minutes kCountingPatience{10};  // of many messages
constexpr std::chrono::milliseconds kBetweenTries{10};
constexpr int64_t kAtOnce = 100;
constexpr int kPageSize = 1000;

void ExpectOk(const grpc::Status& status) {
  EXPECT_TRUE(status.ok()) << client::RefusalOf(status).ToString();
}

}  // namespace

RevivedServer::RevivedServer(std::vector<std::string> flags)
    : settings_{directory_.Join("data"), directory_.Join("log"), "127.0.0.1:0", std::move(flags)},
      process_(std::make_unique<ServerProcess>(settings_)) {
  settings_.listen = process_->address();
}

std::shared_ptr<grpc::Channel> RevivedServer::Connect() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  return grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(), arguments);
}

void RevivedServer::Kill() {
  process_->Kill();
  process_ = std::make_unique<ServerProcess>(settings_);
}

bool IsUnanswered(const grpc::Status& status) {
  return !status.ok() && client::RefusalOf(status).IsRetryable();
}

std::string ReasonOf(const grpc::Status& status) {
  const client::Refusal refusal = client::RefusalOf(status);
  return refusal.reason.empty() ? client::CodeName(refusal.code) : refusal.reason;
}

v1::Content NumberedContent(int64_t number, size_t padding) {
  v1::Content content;
  auto& fields = *content.mutable_json()->mutable_fields();
  fields["number"].set_number_value(static_cast<double>(number));
  if (padding > 0) fields["padding"].set_string_value(std::string(padding, 'x'));
  return content;
}

int64_t NumberOf(const v1::Content& content) {
  const auto& fields = content.json().fields();
  const auto number = fields.find("number");
  return number == fields.end() ? -1 : std::llround(number->second.number_value());
}

v1::PushedMessage NumberedMessage(int64_t number, size_t padding) {
  v1::PushedMessage message;
  *message.mutable_payload() = NumberedContent(number, padding);
  return message;
}

QueueClient::QueueClient(const std::shared_ptr<grpc::Channel>& channel)
    : queues_(v1::QueueService::NewStub(channel)),
      documents_(v1::DocumentService::NewStub(channel)),
      transactions_(v1::TransactionService::NewStub(channel)),
      enrollments_(v1::EnrollmentService::NewStub(channel)) {}

grpc::Status QueueClient::Answered(const std::function<grpc::Status(grpc::ClientContext&)>& call) {
  const auto end = std::chrono::system_clock::now() + kPatience;
  while (true) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(end);
    grpc::Status status = call(context);
    if (!IsUnanswered(status) || std::chrono::system_clock::now() >= end) return status;
    std::this_thread::sleep_for(kBetweenTries);
  }
}

void QueueClient::Create(const std::string& queue, const v1::QueueSettings& settings) {
  v1::CreateQueueRequest request;
  request.set_name(queue);
  *request.mutable_settings() = settings;
  v1::CreateQueueResponse response;
  ExpectOk(Call(queues(), &Queues::Stub::CreateQueue, request, response));
}

std::optional<v1::QueueStatistics> QueueClient::ExactStatistics(const std::string& queue) {
  v1::GetQueueRequest request;
  request.set_name(queue);
  v1::GetQueueResponse response;
  ExpectOk(Call(queues(), &Queues::Stub::GetQueue, request, response));
  if (!response.queue().statistics().exact()) return std::nullopt;
  return response.queue().statistics();
}

v1::QueueStatistics QueueClient::Statistics(const std::string& queue) {
  const auto end = std::chrono::steady_clock::now() + kCountingPatience;
  while (std::chrono::steady_clock::now() < end && !testing::Test::HasFailure()) {
    if (const auto statistics = ExactStatistics(queue)) return *statistics;
    std::this_thread::sleep_for(kBetweenTries);
  }
  ADD_FAILURE() << "the statistics of " << queue << " are never exact";
  return {};
}

std::vector<v1::PushResult> QueueClient::Push(const v1::PushRequest& request) {
  v1::PushResponse response;
  ExpectOk(Call(queues(), &Queues::Stub::Push, request, response));
  EXPECT_EQ(response.results_size(), request.messages_size());
  return {response.results().begin(), response.results().end()};
}

void QueueClient::PushNumbers(const std::string& queue, int64_t first, int64_t end,
                              const std::function<void(v1::PushedMessage&)>& shape) {
  while (first < end) {
    v1::PushRequest request;
    request.set_queue(queue);
    for (const int64_t begin = first; first < std::min(end, begin + kAtOnce); ++first) {
      *request.add_messages() = NumberedMessage(first);
      if (shape) shape(*request.mutable_messages(request.messages_size() - 1));
    }
    if (Push(request).empty()) return;
  }
}

std::vector<v1::QueueMessage> QueueClient::Reserve(const v1::ReserveRequest& request) {
  v1::ReserveResponse response;
  ExpectOk(Call(queues(), &Queues::Stub::Reserve, request, response));
  return {response.messages().begin(), response.messages().end()};
}

std::vector<v1::QueueMessage> QueueClient::Reserve(const std::string& queue, int count,
                                                   std::chrono::milliseconds wait) {
  v1::ReserveRequest request;
  request.set_queue(queue);
  request.set_count(count);
  request.mutable_wait()->set_seconds(wait.count() / 1000);
  request.mutable_wait()->set_nanos(static_cast<int32_t>(wait.count() % 1000) * 1'000'000);
  return Reserve(request);
}

v1::TokenResult QueueClient::Acknowledge(const std::string& token) {
  v1::AcknowledgeRequest request;
  request.add_tokens(token);
  v1::AcknowledgeResponse response;
  ExpectOk(Call(queues(), &Queues::Stub::Acknowledge, request, response));
  return response.results_size() == 1 ? response.results(0) : v1::TokenResult();
}

v1::TokenResult QueueClient::Rollback(const v1::RollbackRequest& request) {
  v1::RollbackResponse response;
  ExpectOk(Call(queues(), &Queues::Stub::Rollback, request, response));
  return response.results_size() == 1 ? response.results(0) : v1::TokenResult();
}

grpc::Status QueueClient::Commit(const v1::CommitRequest& request, v1::CommitResponse& response) {
  return Call(transactions(), &v1::TransactionService::Stub::Commit, request, response);
}

std::vector<v1::QueueMessage> QueueClient::List(const std::string& queue, v1::MessageState state) {
  std::vector<v1::QueueMessage> all;
  v1::ListMessagesRequest request;
  request.set_queue(queue);
  request.set_state(state);
  request.set_page_size(kPageSize);
  do {
    v1::ListMessagesResponse response;
    ExpectOk(Call(queues(), &Queues::Stub::ListMessages, request, response));
    all.insert(all.end(), response.messages().begin(), response.messages().end());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return all;
}

std::vector<v1::Document> QueueClient::Documents(const std::string& collection) {
  std::vector<v1::Document> all;
  v1::ListRequest request;
  request.set_collection(collection);
  request.set_page_size(kPageSize);
  do {
    v1::ListResponse response;
    ExpectOk(Call(documents(), &v1::DocumentService::Stub::List, request, response));
    all.insert(all.end(), response.documents().begin(), response.documents().end());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return all;
}

void StreamsEnd::BreakOffAll() {
  const std::lock_guard lock(mutex_);
  over_ = true;
  for (ReceiveStream* const stream : open_) stream->BreakOff();
}

void StreamsEnd::Add(ReceiveStream& stream) {
  const std::lock_guard lock(mutex_);
  open_.push_back(&stream);
  if (over_) stream.BreakOff();
}

void StreamsEnd::Remove(ReceiveStream& stream) {
  const std::lock_guard lock(mutex_);
  std::erase(open_, &stream);
}

ReceiveStream::ReceiveStream(QueueClient& client, const std::string& queue, int credits,
                             StreamsEnd* end)
    : end_(end) {
  context_.set_wait_for_ready(true);
  stream_ = client.queues().Receive(&context_);
  if (end_ != nullptr) end_->Add(*this);
  v1::ReceiveRequest request;
  v1::ReceiveRequest::Open& open = *request.mutable_open();
  open.set_queue(queue);
  open.set_credits(credits);
  stream_->Write(request);
}

ReceiveStream::~ReceiveStream() {
  if (end_ != nullptr) end_->Remove(*this);
  if (finished_) return;
  BreakOff();
  v1::ReceiveResponse response;
  while (stream_->Read(&response)) continue;
  stream_->Finish();
}

bool ReceiveStream::Acknowledge(const std::vector<std::string>& tokens) {
  v1::ReceiveRequest request;
  request.mutable_acknowledge()->mutable_tokens()->Add(tokens.begin(), tokens.end());
  return stream_->Write(request);
}

grpc::Status ReceiveStream::Leave() {
  stream_->WritesDone();
  v1::ReceiveResponse response;
  while (stream_->Read(&response)) continue;
  finished_ = true;
  return stream_->Finish();
}

int64_t Wanted(const char* variable, int64_t usual) {
  const char* const wanted = std::getenv(variable);
  return wanted == nullptr ? usual : std::atoll(wanted);
}

int64_t ResidentBytes(pid_t pid) {
  std::ifstream statm("/proc/" + std::to_string(pid) + "/statm");
  int64_t whole = 0;
  int64_t resident = 0;
  statm >> whole >> resident;
  return resident * 4096;
}

}  // namespace strata::fault
