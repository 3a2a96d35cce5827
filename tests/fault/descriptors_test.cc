// The real server, short of descriptors: connections do not take those that storage needs.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fault/counted_documents.h"
#include "tests/fault/server_process.h"
#include "tests/support/temporary_directory.h"

namespace strata::fault {
namespace {

constexpr int kConnections = 600;

// Says nothing, until it goes.
class SilentConnection {
 public:
  explicit SilentConnection(const std::string& address)
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    made_ = socket_ >= 0 && connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  SilentConnection(SilentConnection&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), made_(other.made_) {}
  ~SilentConnection() {
    if (socket_ >= 0) close(socket_);
  }

  bool made() const { return made_; }
  // The server keeps it.
  bool IsOpen() const {
    pollfd ended{socket_, POLLRDHUP, 0};
    return made_ && poll(&ended, 1, 0) == 0;
  }

 private:
  int socket_;
  bool made_ = false;
};

void RaiseOwnLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

TEST(Descriptors, AFloodOfConnectionsLeavesStorageItsOwn) {
  RaiseOwnLimit();
  const test_support::TemporaryDirectory directory;
  ServerSettings settings;
  settings.data = directory.Join("data");
  settings.log = directory.Join("log");
  settings.flags = {"--ballast-mib", "0"};
  settings.open_files_max = 512;
  ServerProcess server(settings);
  CountedDocuments documents(200'000, 1);
  documents.Connect(server);
  ASSERT_EQ(documents.Update("before"), std::nullopt);
  ASSERT_TRUE(documents.IsServing("strata.writes"));

  // Large enough that the log and the tables need new files all the time.
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      const auto refused = documents.Update(std::to_string(i % 8));
      EXPECT_EQ(refused, std::nullopt);
      if (refused) return;
    }
  });
  std::vector<SilentConnection> connections;
  connections.reserve(kConnections);
  for (int i = 0; i < kConnections; ++i) connections.emplace_back(server.address());
  const int64_t flooded = documents.acknowledged();
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  // Three memtables and logs.
  while (documents.acknowledged() < flooded + 500 && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  stop = true;
  writer.join();
  EXPECT_GE(documents.acknowledged(), flooded + 500);
  int64_t open = 0;
  for (const SilentConnection& connection : connections) open += connection.IsOpen();
  EXPECT_LE(open, 256);
  EXPECT_TRUE(documents.IsServing("strata.writes"));
  connections.clear();

  documents.Connect(server);  // there is room for new ones
  EXPECT_EQ(documents.Update("after"), std::nullopt);
  documents.ExpectAllAcknowledged();
  EXPECT_EQ(server.Stop(), 0) << ReadFile(settings.log);
}

}  // namespace
}  // namespace strata::fault
