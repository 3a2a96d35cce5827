// Certificates, authorities, tokens and policy change under load, and nobody who may call notices.
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <thread>

#include "tests/tls/tls_world.h"

namespace strata::tls_test {
namespace {

using testing::HasSubstr;

int Rounds() {
  const char* const text = std::getenv("STRATA_RELOADS");
  return text == nullptr ? 5 : std::atoi(text);
}

// Callers that call all the time, and shake hands anew every few calls.
class Load {
 public:
  Load(std::string address, const std::vector<Caller>& callers) : address_(std::move(address)) {
    for (const Caller& caller : callers) threads_.emplace_back([this, caller] { Run(caller); });
  }
  ~Load() { End(); }

  void End() {
    over_ = true;
    threads_.clear();
  }
  int64_t calls() const { return calls_; }
  int64_t failed() const { return failed_; }
  std::string first_failure() const {
    const std::lock_guard lock(mutex_);
    return first_failure_;
  }

 private:
  void Run(const Caller& caller) {
    constexpr int kCallsOfOneConnection = 20;
    while (!over_) {
      const auto channel = Connect(address_, caller);
      for (int i = 0; i < kCallsOfOneConnection && !over_; ++i) {
        const grpc::Status status = Get(channel, caller);
        ++calls_;
        if (IsLetIn(status)) continue;
        ++failed_;
        const std::lock_guard lock(mutex_);
        if (first_failure_.empty()) first_failure_ = status.error_message();
      }
    }
  }

  const std::string address_;
  std::atomic<bool> over_ = false;
  std::atomic<int64_t> calls_ = 0;
  std::atomic<int64_t> failed_ = 0;
  mutable std::mutex mutex_;
  std::string first_failure_;
  std::vector<std::jthread> threads_;
};

class Reload : public TlsWorld {
 protected:
  // What is served in one round besides what stays.
  struct Round {
    Certificate certificate;
    TestCa client_ca;
    std::string token;
    std::string principal;  // that only its policy lets in
  };

  Round MakeRound(int number) const {
    const std::string name = "round-" + std::to_string(number);
    return {ca_.IssueForServer(), TestCa(name), "strata_" + name, "user:" + name};
  }

  // Everybody of `stays_`, and that round's own.
  std::string MakeFolderOf(const Round& round) {
    std::string folder = MakeFolder();
    WriteFile(folder + "/server.pem", round.certificate.chain_pem);
    WriteFile(folder + "/server-key.pem", round.certificate.key_pem);
    WriteFile(folder + "/client-ca.pem", client_ca_.pem() + round.client_ca.pem());
    std::string tokens = TokenLine(round.principal.substr(5), round.token);
    for (int i = 0; i < kTokens; ++i) tokens += TokenLine(NameOf(i), TokenOf(i));
    WriteFile(folder + "/tokens", tokens);
    WriteFile(folder + "/policy.json",
              R"({"grants": [{"principals": ["user:stays-*", "spiffe://*", "dns:*", ")" +
                  round.principal + R"("], "role": "reader", "resources": ["collection/*"]}]})");
    return folder;
  }

  static std::string NameOf(int i) { return "stays-" + std::to_string(i); }
  static std::string TokenOf(int i) { return "strata_" + NameOf(i); }

  // 64 with tokens and certificates of both kinds, each with its own identity.
  std::vector<Caller> WhoStays() const {
    std::vector<Caller> callers;
    for (int i = 0; i < kTokens; ++i) callers.push_back({.ca = ca_.pem(), .token = TokenOf(i)});
    for (int i = 0; i < 16; ++i) {
      const std::string name = "c" + std::to_string(i);
      callers.push_back(
          {.ca = ca_.pem(), .certificate = client_ca_.IssueForUri("spiffe://example.org/" + name)});
      callers.push_back(
          {.ca = ca_.pem(), .certificate = client_ca_.Issue({.dns_names = {name + ".example"}})});
    }
    return callers;
  }

  // Who has that round's token, or a certificate of its authority.
  Caller TokenCaller(const Round& round) const { return {.ca = ca_.pem(), .token = round.token}; }
  Caller CertificateCaller(const Round& round) const {
    return {.ca = ca_.pem(),
            .certificate = round.client_ca.IssueForUri("spiffe://example.org/new")};
  }
  bool IsTaken(const Caller& caller) const {
    return IsLetIn(Get(Connect(server_->address(), caller), caller));
  }
  bool IsServed(const Round& round) const {
    return TlsClient({.port = port()}).server_certificate() == round.certificate.chain_pem;
  }

  static constexpr int kTokens = 32;
};

// Every fifth time each file is broken in another way.
void Break(const std::string& folder) {
  WriteFile(folder + "/server-key.pem", "no key\n");
  WriteFile(folder + "/tokens", "no token\n");
  WriteFile(folder + "/policy.json", "{\"grants\": [{\"principals\": []}]}");
}

TEST_F(Reload, NobodyWhoMayCallNoticesIt) {
  Round now = MakeRound(0);
  Publish(MakeFolderOf(now));
  Start(Flags());
  Load load(server_->address(), WhoStays());
  milliseconds longest_removal{0};
  milliseconds longest_certificate{0};
  for (int number = 1; number <= Rounds(); ++number) {
    SCOPED_TRACE(number);
    const Round next = MakeRound(number);
    const std::string folder = MakeFolderOf(next);
    const bool broken = number % 5 == 0;
    if (broken) Break(folder);
    const Caller leaving = TokenCaller(now);
    const auto channel = Connect(server_->address(), leaving);
    ASSERT_TRUE(IsLetIn(Get(channel, leaving)));
    Publish(folder);
    const Clock::time_point published = Clock::now();
    const auto since = [&] {
      return std::chrono::duration_cast<milliseconds>(Clock::now() - published);
    };
    if (broken) {
      const int lines = 3 * number / 5;
      EXPECT_TRUE(ComesTrue([&] { return LinesWith("not reloaded") >= lines; }, kPatience));
      EXPECT_TRUE(IsServed(now));
      EXPECT_TRUE(IsLetIn(Get(channel, leaving)));
      EXPECT_TRUE(IsTaken(CertificateCaller(now)));
      EXPECT_FALSE(IsTaken(CertificateCaller(next)));
      continue;
    }
    ASSERT_TRUE(ComesTrue([&] { return !IsLetIn(Get(channel, leaving)); }, kPatience));
    longest_removal = std::max(longest_removal, since());
    ASSERT_TRUE(ComesTrue([&] { return IsServed(next); }, kPatience));
    longest_certificate = std::max(longest_certificate, since());
    ASSERT_TRUE(ComesTrue([&] { return IsTaken(TokenCaller(next)); }, kPatience));
    EXPECT_TRUE(IsTaken(CertificateCaller(next)));
    EXPECT_FALSE(IsTaken(CertificateCaller(now)));
    EXPECT_EQ(Get(channel, leaving).error_code(), grpc::StatusCode::UNAUTHENTICATED);
    now = next;
  }
  load.End();
  EXPECT_EQ(load.failed(), 0) << load.first_failure() << "\n" << log();
  EXPECT_LT(longest_removal, seconds(2));
  EXPECT_LT(longest_certificate, seconds(3));
  std::cout << load.calls() << " calls of 64 callers; a removed token was refused after "
            << longest_removal.count() << " ms at most, a certificate served after "
            << longest_certificate.count() << " ms\n";
  EXPECT_EQ(server_->Stop(), 0);
}

// Long before anybody would have looked by himself, and whether or not something changed.
TEST_F(Reload, IsDoneAtOnceWhenItIsAskedFor) {
  Publish(MakeFolder());
  Start(Flags());
  kill(server_->pid(), SIGHUP);
  for (const char* name : {"server.pem", "tokens", "policy.json"}) {
    EXPECT_TRUE(ComesTrue([&] { return LinesWith(Path("published/") + name) == 1; }, kPatience))
        << log();
  }
  EXPECT_EQ(LinesWith("not reloaded"), 0);
  const std::string folder = MakeFolder();
  WriteFile(folder + "/tokens", "# nobody\n");
  Publish(folder);
  kill(server_->pid(), SIGHUP);
  const Caller reader{.ca = ca_.pem(), .token = kReaderToken};
  EXPECT_TRUE(ComesTrue([&] { return !IsLetIn(Get(Connect(server_->address(), reader), reader)); },
                        seconds(2)));
  EXPECT_EQ(server_->Stop(), 0);
}

TEST_F(Reload, SoonExpiringCertificatesAreWarnedOfAtTheStartAndWhenTheyComeAnew) {
  const auto folder_with = [&](std::chrono::hours left) {
    std::string folder = MakeFolder();
    const Certificate certificate = ca_.IssueForServer(left);
    WriteFile(folder + "/server.pem", certificate.chain_pem);
    WriteFile(folder + "/server-key.pem", certificate.key_pem);
    return folder;
  };
  Publish(folder_with(std::chrono::hours(24 * 13)));
  Start(Flags());
  EXPECT_TRUE(ComesTrue([&] { return LinesWith("certificate expires soon") == 1; }, kPatience));
  Publish(folder_with(std::chrono::hours(24 * 15)));
  EXPECT_TRUE(ComesTrue([&] { return LinesWith(" reloaded") == 1; }, kPatience)) << log();
  Publish(folder_with(std::chrono::hours(1)));
  EXPECT_TRUE(ComesTrue([&] { return LinesWith(" reloaded") == 2; }, kPatience)) << log();
  EXPECT_TRUE(ComesTrue([&] { return LinesWith("certificate expires soon") == 2; }, kPatience));
}

// Nothing of what a key or a token is stands in the log, whatever is wrong with them.
TEST_F(Reload, TellsNoSecrets) {
  Publish(MakeFolder());
  Start(Flags());
  const std::string folder = MakeFolder();
  const Certificate other = ca_.IssueForServer();
  WriteFile(folder + "/server-key.pem", other.key_pem);
  WriteFile(folder + "/tokens", "strata_mysecret\n");
  Publish(folder);
  EXPECT_TRUE(ComesTrue([&] { return LinesWith("not reloaded") == 2; }, kPatience)) << log();
  EXPECT_THAT(log(), testing::Not(HasSubstr("mysecret")));
  EXPECT_THAT(log(), testing::Not(HasSubstr(other.key_pem.substr(40, 20))));
}

}  // namespace
}  // namespace strata::tls_test
