// What the log tells of those who are denied.
#include "service/security/denials.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "service/observability/log.h"

namespace strata::security {
namespace {

using observability::ConfigureLog;
using observability::LogFormat;
using observability::LogLevel;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

// What the process writes to its standard error, in place of the test's own.
class DenialsTest : public testing::Test {
 protected:
  DenialsTest() {
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC | O_NONBLOCK), 0);
    fflush(stderr);
    dup2(ends_[1], STDERR_FILENO);
    ConfigureLog(LogLevel::kInfo, LogFormat::kJson);
  }
  ~DenialsTest() override {
    dup2(standard_error_, STDERR_FILENO);
    for (const int end : {standard_error_, ends_[0], ends_[1]}) close(end);
    ConfigureLog(LogLevel::kWarning, LogFormat::kText);
  }

  // Since the last time.
  std::string Log() {
    std::string text;
    char buffer[4096];
    for (ssize_t count = 0; (count = read(ends_[0], buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<size_t>(count));
    }
    return text;
  }
  void Deny(const std::string& principal, const std::string& peer = "ipv4:10.0.0.7:1") {
    denials_.Tell({principal, "write", "collection/books", peer, "PERMISSION_DENIED"}, now_);
  }
  static int Lines(const std::string& log, const std::string& event = R"("denied")") {
    int lines = 0;
    for (size_t at = 0; (at = log.find(event, at)) != std::string::npos; ++at) ++lines;
    return lines;
  }

  Denials denials_;
  Denials::Time now_{std::chrono::hours(1)};

 private:
  const int standard_error_ = dup(STDERR_FILENO);
  int ends_[2] = {-1, -1};
};

TEST_F(DenialsTest, ALineTellsWhoAskedForWhatFromWhere) {
  Deny("user:a");
  EXPECT_THAT(Log(), HasSubstr(R"("denied","principal":"user:a","permission":"write",)"
                               R"("resource":"collection/books","peer":"ipv4:10.0.0.7:1",)"
                               R"("reason":"PERMISSION_DENIED"})"));
  Deny("");
  EXPECT_THAT(Log(), HasSubstr(R"("principal":"-")"));
}

TEST_F(DenialsTest, OfOneCallerTenASecondAreToldAndTheRestCounted) {
  for (int i = 0; i < 1000; ++i) Deny("user:a");
  std::string log = Log();
  EXPECT_EQ(Lines(log), 10);
  EXPECT_THAT(log, Not(HasSubstr("not logged")));
  Deny("user:b");
  EXPECT_EQ(Lines(Log()), 1);
  now_ += milliseconds(999);
  Deny("user:a");
  EXPECT_EQ(Log(), "");
  now_ += milliseconds(1);
  Deny("user:a");
  log = Log();
  EXPECT_EQ(Lines(log), 1);
  EXPECT_THAT(log, HasSubstr(R"("denials were not logged","principal":"user:a","denials":991)"));
  now_ += seconds(10);
  Deny("user:a");
  EXPECT_THAT(Log(), Not(HasSubstr("not logged")));
}

TEST_F(DenialsTest, WithoutAPrincipalTheOtherEndIsTheCaller) {
  for (int i = 0; i < 20; ++i) Deny("", "10.0.0.7");
  EXPECT_EQ(Lines(Log()), 10);
  Deny("", "10.0.0.8");
  EXPECT_EQ(Lines(Log()), 1);
}

TEST_F(DenialsTest, ACrowdIsRememberedUpToALimitAndThenCountsAsOne) {
  std::string log;
  for (int i = 0; i < 10'000; ++i) {
    Deny("user:" + std::to_string(i));
    if (i % 100 == 0) log += Log();
  }
  log += Log();
  EXPECT_EQ(denials_.size(), Denials::kCallersMax);
  EXPECT_EQ(Lines(log), static_cast<int>(Denials::kCallersMax) + 10);
  // A second later there is room again, and who was remembered is told as before.
  now_ += seconds(1);
  Deny("user:new");
  Deny("user:9999");
  EXPECT_EQ(Lines(Log()), 2);
  EXPECT_EQ(denials_.size(), 2u);
}

TEST_F(DenialsTest, NothingIsKeptOfWhatTheLogDoesNotTake) {
  ConfigureLog(LogLevel::kError, LogFormat::kText);
  Deny("user:a");
  EXPECT_EQ(Log(), "");
  EXPECT_EQ(denials_.size(), 0u);
}

}  // namespace
}  // namespace strata::security
