// QueueService of a few lines: it answers what a test told it to.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "strata/v1/queue_service.grpc.pb.h"

namespace strata::cli {

// What is set and recorded is for use while no call is under way.
class FakeQueues : public v1::QueueService::Service {
 public:
  // What the calls answer, one a page where there are pages; the others answer the first.
  std::vector<v1::Queue> queues;
  std::vector<v1::QueueMessage> messages;
  std::vector<v1::Schedule> schedules;
  std::map<std::string, v1::ApplyError> refused;  // by token
  int calls = 0;                                  // of Replay and PurgeMessages
  int calls_wanted = 1;                           // until there is no more
  grpc::Status end;                               // of all of these

  // The requests received last.
  v1::CreateQueueRequest last_create_queue;
  v1::GetQueueRequest last_get_queue;
  v1::ListQueuesRequest last_list_queues;
  v1::UpdateQueueRequest last_update_queue;
  v1::DeleteQueueRequest last_delete_queue;
  v1::PopRequest last_pop;
  v1::ReserveRequest last_reserve;
  v1::AcknowledgeRequest last_acknowledge;
  v1::RollbackRequest last_rollback;
  v1::ExtendRequest last_extend;
  v1::MoveRequest last_move;
  v1::GetMessageRequest last_get_message;
  v1::ListMessagesRequest last_list_messages;
  v1::ReplayRequest last_replay;
  v1::PurgeMessagesRequest last_purge_messages;
  v1::CreateScheduleRequest last_create_schedule;
  v1::ListSchedulesRequest last_list_schedules;
  v1::DeleteScheduleRequest last_delete_schedule;
  std::vector<std::string> acknowledged;  // by Acknowledge

  // Push: the next calls fail with these, one each, before anything is done.
  std::deque<grpc::Status> push_failures;
  std::set<std::string> bad_payloads;      // of a call that has one INVALID_ARGUMENT
  std::deque<v1::ApplyError> push_errors;  // of the next messages, one each; code 0: none
  std::vector<v1::PushedMessage> pushed;   // in their order
  v1::PushRequest last_push;
  int push_calls = 0;

  // Receive: what it sends, one for each call. An empty message is not sent: something has to be
  // said first. One that ends well does so when its caller has said all.
  struct Received {
    std::vector<v1::ReceiveResponse> messages;
    grpc::Status end;
  };
  std::deque<Received> streams;
  std::vector<v1::ReceiveRequest> said;  // to all of them

  using Context = grpc::ServerContext;
  grpc::Status CreateQueue(Context*, const v1::CreateQueueRequest* request,
                           v1::CreateQueueResponse* response) override {
    const std::lock_guard lock(mutex_);
    last_create_queue = *request;
    *response->mutable_queue() = queues.at(0);
    return end;
  }
  grpc::Status GetQueue(Context*, const v1::GetQueueRequest* request,
                        v1::GetQueueResponse* response) override {
    const std::lock_guard lock(mutex_);
    last_get_queue = *request;
    *response->mutable_queue() = queues.at(0);
    return end;
  }
  grpc::Status ListQueues(Context*, const v1::ListQueuesRequest* request,
                          v1::ListQueuesResponse* response) override {
    const std::lock_guard lock(mutex_);
    last_list_queues = *request;
    AnswerPage(*request, queues, *response->mutable_queues(), *response->mutable_next_page_token());
    return end;
  }
  grpc::Status UpdateQueue(Context*, const v1::UpdateQueueRequest* request,
                           v1::UpdateQueueResponse* response) override {
    const std::lock_guard lock(mutex_);
    last_update_queue = *request;
    *response->mutable_queue() = queues.at(0);
    return end;
  }
  grpc::Status DeleteQueue(Context*, const v1::DeleteQueueRequest* request,
                           v1::DeleteQueueResponse*) override {
    const std::lock_guard lock(mutex_);
    last_delete_queue = *request;
    return end;
  }
  grpc::Status Pop(Context*, const v1::PopRequest* request, v1::PopResponse* response) override {
    const std::lock_guard lock(mutex_);
    last_pop = *request;
    Take(*request, *response);
    return end;
  }
  grpc::Status Reserve(Context*, const v1::ReserveRequest* request,
                       v1::ReserveResponse* response) override {
    const std::lock_guard lock(mutex_);
    last_reserve = *request;
    Take(*request, *response);
    return end;
  }
  grpc::Status Acknowledge(Context*, const v1::AcknowledgeRequest* request,
                           v1::AcknowledgeResponse* response) override {
    const std::lock_guard lock(mutex_);
    last_acknowledge = *request;
    for (const std::string& token : request->tokens()) {
      acknowledged.push_back(token);
      *response->add_results() = ResultOf(token);
    }
    return end;
  }
  grpc::Status Rollback(Context*, const v1::RollbackRequest* request,
                        v1::RollbackResponse* response) override {
    const std::lock_guard lock(mutex_);
    last_rollback = *request;
    for (const std::string& token : request->tokens()) *response->add_results() = ResultOf(token);
    return end;
  }
  grpc::Status Extend(Context*, const v1::ExtendRequest* request,
                      v1::ExtendResponse* response) override {
    const std::lock_guard lock(mutex_);
    last_extend = *request;
    for (const std::string& token : request->tokens()) *response->add_results() = ResultOf(token);
    return end;
  }
  grpc::Status Move(Context*, const v1::MoveRequest* request, v1::MoveResponse* response) override {
    const std::lock_guard lock(mutex_);
    last_move = *request;
    *response->mutable_message() = messages.at(0);
    response->mutable_message()->set_queue(request->queue());
    return end;
  }
  grpc::Status GetMessage(Context*, const v1::GetMessageRequest* request,
                          v1::GetMessageResponse* response) override {
    const std::lock_guard lock(mutex_);
    last_get_message = *request;
    *response->mutable_message() = messages.at(0);
    return end;
  }
  grpc::Status ListMessages(Context*, const v1::ListMessagesRequest* request,
                            v1::ListMessagesResponse* response) override {
    const std::lock_guard lock(mutex_);
    last_list_messages = *request;
    AnswerPage(*request, messages, *response->mutable_messages(),
               *response->mutable_next_page_token());
    return end;
  }
  grpc::Status Replay(Context*, const v1::ReplayRequest* request,
                      v1::ReplayResponse* response) override {
    const std::lock_guard lock(mutex_);
    last_replay = *request;
    ++calls;
    response->set_messages(calls);
    response->set_more(calls < calls_wanted);
    return end;
  }
  grpc::Status PurgeMessages(Context*, const v1::PurgeMessagesRequest* request,
                             v1::PurgeMessagesResponse* response) override {
    const std::lock_guard lock(mutex_);
    last_purge_messages = *request;
    ++calls;
    response->set_messages(calls);
    response->set_more(calls < calls_wanted);
    return end;
  }
  grpc::Status CreateSchedule(Context*, const v1::CreateScheduleRequest* request,
                              v1::CreateScheduleResponse* response) override {
    const std::lock_guard lock(mutex_);
    last_create_schedule = *request;
    *response->mutable_schedule() = schedules.at(0);
    return end;
  }
  grpc::Status ListSchedules(Context*, const v1::ListSchedulesRequest* request,
                             v1::ListSchedulesResponse* response) override {
    const std::lock_guard lock(mutex_);
    last_list_schedules = *request;
    AnswerPage(*request, schedules, *response->mutable_schedules(),
               *response->mutable_next_page_token());
    return end;
  }
  grpc::Status DeleteSchedule(Context*, const v1::DeleteScheduleRequest* request,
                              v1::DeleteScheduleResponse*) override {
    const std::lock_guard lock(mutex_);
    last_delete_schedule = *request;
    return end;
  }

  grpc::Status Push(Context*, const v1::PushRequest* request, v1::PushResponse* response) override {
    const std::lock_guard lock(mutex_);
    ++push_calls;
    last_push = *request;
    if (!push_failures.empty()) {
      const grpc::Status failure = push_failures.front();
      push_failures.pop_front();
      return failure;
    }
    for (const v1::PushedMessage& message : request->messages()) {
      if (!bad_payloads.contains(message.payload().bson())) continue;
      return {grpc::StatusCode::INVALID_ARGUMENT, "a bad payload"};
    }
    for (const v1::PushedMessage& message : request->messages()) {
      v1::PushResult& result = *response->add_results();
      if (!push_errors.empty()) {
        const v1::ApplyError error = push_errors.front();
        push_errors.pop_front();
        if (error.code() != 0) {
          *result.mutable_error() = error;
          continue;
        }
      }
      const bool is_new = message.request_id().empty() || ids_.insert(message.request_id()).second;
      if (is_new) pushed.push_back(message);
      result.set_message_id("id" + std::to_string(pushed.size()));
      result.set_replayed(!is_new);
    }
    return end;
  }

  grpc::Status Receive(
      Context*,
      grpc::ServerReaderWriter<v1::ReceiveResponse, v1::ReceiveRequest>* caller) override {
    Received stream;
    const bool opened = Hear(*caller);
    {
      const std::lock_guard lock(mutex_);
      if (!opened || streams.empty()) return {grpc::StatusCode::INTERNAL, "no stream is left"};
      stream = streams.front();
      streams.pop_front();
    }
    if (!stream.messages.empty() || stream.end.ok()) caller->Write(v1::ReceiveResponse());
    for (const v1::ReceiveResponse& message : stream.messages) {
      if (message.message_case() != v1::ReceiveResponse::MESSAGE_NOT_SET) {
        caller->Write(message);
      } else {
        Hear(*caller);
      }
    }
    while (stream.end.ok() && Hear(*caller)) {
    }
    return stream.end;
  }

 private:
  using ReceiveCaller = grpc::ServerReaderWriter<v1::ReceiveResponse, v1::ReceiveRequest>;

  // Takes in what is said, and answers it. False: that was all.
  bool Hear(ReceiveCaller& caller) {
    v1::ReceiveRequest request;
    if (!caller.Read(&request)) return false;
    v1::ReceiveResponse answer;
    {
      const std::lock_guard lock(mutex_);
      said.push_back(request);
      const auto add = [&](const google::protobuf::RepeatedPtrField<std::string>& tokens) {
        *answer.mutable_results()->mutable_tokens() = tokens;
        for (const std::string& token : tokens) {
          *answer.mutable_results()->add_results() = ResultOf(token);
        }
      };
      if (request.has_acknowledge()) add(request.acknowledge().tokens());
      if (request.has_rollback()) add(request.rollback().tokens());
      if (request.has_extend()) add(request.extend().tokens());
    }
    if (answer.has_results()) caller.Write(answer);
    return true;
  }

  v1::TokenResult ResultOf(const std::string& token) const {
    v1::TokenResult result;
    if (const auto error = refused.find(token); error != refused.end()) {
      *result.mutable_error() = error->second;
    }
    return result;
  }

  template <typename Request, typename Response>
  void Take(const Request& request, Response& response) const {
    for (const v1::QueueMessage& message : messages) {
      if (response.messages_size() < request.count()) *response.add_messages() = message;
    }
  }

  template <typename Request, typename Item>
  static void AnswerPage(const Request& request, const std::vector<Item>& all,
                         google::protobuf::RepeatedPtrField<Item>& items, std::string& next) {
    const size_t at = request.page_token().empty() ? 0 : std::stoul(request.page_token());
    if (at < all.size()) *items.Add() = all[at];
    if (at + 1 < all.size()) next = std::to_string(at + 1);
  }

  std::mutex mutex_;
  std::set<std::string> ids_;  // request ids
};

}  // namespace strata::cli
