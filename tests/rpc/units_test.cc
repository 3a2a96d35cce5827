// The parts that need no socket: health, command line, times, statuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <limits>

#include "service/app/flags.h"
#include "service/observability/health.h"
#include "service/rpc/convert.h"
#include "service/server/status_mapping.h"
#include "tests/rpc/test_server.h"
#include "tests/support/temporary_directory.h"

namespace strata::rpc_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Health, TellsListenersWhatIsNew) {
  using State = observability::Health::State;
  observability::Health health({"a"});
  EXPECT_EQ(health.Of("a"), State::kNotServing);
  std::vector<State> heard;
  const int64_t number = health.Subscribe("a", [&](State state) { heard.push_back(state); });
  health.SetServing(true);
  health.SetServing(true);
  health.Unsubscribe(number);
  health.SetServing(false);
  EXPECT_THAT(heard, ElementsAre(State::kNotServing, State::kServing));
  EXPECT_EQ(health.Of("b"), State::kUnknownService);
}

std::variant<app::Flags, app::Exit> Parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "stratad");
  return app::ParseFlags(static_cast<int>(arguments.size()), arguments.data());
}

TEST(CommandLine, HasDefaultsFlagsEnvironmentAndFile) {
  const auto defaults = std::get<app::Flags>(Parsed({}));
  EXPECT_EQ(defaults.server.loop.listen, "127.0.0.1:50051");
  EXPECT_EQ(defaults.server.engine, "rocksdb");
  EXPECT_EQ(defaults.server.data, "./data");
  EXPECT_EQ(defaults.server.default_strategy, "deltas");
  EXPECT_TRUE(defaults.server.create_collections);
  EXPECT_EQ(defaults.server.document_bytes_max, size_t{1} << 20);
  EXPECT_EQ(defaults.server.grace, std::chrono::seconds(10));

  const test_support::TemporaryDirectory directory;
  std::ofstream(directory.Join("stratad.toml")) << "grace = 3\nengine = \"memory\"\n";
  setenv("STRATA_GRACE", "4", 1);
  setenv("STRATA_EXECUTOR_THREADS", "9", 1);
  setenv("STRATA_EVENT_LOOPS", "2", 1);
  const std::string config = "--config=" + directory.Join("stratad.toml");
  const auto set = std::get<app::Flags>(Parsed(
      {config.c_str(), "--no-create-collections", "--event-loops=3", "--listen", "[::1]:0"}));
  unsetenv("STRATA_GRACE");
  unsetenv("STRATA_EXECUTOR_THREADS");
  unsetenv("STRATA_EVENT_LOOPS");
  EXPECT_EQ(set.server.engine, "memory");
  EXPECT_EQ(set.server.grace, std::chrono::seconds(3));
  EXPECT_EQ(set.server.executor_threads, 9);
  EXPECT_EQ(set.server.loop.threads, 3);
  EXPECT_FALSE(set.server.create_collections);
  EXPECT_FALSE(
      std::get<app::Flags>(Parsed({"--create-collections=false"})).server.create_collections);
}

TEST(CommandLine, SaysWhatIsWrong) {
  for (const auto& [argument, word] :
       std::map<const char*, const char*>{{"--engine=oracle", "rocksdb"},
                                          {"--default-strategy=best", "full-copies"},
                                          {"--nonsense", "--nonsense"},
                                          {"--listen=0.0.0.0:1", "--insecure"},
                                          {"--listen=here", "HOST:PORT"},
                                          {"--document-bytes-max=3000000", "document-bytes-max"},
                                          {"--event-loops=0", "event-loops"},
                                          {"--log-level=loud", "log-level"}}) {
    const auto parsed = Parsed({argument});
    const auto* const exit = std::get_if<app::Exit>(&parsed);
    ASSERT_NE(exit, nullptr) << argument;
    EXPECT_EQ(exit->status, 2) << argument;
    EXPECT_THAT(exit->text, HasSubstr(word)) << argument;
    EXPECT_THAT(exit->text, testing::StartsWith("stratad: ")) << argument;
  }
}

TEST(Times, KeepMicrosecondsAndRefuseWhatTheyCannotHold) {
  google::protobuf::Timestamp time;
  for (const int64_t micros :
       {int64_t{0}, int64_t{-1}, int64_t{1'700'000'000'123'456}, int64_t{-62'135'596'800'000'000},
        int64_t{253'402'300'799'999'999}}) {
    rpc::FillTimestamp(micros, time);
    EXPECT_GE(time.nanos(), 0);
    EXPECT_EQ(*rpc::ToMicros("t", time, rpc::Round::kDown), micros);
    EXPECT_EQ(*rpc::ToMicros("t", time, rpc::Round::kUp), micros);
  }
  time.set_seconds(-1);
  time.set_nanos(999'999'001);
  EXPECT_EQ(*rpc::ToMicros("t", time, rpc::Round::kDown), -1);
  EXPECT_EQ(*rpc::ToMicros("t", time, rpc::Round::kUp), 0);
  for (const int64_t seconds :
       {int64_t{-62'135'596'801}, int64_t{253'402'300'800}, std::numeric_limits<int64_t>::max()}) {
    time.set_seconds(seconds);
    EXPECT_FALSE(rpc::ToMicros("t", time, rpc::Round::kDown).ok());
  }
  time.set_seconds(0);
  for (const int32_t nanos : {-1, 1'000'000'000}) {
    time.set_nanos(nanos);
    EXPECT_FALSE(rpc::ToMicros("t", time, rpc::Round::kDown).ok());
  }
}

// Whatever stands in an error, its trailers fit into what clients accept, 8 KiB.
TEST(Statuses, AreCutToWhatAClientAccepts) {
  Error error(ErrorReason::kInvalidContent, std::string(100'000, 'm'));
  error.With("field", std::string(100'000, 'f'));
  for (int i = 0; i < 100; ++i) error.With("key" + std::to_string(i), std::string(1000, 'v'));
  const grpc::Status status = server::ToGrpc(error);
  EXPECT_LT(status.error_message().size() + status.error_details().size() * 4 / 3, 8192 - 512);
  EXPECT_EQ(DetailsOf(status).reason, "INVALID_CONTENT");
  EXPECT_EQ(
      DetailsOf(server::ToGrpc(Error(ErrorReason::kInvalidName, "\xFF").With("field", "\xFF")))
          .reason,
      "INVALID_NAME");
}

TEST(Statuses, OfEachReasonSayTheSame) {
  for (const ErrorReason reason : AllErrorReasons()) {
    const grpc::Status status = server::ToGrpc(Error(reason, "text").With("collection", "c"));
    EXPECT_EQ(DetailsOf(status).reason, ReasonName(reason));
    EXPECT_EQ(static_cast<int>(status.error_code()), static_cast<int>(ReasonCode(reason)));
  }
}

}  // namespace
}  // namespace strata::rpc_test
