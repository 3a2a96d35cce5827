// What is kept and when it goes out, on real sockets and a clock that stands still.
#include "service/server/send_coalescer.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/support/manual_clock.h"

namespace strata::server {
namespace {

using test_support::ManualClock;
using testing::Ge;
using testing::Le;

constexpr int kSends = 20;
constexpr std::string_view kAnswer = "an answer;";

// Both ends of a TCP connection, as gRPC sets up its own.
class Connection {
 public:
  Connection() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener, name, size), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, name, &size), 0);
    client_ = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(client_, name, size), 0);
    server_ = accept(listener, nullptr, nullptr);
    const int one = 1;
    EXPECT_EQ(setsockopt(server_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), 0);
    close(listener);
  }
  ~Connection() {
    close(client_);
    close(server_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Send() const {
    std::string answer(kAnswer);
    iovec part{answer.data(), answer.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    ASSERT_EQ(sendmsg(server_, &message, MSG_NOSIGNAL), static_cast<ssize_t>(answer.size()));
  }

  // Whether the kernel keeps what is sent.
  bool corked() const {
    int on = 0;
    socklen_t size = sizeof on;
    EXPECT_EQ(getsockopt(server_, IPPROTO_TCP, TCP_CORK, &on, &size), 0);
    return on != 0;
  }

  // Segments with data that have left.
  uint32_t segments() const {
    tcp_info info{};
    socklen_t size = sizeof info;
    EXPECT_EQ(getsockopt(server_, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return info.tcpi_data_segs_out;
  }

  // Waits for so many answers.
  std::string Receive(int answers) const {
    std::string received(static_cast<size_t>(answers) * kAnswer.size(), '?');
    EXPECT_EQ(recv(client_, received.data(), received.size(), MSG_WAITALL),
              static_cast<ssize_t>(received.size()));
    return received;
  }

 private:
  int client_ = -1;
  int server_ = -1;
};

std::string Answers(int count) {
  std::string answers;
  for (int i = 0; i < count; ++i) answers += kAnswer;
  return answers;
}

class SendCoalescerTest : public testing::Test {
 protected:
  void SendInARow(const Connection& connection, int count) {
    const SendCoalescer::Scope answering(sends_);
    for (int i = 0; i < count; ++i) connection.Send();
  }

  ManualClock clock_;
  SendCoalescer sends_{clock_};
  Connection connection_;
};

// The kernel itself lets go of what it kept after 200 ms, so a machine that stalls may add one.
TEST_F(SendCoalescerTest, SendsInARowShareSegments) {
  SendInARow(connection_, kSends);
  EXPECT_TRUE(sends_.Holds());
  EXPECT_TRUE(connection_.corked());
  EXPECT_EQ(connection_.Receive(1), Answers(1)) << "the first goes out at once";
  EXPECT_THAT(connection_.segments(), Le(2U));
  sends_.Flush();
  EXPECT_FALSE(sends_.Holds());
  EXPECT_FALSE(connection_.corked());
  EXPECT_EQ(connection_.Receive(kSends - 1), Answers(kSends - 1));
  EXPECT_THAT(connection_.segments(), Le(3U));
}

TEST_F(SendCoalescerTest, SendsApartGoOutAtOnce) {
  for (int i = 0; i < kSends; ++i) {
    SendInARow(connection_, 1);
    EXPECT_FALSE(sends_.Holds());
    EXPECT_EQ(connection_.Receive(1), Answers(1));
    clock_.Advance(SendCoalescer::kApartMax + std::chrono::microseconds(1));
  }
  EXPECT_THAT(connection_.segments(), Ge(uint32_t{kSends}));
}

TEST_F(SendCoalescerTest, WhatIsKeptGoesOutWhenItHasWaited) {
  SendInARow(connection_, 2);
  clock_.Advance(SendCoalescer::kHeldMax - std::chrono::microseconds(1));
  sends_.FlushIfDue();
  EXPECT_TRUE(sends_.Holds());
  clock_.Advance(std::chrono::microseconds(1));
  sends_.FlushIfDue();
  EXPECT_FALSE(sends_.Holds());
  EXPECT_FALSE(connection_.corked());
  EXPECT_EQ(connection_.Receive(2), Answers(2));
}

// As when one commit answers hundreds of calls.
TEST_F(SendCoalescerTest, WhatIsKeptGoesOutInALongRow) {
  SendInARow(connection_, 2);
  constexpr int kMore = SendCoalescer::kHeldMax / SendCoalescer::kApartMax;
  for (int i = 0; i < kMore; ++i) {
    clock_.Advance(SendCoalescer::kApartMax);
    SendInARow(connection_, 1);
  }
  EXPECT_TRUE(sends_.Holds()) << "the last one begins anew";
  EXPECT_THAT(connection_.segments(), Ge(2U));
  EXPECT_EQ(connection_.Receive(1 + kMore), Answers(1 + kMore));
}

TEST_F(SendCoalescerTest, KeepsNothingOfOthers) {
  SendInARow(connection_, 1);
  for (int i = 0; i < kSends; ++i) connection_.Send();
  EXPECT_FALSE(sends_.Holds());
  EXPECT_EQ(connection_.Receive(kSends + 1), Answers(kSends + 1));
}

TEST_F(SendCoalescerTest, EachConnectionHasItsOwnRow) {
  const Connection other;
  SendInARow(connection_, 1);
  SendInARow(other, 1);
  EXPECT_FALSE(sends_.Holds());
  SendInARow(other, 2);
  SendInARow(connection_, 2);
  EXPECT_TRUE(other.corked());
  EXPECT_TRUE(connection_.corked());
  sends_.Flush();
  EXPECT_FALSE(other.corked());
  EXPECT_FALSE(connection_.corked());
  EXPECT_EQ(other.Receive(3), Answers(3));
  EXPECT_EQ(connection_.Receive(3), Answers(3));
}

TEST_F(SendCoalescerTest, AConnectionThatIsGoneIsNoMatter) {
  {
    const Connection gone;
    SendInARow(gone, 2);
    EXPECT_TRUE(sends_.Holds());
  }
  const Connection others;  // of the same numbers, as the kernel gives out the least that are free
  sends_.Flush();
  EXPECT_FALSE(sends_.Holds());
  EXPECT_FALSE(others.corked());
}

TEST_F(SendCoalescerTest, WhatIsKeptGoesOutAtTheEnd) {
  {
    SendCoalescer sends(clock_);
    const SendCoalescer::Scope answering(sends);
    connection_.Send();
    connection_.Send();
    EXPECT_TRUE(connection_.corked());
  }
  EXPECT_FALSE(connection_.corked());
  EXPECT_EQ(connection_.Receive(2), Answers(2));
}

}  // namespace
}  // namespace strata::server
