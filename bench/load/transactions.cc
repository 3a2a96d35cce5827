#include "bench/load/transactions.h"

#include <strata/v1/document_service.pb.h>
#include <strata/v1/transaction_service.pb.h>
#include <strata/wire/v1/transaction_service.pb.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bench/support/ten_fields.h"

namespace strata::bench {
namespace {

using Outcome = Workload::Outcome;

constexpr char kUpdateCall[] = "/strata.v1.DocumentService/Update";
constexpr char kCommit[] = "/strata.v1.TransactionService/Commit";
constexpr char kRead[] = "/strata.v1.TransactionService/Read";
constexpr char kBalance[] = "counter";  // the whole number among the ten fields
constexpr int64_t kOpeningBalance = 1'000'000'000;
constexpr size_t kHot = 0;  // the account
constexpr size_t kUpdates = 20;
constexpr size_t kReads = 10;

bool Parse(std::string_view bytes, google::protobuf::MessageLite& message) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

template <typename T>
T& At(std::vector<T>& slots, int slot) {
  const auto index = static_cast<size_t>(slot);
  if (slots.size() <= index) slots.resize(index + 1);
  return slots[index];
}

// Documents of which each is in one hand at a time, so that the version of each answer is known.
class Hands {
 public:
  Hands(size_t documents, uint64_t seed) : random_(seed), busy_(documents) {}

  size_t Take(size_t first = 0) {
    std::uniform_int_distribution<size_t> documents(first, busy_.size() - 1);
    size_t document = documents(random_);
    while (busy_[document]) document = documents(random_);
    busy_[document] = true;
    return document;
  }
  void Give(size_t document) { busy_[document] = false; }
  bool Toss() { return (random_() & 1) != 0; }

 private:
  std::mt19937_64 random_;
  std::vector<bool> busy_;
};

// Transactions that were committed together have one position: how many are they, and how many
// documents?
class Rounds {
 public:
  void Add(int64_t position, size_t document) { writes_.emplace_back(position, document); }
  void AddTransaction() { ++transactions_; }

  void Tell(Measurement& measurement) const {
    std::unordered_set<int64_t> commits;
    std::vector<std::pair<int64_t, size_t>> distinct = writes_;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (const auto& [position, document] : distinct) commits.insert(position);
    if (commits.empty()) return;
    const auto count = static_cast<double>(commits.size());
    measurement.units_per_commit = static_cast<double>(transactions_) / count;
    measurement.documents_per_commit = static_cast<double>(distinct.size()) / count;
  }

 private:
  std::vector<std::pair<int64_t, size_t>> writes_;
  int64_t transactions_ = 0;
};

class OpenWorkload final : public Workload {
 public:
  explicit OpenWorkload(Population& accounts) : accounts_(accounts) {
    request_.set_collection(accounts.collection);
    request_.set_allow_missing(true);
    request_.set_omit_content(true);
  }
  std::string name() const override { return "open accounts"; }
  std::string method() const override { return kUpdateCall; }
  bool Next(int /*slot*/, std::string& request) override {
    if (next_ == accounts_.versions.size()) return false;
    const auto number = static_cast<int64_t>(next_);
    request_.set_id(std::to_string(next_));
    request_.mutable_replace()->set_bson(
        TenFields(number, kOpeningBalance + number, accounts_.form.bytes));
    request_.SerializeToString(&request);
    accounts_.versions[next_++] = 1;
    return true;
  }
  Outcome Answered(int /*slot*/, std::string_view response) override {
    return RightIf(Parse(response, response_) && response_.document().version() == 1);
  }

 private:
  Population& accounts_;
  size_t next_ = 0;
  v1::UpdateRequest request_;
  v1::UpdateResponse response_;
};

// A transaction of a fixed number of updates.
class CommitWorkload : public Workload {
 public:
  CommitWorkload(Population& population, size_t writes, uint64_t seed)
      : population_(population), hands_(population.versions.size(), seed) {
    request_.set_omit_content(true);
    for (size_t i = 0; i < writes; ++i) {
      request_.add_writes()->mutable_update()->set_collection(population.collection);
    }
  }
  std::string method() const override { return kCommit; }
  int64_t attempts() const override { return attempts_; }
  void Tell(Measurement& measurement) const override {
    measurement.documents_per_call = request_.writes_size();
    rounds_.Tell(measurement);
  }

 protected:
  v1::UpdateRequest& UpdateAt(size_t index) {
    return *request_.mutable_writes(static_cast<int>(index))->mutable_update();
  }

  // Whether it answers a transaction that wrote `documents`, each but the hot one with the version
  // that is due.
  bool IsRight(const std::vector<size_t>& documents, std::string_view response) {
    if (!Parse(response, response_) ||
        response_.results_size() != static_cast<int>(documents.size()) || response_.replayed()) {
      return false;
    }
    attempts_ += response_.attempts();
    rounds_.AddTransaction();
    for (size_t i = 0; i < documents.size(); ++i) {
      const v1::CommitResult& result = response_.results(static_cast<int>(i));
      if (!result.changed() || !Accept(documents[i], result.document().version())) return false;
      rounds_.Add(response_.commit_position(), documents[i]);
    }
    return true;
  }

  virtual bool Accept(size_t document, int64_t version) {
    return version == ++population_.versions[document];
  }

  Population& population_;
  Hands hands_;
  v1::CommitRequest request_;
  v1::CommitResponse response_;

 private:
  int64_t attempts_ = 0;
  Rounds rounds_;
};

class TransferWorkload final : public CommitWorkload {
 public:
  TransferWorkload(Population& accounts, const TransferSettings& settings)
      : CommitWorkload(accounts, 2, settings.seed),
        settings_(settings),
        hot_sent_(accounts.versions[kHot]) {
    request_.set_mode(settings.two_phase ? v1::TRANSACTION_MODE_TWO_PHASE
                                         : v1::TRANSACTION_MODE_ONE_COMMIT);
    for (const int amount : {-1, 1}) {
      v1::UpdateRequest& update = UpdateAt(amount < 0 ? 0 : 1);
      v1::Operation& operation = *update.mutable_patch()->add_operations();
      operation.set_path(std::string("/") + kBalance);
      operation.mutable_increment()->set_number_value(amount);
    }
    auto& enough = *UpdateAt(0).mutable_precondition()->mutable_filter()->mutable_fields();
    auto& balance = *enough[kBalance].mutable_struct_value()->mutable_fields();
    balance["$gte"].set_number_value(1);
    UpdateAt(1).mutable_precondition()->set_exists(true);
  }
  std::string name() const override {
    return std::string(settings_.hot ? "T2 transfer, hot account" : "T1 transfer") +
           (settings_.two_phase ? ", two phases" : "");
  }
  bool Next(int slot, std::string& request) override {
    std::vector<size_t>& documents = At(slots_, slot);
    documents = {settings_.hot ? kHot : hands_.Take(1), hands_.Take(1)};
    if (settings_.hot && hands_.Toss()) std::swap(documents[0], documents[1]);
    if (settings_.hot) ++hot_sent_;
    for (size_t i = 0; i < documents.size(); ++i) UpdateAt(i).set_id(std::to_string(documents[i]));
    request_.SerializeToString(&request);
    return true;
  }
  Outcome Answered(int slot, std::string_view response) override {
    const std::vector<size_t>& documents = At(slots_, slot);
    GiveBack(documents);
    return RightIf(IsRight(documents, response));
  }
  Outcome Refused(int slot, std::string_view /*message*/) override {
    GiveBack(At(slots_, slot));
    return Outcome::kWrong;
  }

 private:
  void GiveBack(const std::vector<size_t>& documents) {
    for (const size_t document : documents) hands_.Give(document);
  }
  // Of the hot account answers come in any order; each version is one of those that are due, and
  // the newest of them all is remembered for who goes on.
  bool Accept(size_t document, int64_t version) override {
    if (document != kHot) return CommitWorkload::Accept(document, version);
    int64_t& newest = population_.versions[kHot];
    newest = std::max(newest, version);
    return version <= hot_sent_ && hot_seen_.insert(version).second;
  }

  const TransferSettings settings_;
  int64_t hot_sent_;
  std::unordered_set<int64_t> hot_seen_;
  std::vector<std::vector<size_t>> slots_;  // the payer and the payee of each
};

class UpdateTwentyWorkload final : public CommitWorkload {
 public:
  UpdateTwentyWorkload(Population& population, uint64_t seed)
      : CommitWorkload(population, kUpdates, seed) {
    for (int64_t i = 0; i < kVariants; ++i) {
      contents_.push_back(TenFields(i, i, population.form.bytes));
    }
  }
  std::string name() const override { return "T3 twenty updates"; }
  bool Next(int slot, std::string& request) override {
    std::vector<size_t>& documents = At(slots_, slot);
    documents.resize(kUpdates);
    for (size_t i = 0; i < kUpdates; ++i) {
      documents[i] = hands_.Take();
      const int64_t version = population_.versions[documents[i]];
      v1::UpdateRequest& update = UpdateAt(i);
      update.set_id(std::to_string(documents[i]));
      update.mutable_precondition()->set_version(version);
      update.mutable_replace()->set_bson(
          contents_[(documents[i] + static_cast<size_t>(version)) % contents_.size()]);
    }
    request_.SerializeToString(&request);
    return true;
  }
  Outcome Answered(int slot, std::string_view response) override {
    const std::vector<size_t>& documents = At(slots_, slot);
    for (const size_t document : documents) hands_.Give(document);
    return RightIf(IsRight(documents, response));
  }

 private:
  static constexpr int64_t kVariants = 1009;  // prime, so that no stride meets the same again soon
  std::vector<std::string> contents_;
  std::vector<std::vector<size_t>> slots_;
};

class UpdateTogetherWorkload final : public Workload {
 public:
  UpdateTogetherWorkload(Population& population, int64_t depth)
      : population_(population), depth_(depth) {
    const auto documents = static_cast<int64_t>(population.versions.size());
    for (int64_t first = 0; first < documents; first += kTogether) {
      idle_.push_back({first, std::min(documents, first + kTogether)});
    }
    for (int64_t i = 0; i < kVariants; ++i) {
      contents_.push_back(TenFields(i, i, population.form.bytes));
    }
    request_.set_omit_content(true);
  }
  std::string name() const override { return "update together"; }
  std::string method() const override { return kCommit; }
  bool Next(int slot, std::string& request) override {
    while (!idle_.empty() && VersionOf(idle_.front()) >= depth_) idle_.pop_front();
    if (idle_.empty()) return false;
    const Part part = idle_.front();
    idle_.pop_front();
    At(slots_, slot) = part;
    const int64_t version = VersionOf(part);
    request_.clear_writes();
    for (int64_t document = part.first; document < part.end; ++document) {
      v1::UpdateRequest& update = *request_.add_writes()->mutable_update();
      update.set_collection(population_.collection);
      update.set_id(std::to_string(document));
      update.mutable_precondition()->set_version(version);
      update.mutable_replace()->set_bson(
          contents_[static_cast<size_t>(document + version) % contents_.size()]);
    }
    request_.SerializeToString(&request);
    return true;
  }
  Outcome Answered(int slot, std::string_view response) override {
    const Part& part = At(slots_, slot);
    if (!Parse(response, response_) || response_.results_size() != part.end - part.first) {
      return Outcome::kWrong;
    }
    int64_t document = part.first;
    for (const v1::CommitResult& result : response_.results()) {
      int64_t& version = population_.versions[static_cast<size_t>(document++)];
      if (!result.changed() || result.document().version() != ++version) return Outcome::kWrong;
    }
    idle_.push_back(part);
    return Outcome::kRight;
  }

 private:
  static constexpr int64_t kTogether = 100;   // the most that a transaction may write
  static constexpr int64_t kVariants = 1009;  // prime, so that no stride meets the same again soon

  // Documents that are always written together, so that they have the same version.
  struct Part {
    int64_t first = 0;
    int64_t end = 0;
  };
  int64_t VersionOf(const Part& part) const {
    return population_.versions[static_cast<size_t>(part.first)];
  }

  Population& population_;
  const int64_t depth_;
  std::deque<Part> idle_;    // that no slot has in hand
  std::vector<Part> slots_;  // what each has
  std::vector<std::string> contents_;
  v1::CommitRequest request_;
  v1::CommitResponse response_;
};

class ReadTenWorkload final : public Workload {
 public:
  ReadTenWorkload(const Population& population, uint64_t seed)
      : population_(population), random_(seed) {
    request_.set_encoding(population.form.json ? v1::ENCODING_JSON : v1::ENCODING_BSON);
    for (size_t i = 0; i < kReads; ++i) {
      request_.add_documents()->set_collection(population.collection);
    }
  }
  std::string name() const override { return "T4 read of ten"; }
  std::string method() const override { return kRead; }
  bool Next(int slot, std::string& request) override {
    auto& documents = At(slots_, slot);
    std::uniform_int_distribution<size_t> all(0, population_.versions.size() - 1);
    for (size_t i = 0; i < kReads; ++i) {
      const auto end = documents.begin() + static_cast<std::ptrdiff_t>(i);
      do {
        documents[i] = all(random_);
      } while (std::find(documents.begin(), end, documents[i]) != end);
      request_.mutable_documents(static_cast<int>(i))->set_id(std::to_string(documents[i]));
    }
    request_.SerializeToString(&request);
    return true;
  }
  Outcome Answered(int slot, std::string_view response) override {
    if (!Parse(response, response_) || response_.documents_size() != int{kReads} ||
        response_.missing_size() != 0) {
      return Outcome::kWrong;
    }
    const auto& documents = At(slots_, slot);
    for (size_t i = 0; i < kReads; ++i) {
      const wire::v1::Document& document = response_.documents(static_cast<int>(i));
      if (document.version() != population_.versions[documents[i]] ||
          document.content().ByteSizeLong() < 200) {
        return Outcome::kWrong;
      }
    }
    return Outcome::kRight;
  }

 private:
  const Population& population_;
  std::mt19937_64 random_;
  v1::ReadRequest request_;
  wire::v1::ReadResponse response_;
  std::vector<std::array<size_t, kReads>> slots_;
};

}  // namespace

std::unique_ptr<Workload> OpenAccounts(Population& accounts) {
  return std::make_unique<OpenWorkload>(accounts);
}

std::unique_ptr<Workload> Transfer(Population& accounts, const TransferSettings& settings) {
  return std::make_unique<TransferWorkload>(accounts, settings);
}

std::unique_ptr<Workload> UpdateTwenty(Population& population, uint64_t seed) {
  return std::make_unique<UpdateTwentyWorkload>(population, seed);
}

std::unique_ptr<Workload> UpdateTogether(Population& population, int64_t depth) {
  return std::make_unique<UpdateTogetherWorkload>(population, depth);
}

std::unique_ptr<Workload> ReadTen(const Population& population, uint64_t seed) {
  return std::make_unique<ReadTenWorkload>(population, seed);
}

}  // namespace strata::bench
