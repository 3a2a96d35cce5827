// The real server killed in the middle of writes, again and again: nothing acknowledged is lost,
// and what was not acknowledged takes effect at most once.
#include <grpc/health/v1/health.grpc.pb.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "strata/v1/collection_service.grpc.pb.h"
#include "strata/v1/document_service.grpc.pb.h"
#include "tests/fault/server_process.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_directory.h"

namespace strata::fault {
namespace {

constexpr int kWriters = 8;
constexpr int kDocumentsPerCollection = 3;
// Documents are written during that many cycles and then only read, so that each check is short.
constexpr int kCyclesPerGeneration = 10;
constexpr int kAcknowledgedMax = 200;  // writes between two kills

struct Address {
  std::string collection;
  std::string id;
  auto operator<=>(const Address&) const = default;
};

// An update and, once it is known, the version that it made.
struct Write {
  Address address;
  std::string request_id;
  int64_t version = 0;  // 0: unknown
};

// What the server has promised: for each document, the request that made each version.
using Promises = std::map<Address, std::map<int64_t, std::string>>;

int CyclesWanted() {
  const char* wanted = std::getenv("STRATA_KILL_CYCLES");
  return wanted == nullptr ? 100 : std::atoi(wanted);
}

class Client {
 public:
  explicit Client(const ServerProcess& server)
      : documents_(v1::DocumentService::NewStub(server.Connect())) {}

  // Adds one to the count and names the request, so that each version's content tells its place and
  // its maker. Fills in the version.
  grpc::Status Send(Write& write) {
    v1::UpdateRequest request;
    request.set_collection(write.address.collection);
    request.set_id(write.address.id);
    request.set_request_id(write.request_id);
    request.set_allow_missing(true);
    request.set_omit_content(true);
    v1::Operation& count = *request.mutable_patch()->add_operations();
    count.set_path("/count");
    count.mutable_increment()->set_number_value(1);
    v1::Operation& last = *request.mutable_patch()->add_operations();
    last.set_path("/last");
    last.mutable_set()->set_string_value(write.request_id);
    v1::UpdateResponse response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    const grpc::Status status = documents_->Update(&context, request, &response);
    if (status.ok()) write.version = response.document().version();
    return status;
  }

  // All versions, oldest first, with content.
  grpc::Status ReadHistory(const Address& address, std::vector<v1::Version>& versions) {
    v1::HistoryRequest request;
    request.set_collection(address.collection);
    request.set_id(address.id);
    request.set_oldest_first(true);
    request.set_include_content(true);
    request.set_page_size(1000);
    do {
      v1::HistoryResponse response;
      grpc::ClientContext context;
      const grpc::Status status = documents_->History(&context, request, &response);
      if (!status.ok()) return status;
      versions.insert(versions.end(), response.versions().begin(), response.versions().end());
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    return grpc::Status::OK;
  }

 private:
  std::unique_ptr<v1::DocumentService::Stub> documents_;
};

class KillTest : public testing::Test {
 protected:
  KillTest()
      : settings_{directory_.Join("data"), directory_.Join("log"), "127.0.0.1:0", {}},
        random_(seed_) {
    std::cout << "seed " << seed_ << "\n";
  }

  void CreateCollections(const ServerProcess& server) {
    const auto collections = v1::CollectionService::NewStub(server.Connect());
    for (int number = v1::Strategy_MIN + 1; number <= v1::Strategy_MAX; ++number) {
      v1::CreateCollectionRequest request;
      request.set_name(v1::Strategy_Name(number));
      request.set_strategy(static_cast<v1::Strategy>(number));
      v1::CreateCollectionResponse response;
      grpc::ClientContext context;
      const grpc::Status status = collections->CreateCollection(&context, request, &response);
      ASSERT_TRUE(status.ok()) << status.error_message();
      collections_.push_back(request.name());
    }
  }

  // The documents that this cycle writes: a few of each strategy.
  std::vector<Address> DocumentsOf(int cycle) const {
    std::vector<Address> documents;
    for (const std::string& collection : collections_) {
      for (int i = 0; i < kDocumentsPerCollection; ++i) {
        documents.push_back({collection, "generation-" +
                                             std::to_string(cycle / kCyclesPerGeneration) + "/" +
                                             std::to_string(i)});
      }
    }
    return documents;
  }

  // Writes from many threads, kills the server in their midst; each thread ends with its first
  // failed call.
  void WriteUntilKilled(ServerProcess& server, int cycle) {
    const int kill_after = std::uniform_int_distribution<int>(1, kAcknowledgedMax)(random_);
    const std::vector<Address> documents = DocumentsOf(cycle);
    std::atomic<int> acknowledged = 0;
    std::vector<std::vector<Write>> writes(kWriters);
    std::vector<std::thread> writers;
    for (int writer = 0; writer < kWriters; ++writer) {
      writers.emplace_back([&, writer, seed = random_()] {
        std::mt19937_64 random(seed);
        Client client(server);
        while (true) {
          std::vector<Write>& mine = writes[static_cast<size_t>(writer)];
          mine.push_back({documents[random() % documents.size()], std::to_string(cycle) + "." +
                                                                      std::to_string(writer) + "." +
                                                                      std::to_string(mine.size())});
          if (!client.Send(mine.back()).ok()) break;
          if (++acknowledged == kill_after) server.Kill();
        }
      });
    }
    for (std::thread& writer : writers) writer.join();
    for (const std::vector<Write>& of_writer : writes) {
      for (const Write& write : of_writer) {
        if (write.version > 0) {
          Promise(write);
        } else {
          unknown_.push_back(write);
        }
      }
    }
  }

  void Promise(const Write& write) {
    EXPECT_TRUE(promises_[write.address].emplace(write.version, write.request_id).second)
        << write.address.id << " version " << write.version << " was given out twice";
  }

  // Repeats what had no answer, with the same request ids. After that nothing is unknown.
  void RepeatUnknown(Client& client) {
    for (Write& write : unknown_) {
      const grpc::Status status = client.Send(write);
      ASSERT_TRUE(status.ok()) << status.error_message();
      Promise(write);
      ++repeated_;
    }
    unknown_.clear();
  }

  void Check(Client& client, const std::vector<Address>& documents) {
    for (const Address& address : documents) {
      const auto promised = promises_.find(address);
      if (promised == promises_.end()) continue;
      std::vector<v1::Version> versions;
      const grpc::Status status = client.ReadHistory(address, versions);
      ASSERT_TRUE(status.ok()) << status.error_message();
      ASSERT_EQ(versions.size(), promised->second.size())
          << address.collection << " " << address.id;
      int64_t number = 0;
      for (const v1::Version& version : versions) {
        ASSERT_EQ(version.version(), ++number);
        const auto& fields = version.content().json().fields();
        ASSERT_EQ(version.request_id(), promised->second.at(number));
        ASSERT_EQ(fields.at("last").string_value(), version.request_id());
        ASSERT_EQ(fields.at("count").number_value(), static_cast<double>(number));
      }
    }
  }

  // Writes until it is killed, starts anew, checks, again and again.
  void RunCycles(int cycles) {
    STRATA_TRACE_SEED(seed_);
    const auto start = std::chrono::steady_clock::now();
    for (int cycle = 0; cycle < cycles; ++cycle) {
      SCOPED_TRACE("cycle " + std::to_string(cycle));
      ServerProcess server(settings_);
      if (cycle == 0) CreateCollections(server);
      Client client(server);
      RepeatUnknown(client);
      Check(client, DocumentsOf(std::max(0, cycle - 1)));
      if (HasFatalFailure()) return;
      WriteUntilKilled(server, cycle);
    }
    ServerProcess server(settings_);
    Client client(server);
    RepeatUnknown(client);
    std::vector<Address> all;
    size_t versions = 0;
    for (const auto& [address, requests] : promises_) {
      all.push_back(address);
      versions += requests.size();
    }
    Check(client, all);
    EXPECT_EQ(server.Stop(), 0);
    const auto seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::cout << cycles << " kills, " << versions << " versions of " << all.size() << " documents, "
              << repeated_ << " calls repeated, " << seconds << " s\n";
  }

  static void ExpectServing(const ServerProcess& server) {
    const auto health = grpc::health::v1::Health::NewStub(server.Connect());
    grpc::health::v1::HealthCheckResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(health->Check(&context, {}, &response).ok());
    EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::SERVING);
  }

  // What kills left is finished by the first verification, and the next one finds nothing.
  void ExpectWhole(const ServerProcess& server) {
    const auto collections = v1::CollectionService::NewStub(server.Connect());
    for (const std::string& name : collections_) {
      for (const bool repair : {true, false}) {
        v1::VerifyRequest request;
        request.set_collection(name);
        request.set_repair(repair);
        grpc::ClientContext context;
        const auto stream = collections->Verify(&context, request);
        v1::VerifyResponse step;
        bool complete = false;
        while (stream->Read(&step)) {
          complete = step.complete();
          for (const v1::Finding& finding : step.findings()) {
            EXPECT_TRUE(repair && finding.recoverable())
                << name << ": " << finding.ShortDebugString();
          }
        }
        const grpc::Status status = stream->Finish();
        EXPECT_TRUE(status.ok() && complete) << name << ": " << status.error_message();
      }
    }
  }

  // Each document once.
  void ExpectListed(const ServerProcess& server) {
    const auto documents = v1::DocumentService::NewStub(server.Connect());
    std::set<Address> listed;
    for (const std::string& name : collections_) {
      v1::ListRequest request;
      request.set_collection(name);
      request.set_page_size(7);
      do {
        v1::ListResponse response;
        grpc::ClientContext context;
        const grpc::Status status = documents->List(&context, request, &response);
        ASSERT_TRUE(status.ok()) << status.error_message();
        for (const v1::Document& document : response.documents()) {
          EXPECT_TRUE(listed.insert({name, document.id()}).second) << document.id();
        }
        request.set_page_token(response.next_page_token());
      } while (!request.page_token().empty());
    }
    EXPECT_EQ(listed.size(), promises_.size());
  }

  test_support::TemporaryDirectory directory_;
  const uint64_t seed_ = test_support::TestSeed();
  ServerSettings settings_;
  std::mt19937_64 random_;
  std::vector<std::string> collections_;
  Promises promises_;
  std::vector<Write> unknown_;
  int64_t repeated_ = 0;
};

TEST_F(KillTest, AcknowledgedWritesSurviveAndUnknownOnesHappenOnce) { RunCycles(CyclesWanted()); }

// With a demonstration's server, whose commits can be cut anywhere.
TEST_F(KillTest, SoTheyDoWhereOnlySingleRecordsAreWritten) {
  settings_.flags = {"--single-record"};
  RunCycles(CyclesWanted() / 5);
  if (HasFatalFailure()) return;
  ServerProcess server(settings_);
  ExpectServing(server);
  ExpectWhole(server);
  ExpectListed(server);
  EXPECT_EQ(server.Stop(), 0);
}

}  // namespace
}  // namespace strata::fault
