// The log where nobody reads it, and where too much is said.
#include "service/observability/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "schemas/base/error.h"
#include "service/observability/access_log.h"
#include "service/observability/log_sink.h"

namespace strata::observability {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string SayDropped(int64_t lines) { return std::to_string(lines) + " dropped"; }

class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0); }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  int write_end() const { return ends_[1]; }
  // All that is in it now.
  std::string Read() {
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    std::string text;
    char buffer[4096];
    for (ssize_t count = 0; (count = read(ends_[0], buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<size_t>(count));
    }
    return text;
  }

 private:
  int ends_[2] = {-1, -1};
};

TEST(LogSinkTest, DropsWhatNobodyReadsAndSaysHowMuch) {
  Pipe pipe;
  spdlog::logger logger("test", std::make_shared<LogSink>(pipe.write_end(), &SayDropped));
  logger.set_pattern("%v");
  constexpr int kLines = 10'000;
  for (int i = 0; i < kLines; ++i) logger.info("line {:05}", i);  // more than a pipe holds
  const std::string first = pipe.Read();
  const auto kept = std::count(first.begin(), first.end(), '\n');
  EXPECT_LT(kept, kLines);
  EXPECT_GT(kept, 1000);
  EXPECT_THAT(first, Not(HasSubstr("dropped")));
  logger.info("read again");
  logger.info("and again");
  EXPECT_EQ(pipe.Read(), std::to_string(kLines - kept) + " dropped\nread again\nand again\n");
}

TEST(LogSinkTest, CutsALineThatIsTooLong) {
  Pipe pipe;
  spdlog::logger logger("test", std::make_shared<LogSink>(pipe.write_end(), &SayDropped));
  logger.set_pattern("%v");
  logger.info(std::string(100'000, 'x'));
  const std::string line = pipe.Read();
  EXPECT_EQ(line.size(), LogSink::kLineBytesMax);
  EXPECT_EQ(line.back(), '\n');
}

// What the process writes to its standard error.
class LogTest : public testing::Test {
 protected:
  LogTest() {
    fflush(stderr);
    dup2(pipe_.write_end(), STDERR_FILENO);
  }
  ~LogTest() override {
    dup2(standard_error_, STDERR_FILENO);
    close(standard_error_);
    ConfigureLog(LogLevel::kWarning, LogFormat::kText);
  }

  const int standard_error_ = dup(STDERR_FILENO);
  Pipe pipe_;
};

TEST_F(LogTest, ALineOfJsonStaysOneHoweverLongItsTexts) {
  ConfigureLog(LogLevel::kInfo, LogFormat::kJson);
  const std::string text(10'000, '\1');
  Log(LogLevel::kInfo, "event", {{"text", text}, {"other", text}, {"number", 7}});
  const std::string line = pipe_.Read();
  EXPECT_LE(line.size(), LogSink::kLineBytesMax);
  EXPECT_THAT(line, HasSubstr(R"(...","other":"...","number":7})"));
}

// Callers choose the names of what they are denied.
TEST_F(LogTest, NothingInALineIsObeyedByATerminalOrTurnsItRound) {
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    ConfigureLog(LogLevel::kInfo, format);
    Log(LogLevel::kInfo, "event",
        {{"a", "\x1b[2J\n\x7f"},
         {"b", "x\u009b31m\u0085"},
         {"c", "\u202e\u2066\u200f\u061c\u2028"},
         {"d", std::string_view("\0", 1)},
         {"cut", "\xc2"},
         {"short", "\xe2\x80"},
         {"e", "caf\u00e9\u20ac\u2027"}});
    const std::string line = pipe_.Read();
    for (const char* const shown :
         {R"("\u001b[2J\u000a\u007f")", R"("x\u009b31m\u0085")",
          R"("\u202e\u2066\u200f\u061c\u2028")", R"("\u0000")", "caf\u00e9\u20ac\u2027"}) {
      EXPECT_THAT(line, HasSubstr(shown));
    }
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  }
}

TEST_F(LogTest, TellsOfAHundredFailuresASecondAndCountsTheRest) {
  ConfigureLog(LogLevel::kInfo, LogFormat::kText);
  AccessLog access_log;
  const absl::Status refused = Error(ErrorReason::kInvalidName, "no");
  auto now = std::chrono::steady_clock::now();
  const auto fail = [&](int times) {
    for (int i = 0; i < times; ++i) access_log.OnEnd({"Get", refused, now, now});
  };
  const auto told = [](const std::string& log) {
    int calls = 0;
    for (size_t at = 0; (at = log.find(" call method=Get", at)) != std::string::npos; ++at) ++calls;
    return calls;
  };
  fail(1000);
  const std::string first = pipe_.Read();
  EXPECT_EQ(told(first), AccessLog::kFailuresASecondMax);
  EXPECT_THAT(first, Not(HasSubstr("not logged")));
  now += std::chrono::seconds(1);
  fail(2);
  const std::string second = pipe_.Read();
  EXPECT_EQ(told(second), 2);
  EXPECT_THAT(second, HasSubstr("failed calls were not logged calls=900"));
}

}  // namespace
}  // namespace strata::observability
