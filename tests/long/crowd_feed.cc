// Writers of documents and watchers in the crowd: who watches hears soon of what is written, in
// order and without a gap, whatever others watch, and however badly they read.
#include <deque>
#include <thread>
#include <utility>

#include "strata/v1/document_service.grpc.pb.h"
#include "strata/v1/feed_service.grpc.pb.h"
#include "tests/long/crowd.h"

namespace strata::fault {
namespace {

using Documents = v1::DocumentService::Stub;

constexpr int kLazyStreams = 60;  // which nobody reads
constexpr int kSlow = 2;
constexpr int kCostly = 8;
constexpr int kPatterns = 48;
constexpr int kHeavyDocuments = 8;
constexpr size_t kHeavyBytes = 300'000;
// Of an event, and of a call, while nothing is done to the server. The machine may be busy.
constexpr milliseconds kSoon{5'000};

// An $or of patterns that match nothing and look at all of a text.
google::protobuf::Struct CostlyFilter() {
  google::protobuf::Struct filter;
  auto& either = *(*filter.mutable_fields())["$or"].mutable_list_value();
  for (int i = 0; i < kPatterns; ++i) {
    google::protobuf::Struct pattern;
    (*pattern.mutable_fields())["$regex"].set_string_value("[a-m]+[n-z]{2}" + std::to_string(i));
    auto& condition = *either.add_values()->mutable_struct_value();
    *(*condition.mutable_fields())["text"].mutable_struct_value() = pattern;
  }
  return filter;
}

class FeedCrowd final : public Part {
 public:
  explicit FeedCrowd(Crowd& crowd) : crowd_(crowd) {}

  std::vector<std::string> callers() const override {
    std::vector<std::string> names = {"pulse", "pulse-watcher", "heavy-writer", "getter", "lazy"};
    for (int i = 0; i < kSlow; ++i) names.push_back("slow-" + std::to_string(i));
    for (int i = 0; i < kCostly; ++i) names.push_back("costly-" + std::to_string(i));
    return names;
  }

  void SetUp(Caller& caller) override {
    const auto documents = v1::DocumentService::NewStub(caller.channel());
    Set(caller, *documents, "pulse", "pulse", 0);
    for (int i = 0; i < kHeavyDocuments; ++i) {
      v1::UpdateRequest request;
      request.set_collection("heavy");
      request.set_id(std::to_string(i));
      request.set_allow_missing(true);
      std::string text(kHeavyBytes, ' ');
      for (size_t at = 0; at < text.size(); ++at) {
        text[at] = at % 6 == 5 ? ' ' : static_cast<char>('a' + at % 11);
      }
      auto& fields = *request.mutable_replace()->mutable_json()->mutable_fields();
      fields["text"].set_string_value(text);
      v1::UpdateResponse response;
      caller.Do("Update", *documents, &Documents::Update, request, response);
    }
  }

  std::vector<std::function<void()>> Members() override {
    std::vector<std::function<void()>> members = {[this] { Pulse(); }, [this] { WatchPulse(); },
                                                  [this] { WriteHeavy(); }, [this] { Get(); },
                                                  [this] { Laze(); }};
    for (int i = 0; i < kSlow; ++i) {
      members.push_back(
          [this, i] { Read("slow-" + std::to_string(i), true, milliseconds(2'000)); });
    }
    for (int i = 0; i < kCostly; ++i) {
      members.push_back([this, i] { Read("costly-" + std::to_string(i), false, milliseconds(0)); });
    }
    return members;
  }

  // Whether the watcher has heard of all that was written.
  std::string Open(Caller& /*caller*/) override {
    const std::lock_guard lock(mutex_);
    return waiting_.empty() ? ""
                            : "the watcher has not heard of version " +
                                  std::to_string(waiting_.front().version) + " of the pulse";
  }
  void Check(Caller& /*caller*/) override {}

 private:
  struct Written {
    int64_t version = 0;
    Steady::time_point at;
    bool told = false;  // that it is late
  };

  static int64_t Set(const Caller& caller, Documents& documents, const std::string& collection,
                     const std::string& id, int64_t number) {
    v1::UpdateRequest request;
    request.set_collection(collection);
    request.set_id(id);
    request.set_allow_missing(true);
    request.set_omit_content(true);
    request.set_request_id(id + "-" + std::to_string(number));
    v1::Operation& set = *request.mutable_patch()->add_operations();
    set.set_path("/n");
    set.mutable_set()->set_number_value(static_cast<double>(number));
    v1::UpdateResponse response;
    if (!caller.Do("Update", documents, &Documents::Update, request, response)) return 0;
    return response.document().version();
  }

  void Pulse() {
    const Caller caller(crowd_, "pulse");
    const auto documents = v1::DocumentService::NewStub(caller.channel());
    for (int64_t number = 1; crowd_.MayWork(Phase::kWork); ++number) {
      const int64_t version = Set(caller, *documents, "pulse", "pulse", number);
      {
        const std::lock_guard lock(mutex_);
        if (version > heard_) waiting_.push_back({version, Steady::now()});
        // Whether it has been late for long is seen here, as the watcher may hear nothing at all.
        for (Written& each : waiting_) {
          if (each.told || !crowd_.CalmSince(each.at)) break;
          if (Steady::now() - each.at < kSoon) break;
          each.told = true;
          crowd_.Break("version " + std::to_string(each.version) +
                       " of the pulse has not come to its watcher in " +
                       std::to_string(kSoon.count()) + " ms");
        }
      }
      crowd_.Count("pulses");
      crowd_.Pause(Phase::kWork, milliseconds(100));
    }
  }

  void WatchPulse() {
    const Caller caller(crowd_, "pulse-watcher");
    const auto feed = v1::FeedService::NewStub(caller.channel());
    int64_t resume = 0;
    while (crowd_.MayWork(Phase::kQuiet)) {
      StreamContext context(caller);
      v1::WatchRequest request;
      request.add_collections("pulse");
      request.set_after_position(resume);
      const auto stream = feed->Watch(*context, request);
      for (v1::WatchResponse response; stream->Read(&response);) {
        for (const v1::Event& event : response.events()) Hear(event.version().version());
        resume = std::max(resume, response.resume_position());
      }
      caller.Judge("Watch", stream->Finish());
    }
  }

  void Hear(int64_t version) {
    const std::lock_guard lock(mutex_);
    if (version > heard_ + 1) {
      crowd_.Break("the watcher heard of version " + std::to_string(version) +
                   " of the pulse after " + std::to_string(heard_));
    }
    heard_ = std::max(heard_, version);
    while (!waiting_.empty() && waiting_.front().version <= heard_) {
      const auto took =
          std::chrono::duration_cast<milliseconds>(Steady::now() - waiting_.front().at);
      if (crowd_.CalmSince(waiting_.front().at)) crowd_.Measure("an event", took);
      waiting_.pop_front();
    }
  }

  // Each write of one document changes it a little, and comes to each watcher whole.
  void WriteHeavy() {
    const Caller caller(crowd_, "heavy-writer");
    const auto documents = v1::DocumentService::NewStub(caller.channel());
    for (int64_t number = 1; crowd_.MayWork(Phase::kWork); ++number) {
      Set(caller, *documents, "heavy", std::to_string(number % kHeavyDocuments), number);
      crowd_.Pause(Phase::kWork, milliseconds(250));
    }
  }

  void Get() {
    const Caller caller(crowd_, "getter");
    const auto documents = v1::DocumentService::NewStub(caller.channel());
    while (crowd_.MayWork(Phase::kWork)) {
      v1::GetRequest request;
      request.set_collection("pulse");
      request.set_id("pulse");
      v1::GetResponse response;
      const Steady::time_point begun = Steady::now();
      const grpc::Status status = caller.Try("Get", *documents, &Documents::Get, request, response);
      if (crowd_.CalmSince(begun)) {
        const auto took = std::chrono::duration_cast<milliseconds>(Steady::now() - begun);
        crowd_.Measure("a get", took);
        if (!status.ok()) crowd_.Break("getter: " + client::RefusalOf(status).ToString());
        if (took > kSoon) crowd_.Break("a get took " + std::to_string(took.count()) + " ms");
      }
      crowd_.Count("gets");
      crowd_.Pause(Phase::kWork, milliseconds(50));
    }
  }

  static v1::WatchRequest HeavyWatch(bool include_content) {
    v1::WatchRequest request;
    request.add_collections("heavy");
    request.set_include_content(include_content);
    if (!include_content) *request.mutable_filter() = CostlyFilter();
    return request;
  }

  // Streams that nobody reads, until the server has cut them off, or it is time for others.
  void Laze() {
    const Caller caller(crowd_, "lazy");
    while (crowd_.MayWork(Phase::kWork)) {
      std::deque<StreamContext> contexts;
      std::vector<std::unique_ptr<v1::FeedService::Stub>> stubs;
      std::vector<std::unique_ptr<grpc::ClientReader<v1::WatchResponse>>> streams;
      for (int i = 0; i < kLazyStreams; ++i) {
        stubs.push_back(v1::FeedService::NewStub(caller.channel()));
        contexts.emplace_back(caller);
        streams.push_back(stubs.back()->Watch(*contexts.back(), HeavyWatch(true)));
      }
      crowd_.Count("lazy streams", kLazyStreams);
      crowd_.Pause(Phase::kWork, milliseconds(20'000));
      for (StreamContext& context : contexts) context.BreakOff();
      for (const auto& stream : streams) {
        for (v1::WatchResponse response; stream->Read(&response);) continue;
        stream->Finish();
      }
    }
  }

  void Read(const std::string& name, bool include_content, milliseconds pause) {
    const Caller caller(crowd_, name);
    const auto feed = v1::FeedService::NewStub(caller.channel());
    while (crowd_.MayWork(Phase::kWork)) {
      StreamContext context(caller);
      const auto stream = feed->Watch(*context, HeavyWatch(include_content));
      for (v1::WatchResponse response; stream->Read(&response);) {
        crowd_.Pause(Phase::kWork, pause);
      }
      stream->Finish();
    }
  }

  Crowd& crowd_;
  std::mutex mutex_;  // guards what follows
  std::deque<Written> waiting_;
  int64_t heard_ = 0;
};

}  // namespace

std::unique_ptr<Part> MakeFeedCrowd(Crowd& crowd) { return std::make_unique<FeedCrowd>(crowd); }

}  // namespace strata::fault
