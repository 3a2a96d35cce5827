// Subscriptions and their streams, asked for what there is not: each row says what is asked for,
// which reason and field the answer must name, and what it must say. Nothing is stored.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "schemas/store/keyspace.h"
#include "schemas/store/single_record_store.h"
#include "service/engines/engines.h"
#include "tests/rpc/consuming.h"

namespace strata::rpc_test {
namespace {

using testing::HasSubstr;

constexpr ErrorReason kField = ErrorReason::kInvalidField;
constexpr ErrorReason kName = ErrorReason::kInvalidName;
constexpr ErrorReason kMessage = ErrorReason::kInvalidMessage;
constexpr ErrorReason kNotFound = ErrorReason::kSubscriptionNotFound;

void ExpectRefusal(const grpc::Status& status, ErrorReason reason, const std::string& field,
                   const std::string& says) {
  EXPECT_EQ(DetailsOf(status).reason, ReasonName(reason)) << status.error_message();
  EXPECT_EQ(DetailsOf(status).field(), field) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr(says));
  ExpectDocumentedMetadata(status);
}

enum class Leases { kToo, kLeftOut };

std::vector<std::string> StoredBytes(const store::Store& store, Leases leases = Leases::kToo) {
  std::vector<std::string> all;
  for (const store::Keyspace keyspace : store::kAllKeyspaces) {
    if (keyspace == store::Keyspace::kLeases && leases == Leases::kLeftOut) continue;
    for (const auto cursor = store.Scan(keyspace, store::Range{}); cursor->Valid();
         cursor->Next()) {
      all.push_back(std::string(store::KeyspaceName(keyspace)) + " " + std::string(cursor->key()) +
                    " " + std::string(cursor->value()));
    }
  }
  return all;
}

struct Row {
  std::string method;
  std::string request;
  ErrorReason reason;
  std::string field;
  std::string says;
};

struct WrongName {
  std::string text;
  std::string says;
};

// As JSON has them.
std::vector<WrongName> WrongNames() {
  return {{"", "is empty"},
          {std::string(257, 'x'), "has 257 bytes, at most 256"},
          {R"(a\nb)", "control character at byte 1"}};
}

// With the documents a and b, and the subscription "mail" of one partition from the beginning on.
class SubscriptionInput : public testing::Test {
 protected:
  SubscriptionInput() : SubscriptionInput(*engines::OpenEngine("memory", engines::OpenOptions())) {
    EXPECT_TRUE(
        server_.CreateSubscription(R"({"name": "mail", "partitions": 1, "after_position": 0})")
            .ok());
    for (const char* const id : {"a", "b"}) {
      const auto created = server_.Create(
          R"({"collection": "books", "content": {"json": {}}, "id": ")" + std::string(id) + "\"}");
      EXPECT_TRUE(created.ok());
      if (first_event_ == 0) first_event_ = created.response.commit_position();
    }
  }
  explicit SubscriptionInput(std::unique_ptr<store::Store> store)
      : store_(*store), server_(TestOptions(), std::move(store)) {}

  void Check(const std::vector<Row>& rows) {
    const std::vector<std::string> before = StoredBytes(store_);
    for (const Row& row : rows) {
      SCOPED_TRACE(row.method + " " + row.request.substr(0, 200));
      const grpc::Status status =
          server_.CallByName("strata.v1.FeedService/" + row.method, row.request);
      ExpectRefusal(status, row.reason, row.field, row.says);
    }
    EXPECT_TRUE(StoredBytes(store_) == before) << "what was refused changed something";
  }

  void Create(const std::string& members, ErrorReason reason, const std::string& field,
              const std::string& says) {
    Check({{"CreateSubscription", R"({"name": "new", )" + members + "}", reason, field, says}});
  }

  // A stream of these messages ends so. One that was opened before that has had leases.
  void Stream(const std::vector<std::string>& messages, ErrorReason reason,
              const std::string& field, const std::string& says, Leases leases = Leases::kToo) {
    SCOPED_TRACE(messages.empty() ? "no message" : messages.back().substr(0, 200));
    const std::vector<std::string> before = StoredBytes(store_, leases);
    Consuming consuming(server_.channel());
    for (const std::string& message : messages) consuming.Say(message);
    consuming.HalfClose();
    ExpectRefusal(consuming.AwaitEnd(), reason, field, says);
    if (leases == Leases::kLeftOut) AwaitGivenBack("mail");
    EXPECT_TRUE(StoredBytes(store_, leases) == before) << "what was refused changed something";
  }
  // Until nobody has the partition, of which nothing is done.
  void AwaitGivenBack(const std::string& name) {
    const std::string request = R"({"name": ")" + name + "\"}";
    v1::GetSubscriptionResponse state = server_.GetSubscription(request).response;
    while (state.consumers() > 0 || !state.partitions(0).consumer().empty()) {
      state = server_.GetSubscription(request).response;
    }
    EXPECT_LT(state.partitions(0).position(), first_event_);
    EXPECT_EQ(state.events_acknowledged(), 0);
  }
  void Open(const std::string& open, ErrorReason reason, const std::string& field,
            const std::string& says) {
    Stream({R"({"open": {)" + open + "}}"}, reason, field, says);
  }

  // What is said of the first of the two events, which have been delivered.
  using SayOf = std::function<void(Consuming& consuming, Delivered first, Delivered second)>;
  void AfterDelivery(const SayOf& say, ErrorReason reason, const std::string& field,
                     const std::string& says) {
    // Where nothing has failed yet, both come at once.
    const std::string name = "mail-" + std::to_string(++subscriptions_);
    ASSERT_TRUE(server_
                    .CreateSubscription(R"({"partitions": 1, "after_position": 0, "name": ")" +
                                        name + "\"}")
                    .ok());
    const std::vector<std::string> before = StoredBytes(store_, Leases::kLeftOut);
    Consuming consuming(server_.channel(), R"({"consumer": "c", "subscription": ")" + name + "\"}");
    const auto first = consuming.NextDelivery();
    const auto second = consuming.NextDelivery();
    ASSERT_TRUE(first && second) << consuming.AwaitEnd().error_message();
    say(consuming, *first, *second);
    ExpectRefusal(consuming.AwaitEnd(), reason, field, says);
    AwaitGivenBack(name);
    EXPECT_TRUE(StoredBytes(store_, Leases::kLeftOut) == before)
        << "what was refused changed something";
  }

  store::Store& store_;  // the server's
  TestServer server_;
  int64_t first_event_ = 0;  // its position
  int subscriptions_ = 0;
};

TEST_F(SubscriptionInput, NamesAreNames) {
  for (const auto& [name, says] : WrongNames()) {
    const std::string named = R"("name": ")" + name + "\"";
    const std::string of = R"("subscription": ")" + name + "\"";
    Check({{"CreateSubscription", "{" + named + "}", kName, "name", says},
           {"GetSubscription", "{" + named + "}", kName, "name", says},
           {"DeleteSubscription", "{" + named + "}", kName, "name", says},
           {"ListParked", "{" + of + "}", kName, "subscription", says},
           {"ReplayParked", "{" + of + "}", kName, "subscription", says},
           {"DiscardParked", "{" + of + "}", kName, "subscription", says}});
    Open(of + R"(, "consumer": "c")", kName, "open.subscription", says);
    Open(R"("subscription": "mail", "consumer": ")" + name + "\"", kName, "open.consumer", says);
    if (name.empty()) continue;
    Check({{"ListSubscriptions", R"({"prefix": ")" + name + "\"}", kName, "prefix", says}});
  }
  Check({{"CreateSubscription", R"({"name": "$mail"})", kName, "name", "\"$\""}});
}

TEST_F(SubscriptionInput, WhatIsNotThereIsNotFound) {
  for (const char* const name : {"none", "$sub"}) {
    const std::string named = R"({"name": ")" + std::string(name) + "\"}";
    const std::string of = R"({"subscription": ")" + std::string(name) + "\"}";
    Check({{"GetSubscription", named, kNotFound, "", "no such subscription"},
           {"DeleteSubscription", named, kNotFound, "", "no such subscription"},
           {"ListParked", of, kNotFound, "", "no such subscription"},
           {"ReplayParked", of, kNotFound, "", "no such subscription"},
           {"DiscardParked", of, kNotFound, "", "no such subscription"}});
    Open(R"("consumer": "c", "subscription": ")" + std::string(name) + "\"", kNotFound, "",
         "no such subscription");
  }
  Check({{"CreateSubscription", R"({"name": "mail"})", ErrorReason::kSubscriptionExists, "",
          "the subscription exists"}});
}

TEST_F(SubscriptionInput, WhatASubscriptionIsHasLimits) {
  const std::string long_name(257, 'x');
  std::string many;
  for (int i = 0; i < 101; ++i) many += (i == 0 ? "\"c" : ",\"c") + std::to_string(i) + "\"";
  Create(R"("collections": [)" + many + "]", kField, "collections", "101");
  Create(R"("collections": ["a", ""])", kName, "collections[1]", "is empty");
  Create(R"("id_prefix": "a")", kField, "id_prefix", "exactly one collection");
  Create(R"("collections": ["a"], "id_prefix": ")" + long_name + "\"", kField, "id_prefix", "256");
  Create(R"("kinds": [99])", kField, "kinds[0]", "no kind");
  Create(R"("filter": {"a": ")" + std::string(65 << 10, 'x') + "\"}", ErrorReason::kInvalidFilter,
         "filter", "65536");
  Create(R"("filter": {"a": {"$near": 1}})", ErrorReason::kInvalidFilter, "filter", "$near");
  Create(R"("after_position": -1)", kField, "after_position", "-1");
  Create(R"("after_position": "9223372036854775807")", ErrorReason::kPositionUnknown,
         "after_position", "after the last commit");
  Create(R"("after_position": 1)", ErrorReason::kPositionTrimmed, "after_position", "is before");
  Create(R"("start_time": "9999-01-01T00:00:00Z")", kField, "start_time", "future");
  Create(R"("partitions": -1)", kField, "partitions", "1 to 64");
  Create(R"("partitions": 65)", kField, "partitions", "1 to 64");
  Create(R"("max_attempts": -1)", kField, "max_attempts", "1 to 1000");
  Create(R"("max_attempts": 1001)", kField, "max_attempts", "1 to 1000");
}

TEST_F(SubscriptionInput, TimesAreWithinTheirLimits) {
  Create(R"("backoff_first": "0s")", kField, "backoff_first", "1ms to 1h");
  Create(R"("backoff_first": "3600.001s")", kField, "backoff_first", "1ms to 1h");
  Create(R"("backoff_first": "-1s")", kField, "backoff_first", "1ms to 1h");
  Create(R"("backoff_max": "0.999s")", kField, "backoff_max", "1s to 24h");
  Create(R"("backoff_first": "10s", "backoff_max": "9s")", kField, "backoff_max", "10s to 24h");
  Create(R"("backoff_max": "86401s")", kField, "backoff_max", "1s to 24h");
  Create(R"("ack_timeout": "0.999s")", kField, "ack_timeout", "1s to 24h");
  Create(R"("ack_timeout": "86401s")", kField, "ack_timeout", "1s to 24h");
  Create(R"("lease_ttl": "0.999s")", kField, "lease_ttl", "1s to 1h");
  Create(R"("lease_ttl": "3601s")", kField, "lease_ttl", "1s to 1h");
}

TEST_F(SubscriptionInput, TakesAllThatIsAtALimit) {
  int made = 0;
  for (const std::string& members :
       {std::string(R"("partitions": 0)"), std::string(R"("partitions": 1)"),
        std::string(R"("partitions": 64, "max_attempts": 1000)"),
        std::string(R"("backoff_first": "0.001s", "backoff_max": "0.001s")"),
        std::string(R"("backoff_first": "3600s", "backoff_max": "86400s")"),
        std::string(R"("backoff_first": "3600s", "ack_timeout": "1s", "lease_ttl": "1s")"),
        std::string(R"("ack_timeout": "86400s", "lease_ttl": "3600s")"),
        std::string(R"("filter": {"a": ")" + std::string(65'000, 'x') + "\"}"),
        std::string(R"("collections": ["a", "a"], "id_prefix": "x")")}) {
    SCOPED_TRACE(members.substr(0, 200));
    const auto created =
        server_.CreateSubscription(R"({"name": ")" + std::to_string(++made) +
                                   std::string(250, 'x') + R"(", )" + members + "}");
    EXPECT_TRUE(created.ok()) << created.status.error_message();
    const v1::Subscription& subscription = created.response.subscription();
    EXPECT_GE(subscription.partitions(), 1);
    EXPECT_GE(subscription.backoff_max().seconds(), subscription.backoff_first().seconds());
  }
  EXPECT_EQ(server_.GetSubscription(R"({"name": "1)" + std::string(250, 'x') + "\"}")
                .response.partitions_size(),
            8);
}

TEST_F(SubscriptionInput, PagesAndParkedDocumentsAreNamedWell) {
  Check({{"ListSubscriptions", R"({"page_size": 1001})", kField, "page_size", "1 to 1000"},
         {"ListSubscriptions", R"({"page_token": "x"})", ErrorReason::kInvalidPageToken,
          "page_token", ""},
         {"ListParked", R"({"subscription": "mail", "page_size": -1})", kField, "page_size",
          "1 to 1000"},
         {"ListParked", R"({"subscription": "mail", "page_token": "x"})",
          ErrorReason::kInvalidPageToken, "page_token", ""}});
  for (const char* const method : {"ReplayParked", "DiscardParked"}) {
    Check(
        {{method, R"({"subscription": "mail", "id": "a"})", kName, "collection", "is empty"},
         {method, R"({"subscription": "mail", "collection": "books"})", kName, "id", "is empty"}});
  }
}

TEST_F(SubscriptionInput, AStreamIsOpenedFirstAndOnce) {
  const std::string open = R"({"open": {"subscription": "mail", "consumer": "c"}})";
  Stream({}, kMessage, "", "no message");
  Stream({"{}"}, kMessage, "", "has to be an open");
  Stream({R"({"ack": {"partition": 0, "position": 1}})"}, kMessage, "", "has to be an open");
  Stream({R"({"nack": {"partition": 0, "position": 1}})"}, kMessage, "", "has to be an open");
  Stream({open, open}, kMessage, "", "second open", Leases::kLeftOut);
  Stream({open, "{}"}, kMessage, "", "without ack or nack", Leases::kLeftOut);
}

TEST_F(SubscriptionInput, WhatAStreamAsksForHasLimits) {
  const std::string start = R"("subscription": "mail", "consumer": "c", )";
  Open(start + R"("window": -1)", kField, "open.window", "1 to 1000");
  Open(start + R"("window": 1001)", kField, "open.window", "1 to 1000");
  Open(start + R"("encoding": 99)", kField, "open.encoding", "99");
}

TEST_F(SubscriptionInput, AcksAreOfWhatIsDelivered) {
  const auto ack = [](int partition, int64_t position, int index) {
    return R"({"ack": {"partition": )" + std::to_string(partition) + R"(, "position": )" +
           std::to_string(position) + R"(, "index": )" + std::to_string(index) + "}}";
  };
  AfterDelivery([&](Consuming& consuming, const Delivered& first,
                    const Delivered&) { consuming.Say(ack(0, first.event().position(), 7)); },
                kField, "ack", "not delivered");
  AfterDelivery(
      [&](Consuming& consuming, const Delivered&, const Delivered& second) {
        consuming.Say(ack(0, second.event().position() + 1, 0));
      },
      kField, "ack", "not delivered");
  AfterDelivery([&](Consuming& consuming, const Delivered& first,
                    const Delivered&) { consuming.Say(ack(1, first.event().position(), 0)); },
                kField, "ack.partition", "never had");
  AfterDelivery([&](Consuming& consuming, const Delivered& first,
                    const Delivered&) { consuming.Say(ack(-1, first.event().position(), 0)); },
                kField, "ack.partition", "never had");
}

TEST_F(SubscriptionInput, NacksAreOfTheFirstThatIsOpen) {
  AfterDelivery([](Consuming& consuming, const Delivered&,
                   const Delivered& second) { consuming.Nack(second, "too early"); },
                kField, "nack", "follows events");
  AfterDelivery([](Consuming& consuming, const Delivered& first,
                   const Delivered&) { consuming.Nack(first, std::string(1025, 'x')); },
                kField, "nack.reason", "1024");
  AfterDelivery(
      [](Consuming& consuming, const Delivered& first, const Delivered&) {
        consuming.Nack(first, "once");
        consuming.Nack(first, "twice");
      },
      kField, "nack", "");
}

TEST(SubscriptionsWithoutPositions, AreUnsupported) {
  TestServer server(TestOptions(), std::make_unique<store::SingleRecordStore>(
                                       *engines::OpenEngine("memory", engines::OpenOptions())));
  for (const auto& [method, request] : std::vector<std::pair<std::string, std::string>>{
           {"CreateSubscription", R"({"name": "mail"})"},
           {"GetSubscription", R"({"name": "mail"})"},
           {"ListSubscriptions", "{}"},
           {"DeleteSubscription", R"({"name": "mail"})"},
           {"ListParked", R"({"subscription": "mail"})"},
           {"ReplayParked", R"({"subscription": "mail"})"},
           {"DiscardParked", R"({"subscription": "mail"})"},
           {"GetFeed", "{}"},
       }) {
    SCOPED_TRACE(method);
    const grpc::Status status = server.CallByName("strata.v1.FeedService/" + method, request);
    EXPECT_EQ(DetailsOf(status).reason, "UNSUPPORTED_BY_ENGINE") << status.error_message();
    ExpectDocumentedMetadata(status);
  }
  Consuming consuming(server.channel(), R"({"subscription": "mail", "consumer": "c"})");
  const grpc::Status status = consuming.AwaitEnd();
  EXPECT_EQ(DetailsOf(status).reason, "UNSUPPORTED_BY_ENGINE") << status.error_message();
  ExpectDocumentedMetadata(status);
}

}  // namespace
}  // namespace strata::rpc_test
