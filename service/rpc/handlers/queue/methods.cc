// The methods of strata.v1.QueueService. The handler of each lies in the file of its name.
#include "service/rpc/queue_messages.h"
#include "service/rpc/rows.h"

namespace strata::rpc::queue_service {

AnswersLater<wire::CreateQueueRequest, wire::CreateQueueResponse> CreateQueue;
Answers<wire::GetQueueRequest, wire::GetQueueResponse> GetQueue;
Answers<wire::ListQueuesRequest, wire::ListQueuesResponse> ListQueues;
AnswersLater<wire::UpdateQueueRequest, wire::UpdateQueueResponse> UpdateQueue;
AnswersLater<wire::DeleteQueueRequest, wire::DeleteQueueResponse> DeleteQueue;
AnswersLater<wire::PushRequest, wire::PushResponse> Push;
AnswersLater<wire::PopRequest, wire::PopResponse> Pop;
AnswersLater<wire::ReserveRequest, wire::ReserveResponse> Reserve;
AnswersLater<wire::AcknowledgeRequest, wire::AcknowledgeResponse> Acknowledge;
AnswersLater<wire::RollbackRequest, wire::RollbackResponse> Rollback;
AnswersLater<wire::ExtendRequest, wire::ExtendResponse> Extend;
AnswersLater<wire::MoveRequest, wire::MoveResponse> Move;
OpensStream<wire::ReceiveRequest> OpenReceive;
Answers<wire::GetMessageRequest, wire::GetMessageResponse> GetMessage;
Answers<wire::ListMessagesRequest, wire::ListMessagesResponse> ListMessages;
AnswersLater<wire::ReplayRequest, wire::ReplayResponse> Replay;
AnswersLater<wire::PurgeMessagesRequest, wire::PurgeMessagesResponse> PurgeMessages;
AnswersLater<wire::CreateScheduleRequest, wire::CreateScheduleResponse> CreateSchedule;
Answers<wire::ListSchedulesRequest, wire::ListSchedulesResponse> ListSchedules;
AnswersLater<wire::DeleteScheduleRequest, wire::DeleteScheduleResponse> DeleteSchedule;

// ListQueues leaves out what may not be read. What takes tokens, and Receive, ask for *write* on
// what each message names.
std::vector<server::Method> Methods(Rows rows) {
  rows.Add(CreateQueue);
  rows.AddScan(GetQueue);
  rows.AddScan(ListQueues);
  rows.Add(UpdateQueue);
  rows.Add(DeleteQueue);
  rows.Add(Push);
  rows.AddWaiting(Pop);
  rows.AddWaiting(Reserve);
  rows.Add(Acknowledge);
  rows.Add(Rollback);
  rows.Add(Extend);
  rows.Add(Move);
  rows.Add(OpenReceive);
  rows.Add(GetMessage);
  rows.AddScan(ListMessages);
  rows.AddScan(Replay);
  rows.AddScan(PurgeMessages);
  rows.AddScan(CreateSchedule);
  rows.AddScan(ListSchedules);
  rows.Add(DeleteSchedule);
  return rows.Take();
}

}  // namespace strata::rpc::queue_service
