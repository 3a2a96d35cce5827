// A bank over the real server: transfers in one commit and in two phases between accounts under all
// strategies, while the server is killed every few seconds. No money appears or disappears, at any
// moment, and nothing stays unfinished.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fault/server_process.h"
#include "tests/serial/client.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_directory.h"

namespace strata::serial {
namespace {

using Steady = std::chrono::steady_clock;

constexpr size_t kAccounts = 1000;
constexpr int64_t kOpeningBalance = 1000;
constexpr size_t kTellers = 60;
constexpr size_t kAuditors = 4;
constexpr size_t kChannels = 8;
constexpr std::chrono::seconds kBetweenKills{3};
// What nobody has touched for ten seconds is finished within the ten after that.
constexpr std::chrono::seconds kToFinish{30};

std::chrono::seconds Wanted() {
  const char* wanted = std::getenv("STRATA_BANK_SECONDS");
  return std::chrono::seconds(wanted == nullptr ? 20 : std::atoll(wanted));
}

struct Counts {
  std::atomic<int64_t> one_commit = 0;
  std::atomic<int64_t> two_phase = 0;
  std::atomic<int64_t> refused = 0;
  std::atomic<int64_t> unknown = 0;
  std::atomic<int64_t> audits = 0;
};

// One account pays one to three others, if it has enough.
v1::CommitRequest RandomTransfer(const std::string& id, std::mt19937_64& random) {
  constexpr uint64_t kOneIn = 16;
  const size_t payees = 1 + random() % 3;
  std::vector<size_t> accounts;
  while (accounts.size() <= payees) {
    const size_t account = random() % kAccounts;
    if (IsSlow(account) && random() % kOneIn != 0) continue;
    if (std::find(accounts.begin(), accounts.end(), account) != accounts.end()) continue;
    accounts.push_back(account);
  }
  const auto amount = static_cast<int64_t>(1 + random() % 100);
  v1::CommitRequest request;
  request.set_request_id(id);
  request.set_omit_content(true);
  request.set_mode(random() % 4 == 0 ? v1::TRANSACTION_MODE_TWO_PHASE
                                     : v1::TRANSACTION_MODE_ONE_COMMIT);
  for (size_t i = 0; i < accounts.size(); ++i) {
    const int64_t change = i == 0 ? -amount * static_cast<int64_t>(payees) : amount;
    *request.add_writes() = WriteOf({DocumentAt(accounts[i]), Action::kAdd, change});
  }
  v1::UpdateRequest& payer = *request.mutable_writes(0)->mutable_update();
  auto& enough = *payer.mutable_precondition()->mutable_filter()->mutable_fields();
  (*enough["n"].mutable_struct_value()->mutable_fields())["$gte"].set_number_value(
      static_cast<double>(amount * static_cast<int64_t>(payees)));
  return request;
}

class BankTest : public testing::Test {
 protected:
  void OpenAccounts(Client& client) {
    const grpc::Status created = client.CreateCollections();
    ASSERT_TRUE(created.ok()) << WordsOf(created);
    constexpr size_t kAtOnce = 100;
    for (size_t begin = 0; begin < kAccounts; begin += kAtOnce) {
      v1::CommitRequest request;
      for (size_t i = begin; i < begin + kAtOnce; ++i) {
        *request.add_writes() = WriteOf({DocumentAt(i), Action::kSet, kOpeningBalance});
        all_.push_back(DocumentAt(i));
      }
      v1::CommitResponse response;
      const grpc::Status status = client.Commit(request, response);
      ASSERT_TRUE(status.ok()) << WordsOf(status);
    }
  }

  // False: nobody answers any more.
  bool GoesOn(const grpc::Status& status) {
    switch (EndingOf(status)) {
      case Ending::kDone:
        return true;
      case Ending::kRefused:
        ++counts_.refused;
        return true;
      case Ending::kUnknown:
        ++counts_.unknown;
        return false;
      case Ending::kWrong:
        ADD_FAILURE() << WordsOf(status);
        return false;
    }
    return false;
  }

  bool TransferOnce(Client& client, const std::string& id, std::mt19937_64& random) {
    const v1::CommitRequest request = RandomTransfer(id, random);
    v1::CommitResponse response;
    const grpc::Status status = client.Commit(request, response);
    if (status.ok()) {
      ++(request.mode() == v1::TRANSACTION_MODE_TWO_PHASE ? counts_.two_phase : counts_.one_commit);
      const std::lock_guard lock(mutex_);
      acknowledged_.push_back(response.transaction_id());
    }
    return GoesOn(status);
  }

  bool AuditOnce(Client& client) {
    v1::ReadResponse response;
    const grpc::Status status = client.Read(all_, response);
    if (status.ok()) {
      ++counts_.audits;
      EXPECT_EQ(response.missing_size(), 0);
      int64_t sum = 0;
      for (const v1::Document& account : response.documents()) {
        sum += NumberOf(account).value_or(0);
        EXPECT_GE(NumberOf(account).value_or(-1), 0) << account.ShortDebugString();
      }
      EXPECT_EQ(sum, kOpeningBalance * static_cast<int64_t>(kAccounts))
          << "at position " << response.commit_position();
    }
    return GoesOn(status) && !testing::Test::HasFailure();
  }

  // Everybody until the server dies.
  void DoBusiness(fault::ServerProcess& server, int cycle) {
    std::vector<std::unique_ptr<Client>> clients;
    for (size_t i = 0; i < kChannels; ++i) {
      clients.push_back(std::make_unique<Client>(server.Connect()));
    }
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kTellers + kAuditors; ++i) {
      threads.emplace_back([&, i] {
        Client& client = *clients[i % kChannels];
        const std::string name = std::to_string(cycle) + "." + std::to_string(i) + ".";
        std::mt19937_64 random(seed_ + static_cast<uint64_t>(cycle) * 100 + i);
        bool goes_on = true;
        for (int64_t number = 0; goes_on; ++number) {
          goes_on = i < kAuditors ? AuditOnce(client)
                                  : TransferOnce(client, name + std::to_string(number), random);
        }
      });
    }
    std::this_thread::sleep_for(kBetweenKills);
    server.Kill();
    for (std::thread& thread : threads) thread.join();
  }

  // What began, and is neither done nor cancelled.
  std::vector<std::string> Unfinished(Client& client) {
    std::vector<std::string> unfinished;
    for (const v1::TransactionStatus wanted :
         {v1::TRANSACTION_STATUS_NEW, v1::TRANSACTION_STATUS_PENDING,
          v1::TRANSACTION_STATUS_APPLIED, v1::TRANSACTION_STATUS_CANCELLING}) {
      std::vector<v1::Transaction> transactions;
      const grpc::Status status = client.ListTransactions(wanted, transactions);
      EXPECT_TRUE(status.ok()) << WordsOf(status);
      for (const v1::Transaction& one : transactions) {
        unfinished.push_back(one.id() + " " + v1::TransactionStatus_Name(one.status()));
      }
    }
    return unfinished;
  }

  void ExpectAllFinished(Client& client) {
    const Steady::time_point end = Steady::now() + kToFinish;
    std::vector<std::string> unfinished = Unfinished(client);
    std::cout << unfinished.size() << " transactions unfinished after the last kill\n";
    while (!unfinished.empty() && Steady::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      unfinished = Unfinished(client);
    }
    EXPECT_EQ(unfinished, std::vector<std::string>{});
  }

  // The last that were acknowledged before the kill have happened.
  void ExpectAcknowledged(Client& client) {
    constexpr size_t kLast = 100;
    const size_t begin = acknowledged_.size() - std::min(kLast, acknowledged_.size());
    for (size_t i = begin; i < acknowledged_.size(); ++i) {
      v1::Transaction transaction;
      const grpc::Status status = client.GetTransaction(acknowledged_[i], transaction);
      ASSERT_TRUE(status.ok()) << acknowledged_[i] << ": " << WordsOf(status);
      EXPECT_TRUE(transaction.status() == v1::TRANSACTION_STATUS_APPLIED ||
                  transaction.status() == v1::TRANSACTION_STATUS_DONE)
          << transaction.ShortDebugString();
    }
  }

  const uint64_t seed_ = test_support::TestSeed();
  test_support::TemporaryDirectory directory_;
  Counts counts_;
  std::vector<std::string> all_;  // accounts
  std::mutex mutex_;
  std::vector<std::string> acknowledged_;  // guarded by mutex_
};

TEST_F(BankTest, KeepsItsMoneyWhileItIsKilled) {
  STRATA_TRACE_SEED(seed_);
  const fault::ServerSettings settings{
      .data = directory_.Join("data"), .log = directory_.Join("log"), .flags = {}};
  const auto cycles = std::max<int64_t>(1, Wanted() / kBetweenKills);
  for (int cycle = 0; cycle < cycles; ++cycle) {
    fault::ServerProcess server(settings);
    Client client(server.Connect());
    if (cycle == 0) {
      ASSERT_NO_FATAL_FAILURE(OpenAccounts(client));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectAcknowledged(client));
    DoBusiness(server, cycle);
    if (HasFailure()) return;
  }
  fault::ServerProcess server(settings);
  Client client(server.Connect());
  ASSERT_NO_FATAL_FAILURE(ExpectAcknowledged(client));
  EXPECT_TRUE(AuditOnce(client));
  ExpectAllFinished(client);
  EXPECT_TRUE(AuditOnce(client));
  std::vector<std::string> findings;
  const grpc::Status verified = client.Verify(findings);
  EXPECT_TRUE(verified.ok()) << WordsOf(verified);
  EXPECT_EQ(findings, std::vector<std::string>{});
  EXPECT_GT(counts_.one_commit, 0);
  EXPECT_GT(counts_.two_phase, 0);
  EXPECT_GT(counts_.audits, 0);
  std::cout << counts_.one_commit << " transfers in one commit, " << counts_.two_phase
            << " in two phases, " << counts_.refused << " refused, " << counts_.unknown
            << " without an answer, " << counts_.audits << " sums, " << cycles << " kills, seed "
            << seed_ << "\n";
}

}  // namespace
}  // namespace strata::serial
