// Claims about Ctrl-C and readers that go away, of the program itself.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/command_line.h"
#include "tests/fault/child_process.h"
#include "tests/support/places.h"
#include "tests/support/temporary_directory.h"

namespace strata::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// False: not within a minute.
bool Await(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class InterruptionTest : public CommandLine {
 protected:
  std::vector<std::string> Command(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), test_support::CommandLineProgram());
    arguments.insert(arguments.end(), {"--server", server_.address()});
    return arguments;
  }

  // A pipe with a name: `text` comes out of it, and then nothing, nor an end.
  std::string SilentPipe(const std::string& text) {
    const std::string name = directory_.Join("pipe");
    EXPECT_EQ(mkfifo(name.c_str(), 0600), 0);
    pipe_ = open(name.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_EQ(write(pipe_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    return name;
  }

  std::string Errors() const { return fault::ReadFile(errors_); }

  ~InterruptionTest() override {
    if (pipe_ >= 0) close(pipe_);
  }

  const test_support::TemporaryDirectory directory_;
  const std::string errors_ = directory_.Join("errors");
  int pipe_ = -1;
};

constexpr char kTwoLines[] =
    "{\"collection\":\"books\",\"id\":\"a\",\"content\":{}}\n"
    "{\"collection\":\"books\",\"id\":\"b\",\"content\":{}}\n"
    "{\"collection\":\"books\",\"id\":\"c\",\"con";  // begun, and not a line yet

TEST_F(InterruptionTest, AnImportThatWaitsForAPipeSaysHowFarItCame) {
  const std::string pipe = SilentPipe(kTwoLines);
  fault::ChildProcess import(Command({"import", pipe}), errors_);
  ASSERT_TRUE(Await([&] { return server_.received_calls().size() == 2; }));
  import.Signal(SIGINT);
  EXPECT_EQ(import.Wait(), 130);
  EXPECT_EQ(import.ReadAll(), "");
  EXPECT_THAT(Errors(), AllOf(HasSubstr("2 lines: 2 versions written, "),
                              HasSubstr("Run it again to continue")));
}

TEST_F(InterruptionTest, ApplyAndPushEndToo) {
  const std::string pipe = SilentPipe("{\"n\":1}\n");
  fault::ChildProcess push(Command({"push", "mails", "@" + pipe, "--lines"}), errors_);
  ASSERT_TRUE(Await([&] { return server_.received_calls().size() == 1; }));
  push.Signal(SIGTERM);
  EXPECT_EQ(push.Wait(), 143);
  EXPECT_THAT(Errors(), AllOf(HasSubstr("1 messages: 1 pushed, "), HasSubstr("interrupted"),
                              HasSubstr("with --request-id ")));
  std::filesystem::remove(errors_);
  fault::ChildProcess apply(Command({"apply", pipe}), errors_);
  const std::string message =
      "{\"operation\":\"insert\",\"student_id\":1,\"class\":\"a\",\"sequence_number\":1}\n";
  ASSERT_EQ(write(pipe_, message.data(), message.size()), static_cast<ssize_t>(message.size()));
  ASSERT_TRUE(Await([&] { return server_.received_calls().size() == 2; }));
  apply.Signal(SIGINT);
  EXPECT_EQ(apply.Wait(), 130);
  EXPECT_THAT(Errors(), AllOf(HasSubstr("1 messages: "), HasSubstr("interrupted")));
}

TEST_F(InterruptionTest, AnExportLeavesNoFile) {
  Run({"create", "books", "moby", "{}"});
  server_.is_silent = true;
  const std::string file = directory_.Join("books.ndjson");
  fault::ChildProcess exporting(Command({"export", "books", "-o", file}), errors_);
  ASSERT_TRUE(Await([&] { return server_.received_calls().size() == 3; }));
  EXPECT_TRUE(std::filesystem::exists(file + ".part"));
  exporting.Signal(SIGINT);
  EXPECT_EQ(exporting.Wait(), 130);
  EXPECT_THAT(Errors(), HasSubstr("interrupted: 0 documents, 0 versions in "));
  EXPECT_FALSE(std::filesystem::exists(file + ".part"));
  EXPECT_FALSE(std::filesystem::exists(file));
}

// As head is, and quietly.
TEST_F(InterruptionTest, AReaderThatGoesAwayEndsAnExport) {
  std::string lines;
  for (int i = 0; i < 2000; ++i) {
    lines += "{\"collection\":\"books\",\"id\":\"" + std::to_string(i) +
             "\",\"content\":{\"t\":\"" + std::string(1000, 'x') + "\"}}\n";
  }
  ASSERT_EQ(Run({"import", "-"}, lines).status, kExitOk);
  fault::ChildProcess exporting(Command({"export", "books"}), errors_);
  ASSERT_TRUE(exporting.ReadLine(std::chrono::minutes(1)).has_value());
  exporting.StopReading();
  EXPECT_EQ(exporting.Wait(), 128 + SIGPIPE);
  EXPECT_EQ(Errors(), "");
}

TEST_F(InterruptionTest, AVerificationSaysWhereToGoOn) {
  v1::VerifyResponse step;
  step.set_versions(7);
  server_.verify_steps = {step};
  server_.verify_breaks = 1'000'000;
  fault::ChildProcess verify(Command({"verify", "books"}), errors_);
  ASSERT_TRUE(Await([&] { return server_.received_calls().size() >= 2; }));
  verify.Signal(SIGINT);
  EXPECT_EQ(verify.Wait(), 130);
  EXPECT_THAT(Errors(), AllOf(HasSubstr("interrupted after 7 versions\n"),
                              HasSubstr("go on with: --resume 0\n")));
}

TEST_F(InterruptionTest, ASecondOneDoesNotWait) {
  Run({"create", "books", "moby", "{}"});
  server_.is_silent = true;
  const std::string file = directory_.Join("again.ndjson");
  // Its document is there already, so that it looks at a history that does not come.
  std::ofstream(file) << "{\"collection\":\"books\",\"id\":\"moby\",\"content\":{}}\n";
  fault::ChildProcess import(Command({"import", file}), errors_);
  ASSERT_TRUE(Await([&] { return server_.received_calls().size() == 3; }));
  import.Signal(SIGINT);
  import.Signal(SIGINT);
  // Two signals of one kind may arrive as one.
  std::atomic<bool> ended = false;
  std::thread insisting([&] {
    while (!ended) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      import.Signal(SIGINT);
    }
  });
  EXPECT_EQ(import.Wait(), 130);
  ended = true;
  insisting.join();
}

}  // namespace
}  // namespace strata::cli
