// The flags of stratad, from the command line, the environment and a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "schemas/base/sha256.h"
#include "service/app/flags.h"
#include "service/engines/engines.h"
#include "service/security/tokens.h"
#include "tests/support/certificates.h"
#include "tests/support/environment_variable.h"
#include "tests/support/temporary_directory.h"

namespace strata::app {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::variant<Flags, Exit> Parsed(const std::vector<std::string>& arguments) {
  std::vector<const char*> all = {"stratad"};
  for (const std::string& argument : arguments) all.push_back(argument.c_str());
  return ParseFlags(static_cast<int>(all.size()), all.data());
}

// What the server would be started with.
Flags Taken(const std::vector<std::string>& arguments) {
  auto parsed = Parsed(arguments);
  const auto* const exit = std::get_if<Exit>(&parsed);
  EXPECT_EQ(exit, nullptr) << exit->text;
  return exit == nullptr ? std::get<Flags>(std::move(parsed)) : Flags();
}

// What is said instead of starting it.
std::string Refusal(const std::vector<std::string>& arguments) {
  const auto parsed = Parsed(arguments);
  const auto* const exit = std::get_if<Exit>(&parsed);
  if (exit == nullptr) return "taken";
  EXPECT_EQ(exit->status, 2);
  EXPECT_THAT(exit->text, StartsWith("stratad: "));
  return exit->text;
}

class Configuration : public testing::Test {
 protected:
  // A file of that text, as an argument.
  std::string File(const std::string& text) {
    std::ofstream(path_) << text;
    return "--config=" + path_;
  }

  test_support::TemporaryDirectory directory_;
  const std::string path_ = directory_.Join("stratad.conf");
};

TEST_F(Configuration, HasDefaults) {
  const Flags flags = Taken({});
  EXPECT_EQ(flags.server.loop.listener.listen, "127.0.0.1:50051");
  EXPECT_EQ(flags.server.engine, "rocksdb");
  EXPECT_EQ(flags.server.data, "./data");
  EXPECT_EQ(flags.server.default_strategy, "deltas");
  EXPECT_TRUE(flags.server.create_collections);
  EXPECT_EQ(flags.server.document_bytes_max, size_t{1} << 20);
  EXPECT_EQ(flags.server.grace, std::chrono::seconds(10));
  EXPECT_TRUE(flags.server.engine_options.empty());
  EXPECT_FALSE(flags.server.single_record);
}

TEST_F(Configuration, SingleRecordsGoWithAnyEngineAndAreMarkedInHelp) {
  for (const engines::Engine& engine : engines::AllEngines()) {
    const Flags flags = Taken({"--single-record", "--engine=" + std::string(engine.name)});
    EXPECT_TRUE(flags.server.single_record);
    EXPECT_EQ(EngineText(flags.server), std::string(engine.name) + ", single records");
  }
  EXPECT_EQ(EngineText(Taken({}).server), "rocksdb");
  const auto help = Parsed({"--help"});
  EXPECT_THAT(std::get<Exit>(help).text,
              HasSubstr("--single-record                 for tests and demonstrations"));
}

TEST_F(Configuration, AFlagWinsOverTheEnvironmentAndThatOverTheFile) {
  const std::string file = File(
      "grace = 1\ndeadline = 1\nkeepalive = 1\ncreate-collections = true\nblock-cache-mib = 1\n"
      "insecure = true\n");
  const test_support::EnvironmentVariable deadline("STRATA_DEADLINE", "2");
  const test_support::EnvironmentVariable keepalive("STRATA_KEEPALIVE", "2");
  const test_support::EnvironmentVariable create("STRATA_NO_CREATE_COLLECTIONS", "1");
  const test_support::EnvironmentVariable cache("STRATA_BLOCK_CACHE_MIB", "2");
  const test_support::EnvironmentVariable insecure("STRATA_INSECURE", "false");
  const Flags flags = Taken({file, "--keepalive=3"});
  EXPECT_EQ(flags.server.grace, std::chrono::seconds(1));
  EXPECT_EQ(flags.server.loop.unary_deadline, std::chrono::seconds(2));
  EXPECT_EQ(flags.server.loop.keepalive_time, std::chrono::seconds(3));
  EXPECT_FALSE(flags.server.create_collections);
  EXPECT_FALSE(flags.server.insecure);
  EXPECT_EQ(flags.server.engine_options.at("block-cache-mib"), "2");
  const Flags turned = Taken({file, "--create-collections", "--block-cache-mib", "3"});
  EXPECT_TRUE(turned.server.create_collections);
  EXPECT_EQ(turned.server.engine_options.at("block-cache-mib"), "3");
}

// As --help lists them, under each of their names.
std::set<std::string> FlagNames() {
  const auto help = Parsed({"--help"});
  std::set<std::string> names;
  for (const auto& line : absl::StrSplit(std::get<Exit>(help).text, '\n')) {
    if (!absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "--")) continue;
    const std::vector<std::string> listed =
        absl::StrSplit(absl::StripLeadingAsciiWhitespace(line), ',');
    for (const std::string& name : listed) {
      if (name.substr(0, 2) != "--") break;
      names.insert(name.substr(2, name.find_first_of(" {") - 2));
    }
  }
  names.erase("version");
  return names;
}

// Of the value, or of an option of another engine than the default one.
auto SaysWhy() {
  return AnyOf(HasSubstr("no such value"), HasSubstr("engine rocksdb has no such option"));
}

TEST_F(Configuration, EveryFlagHasItsVariable) {
  const std::set<std::string> names = FlagNames();
  EXPECT_GE(names.size(), 18u);
  for (const std::string& name : names) {
    const test_support::EnvironmentVariable variable(
        "STRATA_" + absl::StrReplaceAll(absl::AsciiStrToUpper(name), {{"-", "_"}}),
        "no such value");
    if (name == "data") {
      EXPECT_EQ(Taken({}).server.data, "no such value");
    } else {
      EXPECT_THAT(Refusal({}), SaysWhy()) << name;
    }
  }
}

TEST_F(Configuration, EveryFlagHasItsNameInTheFile) {
  for (const std::string& name : FlagNames()) {
    if (name == "config") continue;  // no file names another
    const std::string file = File("\n" + name + " = 'no such value'\n");
    if (name == "data") {
      EXPECT_EQ(Taken({file}).server.data, "no such value");
    } else {
      EXPECT_THAT(Refusal({file}), AllOf(StartsWith("stratad: " + path_ + ":2: "), SaysWhy()))
          << name;
    }
  }
}

TEST_F(Configuration, AnEmptyVariableSaysNothing) {
  const test_support::EnvironmentVariable data("STRATA_DATA", "");
  const test_support::EnvironmentVariable grace("STRATA_GRACE", "");
  EXPECT_EQ(Taken({}).server.data, "./data");
}

TEST_F(Configuration, AFileMayHaveCommentsQuotesAndBlanks) {
  const Flags flags =
      Taken({File("# of the shop\r\n\r\n  data=\"/srv/a b#c\"  # here\r\n"
                  "engine = 'rocksdb'\r\n\tgrace =3 # short\r\nlog-level\t= debug")});
  EXPECT_EQ(flags.server.data, "/srv/a b#c");
  EXPECT_EQ(flags.server.grace, std::chrono::seconds(3));
  EXPECT_EQ(flags.log_level, observability::LogLevel::kDebug);
}

// Each is refused by its line, and by what is wrong with it.
TEST_F(Configuration, AFileIsTakenWholeOrRefusedByItsLine) {
  for (const auto& [line, problem] : std::map<std::string, std::string>{
           {"dta = \"/srv/strata\"", "no flag dta"},
           {"Data = x", "no flag Data"},
           {"--data = x", "no flag --data"},
           {"config = x", "no flag config"},
           {"version = true", "no flag version"},
           {"[server]", "sections"},
           {"[[server]]", "sections"},
           {"server.data = x", "no flag server.data"},
           {"grace = soon", "--grace"},
           {"grace = 3.5", "--grace"},
           {"grace = -1", "--grace"},
           {"insecure = perhaps", "--insecure"},
           {"no-create-collections = perhaps", "--create-collections"},
           {"engine = oracle", "rocksdb"},
           {"listen = here", "HOST:PORT"},
           {"listen = 0.0.0.0:1", "--insecure"},
           {"tls-certificate = none.pem", "none.pem is of no use without --tls-key"},
           {"tls-client = perhaps", "required"},
           {"tokens = none", "none cannot be read"},
           {"no-reflection = perhaps", "--reflection"},
           {"block-cache-mib = 0", "from 1 to 1048576"},
           {"block-cache-mib = x", "from 1 to 1048576"},
           {"data", "NAME = VALUE"},
           {"insecure", "NAME = VALUE"},
           {"data =", "one value"},
           {"data = \"\"", "one value"},
           {"data = a b", "one value"},
           {"data = \"a", "one value"},
           {"data = \"a\" b", "one value"},
           {"data = [a, b]", "one value"},
           {"= x", "no flag"},
           {"deadline = 6", "already"},
       }) {
    const std::string file = File("# first\ndeadline = 5\n\n\n" + line + "\nkeepalive = 4\n");
    EXPECT_THAT(Refusal({file}),
                AllOf(StartsWith("stratad: " + path_ + ":5: "), HasSubstr(problem), EndsWith("\n")))
        << line;
  }
}

TEST_F(Configuration, AFileMayNotContradictItself) {
  EXPECT_THAT(Refusal({File("create-collections = true\nno-create-collections = true\n")}),
              AllOf(HasSubstr(":2: "), HasSubstr(":1 already")));
}

TEST_F(Configuration, WhatIsOverriddenIsCheckedAllTheSame) {
  EXPECT_THAT(Refusal({File("grace = soon\n"), "--grace=3"}), HasSubstr(":1: --grace"));
  EXPECT_THAT(Refusal({File("block-cache-mib = x\n"), "--block-cache-mib=3"}),
              HasSubstr(":1: --block-cache-mib"));
  const test_support::EnvironmentVariable grace("STRATA_GRACE", "soon");
  EXPECT_THAT(Refusal({"--grace=3"}), StartsWith("stratad: STRATA_GRACE: --grace"));
}

TEST_F(Configuration, AVariableIsRefusedByItsName) {
  {
    const test_support::EnvironmentVariable create("STRATA_CREATE_COLLECTIONS", "1");
    const test_support::EnvironmentVariable no_create("STRATA_NO_CREATE_COLLECTIONS", "1");
    EXPECT_THAT(Refusal({}), AllOf(HasSubstr("STRATA_CREATE_COLLECTIONS already"),
                                   StartsWith("stratad: STRATA_NO_CREATE_COLLECTIONS: ")));
  }
  const test_support::EnvironmentVariable listen("STRATA_LISTEN", "here");
  EXPECT_THAT(Refusal({}), StartsWith("stratad: STRATA_LISTEN: --listen: not HOST:PORT"));
}

TEST_F(Configuration, AFileThatCannotBeReadIsNamed) {
  EXPECT_THAT(Refusal({"--config", directory_.Join("none")}), HasSubstr(directory_.Join("none")));
  EXPECT_THAT(Refusal({"--config", directory_.Join("")}), HasSubstr("cannot be read"));
  const test_support::EnvironmentVariable config("STRATA_CONFIG", directory_.Join("nowhere"));
  EXPECT_THAT(Refusal({}), HasSubstr(directory_.Join("nowhere")));
}

TEST_F(Configuration, TheCommandLineSaysWhatIsWrong) {
  for (const auto& [argument, word] :
       std::map<std::string, std::string>{{"--engine=oracle", "rocksdb"},
                                          {"--default-strategy=best", "full-copies"},
                                          {"--nonsense", "--nonsense"},
                                          {"--data=", "--data"},
                                          {"--listen=0.0.0.0:1", "--insecure"},
                                          {"--listen=here", "HOST:PORT"},
                                          {"--document-bytes-max=3000000", "document-bytes-max"},
                                          {"--event-loops=0", "event-loops"},
                                          {"--transaction-timeout=0", "transaction-timeout"},
                                          {"--ledger-retention=59s", "from 1m"},
                                          {"--ledger-retention=99999999d", "36500d"},
                                          {"--ledger-retention=long", "such as 90d"},
                                          {"--hold-transactions-after=done", "first-slot"},
                                          {"--block-cache-mib=0", "from 1 to 1048576"},
                                          {"--log-level=loud", "log-level"}}) {
    EXPECT_THAT(Refusal({argument}), HasSubstr(word)) << argument;
  }
  EXPECT_FALSE(Taken({}).server.ledger_retention);
  EXPECT_EQ(Taken({"--ledger-retention=90d"}).server.ledger_retention, std::chrono::hours(90 * 24));
  EXPECT_EQ(Taken({"--ledger-retention=1h30m"}).server.ledger_retention, std::chrono::minutes(90));
  EXPECT_FALSE(Taken({"--create-collections=false"}).server.create_collections);
  EXPECT_FALSE(Taken({"--no-create-collections"}).server.create_collections);
}

// Files of certificates, tokens and policy, and the flags that name them.
class SecurityFlags : public Configuration {
 protected:
  SecurityFlags() {
    const test_support::TestCa ca("ca");
    const test_support::Certificate certificate = ca.IssueForServer();
    for (const auto& [name, text] :
         {std::pair<std::string, std::string>("certificate", certificate.chain_pem),
          {"key", certificate.key_pem},
          {"ca", ca.pem()},
          {"tokens", "# nobody\n"},
          {"policy", R"({"grants": [{"principals": ["*"], "role": "reader",
                                      "resources": ["collection/*"]}]})"}}) {
      std::ofstream(directory_.Join(name)) << text;
      std::filesystem::permissions(directory_.Join(name), std::filesystem::perms::owner_read);
    }
  }

  const std::string certificate_ = "--tls-certificate=" + directory_.Join("certificate");
  const std::string key_ = "--tls-key=" + directory_.Join("key");
  const std::string client_ca_ = "--tls-client-ca=" + directory_.Join("ca");
  const std::string tokens_ = "--tokens=" + directory_.Join("tokens");
  const std::string policy_ = "--policy=" + directory_.Join("policy");
  const std::string anywhere_ = "--listen=0.0.0.0:0";
};

TEST_F(SecurityFlags, GoTogetherAsTheyMakeSense) {
  const std::vector<std::string> taken[] = {
      {certificate_, key_, "--open"},
      {certificate_, key_, "--open", anywhere_},
      {certificate_, key_, "--open", client_ca_, "--tls-client=optional"},
      {certificate_, key_, policy_, client_ca_, anywhere_},
      {certificate_, key_, policy_, client_ca_, "--tls-client=required"},
      {certificate_, key_, policy_, tokens_, anywhere_},
      {certificate_, key_, "--open", tokens_},
      {tokens_},
      {tokens_, policy_},
      {"--insecure", anywhere_},
      {"--no-reflection"},
  };
  for (const auto& flags : taken) Taken(flags);
  EXPECT_FALSE(Taken({"--no-reflection"}).server.reflection);
  EXPECT_TRUE(Taken({}).server.reflection);
  EXPECT_EQ(SecurityText(Taken({certificate_, key_, policy_, client_ca_}).server.security),
            "TLS, client certificates required, policy");
  EXPECT_EQ(SecurityText(Taken({}).server.security), "no TLS, open");
}

// The port for people beside the gRPC port, and no less careful.
TEST_F(SecurityFlags, OfThePortForPeopleGoTogetherAsTheyMakeSense) {
  EXPECT_TRUE(Taken({}).server.http.listen.empty());
  const std::string listen = "--http-listen=127.0.0.1:0";
  EXPECT_EQ(Taken({listen}).server.http.access, "read");
  const ServerOptions::Http http =
      Taken({listen, "--http-access=all", "--http-host=a.example,b", "--http-host=c"}).server.http;
  EXPECT_EQ(http.access, "all");
  EXPECT_THAT(http.hosts, testing::ElementsAre("a.example", "b", "c"));
  const std::string everywhere = "--http-listen=0.0.0.0:0";
  Taken({everywhere, "--insecure"});
  Taken({everywhere, certificate_, key_, policy_, tokens_});
  const std::tuple<std::vector<std::string>, std::string, std::string> refused[] = {
      {{"--http-listen=8080"}, "http-listen", "not HOST:PORT"},
      {{"--http-listen="}, "http-listen", "missing"},
      {{everywhere}, "http-listen", "--insecure"},
      {{everywhere, tokens_, "--insecure"}, "http-listen", "unencrypted"},
      {{"--http-access=all"}, "http-access", "--http-listen"},
      {{"--http-host=a"}, "http-host", "--http-listen"},
      {{listen, "--http-access=write"}, "http-access", "read"},
      {{listen, "--http-host=a:80"}, "http-host", "without scheme, port and path"},
      {{listen, "--http-host=http://a"}, "http-host", "without scheme, port and path"},
      {{listen, "--http-host=a/b"}, "http-host", "without scheme, port and path"},
  };
  for (const auto& [flags, flag, problem] : refused) {
    EXPECT_THAT(Refusal(flags), AllOf(HasSubstr("--" + flag), HasSubstr(problem)));
  }
}

TEST_F(SecurityFlags, AreRefusedByNameWhereTheyMakeNone) {
  const std::tuple<std::vector<std::string>, std::string, std::string> refused[] = {
      {{certificate_, "--open"}, "tls-certificate", "without --tls-key"},
      {{key_}, "tls-key", "without --tls-certificate"},
      {{client_ca_}, "tls-client-ca", "without --tls-certificate"},
      {{certificate_, key_, "--open", "--tls-client=optional"},
       "tls-client",
       "without --tls-client-ca"},
      {{certificate_, key_}, "tls-certificate", "--open"},
      {{certificate_, key_, client_ca_}, "tls-certificate", "--policy"},
      {{certificate_, key_, client_ca_, policy_, "--open"}, "open", "--policy"},
      {{tokens_, policy_, "--open"}, "open", "--policy"},
      {{policy_}, "policy", "no caller in"},
      {{certificate_, key_, policy_}, "policy", "no caller in"},
      {{tokens_, "--insecure", anywhere_}, "tokens", "unencrypted"},
      {{anywhere_}, "listen", "--insecure"},
      {{anywhere_, tokens_}, "listen", "--tls-certificate"},
      // A name may stand for any address, however it begins.
      {{"--listen=127.example.org:0"}, "listen", "--insecure"},
      {{"--listen=127.0.0.1.example.org:0"}, "listen", "--insecure"},
  };
  for (const auto& [flags, flag, problem] : refused) {
    EXPECT_THAT(Refusal(flags), AllOf(StartsWith("stratad: --" + flag + ": "), HasSubstr(problem)));
  }
}

// As of a variable that is not set: it must not pass for a flag that was not given.
TEST_F(SecurityFlags, AFileWithoutANameIsRefused) {
  for (const char* const flag :
       {"tls-certificate", "tls-key", "tls-client-ca", "tokens", "policy"}) {
    EXPECT_THAT(Refusal({"--" + std::string(flag), ""}),
                AllOf(HasSubstr(flag), HasSubstr("is empty")));
  }
}

TEST_F(SecurityFlags, KnownClientsAloneNeedOneLoop) {
  const auto loops = [&](const std::string& client) {
    return Taken({certificate_, key_, policy_, client_ca_, client, anywhere_}).server.loop.threads;
  };
  EXPECT_EQ(loops("--tls-client=required"), 1);
  EXPECT_EQ(loops("--tls-client=optional"), 2);
}

TEST_F(Configuration, WhereStrangersCanConnectTwoLoopsServe) {
  const auto loops = [](std::vector<std::string> arguments) {
    return Taken(std::move(arguments)).server.loop.threads;
  };
  EXPECT_EQ(loops({}), 1);
  EXPECT_EQ(loops({"--listen=[::1]:0"}), 1);
  EXPECT_EQ(loops({"--listen=0.0.0.0:0", "--insecure"}), 2);
  EXPECT_EQ(loops({"--listen=0.0.0.0:0", "--insecure", "--event-loops=1"}), 1);
  EXPECT_EQ(loops({"--event-loops=3"}), 3);
}

// Whoever gives it: the flag, the environment, the file.
TEST_F(Configuration, AnOptionOfAnotherEngineIsRefused) {
  const std::string why =
      "--block-cache-mib: engine memory has no such option; it belongs to rocksdb";
  EXPECT_EQ(Refusal({"--engine=memory", "--block-cache-mib=8"}), "stratad: " + why + "\n");
  const std::string file = File("block-cache-mib = 8\nengine = memory\n");
  EXPECT_EQ(Refusal({file}), "stratad: " + path_ + ":1: " + why + "\n");
  EXPECT_EQ(Taken({file, "--engine=rocksdb"}).server.engine_options.at("block-cache-mib"), "8");
  const test_support::EnvironmentVariable cache("STRATA_BLOCK_CACHE_MIB", "8");
  EXPECT_EQ(Refusal({"--engine=memory"}), "stratad: STRATA_BLOCK_CACHE_MIB: " + why + "\n");
}

TEST_F(Configuration, TransactionsAreHeldOnlyWhereThatIsAskedFor) {
  using transaction::HoldAfter;
  const transaction::TransactionsOptions usual = Taken({}).server.transactions;
  EXPECT_EQ(usual.hold_after, HoldAfter::kNever);
  EXPECT_EQ(usual.timeout, std::chrono::minutes(5));
  for (const auto& [step, hold_after] :
       std::map<std::string, HoldAfter>{{"new", HoldAfter::kNew},
                                        {"pending", HoldAfter::kPending},
                                        {"first-slot", HoldAfter::kFirstSlot},
                                        {"applied", HoldAfter::kApplied}}) {
    EXPECT_EQ(Taken({"--hold-transactions-after", step}).server.transactions.hold_after, hold_after)
        << step;
  }
  EXPECT_EQ(Taken({"--transaction-timeout=7"}).server.transactions.timeout,
            std::chrono::seconds(7));
  const auto help = Parsed({"--help"});
  const std::string& text = std::get<Exit>(help).text;
  const size_t flag = text.find("--hold-transactions-after STEP");
  ASSERT_NE(flag, std::string::npos);
  EXPECT_THAT(text.substr(flag, 120), HasSubstr("for tests and demonstrations"));
}

TEST_F(Configuration, HelpShowsEnginesOptionsUnderTheirNames) {
  const auto help = Parsed({"--help"});
  const std::string& text = std::get<Exit>(help).text;
  const size_t group = text.find("\nEngine rocksdb:\n");
  ASSERT_NE(group, std::string::npos) << text;
  EXPECT_GT(text.find("--block-cache-mib MIB "), group);
  EXPECT_LT(text.find("--block-cache-mib MIB "), text.find("\nDocuments:"));
  EXPECT_THAT(text, HasSubstr("[256]"));
}

TEST(EngineOptions, AreCheckedWhoeverOpensTheEngine) {
  engines::OpenOptions options;
  options.values["block-cache-mib"] = "8";
  EXPECT_EQ(engines::OpenEngine("memory", options).status().message(),
            "--block-cache-mib: engine memory has no such option; it belongs to rocksdb");
  options.values = {{"nonsense", "8"}};
  EXPECT_EQ(engines::OpenEngine("rocksdb", options).status().message(),
            "--nonsense: engine rocksdb has no such option");
}

TEST(EngineOptions, AreTextsNumbersAndSwitches) {
  const engines::EngineOption options[] = {
      {"address", "HOST", "", "where it is"},
      {"portion", "N", "4", "how many at once", &engines::ExpectedNumber<1, 8>},
      {"careful", "", "false", "asks twice"}};
  const engines::Engine engine{"far", options, 0, nullptr};
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"address", "anywhere"}, {"portion", "1"}, {"portion", "8"}, {"careful", "true"}}) {
    EXPECT_TRUE(engines::CheckOption(engine, name, value).ok()) << name << " " << value;
  }
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"portion", "0"},
                                                        {"portion", "9"},
                                                        {"portion", ""},
                                                        {"portion", "2x"},
                                                        {"careful", "perhaps"},
                                                        {"other", "1"}}) {
    EXPECT_FALSE(engines::CheckOption(engine, name, value).ok()) << name << " " << value;
  }
  EXPECT_EQ(engines::NumberOf({}, options[1]), 4);
  EXPECT_EQ(engines::NumberOf({{"portion", "7"}}, options[1]), 7);
  EXPECT_EQ(engines::ValueOf({{"address", "here"}}, options[0]), "here");
}

// A flag's default is an option's own, so each has to pass its own check.
TEST(EngineOptions, HaveDefaultsThatTheyTake) {
  for (const engines::Engine& engine : engines::AllEngines()) {
    for (const engines::EngineOption& option : engine.options) {
      EXPECT_TRUE(engines::CheckOption(engine, option.name, option.default_value).ok())
          << option.name;
      EXPECT_FALSE(option.words.empty()) << option.name;
    }
  }
}

TEST_F(Configuration, ATokenIsMadeWithItsLineAndNothingIsServed) {
  const auto parsed = Parsed({"token", "ci@example.org", "--expires", "2999-01-31T01:00:00+01:00"});
  const auto& made = std::get<Exit>(parsed);
  EXPECT_EQ(made.status, 0);
  const std::vector<std::string> lines = absl::StrSplit(made.text, '\n');
  ASSERT_EQ(lines.size(), 3u) << made.text;
  EXPECT_THAT(lines[0], StartsWith("strata_"));
  EXPECT_THAT(lines[1], AllOf(StartsWith("ci@example.org sha256:"),
                              EndsWith(" expires=2999-01-31T00:00:00Z")));
  EXPECT_EQ(lines[2], "");
  const auto tokens = security::Tokens::Parse(made.text.substr(lines[0].size() + 1), 0);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  const Hash hash = Sha256().Update(lines[0]).Finish();
  ASSERT_NE(tokens->Find(HashBytes(hash)), nullptr);
  EXPECT_NE(std::get<Exit>(Parsed({"token", "ci@example.org"})).text, made.text);
}

TEST_F(Configuration, ATokenThatCannotBeIsRefused) {
  EXPECT_THAT(Refusal({"token"}), HasSubstr("NAME"));
  EXPECT_THAT(Refusal({"token", ""}), HasSubstr("not a name"));
  EXPECT_THAT(Refusal({"token", "two words"}), HasSubstr("not a name"));
  EXPECT_THAT(Refusal({"token", std::string(129, 'a')}), HasSubstr("1 to 128 bytes"));
  EXPECT_THAT(Refusal({"token", "a", "b"}), HasSubstr("b"));
  EXPECT_THAT(Refusal({"token", "a", "--data=x"}), HasSubstr("--data"));
  EXPECT_THAT(Refusal({"token", "a", "--expires=tomorrow"}), HasSubstr("--expires"));
  EXPECT_THAT(Refusal({"token", "a", "--expires=infinite-future"}), HasSubstr("--expires"));
  EXPECT_THAT(Refusal({"token", "a", "--expires=2999-01-31T00:00:00"}), HasSubstr("zone"));
  EXPECT_THAT(Refusal({"token", "a", "--expires=2020-01-31T00:00:00Z"}), HasSubstr("passed"));
}

// What the server would refuse to start with is none of the command's business, and its words are
// none of the server's.
TEST_F(Configuration, TheServersFlagsAndATokensDoNotMix) {
  const test_support::EnvironmentVariable grace("STRATA_GRACE", "soon");
  const test_support::EnvironmentVariable config("STRATA_CONFIG", directory_.Join("nowhere"));
  EXPECT_EQ(std::get<Exit>(Parsed({"token", "a"})).status, 0);
  const test_support::EnvironmentVariable right_grace("STRATA_GRACE", "3");
  const test_support::EnvironmentVariable right_config("STRATA_CONFIG", "");
  const test_support::EnvironmentVariable token("STRATA_EXPIRES", "soon");
  const test_support::EnvironmentVariable command("STRATA_TOKEN", "soon");
  EXPECT_EQ(Taken({"--data", "token"}).server.data, "token");
  EXPECT_THAT(Refusal({File("expires = soon\n")}), HasSubstr("no flag expires"));
  EXPECT_THAT(Refusal({"--expires=2999-01-31T00:00:00Z"}), HasSubstr("--expires"));
}

TEST_F(Configuration, ATokensHelpSaysWhereItsLineGoes) {
  const auto help = Parsed({"token", "--help"});
  EXPECT_EQ(std::get<Exit>(help).status, 0);
  EXPECT_THAT(std::get<Exit>(help).text,
              AllOf(HasSubstr("NAME"), HasSubstr("--expires"), HasSubstr("file of\ntokens"),
                    HasSubstr("mode 0600")));
}

}  // namespace
}  // namespace strata::app
