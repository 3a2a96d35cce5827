#include "tests/rpc/secured_server.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "schemas/base/strings.h"
#include "schemas/store/keyspace.h"
#include "schemas/store/single_record_store.h"
#include "service/engines/engines.h"
#include "service/security/tokens.h"
#include "tests/rpc/test_server.h"

namespace strata::rpc_test {
namespace {

constexpr std::chrono::hours kTokenLife{1};

std::unique_ptr<google::protobuf::Message> RequestOf(std::string_view method,
                                                     std::string_view json) {
  std::string name(method);
  std::replace(name.begin(), name.end(), '/', '.');
  const auto* const descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name);
  if (descriptor == nullptr) {
    ADD_FAILURE() << "no method " << method;
    return nullptr;
  }
  std::unique_ptr<google::protobuf::Message> request(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(descriptor->input_type())
          ->New());
  ParseInto(json, *request);
  return request;
}

void WriteFile(const std::string& path, std::string_view text, mode_t mode = 0600) {
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(chmod(path.c_str(), mode), 0);
}

}  // namespace

Answered CallAnything(const std::shared_ptr<grpc::Channel>& channel, std::string_view method,
                      std::string_view json, const std::string& authorization) {
  Answered answered;
  const std::unique_ptr<google::protobuf::Message> request = RequestOf(method, json);
  if (request == nullptr) return answered;
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  if (!authorization.empty()) context.AddMetadata("authorization", authorization);
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  const auto done = [&] {
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(&context, "/" + std::string(method), &queue);
  call->StartCall(&tag);
  done();
  const grpc::Slice bytes(request->SerializeAsString());
  call->WriteLast(grpc::ByteBuffer(&bytes, 1), {}, &tag);
  done();
  const bool endless = method.ends_with("/Watch");
  for (;;) {
    grpc::ByteBuffer message;
    call->Read(&message, &tag);
    if (!done()) break;
    grpc::Slice whole;
    if (!message.DumpToSingleSlice(&whole).ok()) break;
    answered.messages.emplace_back(reinterpret_cast<const char*>(whole.begin()), whole.size());
    if (endless) context.TryCancel();
  }
  call->Finish(&answered.status, &tag);
  done();
  if (endless && !answered.messages.empty()) answered.status = grpc::Status::OK;
  return answered;
}

SecuredServer::SecuredServer(std::string_view grants, const std::vector<std::string>& users,
                             std::string_view quotas, int loops, bool single_record,
                             const std::function<void(app::ServerOptions&)>& change) {
  const auto file = [this](const char* name, std::string_view text, mode_t mode = 0600) {
    WriteFile(directory_.Join(name), text, mode);
    return directory_.Join(name);
  };
  std::string lines;
  for (const std::string& user : users) {
    const std::string token = security::MakeToken(Entropy::System());
    const bool ends = user == "late";
    const auto line = security::TokenLine(
        user, token,
        ends ? std::optional(clock_.Now() + std::chrono::microseconds(kTokenLife).count())
             : std::nullopt);
    EXPECT_TRUE(line.ok()) << line.status();
    lines += *line + "\n";
    tokens_[user] = token;
  }
  const test_support::Certificate own = ca_.IssueForServer();
  app::ServerOptions options = TestOptions();
  options.clock = &clock_;
  options.loop.threads = loops;
  options.security.tls_certificate = file("server.pem", own.chain_pem);
  options.security.tls_key = file("server.key", own.key_pem);
  options.security.tls_client_ca = file("clients.pem", ca_.pem());
  options.security.tls_client = "optional";
  options.security.tokens = file("tokens", lines);
  options.security.policy =
      file("policy.json",
           std::string(R"({"grants": [{"principals": ["spiffe://test/owner"], "role": "admin",
                                       "resources": ["collection/*", "subscription/*", "queue/*"],
                                       "acts_for": ["*"]})") +
               (grants.empty() ? "" : ", ") + std::string(grants) + R"(], "quotas": [)" +
               std::string(quotas) + "]}");
  if (change != nullptr) change(options);
  engines::OpenOptions open;
  open.clock = options.clock;
  auto store = engines::OpenEngine("memory", open);
  EXPECT_TRUE(store.ok()) << store.status();
  if (single_record) *store = std::make_unique<store::SingleRecordStore>(*std::move(store));
  store_ = store->get();
  auto server = app::Server::Start(options, *std::move(store));
  EXPECT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
}

void SecuredServer::LetTokensEnd() { clock_.Move(2 * kTokenLife); }

std::shared_ptr<grpc::Channel> SecuredServer::Connect(const Presented& presented) const {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = ca_.pem();
  if (presented.certificate) {
    options.pem_private_key = presented.certificate->key_pem;
    options.pem_cert_chain = presented.certificate->chain_pem;
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(server_->port()),
                                   grpc::SslCredentials(options), arguments);
}

std::vector<std::string> SecuredServer::StoredBytes() const {
  std::vector<std::string> all;
  for (const store::Keyspace keyspace : store::kAllKeyspaces) {
    for (const auto cursor = store_->Scan(keyspace, store::Range{}); cursor->Valid();
         cursor->Next()) {
      all.push_back(std::string(store::KeyspaceName(keyspace)) + " " + std::string(cursor->key()) +
                    " " + std::string(cursor->value()) + " " + std::to_string(cursor->stamp()));
    }
  }
  return all;
}

}  // namespace strata::rpc_test
