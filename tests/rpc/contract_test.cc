// The server serves what the protos declare, and its view of the wire is theirs.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/queue/message.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/version.h"
#include "service/rpc/rows.h"
#include "strata/v1/collection_service.pb.h"
#include "strata/v1/document_service.pb.h"
#include "strata/v1/enrollment_service.pb.h"
#include "strata/v1/error_reason.pb.h"
#include "strata/v1/feed_service.pb.h"
#include "strata/v1/lease_service.pb.h"
#include "strata/v1/options.pb.h"
#include "strata/v1/queue_service.pb.h"
#include "strata/v1/server_service.pb.h"
#include "strata/v1/transaction_service.pb.h"
#include "strata/wire/v1/collection_service.pb.h"
#include "strata/wire/v1/document_service.pb.h"
#include "strata/wire/v1/enrollment_service.pb.h"
#include "strata/wire/v1/feed_service.pb.h"
#include "strata/wire/v1/lease_service.pb.h"
#include "strata/wire/v1/queue_service.pb.h"
#include "strata/wire/v1/server_service.pb.h"
#include "strata/wire/v1/transaction_service.pb.h"
#include "tests/rpc/handlers.h"

namespace strata::rpc_test {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

const FileDescriptor* const kPublicFiles[] = {
    v1::GetRequest::descriptor()->file(),    v1::Collection::descriptor()->file(),
    v1::EnrollRequest::descriptor()->file(), v1::CommitRequest::descriptor()->file(),
    v1::Lease::descriptor()->file(),         v1::Event::descriptor()->file(),
    v1::Queue::descriptor()->file(),         v1::ServerLimits::descriptor()->file(),
    v1::Document::descriptor()->file()};

const FileDescriptor* WireFileOf(const FileDescriptor* file) {
  wire::v1::GetRequest::descriptor();  // so that the linker keeps it
  wire::v1::Collection::descriptor();
  wire::v1::EnrollRequest::descriptor();
  wire::v1::CommitRequest::descriptor();
  wire::v1::Lease::descriptor();
  wire::v1::Event::descriptor();
  wire::v1::ServerLimits::descriptor();
  wire::v1::Queue::descriptor();
  std::string name = file->name();
  name.replace(name.find("strata/v1/"), 10, "strata/wire/v1/");
  return google::protobuf::DescriptorPool::generated_pool()->FindFileByName(name);
}

// An RPC whose options do not say what it asks of callers has no row: that does not compile.
template <typename Request>
concept SaysWhatItAsks = requires {
  rpc::OptionsOf<Request>::kPermission;
  rpc::OptionsOf<Request>::kWrites;
};
static_assert(SaysWhatItAsks<wire::v1::GetRequest> && !SaysWhatItAsks<wire::v1::Document>);

TEST(Contract, TheOptionsOfTheProtosAreThoseOfTheRows) {
  std::set<std::string> declared;
  for (const FileDescriptor* file : kPublicFiles) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        const auto& method = *file->service(s)->method(m);
        const auto& options = method.options();
        EXPECT_TRUE(options.has_idempotency_level()) << method.full_name();
        const bool reads =
            options.idempotency_level() == google::protobuf::MethodOptions::NO_SIDE_EFFECTS;
        declared.insert(method.name() + (reads ? " reads, " : " writes, ") +
                        options.GetExtension(v1::permission));
      }
    }
  }
  std::set<std::string> known;
  const Handlers handlers;
  for (const server::Method& method : handlers.methods) {
    if (method.permission == security::Permission::kOpen) continue;
    const bool principal = method.permission == security::Permission::kPrincipal;
    known.insert(
        method.name + (method.writes ? " writes, " : " reads, ") +
        (principal ? "principal" : std::string(security::PermissionName(method.permission))));
  }
  EXPECT_EQ(known, declared);
}

TEST(Contract, EachRpcOfTheProtosIsRegistered) {
  std::set<std::string> declared;
  for (const FileDescriptor* file : kPublicFiles) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        declared.insert("/" + file->service(s)->full_name() + "/" +
                        file->service(s)->method(m)->name());
      }
    }
  }
  for (const char* path : {"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
                           "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                           "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    declared.insert(path);
  }
  std::set<std::string> registered;
  const Handlers handlers;
  for (const server::Method& method : handlers.methods) registered.insert(method.path());
  EXPECT_EQ(registered, declared);
}

// Whoever generates code in another language needs no flags for it.
TEST(Contract, EachProtoSaysWhereItsGeneratedCodeBelongs) {
  std::vector<const FileDescriptor*> files(std::begin(kPublicFiles), std::end(kPublicFiles));
  files.push_back(v1::ErrorReason_descriptor()->file());
  files.push_back(files.back()->dependency(0));
  ASSERT_EQ(files.back()->name(), "strata/v1/options.proto");
  for (const FileDescriptor* file : files) {
    EXPECT_EQ(file->options().go_package(), "strata/v1;stratav1") << file->name();
    EXPECT_EQ(file->options().java_package(), "com.strata.v1") << file->name();
    EXPECT_TRUE(file->options().java_multiple_files()) << file->name();
  }
}

// The three types whose messages the server reads and writes as bytes.
bool IsJson(const FieldDescriptor& field) {
  if (field.type() != FieldDescriptor::TYPE_MESSAGE) return false;
  const std::string& name = field.message_type()->full_name();
  return name == "google.protobuf.Struct" || name == "google.protobuf.Value" ||
         name == "google.protobuf.ListValue";
}

void ExpectSameMessage(const Descriptor& here, const Descriptor* wire) {
  ASSERT_NE(wire, nullptr) << here.full_name();
  ASSERT_EQ(here.field_count(), wire->field_count()) << here.full_name();
  for (int i = 0; i < here.field_count(); ++i) {
    const FieldDescriptor& field = *here.field(i);
    const FieldDescriptor& other = *wire->field(i);
    SCOPED_TRACE(field.full_name());
    EXPECT_EQ(field.name(), other.name());
    EXPECT_EQ(field.number(), other.number());
    EXPECT_EQ(field.label(), other.label());
    ASSERT_EQ(field.containing_oneof() == nullptr, other.containing_oneof() == nullptr);
    if (field.containing_oneof() != nullptr) {
      EXPECT_EQ(field.containing_oneof()->name(), other.containing_oneof()->name());
    }
    EXPECT_EQ(other.type(), IsJson(field) ? FieldDescriptor::TYPE_BYTES : field.type());
    if (field.message_type() != nullptr && !IsJson(field)) {
      EXPECT_EQ(field.message_type()->name(), other.message_type()->name());
    }
  }
}

TEST(Contract, TheWireViewEqualsThePublicProtos) {
  for (const FileDescriptor* file : kPublicFiles) {
    const FileDescriptor* const wire = WireFileOf(file);
    ASSERT_NE(wire, nullptr) << file->name();
    ASSERT_EQ(file->message_type_count(), wire->message_type_count());
    for (int i = 0; i < file->message_type_count(); ++i) {
      ExpectSameMessage(*file->message_type(i),
                        wire->FindMessageTypeByName(file->message_type(i)->name()));
    }
    ASSERT_EQ(file->enum_type_count(), wire->enum_type_count());
    for (int i = 0; i < file->enum_type_count(); ++i) {
      const auto& here = *file->enum_type(i);
      ASSERT_EQ(here.value_count(), wire->enum_type(i)->value_count());
      for (int v = 0; v < here.value_count(); ++v) {
        EXPECT_EQ(here.value(v)->name(), wire->enum_type(i)->value(v)->name());
        EXPECT_EQ(here.value(v)->number(), wire->enum_type(i)->value(v)->number());
      }
    }
  }
}

TEST(Contract, TheReasonsOfTheProtoAreThoseOfTheCode) {
  const std::string prefix = "ERROR_REASON_";
  std::set<std::string> declared;
  const auto* const reasons = v1::ErrorReason_descriptor();
  for (int i = 1; i < reasons->value_count(); ++i) {  // 0 is UNSPECIFIED
    ASSERT_EQ(reasons->value(i)->name().substr(0, prefix.size()), prefix);
    const auto& options = reasons->value(i)->options();
    declared.insert(reasons->value(i)->name().substr(prefix.size()) + " " +
                    options.GetExtension(v1::code) + " " +
                    std::to_string(options.GetExtension(v1::retry_delay_ms)));
  }
  std::set<std::string> known;
  for (const ErrorReason reason : AllErrorReasons()) {
    const auto delay = ReasonRetryDelay(reason).value_or(std::chrono::microseconds(0));
    known.insert(std::string(ReasonName(reason)) + " " +
                 absl::StatusCodeToString(ReasonCode(reason)) + " " +
                 std::to_string(delay.count() / 1000));
  }
  EXPECT_EQ(known, declared);
}

TEST(Contract, TheNumbersOfKindsAndStrategiesAreThoseOfTheCode) {
  EXPECT_EQ(static_cast<int>(versioning::VersionKind::kCreated), v1::VERSION_KIND_CREATED);
  EXPECT_EQ(static_cast<int>(versioning::VersionKind::kUpdated), v1::VERSION_KIND_UPDATED);
  EXPECT_EQ(static_cast<int>(versioning::VersionKind::kDeleted), v1::VERSION_KIND_DELETED);
  EXPECT_EQ(static_cast<int>(versioning::VersionKind::kRestored), v1::VERSION_KIND_RESTORED);
  std::set<std::string> known;
  for (const auto& entry : versioning::AllStrategies()) {
    std::string name = "STRATEGY_" + std::string(entry.name);
    for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
    known.insert(name + "=" + std::to_string(entry.id));
  }
  std::set<std::string> declared;
  const auto* const strategies = v1::Strategy_descriptor();
  for (int i = 1; i < strategies->value_count(); ++i) {
    declared.insert(strategies->value(i)->name() + "=" +
                    std::to_string(strategies->value(i)->number()));
  }
  EXPECT_EQ(known, declared);
}

TEST(Contract, TheNumbersOfTransactionsAreThoseOfTheCode) {
  using Mode = versioning::TransactionMode;
  using Status = versioning::TransactionStatus;
  EXPECT_EQ(static_cast<int>(Mode::kOneCommit), v1::TRANSACTION_MODE_ONE_COMMIT);
  EXPECT_EQ(static_cast<int>(Mode::kTwoPhase), v1::TRANSACTION_MODE_TWO_PHASE);
  EXPECT_EQ(v1::TransactionMode_descriptor()->value_count(), 3);
  EXPECT_EQ(static_cast<int>(Status::kNew), v1::TRANSACTION_STATUS_NEW);
  EXPECT_EQ(static_cast<int>(Status::kPending), v1::TRANSACTION_STATUS_PENDING);
  EXPECT_EQ(static_cast<int>(Status::kApplied), v1::TRANSACTION_STATUS_APPLIED);
  EXPECT_EQ(static_cast<int>(Status::kDone), v1::TRANSACTION_STATUS_DONE);
  EXPECT_EQ(static_cast<int>(Status::kCancelling), v1::TRANSACTION_STATUS_CANCELLING);
  EXPECT_EQ(static_cast<int>(Status::kCancelled), v1::TRANSACTION_STATUS_CANCELLED);
  EXPECT_EQ(v1::TransactionStatus_descriptor()->value_count(), 7);
}

// The wire has one before them: unspecified.
TEST(Contract, TheStatesOfMessagesAreThoseOfTheCode) {
  const auto on_wire = [](queue::State state) { return static_cast<int>(state) + 1; };
  EXPECT_EQ(on_wire(queue::State::kScheduled), v1::MESSAGE_STATE_SCHEDULED);
  EXPECT_EQ(on_wire(queue::State::kReady), v1::MESSAGE_STATE_READY);
  EXPECT_EQ(on_wire(queue::State::kReserved), v1::MESSAGE_STATE_RESERVED);
  EXPECT_EQ(on_wire(queue::State::kWaiting), v1::MESSAGE_STATE_WAITING);
  EXPECT_EQ(on_wire(queue::State::kDead), v1::MESSAGE_STATE_DEAD);
  EXPECT_EQ(on_wire(queue::State::kFinished), v1::MESSAGE_STATE_FINISHED);
  EXPECT_EQ(v1::MessageState_descriptor()->value_count(), 7);
}

// 0 is "unset" there, so no option may mean something by it.
TEST(Contract, TheOptionsOfStrategiesAreTheFieldsOfCollectionOptions) {
  std::set<std::string> known;
  for (const auto& entry : versioning::AllStrategies()) {
    for (const versioning::StrategyOption& option : entry.options) {
      known.emplace(option.name);
      EXPECT_GE(option.least, 1) << option.name;
      EXPECT_LE(option.least, option.default_value) << option.name;
      EXPECT_LE(option.default_value, option.most) << option.name;
      EXPECT_FALSE(option.meaning.empty()) << option.name;
    }
  }
  std::set<std::string> declared;
  const auto& fields = *v1::CollectionOptions::descriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    declared.insert(fields.field(i)->name());
    EXPECT_EQ(fields.field(i)->cpp_type(), google::protobuf::FieldDescriptor::CPPTYPE_INT32);
  }
  EXPECT_EQ(known, declared);
}

}  // namespace
}  // namespace strata::rpc_test
