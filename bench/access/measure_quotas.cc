// What quotas promise: neither less nor more than they say, the truth about when to come back, and
// that others do not notice.
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "bench/access/measure.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "strata/v1/document_service.grpc.pb.h"
#include "tests/withstand/documents.h"
#include "tests/withstand/honest_caller.h"

namespace strata::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Steady = std::chrono::steady_clock;
using withstand::Documents;
using withstand::HonestCaller;
using withstand::HonestResult;

constexpr int kTimesTheQuota = 10;
constexpr int kHastyThreads = 10;
constexpr milliseconds kEvery{1000 * kHastyThreads / (kTimesTheQuota * kHastyCallsPerSecond)};
constexpr milliseconds kSteadyEvery{5};
constexpr milliseconds kDeadline{10'000};
constexpr int kTurns = 5;
constexpr seconds kTurn{2};
constexpr int kRetries = 20;

void Wait(milliseconds duration) { poll(nullptr, 0, static_cast<int>(duration.count())); }

// As the server said it, which is finer than a millisecond.
std::optional<microseconds> RetryAfter(const grpc::Status& status) {
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return std::nullopt;
  for (const google::protobuf::Any& detail : details.details()) {
    google::rpc::RetryInfo retry;
    if (!detail.UnpackTo(&retry)) continue;
    return seconds(retry.retry_delay().seconds()) +
           microseconds(retry.retry_delay().nanos() / 1000);
  }
  return std::nullopt;
}

// Gets of one document by one principal.
class Getter {
 public:
  Getter(const SecuredServer& server, const std::string& name)
      : documents_(server.Connect()), authorization_(server.AuthorizationOf(name)) {}

  grpc::Status Get(grpc::ClientContext& context) const {
    Present(authorization_, context);
    return documents_.Get(context, "small", "0");
  }
  grpc::Status Get() const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    return Get(context);
  }

 private:
  const Documents documents_;
  const std::string authorization_;
};

void Fill(const SecuredServer& server) {
  grpc::ClientContext context;
  Present(server.AuthorizationOf(kOwner), context);
  const grpc::Status status = Documents(server.Connect()).Write(context, "small", "0", 100);
  if (!status.ok()) throw std::runtime_error("cannot prepare: " + status.error_message());
}

std::unique_ptr<HonestCaller> CallSteadily(const Getter& getter) {
  return std::make_unique<HonestCaller>(
      [&getter](grpc::ClientContext& context, int64_t) { return getter.Get(context); },
      kSteadyEvery, kDeadline);
}

// What a steady caller met with in all turns.
struct Steadily {
  const char* when;
  std::vector<std::chrono::nanoseconds> latencies{};

  void Add(const HonestResult& result, FigureLines& lines) {
    latencies.insert(latencies.end(), result.latencies.begin(), result.latencies.end());
    if (!result.failures.empty()) lines.Wrong("a call without quota failed: " + result.failures[0]);
  }
  void Write(FigureLines& lines) {
    const Parameters parameters = {{"steady_caller", when}};
    std::sort(latencies.begin(), latencies.end());
    const HonestResult all{.latencies = latencies, .failures = {}};
    const auto time = [&](const char* figure, double share) {
      const std::chrono::duration<double, std::micro> quantile = all.Quantile(share);
      lines.Number(figure, parameters, quantile.count(), Unit::kMicroseconds);
    };
    lines.Number("answered", parameters, static_cast<double>(latencies.size()), Unit::kCount);
    time("latency_p50", 0.5);
    time("latency_p99", 0.99);
  }
};

// A caller at ten times its quota, from several threads on a connection each.
class Hasty {
 public:
  explicit Hasty(const SecuredServer& server) {
    for (int i = 0; i < kHastyThreads; ++i) {
      getters_.push_back(std::make_unique<Getter>(server, kHasty));
      const Getter& getter = *getters_.back();
      callers_.push_back(std::make_unique<HonestCaller>(
          [this, &getter](grpc::ClientContext& context, int64_t) {
            const grpc::Status status = getter.Get(context);
            if (status.ok()) ++taken_;
            const bool refused = status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
            if (refused) ++refused_;
            return refused ? grpc::Status::OK : status;
          },
          kEvery, kDeadline));
    }
  }

  int64_t taken() const { return taken_; }
  int64_t refused() const { return refused_; }
  void End(FigureLines& lines) {
    for (const auto& caller : callers_) {
      const HonestResult result = caller->End();
      if (!result.failures.empty()) lines.Wrong("beyond the quota: " + result.failures[0]);
    }
  }

 private:
  std::vector<std::unique_ptr<Getter>> getters_;
  std::atomic<int64_t> taken_ = 0;
  std::atomic<int64_t> refused_ = 0;
  std::vector<std::unique_ptr<HonestCaller>> callers_;
};

// In turns, because what else the machine does comes and goes.
void MeasureShare(const SecuredServer& server, FigureLines& lines) {
  const Getter steady(server, kSteady);
  Steadily alone{.when = "alone"};
  Steadily beside{.when = "beside one at ten times its quota"};
  double taken = 0;
  double refused = 0;
  std::chrono::duration<double> passed{0};
  for (int turn = 0; turn < kTurns; ++turn) {
    const auto first = CallSteadily(steady);
    Wait(kTurn);
    alone.Add(first->End(), lines);
    Hasty hasty(server);
    Wait(seconds(2));  // what had been saved up is spent
    const Steady::time_point begin = Steady::now();
    const int64_t taken_before = hasty.taken();
    const int64_t refused_before = hasty.refused();
    const auto second = CallSteadily(steady);
    Wait(kTurn);
    taken += static_cast<double>(hasty.taken() - taken_before);
    refused += static_cast<double>(hasty.refused() - refused_before);
    passed += Steady::now() - begin;
    beside.Add(second->End(), lines);
    hasty.End(lines);
  }
  alone.Write(lines);
  beside.Write(lines);
  const Parameters parameters = {{"quota_calls_per_second", kHastyCallsPerSecond}};
  lines.Number("asked_of_quota", parameters,
               (taken + refused) / passed.count() / kHastyCallsPerSecond, Unit::kRatio);
  lines.Number("taken_of_quota", parameters, taken / passed.count() / kHastyCallsPerSecond,
               Unit::kRatio);
}

// How far the time after which a call was taken lies from what RetryInfo said, without a sign.
microseconds RetryError(const Getter& getter) {
  grpc::Status status = getter.Get();
  while (status.ok()) status = getter.Get();
  const Steady::time_point refused = Steady::now();
  const std::optional<microseconds> said = RetryAfter(status);
  if (!said) throw std::runtime_error("refused without RetryInfo: " + status.error_message());
  while (!getter.Get().ok()) {
  }
  const auto needed = std::chrono::duration_cast<microseconds>(Steady::now() - refused);
  return microseconds(std::abs((needed - *said).count()));
}

void MeasureRetryInfo(const SecuredServer& server, FigureLines& lines) {
  const Getter slow(server, kSlow);
  std::vector<microseconds> errors;
  for (int i = 0; i < kRetries; ++i) errors.push_back(RetryError(slow));
  std::sort(errors.begin(), errors.end());
  const Parameters parameters = {{"quota_calls_per_second", kSlowCallsPerSecond}};
  const auto number = [&](const char* figure, microseconds error) {
    lines.Number(figure, parameters, static_cast<double>(error.count()), Unit::kMicroseconds);
  };
  number("retry_info_error_p50", errors[errors.size() / 2]);
  number("retry_info_error_max", errors.back());
}

}  // namespace

void MeasureQuotas(const AccessSettings& settings, const Secrets& secrets, FigureLines& lines) {
  const SecuredServer server(secrets, {.name = "quotas", .tokens = true, .policy = true},
                             settings.folder + "/quotas");
  Fill(server);
  MeasureShare(server, lines);
  MeasureRetryInfo(server, lines);
}

}  // namespace strata::bench
