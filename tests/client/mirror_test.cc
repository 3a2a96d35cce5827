// Each type of the library has the members that the protos have: none is missing, none is misspelt.
// A field that is added to a proto fails here until the library has it.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "clients/cpp/fields.h"
#include "strata/v1/collection_service.pb.h"
#include "strata/v1/document_service.pb.h"
#include "strata/v1/feed_service.pb.h"
#include "strata/v1/lease_service.pb.h"
#include "strata/v1/queue_service.pb.h"
#include "strata/v1/server_service.pb.h"
#include "strata/v1/transaction_service.pb.h"

namespace strata::client {
namespace {

struct Names {
  std::set<std::string> names;
  template <typename T>
  void operator()(const char* name, const T&) {
    names.insert(name);
  }
};

// Of a type, with what it spells otherwise put as the protos have it.
template <typename T>
std::set<std::string> MembersOf() {
  T value;
  Names visit;
  Fields(visit, value);
  return visit.names;
}

// `taken`: fields that are arguments of the call, or its own business.
template <typename T, typename Message>
void ExpectMirrored(const std::set<std::string>& taken = {}) {
  const auto& message = *Message::descriptor();
  std::set<std::string> members = MembersOf<T>();
  for (const auto* each : {"if_version", "if_exists", "if_matches", "newer"}) {
    if (message.FindFieldByName("precondition") != nullptr && members.erase(each) > 0) {
      members.insert("precondition");
    }
  }
  if (message.FindFieldByName("change") != nullptr) {
    for (const auto* each : {"actor", "on_behalf_of", "reason", "labels"}) {
      const bool own = message.FindFieldByName(each) != nullptr;
      if (!own && members.erase(each) > 0) members.insert("change");
    }
  }
  members.insert(taken.begin(), taken.end());
  std::set<std::string> fields;
  for (int i = 0; i < message.field_count(); ++i) {
    const std::string name = message.field(i)->name();
    if (name != "encoding" && name != "page_token") fields.insert(name);
  }
  // The last page is what a listing gives besides.
  fields.erase("next_page_token");
  EXPECT_EQ(members, fields) << message.full_name();
}

TEST(Mirror, AnswersHaveAllFields) {
  ExpectMirrored<ChangeInfo, v1::ChangeInfo>();
  ExpectMirrored<Document, v1::Document>();
  ExpectMirrored<Version, v1::Version>();
  ExpectMirrored<FieldChange, v1::FieldChange>();
  ExpectMirrored<AuditEntry, v1::AuditEntry>();
  ExpectMirrored<LeaseToken, v1::LeaseToken>();
  ExpectMirrored<Newer, v1::Newer>();
  ExpectMirrored<CollectionInfo, v1::Collection>();
  ExpectMirrored<CollectionOptions, v1::CollectionOptions>();
  ExpectMirrored<CollectionStatistics, v1::CollectionStatistics>();
  ExpectMirrored<KeyspaceSize, v1::KeyspaceSize>();
  ExpectMirrored<LedgerHead, v1::LedgerHead>();
  ExpectMirrored<Finding, v1::Finding>();
  ExpectMirrored<VerifyProgress, v1::VerifyResponse>();
  ExpectMirrored<Enrolled, v1::EnrollResponse>();
  ExpectMirrored<Enrollment, v1::Enrollment>();
  ExpectMirrored<StudentEnrollments, v1::GetEnrollmentsResponse>();
  ExpectMirrored<RosterEntry, v1::RosterEntry>();
  ExpectMirrored<EnrollmentMessage, v1::ApplyRequest>();
  ExpectMirrored<Lease, v1::Lease>();
  ExpectMirrored<Event, v1::Event>();
  ExpectMirrored<Snapshot, v1::Snapshot>();
  ExpectMirrored<Feed, v1::GetFeedResponse>();
  ExpectMirrored<Subscription, v1::Subscription>();
  ExpectMirrored<SubscriptionPartition, v1::SubscriptionPartition>();
  ExpectMirrored<SubscriptionState, v1::GetSubscriptionResponse>();
  ExpectMirrored<ParkedDocument, v1::ParkedDocument>();
  ExpectMirrored<Delivery, v1::Delivery>();
  ExpectMirrored<QueueMessage, v1::QueueMessage>();
  ExpectMirrored<PushedMessage, v1::PushedMessage>();
  ExpectMirrored<EnrollmentSink, v1::EnrollmentSink>();
  ExpectMirrored<QueueSettings, v1::QueueSettings>();
  ExpectMirrored<QueueStatistics, v1::QueueStatistics>();
  ExpectMirrored<QueueCounts, v1::QueueCounts>();
  ExpectMirrored<Queue, v1::Queue>();
  ExpectMirrored<Schedule, v1::Schedule>();
  ExpectMirrored<Swept, v1::ReplayResponse>();
  ExpectMirrored<CommitResult, v1::CommitResult>();
  ExpectMirrored<Committed, v1::CommitResponse>();
  ExpectMirrored<ReadAnswer, v1::ReadResponse>();
  ExpectMirrored<Participant, v1::Participant>();
  ExpectMirrored<TransactionInfo, v1::Transaction>();
  ExpectMirrored<DocumentName, v1::DocumentName>();
  ExpectMirrored<DocumentVersion, v1::DocumentVersion>();
  ExpectMirrored<ServerInfo, v1::GetServerInfoResponse>();
  ExpectMirrored<ServerLimits, v1::ServerLimits>();
}

TEST(Mirror, OptionsHaveAllFieldsThatAreNoArguments) {
  ExpectMirrored<CreateOptions, v1::CreateRequest>({"collection", "id", "content"});
  ExpectMirrored<UpdateOptions, v1::UpdateRequest>({"collection", "id", "replace", "patch"});
  ExpectMirrored<DeleteOptions, v1::DeleteRequest>({"collection", "id"});
  ExpectMirrored<RestoreOptions, v1::RestoreRequest>({"collection", "id", "version"});
  ExpectMirrored<GetOptions, v1::GetRequest>({"collection", "id"});
  ExpectMirrored<BatchGetOptions, v1::BatchGetRequest>({"collection", "ids"});
  ExpectMirrored<HistoryOptions, v1::HistoryRequest>({"collection", "id"});
  ExpectMirrored<DiffOptions, v1::DiffRequest>({"collection", "id", "from_version", "to_version"});
  ExpectMirrored<AuditOptions, v1::AuditRequest>();
  ExpectMirrored<ListOptions, v1::ListRequest>({"collection"});
  ExpectMirrored<CreateCollectionOptions, v1::CreateCollectionRequest>({"name"});
  ExpectMirrored<DeleteCollectionOptions, v1::DeleteCollectionRequest>({"name"});
  ExpectMirrored<ListCollectionsOptions, v1::ListCollectionsRequest>();
  ExpectMirrored<VerifyOptions, v1::VerifyRequest>({"collection", "resume_token"});
  ExpectMirrored<EnrollOptions, v1::EnrollRequest>({"student_id", "class_name", "sequence_number"});
  ExpectMirrored<EnrollOptions, v1::UnenrollRequest>(
      {"student_id", "class_name", "sequence_number"});
  ExpectMirrored<GetEnrollmentsOptions, v1::GetEnrollmentsRequest>({"student_id"});
  ExpectMirrored<RosterOptions, v1::ListRosterRequest>({"class_name"});
  ExpectMirrored<PurgeOptions, v1::PurgeTombstonesRequest>({"through_sequence_number"});
  ExpectMirrored<AcquireOptions, v1::AcquireRequest>({"name", "holder"});
  ExpectMirrored<RenewOptions, v1::RenewRequest>({"name", "token"});
  ExpectMirrored<ListLeasesOptions, v1::ListLeasesRequest>();
  ExpectMirrored<WatchOptions, v1::WatchRequest>();
  ExpectMirrored<CreateSubscriptionOptions, v1::CreateSubscriptionRequest>({"name"});
  ExpectMirrored<ListSubscriptionsOptions, v1::ListSubscriptionsRequest>();
  ExpectMirrored<ListParkedOptions, v1::ListParkedRequest>({"subscription"});
  ExpectMirrored<ParkedOptions, v1::ReplayParkedRequest>({"subscription"});
  ExpectMirrored<ParkedOptions, v1::DiscardParkedRequest>({"subscription"});
  ExpectMirrored<ConsumeOptions, v1::ConsumeRequest::Open>({"subscription", "consumer"});
  ExpectMirrored<PopOptions, v1::PopRequest>({"queue"});
  ExpectMirrored<ReserveOptions, v1::ReserveRequest>({"queue"});
  ExpectMirrored<RollbackOptions, v1::RollbackRequest>({"tokens"});
  ExpectMirrored<ExtendOptions, v1::ExtendRequest>({"tokens"});
  ExpectMirrored<MoveOptions, v1::MoveRequest>({"token", "queue"});
  ExpectMirrored<ReceiveOptions, v1::ReceiveRequest::Open>({"queue"});
  ExpectMirrored<DeleteQueueOptions, v1::DeleteQueueRequest>({"name"});
  ExpectMirrored<ListQueuesOptions, v1::ListQueuesRequest>();
  ExpectMirrored<ListMessagesOptions, v1::ListMessagesRequest>({"queue"});
  ExpectMirrored<ReplayOptions, v1::ReplayRequest>({"queue"});
  ExpectMirrored<PurgeMessagesOptions, v1::PurgeMessagesRequest>({"queue"});
  ExpectMirrored<CreateScheduleOptions, v1::CreateScheduleRequest>({"queue", "name"});
  ExpectMirrored<ListSchedulesOptions, v1::ListSchedulesRequest>({"queue"});
  ExpectMirrored<CommitOptions, v1::CommitRequest>({"writes", "reads", "acknowledge", "pushes"});
  ExpectMirrored<ListTransactionsOptions, v1::ListTransactionsRequest>();
  ExpectMirrored<CancelOptions, v1::CancelTransactionRequest>({"id"});
}

}  // namespace
}  // namespace strata::client
