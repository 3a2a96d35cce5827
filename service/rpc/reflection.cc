#include "service/rpc/reflection.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpc/health/v1/health.pb.h>
#include <grpc/reflection/v1/reflection.pb.h>
#include <grpc/reflection/v1alpha/reflection.pb.h>
#include <strata/v1/collection_service.pb.h>
#include <strata/v1/document_service.pb.h>
#include <strata/v1/enrollment_service.pb.h>
#include <strata/v1/error_reason.pb.h>
#include <strata/v1/feed_service.pb.h>
#include <strata/v1/lease_service.pb.h>
#include <strata/v1/queue_service.pb.h>
#include <strata/v1/server_service.pb.h>
#include <strata/v1/transaction_service.pb.h>

#include <utility>

namespace strata::rpc {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;

}  // namespace

// Each file is named by one of its messages, so that the linker keeps it.
Reflection::Reflection(std::vector<std::string> services) : services_(std::move(services)) {
  Add(strata::v1::GetRequest::descriptor()->file());
  Add(strata::v1::Collection::descriptor()->file());
  Add(strata::v1::EnrollRequest::descriptor()->file());
  Add(strata::v1::CommitRequest::descriptor()->file());
  Add(strata::v1::Event::descriptor()->file());
  Add(strata::v1::Lease::descriptor()->file());
  Add(strata::v1::Queue::descriptor()->file());
  Add(strata::v1::ServerLimits::descriptor()->file());
  Add(strata::v1::ErrorReason_descriptor()->file());
  Add(google::rpc::ErrorInfo::descriptor()->file());
  Add(google::rpc::Status::descriptor()->file());
  Add(grpc::health::v1::HealthCheckRequest::descriptor()->file());
  Add(grpc::reflection::v1::ServerReflectionRequest::descriptor()->file());
  Add(grpc::reflection::v1alpha::ServerReflectionRequest::descriptor()->file());
}

void Reflection::Add(const FileDescriptor* file) {
  if (!files_.insert(file).second) return;
  for (int i = 0; i < file->dependency_count(); ++i) Add(file->dependency(i));
}

std::vector<std::string> Reflection::WithImports(const FileDescriptor* file) const {
  if (file == nullptr || files_.count(file) == 0) return {};
  std::vector<const FileDescriptor*> found = {file};
  std::set<const FileDescriptor*> seen = {file};
  for (size_t i = 0; i < found.size(); ++i) {
    for (int d = 0; d < found[i]->dependency_count(); ++d) {
      if (seen.insert(found[i]->dependency(d)).second) found.push_back(found[i]->dependency(d));
    }
  }
  std::vector<std::string> serialized;
  for (const FileDescriptor* each : found) {
    google::protobuf::FileDescriptorProto proto;
    each->CopyTo(&proto);
    serialized.push_back(proto.SerializeAsString());
  }
  return serialized;
}

std::vector<std::string> Reflection::FileByName(const std::string& name) const {
  return WithImports(DescriptorPool::generated_pool()->FindFileByName(name));
}

std::vector<std::string> Reflection::FileOfSymbol(const std::string& symbol) const {
  return WithImports(DescriptorPool::generated_pool()->FindFileContainingSymbol(symbol));
}

std::vector<std::string> Reflection::FileOfExtension(const std::string& message, int number) const {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const google::protobuf::Descriptor* const type = pool.FindMessageTypeByName(message);
  if (type == nullptr) return {};
  const auto* const extension = pool.FindExtensionByNumber(type, number);
  return extension == nullptr ? std::vector<std::string>() : WithImports(extension->file());
}

bool Reflection::KnowsMessage(const std::string& name) const {
  const auto* const type = DescriptorPool::generated_pool()->FindMessageTypeByName(name);
  return type != nullptr && files_.count(type->file()) != 0;
}

}  // namespace strata::rpc
