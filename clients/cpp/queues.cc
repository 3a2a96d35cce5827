// The calls of QueueService, and the stream that hands messages out.
#include "strata/client/queues.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <list>
#include <map>
#include <unordered_map>
#include <utility>

#include "clients/cpp/duplex.h"
#include "clients/cpp/requests.h"
#include "strata/v1/queue_service.grpc.pb.h"

namespace strata::client {
namespace {

using QueueStub = v1::QueueService::Stub;

TokenResult ResultOf(const v1::TokenResult& message) {
  TokenResult result;
  result.replayed = message.replayed();
  if (message.has_error()) result.status = StatusOf(message.error());
  return result;
}

template <typename Response>
std::vector<TokenResult> ResultsOf(const Response& response) {
  std::vector<TokenResult> results;
  for (const v1::TokenResult& message : response.results()) results.push_back(ResultOf(message));
  return results;
}

// Of Acknowledge, Rollback and Extend, which do no harm when they are done twice.
template <typename Response, typename Method, typename Request>
absl::StatusOr<std::vector<TokenResult>> CallOfTokens(Core& core, Method method, Request request,
                                                      const std::vector<std::string>& tokens) {
  request.mutable_tokens()->Assign(tokens.begin(), tokens.end());
  Response response;
  absl::Status status = core.Call(method, request, &response);
  if (!status.ok()) return status;
  return ResultsOf(response);
}

template <typename Response>
absl::StatusOr<std::vector<QueueMessage>> MessagesOf(const Response& response) {
  std::vector<QueueMessage> messages;
  for (const v1::QueueMessage& message : response.messages()) {
    absl::StatusOr<QueueMessage> read = ReadMessage<QueueMessage>(message);
    if (!read.ok()) return read.status();
    messages.push_back(*std::move(read));
  }
  return messages;
}

absl::StatusOr<Queue> QueueOf(const absl::Status& status, const v1::Queue& queue) {
  if (!status.ok()) return status;
  return ReadMessage<Queue>(queue);
}

}  // namespace

// What was asked and not answered when a stream broke is asked again over the next one: a token
// proves its delivery whichever stream it came by. An answer names the token but not what was asked
// of it, and those to different questions come in any order; so of each token one thing is asked
// after the other.
class Receiver::Body : public Duplex<v1::ReceiveRequest, v1::ReceiveResponse> {
 public:
  using Answer = absl::StatusOr<TokenResult>;

  Body(std::shared_ptr<Core> core, const std::string& queue, const ReceiveOptions& options)
      : Duplex(std::move(core)) {
    v1::ReceiveRequest::Open& open = *open_.mutable_open();
    status_ = FillRequest(*core_, options, open);
    open.set_queue(queue);
    Start();
  }
  ~Body() override {
    Close();
    Stop();
  }

  std::optional<QueueMessage> Next(absl::Duration patience) {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return over_ || closing_ || !messages_.empty(); };
    if (patience == absl::InfiniteDuration()) {
      changed_.wait(lock, ready);
    } else if (!changed_.wait_for(lock, absl::ToChronoMicroseconds(patience), ready)) {
      return std::nullopt;
    }
    if (over_ || closing_) return std::nullopt;
    QueueMessage message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }

  std::future<Answer> Ask(const std::string& token, v1::ReceiveRequest request) {
    const std::lock_guard lock(mutex_);
    std::promise<Answer> promise;
    std::future<Answer> answer = promise.get_future();
    if (over_ || closing_) {
      promise.set_value(absl::FailedPreconditionError("the receiver is closed"));
      return answer;
    }
    questions_.push_back({.token = token,
                          .request = std::move(request),
                          .begun = Attempts::Clock::now(),
                          .answer = std::move(promise)});
    std::deque<Questions::iterator>& row = rows_[token];
    row.push_back(std::prev(questions_.end()));
    ++unsaid_;
    if (row.size() == 1) Say(*row.front());
    changed_.notify_all();
    return answer;
  }

  void Close() {
    std::unique_lock lock(mutex_);
    closing_ = true;
    changed_.notify_all();
    // Not for ever: a server that does not answer must not keep whoever wants to leave.
    if (!changed_.wait_for(lock, kClosePatience, [this] { return over_; })) {
      lock.unlock();
      Stop();
    }
  }

  absl::Status status() {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  static constexpr std::chrono::seconds kClosePatience{10};

  struct Question {
    std::string token;
    v1::ReceiveRequest request;
    Attempts::Clock::time_point begun;
    bool said = false;
    bool repeated = false;
    int failures = 0;
    std::promise<Answer> answer = {};
  };
  using Questions = std::list<Question>;

  std::unique_ptr<Stream> Open(grpc::ClientContext* context) override {
    return core_->connection().queues->Receive(context);
  }

  void Opened() override {
    // They come again, with tokens that count.
    messages_.clear();
    words_ = {open_};
    again_.clear();
    unsaid_ = questions_.size();
    for (Question& question : questions_) {
      question.repeated = question.repeated || question.said;
      question.said = false;
      if (&*rows_.at(question.token).front() == &question) Say(question);
    }
  }

  void Say(Question& question) {
    question.said = true;
    --unsaid_;
    words_.push_back(question.request);
  }

  void Received(v1::ReceiveResponse& response) override {
    Succeeded();
    for (const v1::QueueMessage& message : response.messages().messages()) {
      absl::StatusOr<QueueMessage> read = ReadMessage<QueueMessage>(message);
      if (read.ok()) {
        messages_.push_back(*std::move(read));
      } else {
        status_ = read.status();
      }
    }
    const v1::ReceiveResponse::Results& results = response.results();
    const int count = std::min(results.tokens_size(), results.results_size());
    for (int i = 0; i < count; ++i) Settle(results.tokens(i), results.results(i));
  }

  void Settle(const std::string& token, const v1::TokenResult& message) {
    const auto row = rows_.find(token);
    if (row == rows_.end() || !row->second.front()->said) return;
    Question& question = *row->second.front();
    if (message.has_error() && IsToBeSaidAgain(question, RefusalOf(message.error()))) return;
    TokenResult result = ResultOf(message);
    // It was finished by the first time of asking, and is kept no longer.
    if (question.repeated && question.request.has_acknowledge() &&
        ReasonOf(result.status) == Reason::kMessageNotFound) {
      result = {.replayed = true, .status = absl::OkStatus()};
    }
    question.answer.set_value(std::move(result));
    questions_.erase(row->second.front());
    row->second.pop_front();
    if (row->second.empty()) {
      rows_.erase(row);
    } else {
      Say(*row->second.front());
    }
  }

  // Whether it may help, and there is time left. It then follows over the same stream, as its
  // message is reserved with that.
  bool IsToBeSaidAgain(Question& question, const Refusal& refusal) {
    if (!refusal.IsRetryablePart()) return false;
    const auto next = repetition_.Next(refusal, question.failures + 1, question.begun);
    if (!next.has_value()) return false;
    ++question.failures;
    question.repeated = true;
    question.said = false;
    ++unsaid_;
    again_.emplace(*next, question.token);
    return true;
  }

  bool HasWrite() override {
    const auto now = Attempts::Clock::now();
    for (; !again_.empty() && again_.begin()->first <= now; again_.erase(again_.begin())) {
      Say(*rows_.at(again_.begin()->second).front());
    }
    return !words_.empty();
  }
  std::optional<Attempts::Clock::time_point> NextWrite() override {
    if (again_.empty()) return std::nullopt;
    return again_.begin()->first;
  }
  v1::ReceiveRequest TakeWrite() override {
    v1::ReceiveRequest word = std::move(words_.front());
    words_.pop_front();
    return word;
  }
  bool WantsEnd() override { return closing_ && unsaid_ == 0; }
  // What was refused behind the half-close is said again over another stream.
  bool Ends(bool) override { return !status_.ok() || (closing_ && questions_.empty()); }
  void Over() override {
    for (Question& question : questions_) {
      Refusal refusal;
      refusal.code = grpc::StatusCode::UNAVAILABLE;
      refusal.message = "the stream ended before the answer";
      question.answer.set_value(StatusOf(refusal, /*outcome_unknown=*/true));
    }
    questions_.clear();
    rows_.clear();
  }

  v1::ReceiveRequest open_;
  Repetition repetition_{core_->retry_ms()};
  bool closing_ = false;
  std::deque<v1::ReceiveRequest> words_;
  std::deque<QueueMessage> messages_;
  Questions questions_;  // in the order in which they were asked
  std::unordered_map<std::string, std::deque<Questions::iterator>>
      rows_;                                                       // by token; none is empty
  std::multimap<Attempts::Clock::time_point, std::string> again_;  // when, of which token
  size_t unsaid_ = 0;
};

Receiver::Receiver(std::shared_ptr<Core> core, const std::string& queue,
                   const ReceiveOptions& options)
    : body_(std::make_unique<Body>(std::move(core), queue, options)) {}
Receiver::Receiver(Receiver&&) noexcept = default;
Receiver& Receiver::operator=(Receiver&&) noexcept = default;
Receiver::~Receiver() = default;
std::optional<QueueMessage> Receiver::Next(absl::Duration patience) {
  return body_->Next(patience);
}
std::future<absl::StatusOr<TokenResult>> Receiver::Acknowledge(const QueueMessage& message) {
  v1::ReceiveRequest request;
  request.mutable_acknowledge()->add_tokens(message.token);
  return body_->Ask(message.token, std::move(request));
}
std::future<absl::StatusOr<TokenResult>> Receiver::Rollback(const QueueMessage& message,
                                                            const RollbackOptions& options) {
  v1::ReceiveRequest request;
  // There is nothing in these options that cannot be sent.
  WriteMessage(options, *request.mutable_rollback()).IgnoreError();
  request.mutable_rollback()->add_tokens(message.token);
  return body_->Ask(message.token, std::move(request));
}
std::future<absl::StatusOr<TokenResult>> Receiver::Extend(const QueueMessage& message,
                                                          const ExtendOptions& options) {
  v1::ReceiveRequest request;
  WriteMessage(options, *request.mutable_extend()).IgnoreError();
  request.mutable_extend()->add_tokens(message.token);
  return body_->Ask(message.token, std::move(request));
}
void Receiver::Close() { body_->Close(); }
absl::Status Receiver::status() const { return body_->status(); }

absl::StatusOr<Schedule> Schedules::Create(const std::string& queue, const std::string& name,
                                           const CreateScheduleOptions& options) const {
  v1::CreateScheduleRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_queue(queue);
  request.set_name(name);
  v1::CreateScheduleResponse response;
  if (status.ok()) status = core_->Call(&QueueStub::CreateSchedule, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<Schedule>(response.schedule());
}

Range<Schedule> Schedules::List(const std::string& queue,
                                const ListSchedulesOptions& options) const {
  v1::ListSchedulesRequest request;
  absl::Status filled = FillRequest(*core_, options, request);
  request.set_queue(queue);
  return Pages<Schedule>(
      core_, &QueueStub::ListSchedules, std::move(request), std::move(filled),
      [](const auto& response) -> auto& { return response.schedules(); });
}

absl::Status Schedules::Delete(const std::string& queue, const std::string& name) const {
  v1::DeleteScheduleRequest request;
  request.set_queue(queue);
  request.set_name(name);
  v1::DeleteScheduleResponse response;
  return core_->Call(&QueueStub::DeleteSchedule, request, &response);
}

absl::StatusOr<Queue> Queues::Create(const std::string& name, const QueueSettings& settings) const {
  v1::CreateQueueRequest request;
  request.set_name(name);
  absl::Status status = WriteMessage(settings, *request.mutable_settings());
  v1::CreateQueueResponse response;
  if (status.ok()) status = core_->Call(&QueueStub::CreateQueue, request, &response);
  return QueueOf(status, response.queue());
}

absl::StatusOr<Queue> Queues::Get(const std::string& name) const {
  v1::GetQueueRequest request;
  request.set_name(name);
  v1::GetQueueResponse response;
  const absl::Status status = core_->Call(&QueueStub::GetQueue, request, &response);
  return QueueOf(status, response.queue());
}

Range<Queue> Queues::List(const ListQueuesOptions& options) const {
  v1::ListQueuesRequest request;
  absl::Status filled = FillRequest(*core_, options, request);
  return Pages<Queue>(
      core_, &QueueStub::ListQueues, std::move(request), std::move(filled),
      [](const auto& response) -> auto& { return response.queues(); });
}

absl::StatusOr<Queue> Queues::Update(const std::string& name, const QueueSettings& settings,
                                     const std::vector<std::string>& members) const {
  v1::UpdateQueueRequest request;
  request.set_name(name);
  absl::Status status = WriteMessage(settings, *request.mutable_settings());
  request.mutable_update_mask()->mutable_paths()->Assign(members.begin(), members.end());
  v1::UpdateQueueResponse response;
  if (status.ok()) status = core_->Call(&QueueStub::UpdateQueue, request, &response);
  return QueueOf(status, response.queue());
}

absl::Status Queues::Delete(const std::string& name, const DeleteQueueOptions& options) const {
  v1::DeleteQueueRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_name(name);
  v1::DeleteQueueResponse response;
  if (status.ok()) status = core_->Call(&QueueStub::DeleteQueue, request, &response);
  return status;
}

absl::StatusOr<std::vector<PushResult>> Queues::Push(const std::string& queue,
                                                     std::vector<PushedMessage> messages) const {
  v1::PushRequest request;
  request.set_queue(queue);
  absl::Status status;
  for (PushedMessage& message : messages) {
    if (message.request_id.empty()) message.request_id = UuidText(NewUuid());
    status.Update(WriteMessage(message, *request.add_messages()));
  }
  v1::PushResponse response;
  if (status.ok()) status = core_->Call(&QueueStub::Push, request, &response);
  if (!status.ok()) return status;
  std::vector<PushResult> results;
  for (const v1::PushResult& message : response.results()) {
    PushResult result{.message_id = message.message_id(), .replayed = message.replayed()};
    if (message.has_error()) result.status = StatusOf(message.error());
    results.push_back(std::move(result));
  }
  return results;
}

absl::StatusOr<PushResult> Queues::Push(const std::string& queue, PushedMessage message) const {
  std::vector<PushedMessage> messages;
  messages.push_back(std::move(message));
  absl::StatusOr<std::vector<PushResult>> results = Push(queue, std::move(messages));
  if (!results.ok()) return results.status();
  if (results->size() != 1) return absl::InternalError("the server's answer is damaged");
  if (!results->front().status.ok()) return results->front().status;
  return std::move(results->front());
}

absl::StatusOr<std::vector<QueueMessage>> Queues::Pop(const std::string& queue,
                                                      const PopOptions& options) const {
  v1::PopRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_queue(queue);
  v1::PopResponse response;
  const absl::Duration wait = options.wait.value_or(absl::ZeroDuration());
  if (status.ok()) status = core_->Call(&QueueStub::Pop, request, &response, wait);
  if (!status.ok()) return status;
  return MessagesOf(response);
}

absl::StatusOr<std::vector<QueueMessage>> Queues::Reserve(const std::string& queue,
                                                          const ReserveOptions& options) const {
  v1::ReserveRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_queue(queue);
  v1::ReserveResponse response;
  const absl::Duration wait = options.wait.value_or(absl::ZeroDuration());
  if (status.ok()) status = core_->Call(&QueueStub::Reserve, request, &response, wait);
  if (!status.ok()) return status;
  return MessagesOf(response);
}

absl::StatusOr<std::vector<TokenResult>> Queues::Acknowledge(
    const std::vector<std::string>& tokens) const {
  return CallOfTokens<v1::AcknowledgeResponse>(*core_, &QueueStub::Acknowledge,
                                               v1::AcknowledgeRequest(), tokens);
}

absl::StatusOr<std::vector<TokenResult>> Queues::Rollback(const std::vector<std::string>& tokens,
                                                          const RollbackOptions& options) const {
  v1::RollbackRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  if (!status.ok()) return status;
  return CallOfTokens<v1::RollbackResponse>(*core_, &QueueStub::Rollback, std::move(request),
                                            tokens);
}

absl::StatusOr<std::vector<TokenResult>> Queues::Extend(const std::vector<std::string>& tokens,
                                                        const ExtendOptions& options) const {
  v1::ExtendRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  if (!status.ok()) return status;
  return CallOfTokens<v1::ExtendResponse>(*core_, &QueueStub::Extend, std::move(request), tokens);
}

absl::StatusOr<QueueMessage> Queues::Move(const std::string& token, const std::string& queue,
                                          const MoveOptions& options) const {
  v1::MoveRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_token(token);
  request.set_queue(queue);
  v1::MoveResponse response;
  if (status.ok()) status = core_->Call(&QueueStub::Move, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<QueueMessage>(response.message());
}

Receiver Queues::Receive(const std::string& queue, const ReceiveOptions& options) const {
  return Receiver(core_, queue, options);
}

absl::StatusOr<QueueMessage> Queues::Message(const std::string& queue,
                                             const std::string& message_id) const {
  v1::GetMessageRequest request;
  request.set_queue(queue);
  request.set_message_id(message_id);
  request.set_encoding(v1::ENCODING_BSON);
  v1::GetMessageResponse response;
  absl::Status status = core_->Call(&QueueStub::GetMessage, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<QueueMessage>(response.message());
}

Range<QueueMessage> Queues::Messages(const std::string& queue,
                                     const ListMessagesOptions& options) const {
  v1::ListMessagesRequest request;
  absl::Status filled = FillRequest(*core_, options, request);
  request.set_queue(queue);
  return Pages<QueueMessage>(
      core_, &QueueStub::ListMessages, std::move(request), std::move(filled),
      [](const auto& response) -> auto& { return response.messages(); });
}

absl::StatusOr<Swept> Queues::Replay(const std::string& queue, const ReplayOptions& options) const {
  v1::ReplayRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_queue(queue);
  v1::ReplayResponse response;
  if (status.ok()) status = core_->Call(&QueueStub::Replay, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<Swept>(response);
}

absl::StatusOr<Swept> Queues::Purge(const std::string& queue,
                                    const PurgeMessagesOptions& options) const {
  v1::PurgeMessagesRequest request;
  absl::Status status = FillRequest(*core_, options, request);
  request.set_queue(queue);
  v1::PurgeMessagesResponse response;
  if (status.ok()) status = core_->Call(&QueueStub::PurgeMessages, request, &response);
  if (!status.ok()) return status;
  return ReadMessage<Swept>(response);
}

}  // namespace strata::client
