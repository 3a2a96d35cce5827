#include "bench/load/workloads.h"

#include <google/protobuf/util/json_util.h>
#include <strata/v1/document_service.pb.h>
#include <strata/wire/v1/document_service.pb.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <random>

#include "bench/support/ten_fields.h"

namespace strata::bench {
namespace {

using Outcome = Workload::Outcome;

constexpr char kUpdate[] = "/strata.v1.DocumentService/Update";
constexpr char kGet[] = "/strata.v1.DocumentService/Get";
constexpr char kHistory[] = "/strata.v1.DocumentService/History";

v1::Encoding EncodingOf(const Form& form) {
  return form.json ? v1::ENCODING_JSON : v1::ENCODING_BSON;
}

// The `replace` of update requests, serialised ahead: a Struct costs the client more than the
// server that is to be measured. Messages may be put one after the other, so the rest of a request
// goes in front.
class Contents {
 public:
  explicit Contents(const Form& form) {
    for (int64_t i = 0; i < kVariants; ++i) {
      v1::UpdateRequest request;
      v1::Content& content = *request.mutable_replace();
      if (form.json) {
        const auto parsed = google::protobuf::util::JsonStringToMessage(
            TenFieldsJson(i, i, form.bytes), content.mutable_json());
        if (!parsed.ok()) std::abort();
      } else {
        content.set_bson(TenFields(i, i, form.bytes));
      }
      serialized_.push_back(request.SerializeAsString());
    }
  }
  // Different from those of the numbers around it.
  const std::string& of(int64_t number) const {
    return serialized_[static_cast<size_t>(number % kVariants)];
  }

 private:
  static constexpr int64_t kVariants = 1009;  // prime, so that no stride meets the same again soon
  std::vector<std::string> serialized_;
};

class EmptyWorkload final : public Workload {
 public:
  std::string name() const override { return "empty call"; }
  std::string method() const override { return "/bench.Empty/Call"; }
  bool Next(int /*slot*/, std::string& request) override {
    request.clear();
    return true;
  }
  Outcome Answered(int /*slot*/, std::string_view response) override {
    return RightIf(response.empty());
  }
};

class FillWorkload final : public Workload {
 public:
  FillWorkload(Population& population, const FillSettings& settings)
      : population_(population), contents_(population.form), until_(settings.until) {
    const auto first =
        std::find(population.versions.begin(), population.versions.end(), int64_t{0});
    first_ = static_cast<int64_t>(first - population.versions.begin());
    documents_ = static_cast<int64_t>(population.versions.end() - first);
    last_ = documents_ * settings.depth;
    request_.set_collection(population.collection);
    request_.set_allow_missing(true);
    request_.set_omit_content(true);
  }
  std::string name() const override { return "fill"; }
  std::string method() const override { return kUpdate; }
  bool Next(int /*slot*/, std::string& request) override {
    if (next_ == last_) return false;
    if (next_ % kLooksAtClock == 0 && std::chrono::steady_clock::now() >= until_) {
      last_ = next_;
      return false;
    }
    const int64_t document = first_ + next_ % documents_;
    request_.set_id(std::to_string(document));
    request_.SerializeToString(&request);
    // As UpdateWorkload goes on.
    request += contents_.of(document + next_ / documents_);
    ++next_;
    return true;
  }
  Outcome Answered(int /*slot*/, std::string_view response) override {
    const bool parsed =
        response_.ParseFromArray(response.data(), static_cast<int>(response.size()));
    if (!parsed || !response_.changed()) return Outcome::kWrong;
    int64_t& version = population_.versions[std::stoul(response_.document().id())];
    version = std::max(version, response_.document().version());
    return Outcome::kRight;
  }

 private:
  static constexpr int64_t kLooksAtClock = 16;

  Population& population_;
  const Contents contents_;
  const std::chrono::steady_clock::time_point until_;
  int64_t first_ = 0;
  int64_t documents_ = 0;
  int64_t next_ = 0;
  int64_t last_ = 0;
  v1::UpdateRequest request_;
  v1::UpdateResponse response_;
};

class DeepenWorkload final : public Workload {
 public:
  DeepenWorkload(const std::string& collection, const std::string& id, const Form& form,
                 int64_t depth)
      : contents_(form), depth_(depth) {
    request_.set_collection(collection);
    request_.set_id(id);
    request_.set_allow_missing(true);
    request_.set_omit_content(true);
    request_.SerializeToString(&head_);
  }
  std::string name() const override { return "deepen"; }
  std::string method() const override { return kUpdate; }
  bool Next(int /*slot*/, std::string& request) override {
    if (next_ == depth_) return false;
    request = head_;
    request += contents_.of(next_++);
    return true;
  }
  Outcome Answered(int /*slot*/, std::string_view /*response*/) override { return Outcome::kRight; }

 private:
  const Contents contents_;
  const int64_t depth_;
  v1::UpdateRequest request_;
  std::string head_;
  int64_t next_ = 0;
};

class UpdateWorkload final : public Workload {
 public:
  UpdateWorkload(Population& population, uint64_t seed)
      : population_(population), contents_(population.form), random_(seed) {
    request_.set_collection(population.collection);
    request_.set_omit_content(true);
    busy_.resize(population.versions.size());
  }
  std::string name() const override { return "W1 update"; }
  std::string method() const override { return kUpdate; }
  bool Next(int slot, std::string& request) override {
    const size_t document = Choose();
    if (slots_.size() <= static_cast<size_t>(slot)) slots_.resize(static_cast<size_t>(slot) + 1);
    slots_[static_cast<size_t>(slot)] = document;
    request_.set_id(std::to_string(document));
    const int64_t version = population_.versions[document];
    request_.mutable_precondition()->set_version(version);
    request_.SerializeToString(&request);
    request += contents_.of(static_cast<int64_t>(document) + version);
    return true;
  }
  Outcome Answered(int slot, std::string_view response) override {
    const size_t document = slots_[static_cast<size_t>(slot)];
    busy_[document] = false;
    const bool parsed =
        response_.ParseFromArray(response.data(), static_cast<int>(response.size()));
    const int64_t version = ++population_.versions[document];
    return RightIf(parsed && response_.changed() && response_.document().version() == version);
  }
  Outcome Refused(int slot, std::string_view /*message*/) override {
    busy_[slots_[static_cast<size_t>(slot)]] = false;
    return Outcome::kWrong;
  }

 private:
  // Nobody else's at the moment, so that compare-and-swap succeeds.
  size_t Choose() {
    std::uniform_int_distribution<size_t> documents(0, busy_.size() - 1);
    size_t document = documents(random_);
    while (busy_[document]) document = documents(random_);
    busy_[document] = true;
    return document;
  }

  Population& population_;
  const Contents contents_;
  std::mt19937_64 random_;
  v1::UpdateRequest request_;
  v1::UpdateResponse response_;
  std::vector<bool> busy_;
  std::vector<size_t> slots_;  // the document of each
};

class HotWorkload : public Workload {
 public:
  HotWorkload(const std::string& collection, const std::string& id) {
    request_.set_collection(collection);
    request_.set_id(id);
    request_.set_allow_missing(true);
    request_.set_omit_content(true);
    request_.mutable_patch()->add_operations()->mutable_increment()->set_number_value(1);
  }
  std::string name() const override { return "W2 hot document"; }
  std::string method() const override { return kUpdate; }
  bool Next(int slot, std::string& request) override {
    request_.mutable_patch()->mutable_operations(0)->set_path("/writer-" + std::to_string(slot));
    request_.SerializeToString(&request);
    return true;
  }
  Outcome Answered(int /*slot*/, std::string_view response) override {
    if (!response_.ParseFromArray(response.data(), static_cast<int>(response.size()))) {
      return Outcome::kWrong;
    }
    attempts_ += response_.attempts();
    return RightIf(response_.changed());
  }
  int64_t attempts() const override { return attempts_; }

 protected:
  v1::UpdateRequest request_;
  v1::UpdateResponse response_;
  int64_t attempts_ = 0;
};

class HotCompareAndSwap final : public HotWorkload {
 public:
  using HotWorkload::HotWorkload;
  std::string name() const override { return "W2 hot document, compare-and-swap by the client"; }
  bool Next(int slot, std::string& request) override {
    request_.mutable_precondition()->set_version(newest_);
    return HotWorkload::Next(slot, request);
  }
  Outcome Answered(int /*slot*/, std::string_view response) override {
    ++attempts_;
    if (!response_.ParseFromArray(response.data(), static_cast<int>(response.size()))) {
      return Outcome::kWrong;
    }
    newest_ = std::max(newest_, response_.document().version());
    return RightIf(response_.changed());
  }
  // "version is 7, not 6": the caller reads what is there and tries again on that.
  Outcome Refused(int /*slot*/, std::string_view message) override {
    constexpr std::string_view kConflict = "version is ";
    if (!message.starts_with(kConflict)) return Outcome::kWrong;
    ++attempts_;
    const int64_t actual = std::atoll(std::string(message.substr(kConflict.size())).c_str());
    newest_ = std::max(newest_, actual);
    return Outcome::kLostRace;
  }

 private:
  int64_t newest_ = 0;
};

// Reads: requests that differ in a number, their answers checked by version.
class GetWorkload final : public Workload {
 public:
  GetWorkload(std::string name, const std::string& collection, const Form& form, uint64_t seed)
      : name_(std::move(name)), random_(seed) {
    request_.set_collection(collection);
    request_.set_encoding(EncodingOf(form));
  }
  std::string name() const override { return name_; }
  std::string method() const override { return kGet; }

  void Add(const std::string& id, int64_t version, bool is_old) {
    request_.set_id(id);
    if (is_old) request_.set_version(version);
    requests_.push_back({request_.SerializeAsString(), version});
  }

  // Nine of ten calls are for the first of each hundred that were added.
  void FavourFew() { favours_few_ = true; }

  bool Next(int slot, std::string& request) override {
    const Request& chosen = requests_[Choose()];
    if (slots_.size() <= static_cast<size_t>(slot)) slots_.resize(static_cast<size_t>(slot) + 1);
    slots_[static_cast<size_t>(slot)] = chosen.version;
    request = chosen.bytes;
    return true;
  }
  Outcome Answered(int slot, std::string_view response) override {
    const bool parsed =
        response_.ParseFromArray(response.data(), static_cast<int>(response.size()));
    const wire::v1::Document& document = response_.document();
    return RightIf(parsed && document.version() == slots_[static_cast<size_t>(slot)] &&
                   document.content().ByteSizeLong() > 200);
  }

 private:
  struct Request {
    std::string bytes;
    int64_t version = 0;
  };

  size_t Choose() {
    constexpr size_t kHundred = 100;
    if (favours_few_ && random_() % 10 != 0) {
      std::uniform_int_distribution<size_t> few(0, (requests_.size() - 1) / kHundred);
      return few(random_) * kHundred;
    }
    std::uniform_int_distribution<size_t> all(0, requests_.size() - 1);
    return all(random_);
  }

  const std::string name_;
  std::mt19937_64 random_;
  bool favours_few_ = false;
  v1::GetRequest request_;
  wire::v1::GetResponse response_;
  std::vector<Request> requests_;
  std::vector<int64_t> slots_;  // the version that each waits for
};

// Of a document that is still to be named.
v1::HistoryRequest NewestTenOf(const std::string& collection, const Form& form) {
  v1::HistoryRequest request;
  request.set_collection(collection);
  request.set_page_size(10);
  request.set_include_content(true);
  request.set_encoding(EncodingOf(form));
  return request;
}

class HistoryWorkload final : public Workload {
 public:
  HistoryWorkload(std::string name, const std::string& collection, const Form& form, uint64_t seed)
      : name_(std::move(name)), request_(NewestTenOf(collection, form)), random_(seed) {}
  std::string name() const override { return name_; }
  std::string method() const override { return kHistory; }

  void Add(const std::string& id, int64_t depth) {
    request_.set_id(id);
    requests_.push_back({request_.SerializeAsString(), depth});
  }

  bool Next(int slot, std::string& request) override {
    std::uniform_int_distribution<size_t> all(0, requests_.size() - 1);
    const Request& chosen = requests_[all(random_)];
    if (slots_.size() <= static_cast<size_t>(slot)) slots_.resize(static_cast<size_t>(slot) + 1);
    slots_[static_cast<size_t>(slot)] = chosen.depth;
    request = chosen.bytes;
    return true;
  }
  Outcome Answered(int slot, std::string_view response) override {
    const bool parsed =
        response_.ParseFromArray(response.data(), static_cast<int>(response.size()));
    const int64_t depth = slots_[static_cast<size_t>(slot)];
    const auto versions = static_cast<int>(std::min<int64_t>(depth, 10));
    return RightIf(parsed && response_.versions_size() == versions &&
                   response_.versions(0).version() == depth &&
                   response_.versions(versions - 1).has_content());
  }

 private:
  struct Request {
    std::string bytes;
    int64_t depth = 0;
  };

  const std::string name_;
  v1::HistoryRequest request_;
  std::mt19937_64 random_;
  wire::v1::HistoryResponse response_;
  std::vector<Request> requests_;
  std::vector<int64_t> slots_;  // how many versions there are of what each waits for
};

}  // namespace

std::unique_ptr<Workload> EmptyCalls() { return std::make_unique<EmptyWorkload>(); }

std::unique_ptr<Workload> Fill(Population& population, const FillSettings& settings) {
  return std::make_unique<FillWorkload>(population, settings);
}

std::unique_ptr<Workload> NewestTenAtRandom(const Population& population, uint64_t seed) {
  auto workload =
      std::make_unique<HistoryWorkload>("newest ten", population.collection, population.form, seed);
  for (size_t i = 0; i < population.versions.size(); ++i) {
    workload->Add(std::to_string(i), population.versions[i]);
  }
  return workload;
}

std::unique_ptr<Workload> Deepen(const std::string& collection, const std::string& id,
                                 const Form& form, int64_t depth) {
  return std::make_unique<DeepenWorkload>(collection, id, form, depth);
}

std::unique_ptr<Workload> UpdateAtRandom(Population& population, uint64_t seed) {
  return std::make_unique<UpdateWorkload>(population, seed);
}

std::unique_ptr<Workload> UpdateHot(const std::string& collection, const std::string& id) {
  return std::make_unique<HotWorkload>(collection, id);
}

std::unique_ptr<Workload> UpdateHotCompareAndSwap(const std::string& collection,
                                                  const std::string& id) {
  return std::make_unique<HotCompareAndSwap>(collection, id);
}

namespace {

std::unique_ptr<GetWorkload> GetCurrent(const std::string& name, const Population& population,
                                        uint64_t seed) {
  auto workload = std::make_unique<GetWorkload>(name, population.collection, population.form, seed);
  for (size_t i = 0; i < population.versions.size(); ++i) {
    workload->Add(std::to_string(i), population.versions[i], false);
  }
  return workload;
}

}  // namespace

std::unique_ptr<Workload> GetAtRandom(const Population& population, uint64_t seed) {
  return GetCurrent("W3 get", population, seed);
}

std::unique_ptr<Workload> GetMostlyFew(const Population& population, uint64_t seed) {
  auto workload = GetCurrent("W3 get, 90 % of 1 %", population, seed);
  workload->FavourFew();
  return workload;
}

std::unique_ptr<Workload> GetOldVersion(const std::string& collection, const std::string& id,
                                        const Form& form, int64_t depth, uint64_t seed) {
  auto workload = std::make_unique<GetWorkload>(
      "W4 get one of " + std::to_string(depth) + " versions", collection, form, seed);
  for (int64_t version = 1; version < std::max<int64_t>(depth, 2); ++version) {
    workload->Add(id, version, true);
  }
  return workload;
}

std::unique_ptr<Workload> NewestTen(const std::string& collection, const std::string& id,
                                    const Form& form, int64_t depth) {
  auto workload = std::make_unique<HistoryWorkload>(
      "W5 newest ten of " + std::to_string(depth) + " versions", collection, form, 1);
  workload->Add(id, depth);
  return workload;
}

}  // namespace strata::bench
