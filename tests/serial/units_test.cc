// Units, single writes and reads of many clients through the real server, killed in their midst:
// all that was answered, and all that was found afterwards, is strictly serialisable.
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
#include "tests/serial/history.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_directory.h"

namespace strata::serial {
namespace {

constexpr size_t kClients = 64;
constexpr size_t kChannels = 8;
constexpr int64_t kKillsLeast = 3;
constexpr int64_t kUnitsBetweenKillsMost = 20'000;
constexpr size_t kPerUnitMax = 20;  // changes, and reads besides
constexpr size_t kReadAtOnce = 1000;

int64_t UnitsWanted() {
  const char* wanted = std::getenv("STRATA_UNITS");
  return wanted == nullptr ? 20'000 : std::atoll(wanted);
}

int64_t Now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// The documents, and of each the newest version that any client was told of.
class Known {
 public:
  explicit Known(size_t documents) : versions_(documents) {}

  size_t size() const { return versions_.size(); }
  int64_t version(size_t index) const { return versions_[index]; }
  void Tell(size_t index, int64_t version) {
    int64_t before = versions_[index];
    while (before < version && !versions_[index].compare_exchange_weak(before, version)) {
    }
  }

  // Several, none twice; few of those that become slow.
  std::vector<size_t> Choose(size_t count, std::mt19937_64& random) const {
    constexpr uint64_t kOneIn = 16;
    std::vector<size_t> chosen;
    while (chosen.size() < count) {
      const size_t index = random() % versions_.size();
      if (IsSlow(index) && random() % kOneIn != 0) continue;
      if (std::find(chosen.begin(), chosen.end(), index) == chosen.end()) chosen.push_back(index);
    }
    return chosen;
  }

 private:
  std::vector<std::atomic<int64_t>> versions_;
};

// How many of each there were; thread-safe.
struct Counts {
  std::atomic<int64_t> units = 0;
  std::atomic<int64_t> singles = 0;
  std::atomic<int64_t> reads = 0;
  std::atomic<int64_t> refused = 0;
  std::atomic<int64_t> unknown = 0;
  std::atomic<int64_t> attempts = 0;  // of units
};

// One of many callers, from one start of the server to its end.
class Caller {
 public:
  Caller(Client& client, Known& known, Counts& counts, std::string name, uint64_t seed)
      : client_(client), known_(known), counts_(counts), name_(std::move(name)), random_(seed) {}

  // False: nobody answers any more.
  bool CallOnce() {
    const uint64_t kind = random_() % 10;
    if (kind == 0) return Read();
    return kind < 3 ? UpdateOne() : CommitUnit();
  }

  std::vector<Call>& calls() { return calls_; }

 private:
  // Mostly few, at times twenty.
  size_t HowMany() {
    return 1 + (random_() % kPerUnitMax) * (random_() % kPerUnitMax) / (kPerUnitMax - 1);
  }

  Call Begin() {
    Call call;
    call.name = name_ + "." + std::to_string(++number_);
    return call;
  }

  Effect RandomEffect(size_t index) {
    Effect effect;
    effect.document = DocumentAt(index);
    const uint64_t kind = random_() % 32;
    effect.action = kind == 0 ? Action::kDelete : kind < 16 ? Action::kSet : Action::kAdd;
    // None like any other, so that each update changes something.
    effect.number = static_cast<int64_t>(random_() % (uint64_t{1} << 40)) + 1;
    if (random_() % 16 == 0) effect.precondition = known_.version(index);
    return effect;
  }

  bool CommitUnit() {
    Call call = Begin();
    const size_t writes = HowMany();
    const size_t reads = random_() % 2 == 0 ? 0 : HowMany();
    const std::vector<size_t> chosen = known_.Choose(writes + reads, random_);
    v1::CommitRequest request;
    request.set_request_id(call.name);
    request.set_mode(v1::TRANSACTION_MODE_ONE_COMMIT);
    request.set_omit_content(random_() % 2 == 0);
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (i < writes) {
        call.effects.push_back(RandomEffect(chosen[i]));
        *request.add_writes() = WriteOf(call.effects.back());
        continue;
      }
      AddRead(chosen[i], request, call);
    }
    v1::CommitResponse response;
    call.begun = Now();
    const grpc::Status status = client_.Commit(request, response);
    const int64_t ended = Now();
    if (status.ok()) {
      EXPECT_EQ(response.results_size(), static_cast<int>(writes)) << call.name;
      EXPECT_EQ(response.transaction_id(), call.name);
      call.position = response.commit_position();
      for (size_t i = 0; i < writes && i < static_cast<size_t>(response.results_size()); ++i) {
        const v1::CommitResult& result = response.results(static_cast<int>(i));
        EXPECT_TRUE(result.changed()) << call.name;
        Take(chosen[i], result.document(), call.effects[i]);
      }
      counts_.attempts += response.attempts();
      ++counts_.units;
    }
    return End(status, ended, std::move(call));
  }

  void AddRead(size_t index, v1::CommitRequest& request, Call& call) {
    const std::string document = DocumentAt(index);
    const int64_t version = known_.version(index);
    v1::DocumentVersion& read = *request.add_reads();
    read.set_collection(CollectionOf(document));
    read.set_id(IdOf(document));
    read.set_version(version);
    call.observations.push_back({document, version, {}});
  }

  bool UpdateOne() {
    Call call = Begin();
    const size_t index = known_.Choose(1, random_)[0];
    Effect effect = RandomEffect(index);
    if (effect.action == Action::kDelete) effect.action = Action::kSet;
    v1::UpdateRequest request = WriteOf(effect).update();
    request.set_request_id(call.name);
    v1::UpdateResponse response;
    call.begun = Now();
    const grpc::Status status = client_.Update(request, response);
    const int64_t ended = Now();
    if (status.ok()) {
      Take(index, response.document(), effect);
      call.position = response.commit_position();
      ++counts_.singles;
    }
    call.effects.push_back(std::move(effect));
    return End(status, ended, std::move(call));
  }

  bool Read() {
    Call call = Begin();
    std::vector<std::string> documents;
    for (const size_t index : known_.Choose(HowMany(), random_)) {
      documents.push_back(DocumentAt(index));
    }
    return ReadAll(documents, std::move(call));
  }

 public:
  bool ReadAll(const std::vector<std::string>& documents) { return ReadAll(documents, Begin()); }

 private:
  bool ReadAll(const std::vector<std::string>& documents, Call call) {
    v1::ReadResponse response;
    call.begun = Now();
    const grpc::Status status = client_.Read(documents, response);
    const int64_t ended = Now();
    if (status.ok()) {
      call.position = response.commit_position();
      for (const v1::Document& one : response.documents()) {
        call.observations.push_back(
            {one.collection() + "/" + one.id(), one.version(), NumberOf(one)});
      }
      for (const v1::DocumentVersion& one : response.missing()) {
        call.observations.push_back({one.collection() + "/" + one.id(), {}, {}});
      }
      EXPECT_EQ(call.observations.size(), documents.size()) << call.name;
      ++counts_.reads;
    }
    return End(status, ended, std::move(call));
  }

  void Take(size_t index, const v1::Document& document, Effect& effect) {
    effect.version = document.version();
    effect.answered = NumberOf(document);
    known_.Tell(index, document.version());
  }

  bool End(const grpc::Status& status, int64_t ended, Call call) {
    switch (EndingOf(status)) {
      case Ending::kDone:
        call.ended = ended;
        calls_.push_back(std::move(call));
        return true;
      case Ending::kRefused:
        ++counts_.refused;
        return true;
      case Ending::kUnknown:
        ++counts_.unknown;
        calls_.push_back(std::move(call));
        return false;
      case Ending::kWrong:
        ADD_FAILURE() << call.name << ": " << WordsOf(status);
        return false;
    }
    return false;
  }

  Client& client_;
  Known& known_;
  Counts& counts_;
  const std::string name_;
  std::mt19937_64 random_;
  int64_t number_ = 0;
  std::vector<Call> calls_;
};

class UnitsTest : public testing::TestWithParam<size_t> {
 protected:
  UnitsTest() : known_(GetParam()) {}

  // So many units by many clients, and then an end of the server.
  void CallUntil(int64_t units, int cycle, fault::ServerProcess& server, bool kill) {
    std::vector<std::unique_ptr<Client>> clients;
    for (size_t i = 0; i < kChannels; ++i) {
      clients.push_back(std::make_unique<Client>(server.Connect()));
    }
    std::atomic<bool> over = false;
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kClients; ++i) {
      threads.emplace_back([&, i] {
        const std::string name = std::to_string(cycle) + "." + std::to_string(i);
        Caller caller(*clients[i % kChannels], known_, counts_, name,
                      seed_ + static_cast<uint64_t>(cycle) * kClients + i);
        while (!over && caller.CallOnce()) {
          if (counts_.units >= units && !over.exchange(true) && kill) server.Kill();
        }
        Keep(caller.calls());
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void Keep(std::vector<Call>& calls) {
    const std::lock_guard lock(mutex_);
    std::move(calls.begin(), calls.end(), std::back_inserter(calls_));
  }

  // Everything as it is in the end.
  void ReadEverything(const fault::ServerProcess& server) {
    Client client(server.Connect());
    Caller caller(client, known_, counts_, "end", seed_);
    for (size_t begin = 0; begin < known_.size(); begin += kReadAtOnce) {
      std::vector<std::string> documents;
      for (size_t i = begin; i < std::min(begin + kReadAtOnce, known_.size()); ++i) {
        documents.push_back(DocumentAt(i));
      }
      ASSERT_TRUE(caller.ReadAll(documents));
    }
    Keep(caller.calls());
  }

  const uint64_t seed_ = test_support::TestSeed();
  test_support::TemporaryDirectory directory_;
  Known known_;
  Counts counts_;
  std::mutex mutex_;
  std::vector<Call> calls_;
};

TEST_P(UnitsTest, AreStrictlySerialisable) {
  STRATA_TRACE_SEED(seed_);
  const auto start = std::chrono::steady_clock::now();
  const int64_t units = UnitsWanted() / 2;
  const auto kills = static_cast<int>(std::max(kKillsLeast, units / kUnitsBetweenKillsMost));
  const fault::ServerSettings settings{
      .data = directory_.Join("data"), .log = directory_.Join("log"), .flags = {}};
  for (int cycle = 0; cycle <= kills; ++cycle) {
    fault::ServerProcess server(settings);
    if (cycle == 0) {
      const grpc::Status created = Client(server.Connect()).CreateCollections();
      ASSERT_TRUE(created.ok()) << WordsOf(created);
    }
    CallUntil(units * (cycle + 1) / (kills + 1), cycle, server, cycle < kills);
    if (HasFailure()) return;
  }
  fault::ServerProcess server(settings);
  ASSERT_NO_FATAL_FAILURE(ReadEverything(server));
  std::vector<LedgerEntry> ledger;
  const grpc::Status audited = Client(server.Connect()).Audit(ledger);
  ASSERT_TRUE(audited.ok()) << WordsOf(audited);
  EXPECT_EQ(ToText(Resolve(ledger, calls_)), "");
  const size_t checked = calls_.size();
  EXPECT_EQ(ToText(Check(std::move(calls_))), "");
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::cout << known_.size() << " documents: " << counts_.units << " units ("
            << static_cast<double>(counts_.attempts) / static_cast<double>(counts_.units)
            << " attempts each), " << counts_.singles << " single writes, " << counts_.reads
            << " reads, " << counts_.refused << " refused, " << counts_.unknown
            << " without an answer, " << checked << " calls and " << ledger.size()
            << " versions checked, seed " << seed_ << ", " << seconds << " s\n";
}

INSTANTIATE_TEST_SUITE_P(OnDocuments, UnitsTest, testing::Values(100, 10'000));

}  // namespace
}  // namespace strata::serial
