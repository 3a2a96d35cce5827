#include "tests/rpc/test_server.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "schemas/base/strings.h"
#include "schemas/document/struct_codec.h"
#include "schemas/store/single_record_store.h"
#include "service/engines/engines.h"
#include "tests/rpc/deadline_check.h"

namespace strata::rpc_test {
namespace {

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
}

template <typename T>
std::unique_ptr<T> Take(absl::StatusOr<std::unique_ptr<T>> made) {
  if (!made.ok()) Die(std::string(ToStd(made.status().message())));
  return *std::move(made);
}

std::unique_ptr<app::Server> Start(const app::ServerOptions& options,
                                   std::unique_ptr<store::Store> store) {
  return Take(app::Server::Start(options, std::make_unique<DeadlineCheck>(std::move(store))));
}

std::unique_ptr<app::Server> Start(const app::ServerOptions& options) {
  if (options.engine != "memory") return Take(app::Server::Start(options));
  engines::OpenOptions open;
  open.clock = options.clock;
  open.values = options.engine_options;
  std::unique_ptr<store::Store> store = Take(engines::OpenEngine(options.engine, open));
  if (options.single_record) {
    store = std::make_unique<store::SingleRecordStore>(std::move(store));
  }
  return Start(options, std::move(store));
}

}  // namespace

app::ServerOptions TestOptions() {
  app::ServerOptions options;
  options.engine = "memory";
  options.loop.listener.listen = "127.0.0.1:0";
  options.executor_threads = 2;
  return options;
}

bool Details::Has(std::string_view type) const {
  return std::find(types.begin(), types.end(), type) != types.end();
}

Details DetailsOf(const grpc::Status& status) {
  Details details;
  google::rpc::Status wire;
  if (!wire.ParseFromString(status.error_details())) return details;
  for (const auto& any : wire.details()) {
    const std::string& url = any.type_url();
    details.types.push_back(url.substr(url.rfind('/') + 1));
    google::rpc::ErrorInfo info;
    google::rpc::BadRequest bad;
    google::rpc::ResourceInfo resource;
    if (any.UnpackTo(&info)) {
      details.reason = info.reason();
      details.domain = info.domain();
      details.metadata.insert(info.metadata().begin(), info.metadata().end());
    } else if (any.UnpackTo(&bad) && bad.field_violations_size() > 0) {
      details.violation_field = bad.field_violations(0).field();
    } else if (any.UnpackTo(&resource)) {
      details.resource_type = resource.resource_type();
      details.resource_name = resource.resource_name();
    }
  }
  return details;
}

void ParseInto(std::string_view json, google::protobuf::Message& message) {
  const auto status = google::protobuf::util::JsonStringToMessage(std::string(json), &message);
  if (!status.ok()) Die(status.ToString() + " in " + std::string(json));
}

std::string Bson(std::string_view json) {
  const auto message = Parse<google::protobuf::Struct>(json);
  const auto content = document::ContentFromStruct(message.SerializeAsString(), document::Limits());
  if (!content.ok()) Die(content.status().ToString());
  return std::string(content->bytes());
}

TestServer::TestServer(const app::ServerOptions& options) : server_(Start(options)) { Open(); }

TestServer::TestServer(const app::ServerOptions& options, std::unique_ptr<store::Store> store)
    : server_(Start(options, std::move(store))) {
  Open();
}

void TestServer::Open() {
  channel_ = Connect();
  documents_ = v1::DocumentService::NewStub(channel_);
  collections_ = v1::CollectionService::NewStub(channel_);
  transactions_ = v1::TransactionService::NewStub(channel_);
  leases_ = v1::LeaseService::NewStub(channel_);
  feed_ = v1::FeedService::NewStub(channel_);
  queues_ = v1::QueueService::NewStub(channel_);
}

std::shared_ptr<grpc::Channel> TestServer::Connect() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(),
                                   arguments);
}

grpc::Status TestServer::CallRaw(const std::string& method, const std::string& bytes,
                                 std::string* answer) {
  grpc::GenericStub stub(channel_);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  auto call = stub.PrepareUnaryCall(&context, "/" + method, request, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  void* tag = nullptr;
  bool ok = false;
  call->Finish(&response, &status, &tag);
  queue.Next(&tag, &ok);
  ExpectDocumentedMetadata(status);
  grpc::Slice whole;
  if (answer != nullptr && status.ok() && response.DumpToSingleSlice(&whole).ok()) {
    answer->assign(reinterpret_cast<const char*>(whole.begin()), whole.size());
  }
  return status;
}

grpc::Status TestServer::CallByName(const std::string& method, std::string_view json) {
  std::string name = method;
  std::replace(name.begin(), name.end(), '/', '.');
  const auto* const descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name);
  if (descriptor == nullptr) Die("no method " + method);
  const std::unique_ptr<google::protobuf::Message> request(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(descriptor->input_type())
          ->New());
  ParseInto(json, *request);
  return CallRaw(method, request->SerializeAsString());
}

}  // namespace strata::rpc_test
