#include "tests/tls/tls_world.h"

#include <openssl/evp.h>
#include <poll.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "schemas/base/strings.h"
#include "strata/v1/document_service.grpc.pb.h"

namespace strata::tls_test {

void WriteFile(const std::string& path, const std::string& text, int mode) {
  std::filesystem::remove_all(path);
  std::ofstream(path) << text;
  chmod(path.c_str(), static_cast<mode_t>(mode));
}

bool ComesTrue(const std::function<bool()>& so, milliseconds patience) {
  const Clock::time_point end = Clock::now() + patience;
  while (!so()) {
    if (Clock::now() > end) return false;
    poll(nullptr, 0, 10);
  }
  return true;
}

std::string TokenLine(const std::string& name, const std::string& token, const std::string& more) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(token.data(), token.size(), hash, &size, EVP_sha256(), nullptr);
  const std::string bytes(reinterpret_cast<const char*>(hash), size);
  return name + " sha256:" + absl::BytesToHexString(bytes) + more + "\n";
}

std::shared_ptr<grpc::Channel> Connect(const std::string& address, const Caller& caller) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = caller.ca;
  if (caller.certificate.has_value()) {
    options.pem_cert_chain = caller.certificate->chain_pem;
    options.pem_private_key = caller.certificate->key_pem;
  }
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::SslCredentials(options), own);
}

grpc::Status Get(const std::shared_ptr<grpc::Channel>& channel, const Caller& caller) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  if (!caller.token.empty()) context.AddMetadata("authorization", "Bearer " + caller.token);
  v1::GetRequest request;
  request.set_collection("books");
  request.set_id("none");
  v1::GetResponse response;
  return v1::DocumentService::NewStub(channel)->Get(&context, request, &response);
}

bool IsLetIn(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::NOT_FOUND;
}

std::string TlsWorld::MakeFolder() {
  const std::string folder = Path(std::to_string(folders_++));
  std::filesystem::create_directory(folder);
  WriteFile(folder + "/server.pem", certificate_.chain_pem);
  WriteFile(folder + "/server-key.pem", certificate_.key_pem);
  WriteFile(folder + "/client-ca.pem", client_ca_.pem());
  WriteFile(folder + "/tokens", TokenLine("reader", kReaderToken));
  WriteFile(folder + "/policy.json", kPolicy);
  return folder;
}

void TlsWorld::Publish(const std::string& folder) const {
  std::filesystem::create_symlink(folder, Path("published.new"));
  std::filesystem::rename(Path("published.new"), Path("published"));
}

std::vector<std::string> TlsWorld::Flags(const std::string& client) const {
  return {"--engine=memory",
          "--tls-certificate=" + Path("published/server.pem"),
          "--tls-key=" + Path("published/server-key.pem"),
          "--tls-client-ca=" + Path("published/client-ca.pem"),
          "--tls-client=" + client,
          "--tokens=" + Path("published/tokens"),
          "--policy=" + Path("published/policy.json")};
}

void TlsWorld::Start(const std::vector<std::string>& flags) {
  server_ = std::make_unique<fault::ServerProcess>(
      fault::ServerSettings{.data = Path("data"), .log = Path("log"), .flags = flags});
}

int TlsWorld::port() const {
  const std::string& address = server_->address();
  return std::stoi(address.substr(address.rfind(':') + 1));
}

int TlsWorld::LinesWith(const std::string& text) const {
  int count = 0;
  const std::string all = log();
  for (const auto& line : absl::StrSplit(all, '\n')) {
    if (ToStd(line).find(text) != std::string::npos) ++count;
  }
  return count;
}

}  // namespace strata::tls_test
