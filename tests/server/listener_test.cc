// The listener by itself: its caps, and a process without descriptors.
#include "service/server/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schemas/base/error.h"
#include "tests/support/status_matchers.h"

namespace strata::server {
namespace {

using test_support::IsOk;
using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{30};

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// A connection from 127.0.0.`host`.
Descriptor Connect(int port, int host = 1) {
  Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in from{};
  from.sin_family = AF_INET;
  from.sin_addr.s_addr = htonl((127U << 24) | static_cast<uint32_t>(host));
  EXPECT_EQ(bind(made.get(), reinterpret_cast<sockaddr*>(&from), sizeof from), 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(port));
  // The other side may be faster to reset it.
  EXPECT_TRUE(connect(made.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 ||
              errno == ECONNRESET)
      << std::strerror(errno);
  return made;
}

// Whether the other side reset it, which has to come within the patience; false if it greeted.
bool IsReset(const Descriptor& connection) {
  pollfd wait = {connection.get(), POLLIN, 0};
  EXPECT_EQ(poll(&wait, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())), 1);
  char byte = 0;
  return read(connection.get(), &byte, 1) <= 0;
}

// Greets whom the listener hands it, and keeps them until it is told to let go.
class ListenerTest : public testing::Test {
 protected:
  void Open(ListenerOptions options) {
    options.listen = "127.0.0.1:0";
    auto listener = Listener::Open(options);
    ASSERT_THAT(listener, IsOk());
    listener_ = *std::move(listener);
    listener_->Start(
        [this](int socket) {
          const std::lock_guard lock(mutex_);
          taken_.emplace_back(socket);
          EXPECT_NE(fcntl(socket, F_GETFL) & O_NONBLOCK, 0);
          EXPECT_EQ(write(socket, "!", 1), 1);
        },
        [this] {
          const std::lock_guard lock(mutex_);
          return Listener::FloodLook{std::exchange(floods_, {}), std::chrono::milliseconds(25)};
        });
  }
  // Says of the connection's other end that it floods.
  void Denounce(const Descriptor& connection) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    ASSERT_EQ(getsockname(connection.get(), reinterpret_cast<sockaddr*>(&from), &size), 0);
    char address[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &from.sin_addr, address, sizeof address);
    const std::lock_guard lock(mutex_);
    floods_ = {"ipv4:" + std::string(address) + ":" + std::to_string(ntohs(from.sin_port))};
  }
  void LetAllGo() {
    const std::lock_guard lock(mutex_);
    taken_.clear();
  }
  Descriptor ConnectFrom(int host = 1) { return Connect(listener_->port(), host); }

  std::mutex mutex_;
  std::vector<Descriptor> taken_;
  std::vector<std::string> floods_;
  std::unique_ptr<Listener> listener_;
};

TEST_F(ListenerTest, ResetsWhoFloodsAndLetsNobodyInFromThereForAWhile) {
  Open({.connections_per_address_max = 0, .flood_pause = std::chrono::milliseconds(500)});
  const Descriptor flooding = ConnectFrom(2);
  const Descriptor same_address = ConnectFrom(2);
  const Descriptor other = ConnectFrom(3);
  for (const Descriptor* each : {&flooding, &same_address, &other}) EXPECT_FALSE(IsReset(*each));
  Denounce(flooding);
  EXPECT_TRUE(IsReset(flooding));  // though whoever took it has not closed it
  EXPECT_TRUE(IsReset(ConnectFrom(2)));
  EXPECT_EQ(listener_->floods(), 1);
  EXPECT_FALSE(IsReset(ConnectFrom(3)));
  for (const Descriptor* each : {&same_address, &other}) {
    EXPECT_EQ(write(each->get(), "?", 1), 1);
    pollfd wait = {each->get(), POLLIN, 0};
    EXPECT_EQ(poll(&wait, 1, 0), 0);
  }
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (IsReset(ConnectFrom(2))) ASSERT_LT(std::chrono::steady_clock::now(), end);
}

TEST_F(ListenerTest, LeavesAloneWhatIsAnotherFileByNow) {
  Open({});
  const Descriptor gone = ConnectFrom(2);
  EXPECT_FALSE(IsReset(gone));
  LetAllGo();
  const Descriptor next = ConnectFrom(3);  // which gets the descriptor of the one before
  EXPECT_FALSE(IsReset(next));
  Denounce(gone);
  EXPECT_FALSE(IsReset(ConnectFrom(2)));  // after the next look at floods, or before: no pause
  EXPECT_EQ(write(next.get(), "?", 1), 1);
  pollfd wait = {next.get(), POLLIN, 0};
  EXPECT_EQ(poll(&wait, 1, 200), 0);
  EXPECT_EQ(listener_->floods(), 0);
}

TEST_F(ListenerTest, ResetsWhatIsBeyondItsCapUntilOthersAreGone) {
  Open({.connections_max = 3, .connections_per_address_max = 0});
  std::vector<Descriptor> connections;
  for (int i = 0; i < 5; ++i) {
    connections.push_back(ConnectFrom());
    EXPECT_EQ(IsReset(connections.back()), i >= 3) << i;
  }
  EXPECT_EQ(listener_->open(), 3);
  EXPECT_EQ(listener_->refused(), 2);
  LetAllGo();
  for (int i = 0; i < 3; ++i) {
    connections.push_back(ConnectFrom());
    EXPECT_FALSE(IsReset(connections.back())) << i;  // it looked before it refused
  }
  EXPECT_TRUE(IsReset(ConnectFrom()));
}

TEST_F(ListenerTest, CapsEachAddressByItself) {
  Open({.connections_max = 100, .connections_per_address_max = 2});
  std::vector<Descriptor> connections;
  for (const int host : {2, 2, 3, 3}) {
    connections.push_back(ConnectFrom(host));
    EXPECT_FALSE(IsReset(connections.back()));
  }
  EXPECT_TRUE(IsReset(ConnectFrom(2)));
  EXPECT_FALSE(IsReset(ConnectFrom(4)));
  LetAllGo();
  EXPECT_FALSE(IsReset(ConnectFrom(2)));
}

// Descriptors of closed connections come back for other files and other connections.
TEST_F(ListenerTest, TakesNoOtherFileForAConnection) {
  Open({.connections_max = 2, .connections_per_address_max = 0});
  for (int round = 0; round < 20; ++round) {
    EXPECT_FALSE(IsReset(ConnectFrom())) << round;
    EXPECT_FALSE(IsReset(ConnectFrom())) << round;
    LetAllGo();
    const Descriptor file(open("/dev/null", O_RDONLY));
    const Descriptor other(socket(AF_INET, SOCK_STREAM, 0));
  }
  EXPECT_EQ(listener_->refused(), 0);
}

// A limit of descriptors below which the test takes all there are.
class Scarcity {
 public:
  Scarcity() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit lower = before_;
    lower.rlim_cur = 256;
    setrlimit(RLIMIT_NOFILE, &lower);
  }
  ~Scarcity() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(ListenerTest, GoesOnWhenTheProcessHasHadNoDescriptor) {
  Open({.connections_max = 1000, .connections_per_address_max = 0});
  std::vector<Descriptor> clients;  // made before descriptors are scarce
  for (int i = 0; i < 10; ++i) clients.emplace_back(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(listener_->port()));
  {
    const Scarcity scarcity;
    std::vector<Descriptor> hoard;
    for (int made = 0; (made = open("/dev/null", O_RDONLY)) >= 0;) hoard.emplace_back(made);
    for (const Descriptor& client : clients) {
      ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
      EXPECT_TRUE(IsReset(client));
    }
  }
  EXPECT_FALSE(IsReset(ConnectFrom()));
  EXPECT_EQ(listener_->refused(), 10);
}

TEST_F(ListenerTest, HalfOfTheDescriptorsAreNotForConnections) {
  std::optional<Scarcity> scarcity(std::in_place);
  Open({.connections_max = 1000, .connections_per_address_max = 0});
  scarcity.reset();
  std::vector<Descriptor> connections;
  for (int i = 0; i < 130; ++i) {
    connections.push_back(ConnectFrom());
    EXPECT_EQ(IsReset(connections.back()), i >= 128) << i;
  }
}

TEST_F(ListenerTest, RefusesAnAddressThatItCannotHave) {
  Open({});
  for (const auto& [address, why] : std::vector<std::pair<std::string, std::string>>{
           {"127.0.0.1:" + std::to_string(listener_->port()), "in use"},
           {"192.0.2.1:0", "not of this machine"},
           {"127.0.0.1", "HOST:PORT"}}) {
    const auto refused = Listener::Open({.listen = address});
    ASSERT_EQ(ReasonOf(refused.status()), ErrorReason::kStoreUnavailable) << address;
    EXPECT_THAT(std::string(refused.status().message()),
                testing::AllOf(HasSubstr("cannot listen on " + address), HasSubstr(why)));
  }
}

TEST_F(ListenerTest, AllAddressesAreThoseOfIpv4Too) {
  const Descriptor ipv6(socket(AF_INET6, SOCK_STREAM, 0));
  if (ipv6.get() < 0) GTEST_SKIP() << "this machine has no IPv6";
  const auto listener = Listener::Open({.listen = "[::]:0"});
  ASSERT_THAT(listener, IsOk());
  Connect((*listener)->port());
}

TEST_F(ListenerTest, ListensOnAllThatANameStandsFor) {
  const auto listener = Listener::Open({.listen = "localhost:0"});
  ASSERT_THAT(listener, IsOk());
  EXPECT_GT((*listener)->port(), 0);
  Connect((*listener)->port());
}

}  // namespace
}  // namespace strata::server
