// Claims about watch: what it asks for, what it prints, and where it goes on.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "google/protobuf/util/json_util.h"
#include "tests/cli/command_line.h"

namespace strata::cli {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

v1::WatchResponse Message(const std::string& json) {
  v1::WatchResponse message;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &message).ok()) << json;
  return message;
}

std::string Event(int position, int index, const std::string& id) {
  return R"({"type": "EVENT_TYPE_VERSION", "position": ")" + std::to_string(position) +
         R"(", "index": )" + std::to_string(index) + R"(, "collection": "books", "id": ")" + id +
         R"(", "version": {"version": "1", "kind": "VERSION_KIND_CREATED",
             "commit_time": "2026-01-31T12:00:00Z", "change": {"actor": "ann"}}})";
}

v1::WatchResponse Events(const std::string& events, int resume) {
  return Message(R"({"events": [)" + events + R"(], "resume_position": ")" +
                 std::to_string(resume) + "\"}");
}

class WatchCommand : public CommandLine {
 protected:
  FakeFeed& feed() { return server_.feed; }
};

const grpc::Status kDraining(grpc::StatusCode::UNAVAILABLE, "server is draining");

TEST_F(WatchCommand, AsksForWhatIsWanted) {
  feed().streams = {{{Events(Event(8, 0, "a"), 8)}, {}}};
  const Outcome outcome = Run({"watch", "books", "a/", "--from", "7", "--kind", "created",
                               "--where", "stock<5", "--content", "--changes", "--count", "1"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  ASSERT_THAT(feed().requests, SizeIs(1));
  const v1::WatchRequest& sent = feed().requests[0];
  EXPECT_EQ(sent.collections(0), "books");
  EXPECT_EQ(sent.id_prefix(), "a/");
  EXPECT_EQ(sent.after_position(), 7);
  EXPECT_EQ(sent.kinds(0), v1::VERSION_KIND_CREATED);
  EXPECT_TRUE(sent.include_content());
  EXPECT_TRUE(sent.include_changes());
  EXPECT_EQ(sent.filter().fields().count("stock"), 1u);
}

TEST_F(WatchCommand, PrintsALineAnEventAndWhereToGoOn) {
  feed().streams = {{{Events("", 7), Events(Event(8, 0, "a") + "," + Event(8, 1, "b"), 8)}, {}}};
  const Outcome outcome = Run({"watch", "--count", "2"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("  8.1  2026-01-31 12:00:00.000000  books       b "));
  EXPECT_EQ(outcome.err, "go on with: --from 8\n");
}

TEST_F(WatchCommand, PrintsEventsForMachines) {
  feed().streams = {{{Events(Event(8, 0, "a"), 8)}, {}}};
  const Outcome outcome = Run({"watch", "--json", "--count", "1"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(R"("position":"8")"));
  EXPECT_THAT(outcome.out, HasSubstr(R"("actor":"ann")"));
}

TEST_F(WatchCommand, GoesOnWhereTheStreamBrokeAndPrintsNothingTwice) {
  feed().streams = {{{Events(Event(8, 0, "a"), 8), Events(Event(9, 0, "b"), 8)}, kDraining},
                    {{Events("", 8), Events(Event(9, 0, "b") + "," + Event(9, 1, "c"), 9)}, {}}};
  const Outcome outcome = Run({"watch", "--json", "--count", "3"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  ASSERT_THAT(feed().requests, SizeIs(2));
  EXPECT_EQ(feed().requests[0].start_case(), v1::WatchRequest::START_NOT_SET);
  EXPECT_EQ(feed().requests[1].after_position(), 8);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 3);
  EXPECT_EQ(outcome.out.find(R"("id":"b")"), outcome.out.rfind(R"("id":"b")"));
}

TEST_F(WatchCommand, ThatIsCutOffInAMessageGoesOnWithTheRest) {
  feed().streams = {
      {{Events(Event(8, 0, "a") + "," + Event(9, 0, "b") + "," + Event(10, 0, "c"), 10)}, {}}};
  const Outcome outcome = Run({"watch", "--count", "2"});
  EXPECT_EQ(outcome.err, "go on with: --from 9\n");
}

TEST_F(WatchCommand, ACopyGoesOnBehindItsLastDocument) {
  const auto copy = [](const std::string& id, bool complete) {
    return Message(R"({"documents": [{"collection": "books", "id": ")" + id +
                   R"(", "version": "3"}], "snapshot": {"at_position": "5",
                       "after_collection": "books", "after_id": ")" +
                   id + R"(", "complete": )" + (complete ? "true" : "false") +
                   R"(}, "resume_position": ")" + (complete ? "5" : "0") + "\"}");
  };
  feed().streams = {{{copy("a", false)}, kDraining},
                    {{copy("b", true)}, kDraining},
                    {{Events(Event(6, 0, "a"), 6)}, {}}};
  const Outcome outcome = Run({"watch", "books", "--snapshot", "--count", "3"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  ASSERT_THAT(feed().requests, SizeIs(3));
  EXPECT_EQ(feed().requests[0].snapshot().at_position(), 0);
  EXPECT_EQ(feed().requests[1].snapshot().after_id(), "a");
  EXPECT_EQ(feed().requests[2].after_position(), 5);
  EXPECT_THAT(outcome.out, HasSubstr("copy"));
}

TEST_F(WatchCommand, SaysWhyTheServerRefuses) {
  feed().streams = {{{}, {grpc::StatusCode::OUT_OF_RANGE, "position 9 is after the last"}}};
  const Outcome outcome = Run({"watch", "--from", "9"});
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, HasSubstr("position 9"));
}

TEST_F(WatchCommand, TakesOnePlaceToBegin) {
  EXPECT_EQ(Run({"watch", "--from", "9", "--beginning"}).status, kExitUsage);
  EXPECT_EQ(Run({"watch", "--from", "-1"}).status, kExitUsage);
  EXPECT_EQ(Run({"watch", "--count", "0"}).status, kExitUsage);
  EXPECT_EQ(Run({"watch", "--since", "yesterdayish"}).status, kExitUsage);
  EXPECT_THAT(feed().requests, SizeIs(0));
}

}  // namespace
}  // namespace strata::cli
