// The parts that need no socket: health, times, statuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "service/observability/health.h"
#include "service/rpc/convert.h"
#include "service/server/status_mapping.h"
#include "tests/rpc/test_server.h"

namespace strata::rpc_test {
namespace {

using testing::ElementsAre;

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

TEST(Health, OfWritesIsApart) {
  using State = observability::Health::State;
  observability::Health health({"a"});
  std::vector<State> writes;
  std::vector<State> others;
  health.Subscribe("strata.writes", [&](State state) { writes.push_back(state); });
  for (const char* const service : {"", "a"}) {
    health.Subscribe(service, [&](State state) { others.push_back(state); });
  }
  health.SetServing(true);
  health.SetWritable(false);
  health.SetWritable(false);
  EXPECT_EQ(health.Of("strata.writes"), State::kNotServing);
  EXPECT_EQ(health.Of("a"), State::kServing);
  health.SetWritable(true);
  health.SetWritable(false);
  health.SetServing(false);
  EXPECT_THAT(writes, ElementsAre(State::kNotServing, State::kServing, State::kNotServing,
                                  State::kServing, State::kNotServing));
  EXPECT_THAT(others, ElementsAre(State::kNotServing, State::kNotServing, State::kServing,
                                  State::kServing, State::kNotServing, State::kNotServing));
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
