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
  rows.Write("CreateQueue", Permission::kManage, CreateQueue);
  rows.Scan("GetQueue", Permission::kRead, GetQueue);
  rows.Scan("ListQueues", Permission::kPrincipal, ListQueues);
  rows.Write("UpdateQueue", Permission::kManage, UpdateQueue);
  rows.Write("DeleteQueue", Permission::kManage, DeleteQueue);
  rows.Write("Push", Permission::kWrite, Push);
  rows.WriteAfterWait("Pop", Permission::kWrite, Pop);
  rows.WriteAfterWait("Reserve", Permission::kWrite, Reserve);
  rows.Write("Acknowledge", Permission::kPrincipal, Acknowledge);
  rows.Write("Rollback", Permission::kPrincipal, Rollback);
  rows.Write("Extend", Permission::kPrincipal, Extend);
  rows.Write("Move", Permission::kWrite, Move);
  rows.Write("Receive", Permission::kPrincipal, OpenReceive);
  rows.Read("GetMessage", Permission::kRead, GetMessage);
  rows.Scan("ListMessages", Permission::kRead, ListMessages);
  rows.ScanAndWrite("Replay", Permission::kManage, Replay);
  rows.ScanAndWrite("PurgeMessages", Permission::kManage, PurgeMessages);
  rows.ScanAndWrite("CreateSchedule", Permission::kManage, CreateSchedule);
  rows.Scan("ListSchedules", Permission::kRead, ListSchedules);
  rows.Write("DeleteSchedule", Permission::kManage, DeleteSchedule);
  return rows.Take();
}

}  // namespace strata::rpc::queue_service
