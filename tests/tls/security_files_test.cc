// What is made of the files of security at each look, by a clock that the test owns.
#include "service/app/security_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/escaping.h"
#include "schemas/base/error.h"
#include "schemas/base/sha256.h"
#include "schemas/base/strings.h"
#include "service/observability/log.h"
#include "tests/support/certificates.h"
#include "tests/support/manual_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_directory.h"

namespace strata::app {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using test_support::HasReason;
using test_support::IsOk;
using testing::HasSubstr;
using testing::IsEmpty;

class Files : public testing::Test {
 protected:
  Files() {
    observability::ConfigureLog(observability::LogLevel::kInfo, observability::LogFormat::kText);
    with_certificate_.tls_certificate = directory_.Join("certificate");
    with_certificate_.tls_key = directory_.Join("key");
    with_tokens_.tokens = directory_.Join("tokens");
  }

  void Write(const std::string& name, const std::string& text,
             fs::perms mode = fs::perms::owner_read | fs::perms::owner_write) const {
    std::ofstream(directory_.Join(name)) << text;
    fs::permissions(directory_.Join(name), mode);
  }
  void Serve(hours left) const {
    const test_support::Certificate certificate = ca_.IssueForServer(left);
    Write("certificate", certificate.chain_pem);
    Write("key", certificate.key_pem);
  }
  void WriteToken(const std::string& token) const {
    const Hash hash = Sha256().Update(token).Finish();
    Write("tokens", "one sha256:" + absl::BytesToHexString(ToAbsl(HashBytes(hash))) + "\n");
  }
  bool IsKnown(const std::string& token) const {
    const std::string header = "Bearer " + token;
    security::Credentials credentials;
    credentials.authorization.push_back(header);
    return access_.Identify(credentials).ok();
  }
  // What is logged while it works.
  template <typename Work>
  static std::string LogOf(Work work) {
    testing::internal::CaptureStderr();
    work();
    return testing::internal::GetCapturedStderr();
  }

  test_support::TemporaryDirectory directory_;
  const test_support::TestCa ca_{"ca"};
  test_support::ManualClock clock_{Clock::System().Now()};
  security::Access access_{clock_};
  SecurityOptions with_certificate_;
  SecurityOptions with_tokens_;
};

TEST_F(Files, ACertificateThatSoonExpiresIsWarnedOfOnceADay) {
  Serve(hours(24 * 15));
  SecurityFiles files(with_certificate_, clock_, access_);
  const auto look = [&] { return LogOf([&] { files.Look(); }); };
  EXPECT_THAT(LogOf([&] { EXPECT_THAT(files.Open(), IsOk()); }), IsEmpty());
  clock_.Advance(hours(25));
  EXPECT_THAT(look(), HasSubstr("certificate expires soon"));
  clock_.Advance(hours(23));
  EXPECT_THAT(look(), IsEmpty());
  clock_.Advance(hours(1));
  EXPECT_THAT(look(), HasSubstr("certificate expires soon"));
  clock_.Advance(hours(24 * 14));
  EXPECT_THAT(look(), HasSubstr("certificate has expired"));
}

// Whose clock is a little behind its authority's need not be told again.
TEST_F(Files, ACertificateOfTheNextMinuteIsUsedOnceItIsValid) {
  Serve(hours(24 * 30));
  SecurityFiles files(with_certificate_, clock_, access_);
  ASSERT_THAT(files.Open(), IsOk());
  const UnixMicros now = clock_.Now();
  clock_.SetNow(now - std::chrono::microseconds(hours(24 * 400)).count());
  Serve(hours(24 * 30));
  EXPECT_THAT(LogOf([&] { files.Look(); }), HasSubstr("is not valid before"));
  EXPECT_THAT(LogOf([&] { files.Look(); }), IsEmpty());
  clock_.SetNow(now);
  EXPECT_THAT(LogOf([&] { files.Look(); }), HasSubstr(" reloaded"));
}

TEST_F(Files, WhatIsTheSameIsNeitherUsedNorLoggedAgain) {
  WriteToken("a");
  SecurityFiles files(with_tokens_, clock_, access_);
  ASSERT_THAT(files.Open(), IsOk());
  const uint64_t generation = access_.generation();
  WriteToken("a");
  EXPECT_THAT(LogOf([&] { files.Look(); }), IsEmpty());
  EXPECT_EQ(access_.generation(), generation);
  EXPECT_THAT(LogOf([&] { files.Reload(); }), HasSubstr("reloaded"));
}

// It must not keep the others, or the removal of others, from being used.
TEST_F(Files, ATokenThatHasExpiredIsRefusedAloneAndByName) {
  const auto line = [](const std::string& name, const std::string& rest = "") {
    return name +
           " sha256:" + absl::BytesToHexString(ToAbsl(HashBytes(Sha256().Update(name).Finish()))) +
           rest + "\n";
  };
  const std::string old = line("old", " expires=2020-01-01T00:00:00Z");
  Write("tokens", old + line("removed") + line("kept"));
  SecurityFiles files(with_tokens_, clock_, access_);
  const std::string log = LogOf([&] { ASSERT_THAT(files.Open(), IsOk()); });
  EXPECT_THAT(log, testing::AllOf(HasSubstr("has expired"), HasSubstr("line=1"),
                                  HasSubstr("name=old"), HasSubstr(with_tokens_.tokens)));
  EXPECT_FALSE(IsKnown("old"));
  EXPECT_TRUE(IsKnown("removed"));
  Write("tokens", old + line("kept"));
  files.Look();
  EXPECT_FALSE(IsKnown("removed"));
  EXPECT_TRUE(IsKnown("kept"));
}

// Neither its size nor its times have to tell that a file has changed.
TEST_F(Files, AChangeIsSeenWhateverItsFileSaysOfItself) {
  WriteToken("a");
  SecurityFiles files(with_tokens_, clock_, access_);
  ASSERT_THAT(files.Open(), IsOk());
  const auto written = fs::last_write_time(with_tokens_.tokens);
  WriteToken("b");
  fs::last_write_time(with_tokens_.tokens, written);
  files.Look();
  EXPECT_TRUE(IsKnown("b"));
  EXPECT_FALSE(IsKnown("a"));
}

TEST_F(Files, AFaultIsLoggedOnceAndItsEndToo) {
  WriteToken("a");
  SecurityFiles files(with_tokens_, clock_, access_);
  ASSERT_THAT(files.Open(), IsOk());
  WriteToken("b");
  fs::permissions(with_tokens_.tokens, fs::perms::group_read, fs::perm_options::add);
  EXPECT_THAT(LogOf([&] { files.Look(); }),
              testing::AllOf(HasSubstr("not reloaded"), HasSubstr(with_tokens_.tokens),
                             HasSubstr("has mode 0640; it must be 0600 or 0400")));
  EXPECT_THAT(LogOf([&] { files.Look(); }), IsEmpty());
  EXPECT_TRUE(IsKnown("a"));
  fs::permissions(with_tokens_.tokens, fs::perms::group_read, fs::perm_options::remove);
  EXPECT_THAT(LogOf([&] { files.Look(); }), HasSubstr(" reloaded"));
  EXPECT_TRUE(IsKnown("b"));
}

// Between its truncation and its first byte.
TEST_F(Files, AFileThatIsJustBeingWrittenWithdrawsNoToken) {
  WriteToken("a");
  SecurityFiles files(with_tokens_, clock_, access_);
  ASSERT_THAT(files.Open(), IsOk());
  Write("tokens", "");
  EXPECT_THAT(LogOf([&] { files.Look(); }),
              testing::AllOf(HasSubstr("not reloaded"), HasSubstr("--tokens: is empty")));
  EXPECT_TRUE(IsKnown("a"));
  Write("tokens", "# nobody\n");
  files.Look();
  EXPECT_FALSE(IsKnown("a"));
}

TEST_F(Files, WhereThereAreNoneThereIsNothingToDo) {
  SecurityFiles files({}, clock_, access_);
  EXPECT_FALSE(files.any());
  EXPECT_THAT(files.Open(), IsOk());
  EXPECT_EQ(files.credentials(), nullptr);
  EXPECT_THAT(LogOf([&] { files.Reload(); }), IsEmpty());
}

TEST_F(Files, NothingIsServedByFilesThatCannotBeUsed) {
  Serve(hours(48));
  Write("key", "no key");
  SecurityFiles files(with_certificate_, clock_, access_);
  EXPECT_THAT(files.Open(), HasReason(ErrorReason::kInvalidField));
  EXPECT_EQ(files.credentials(), nullptr);
  EXPECT_THAT(SecurityFiles::Check(with_certificate_, clock_.Now()),
              HasReason(ErrorReason::kInvalidField));
}

}  // namespace
}  // namespace strata::app
