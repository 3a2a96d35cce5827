// Whoever has no certificate reaches nothing of a server that requires one.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <iostream>

#include "tests/tls/tls_world.h"
#include "tests/withstand/http2.h"
#include "tests/withstand/server_cost.h"

namespace strata::tls_test {
namespace {

using withstand::FrameType;

class Strangers : public TlsWorld {};

constexpr size_t kFramesAtOnce = 1'000;

std::string Flood() {
  std::string frames;
  const std::string settings = withstand::Frame(FrameType::kSettings, 0, 0, "");
  for (size_t i = 0; i < kFramesAtOnce; ++i) frames += settings;
  return frames;
}

// Sends what the kernel takes until the server has hung up; how many whole frames that were.
int64_t SendPlain(int port, const std::string& frames) {
  const int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int64_t sent = 0;
  if (connect(stranger, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    ssize_t count = 0;
    while ((count = send(stranger, frames.data(), frames.size(), MSG_NOSIGNAL)) > 0) sent += count;
  }
  close(stranger);
  return sent / static_cast<int64_t>(withstand::kFrameHeaderBytes);
}

// The same behind a handshake without a certificate.
int64_t SendEncrypted(int port, const std::string& frames) {
  TlsClient stranger({.port = port});
  int64_t sent = 0;
  while (stranger.shook_hands() && stranger.Write(frames)) {
    sent += static_cast<int64_t>(kFramesAtOnce);
  }
  return sent;
}

TEST_F(Strangers, SendAMillionFramesForNothing) {
  constexpr int64_t kFrames = 1'000'000;
  Publish(MakeFolder());
  Start(Flags("required"));
  const std::string frames = Flood();
  const std::string hello = withstand::Hello(65'535);
  // What the first connections of either kind make once, and keep.
  for (int i = 0; i < 200; ++i) {
    SendPlain(port(), hello + frames);
    SendEncrypted(port(), hello + frames);
  }
  withstand::ForgetResidentPeak(server_->pid());
  const int64_t before = withstand::ResidentBytes(server_->pid());
  int64_t plain = 0;
  while (plain < kFrames / 2) plain += SendPlain(port(), hello + frames);
  int64_t encrypted = 0;
  while (encrypted < kFrames / 2) encrypted += SendEncrypted(port(), hello + frames);
  const int64_t grown = withstand::ResidentPeak(server_->pid()) - before;
  EXPECT_LT(grown, 8 * withstand::kMiB);
  std::cout << plain << " frames unencrypted and " << encrypted
            << " after a handshake without certificate; " << grown / 1024 << " KiB more\n";
  const Caller known{.ca = ca_.pem(),
                     .certificate = client_ca_.IssueForUri("spiffe://example.org/a")};
  const grpc::Status status = Get(Connect(server_->address(), known), known);
  EXPECT_TRUE(IsLetIn(status)) << status.error_message();
  EXPECT_EQ(server_->Stop(), 0);
}

}  // namespace
}  // namespace strata::tls_test
