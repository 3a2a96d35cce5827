// What the server does with more large updates than it has room for.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include "bench/growth/burst.h"
#include "bench/growth/measure.h"
#include "bench/growth/served.h"
#include "bench/growth/stalled_calls.h"
#include "bench/load/prepare.h"
#include "strata/v1/document_service.grpc.pb.h"

namespace strata::bench {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

constexpr int64_t kCalls = 1'000;
// About as many of them as the server has room for.
constexpr int64_t kCallsAccepted = 200;
// Nearly a MiB: the server's limit for a document.
constexpr size_t kDocumentBytes = 1'040'000;
constexpr std::chrono::seconds kStallMax{8};
constexpr milliseconds kSampleEvery{20};
// Of all documents of a burst, so many are looked at afterwards.
constexpr size_t kLooks = 50;

// Updates of a megabyte, all at once.
struct BurstResult {
  int64_t calls = 0;
  int64_t at_once = 0;
  bool stalled = false;  // none is sent to its last byte
  int connections = 0;
  int64_t in_flight_mib_max = 0;  // what the server was told
  int64_t sent_bytes = 0;         // that the documents of all calls have together
  int64_t accepted = 0;
  int64_t refused = 0;  // RESOURCE_EXHAUSTED, or cut off where nothing is sent to its end
  int64_t cut_off = 0;  // the same by gRPC, without a reason: the write may have taken effect
  int64_t others = 0;
  std::string other;  // the first of them
  double seconds = 0;
  int64_t resident_before = 0;
  int64_t resident_peak = 0;
  int64_t resident_after = 0;
  double get_us = 0;               // a small one, right after
  std::vector<std::string> wrong;  // what should not be
};

// "1000 updates of 1 MiB on 10 connections, 256 MiB in flight".
std::string Describe(const BurstResult& burst) {
  return std::to_string(burst.calls) + (burst.stalled ? " unfinished" : "") +
         " updates of 1 MiB on " + std::to_string(burst.connections) +
         (burst.connections == 1 ? " connection, " : " connections, ") +
         (burst.at_once == 1 ? "one after the other, " : "") +
         std::to_string(burst.in_flight_mib_max) + " MiB in flight";
}

void Write(const BurstResult& burst, FigureLines& lines) {
  const Parameters parameters = {{"burst", Describe(burst)}};
  const auto write = [&](const char* figure, int64_t value, Unit unit) {
    lines.Number(figure, parameters, static_cast<double>(value), unit);
  };
  write("accepted", burst.accepted, Unit::kCount);
  write("refused", burst.refused, Unit::kCount);
  write("cut_off", burst.cut_off, Unit::kCount);
  write("other_answers", burst.others, Unit::kCount);
  write("sent", burst.sent_bytes, Unit::kBytes);
  write("memory_before", burst.resident_before, Unit::kBytes);
  write("memory_growth", burst.resident_peak - burst.resident_before, Unit::kBytes);
  write("memory_peak", burst.resident_peak, Unit::kBytes);
  write("memory_after", burst.resident_after, Unit::kBytes);
  write("wrong_outcomes", static_cast<int64_t>(burst.wrong.size()), Unit::kCount);
  lines.Number("took", parameters, burst.seconds * 1e6, Unit::kMicroseconds);
  lines.Number("get_after", parameters, burst.get_us, Unit::kMicroseconds);
  for (const std::string& wrong : burst.wrong) lines.Wrong(Describe(burst) + ": " + wrong);
}

// The greatest resident size between its making and its end.
class PeakSampler {
 public:
  explicit PeakSampler(const Served& served)
      : peak_(served.resident_bytes()), thread_([this, &served] {
          while (!done_) {
            peak_ = std::max(peak_, served.resident_bytes());
            std::this_thread::sleep_for(kSampleEvery);
          }
        }) {}

  int64_t End() {
    done_ = true;
    thread_.join();
    return peak_;
  }

 private:
  std::atomic<bool> done_ = false;
  int64_t peak_;
  std::thread thread_;
};

class BurstMeasurement {
 public:
  BurstMeasurement(const GrowthSettings& settings, BurstResult result)
      : result_(std::move(result)),
        served_(settings.folder + "/burst-" + std::to_string(result_.connections) + "-" +
                    std::to_string(result_.at_once) + "-" + std::to_string(result_.stalled) + "-" +
                    std::to_string(result_.in_flight_mib_max),
                {"--in-flight-mib-max", std::to_string(result_.in_flight_mib_max)}),
        documents_(v1::DocumentService::NewStub(served_.channel())) {}

  BurstResult Measure() {
    Population small = served_.MakePopulation("small", "deltas");
    small.versions.resize(1);
    Prepare(served_.channel(), *Fill(small));
    served_.MakePopulation("large", "deltas");
    result_.sent_bytes = result_.calls * static_cast<int64_t>(kDocumentBytes);
    result_.resident_before = served_.resident_bytes();
    result_.stalled ? Stall() : Burst();
    std::cerr << "." << std::flush;
    return std::move(result_);
  }

 private:
  void Burst() {
    PeakSampler sampler(served_);
    const Steady::time_point start = Steady::now();
    const std::vector<BurstAnswer> answers = RunBurst({.address = served_.address(),
                                                       .collection = "large",
                                                       .connections = result_.connections,
                                                       .calls = result_.calls,
                                                       .at_once = result_.at_once,
                                                       .document_bytes = kDocumentBytes});
    GetAfter(start);
    result_.resident_peak = sampler.End();
    Sort(answers);
    LookLater();
    Look(answers);
  }

  void Stall() {
    PeakSampler sampler(served_);
    const Steady::time_point start = Steady::now();
    {
      StalledCalls calls(std::stoi(served_.address().substr(served_.address().rfind(':') + 1)),
                         result_.connections, result_.calls, kDocumentBytes);
      calls.Send(kStallMax);
      result_.sent_bytes = calls.sent_bytes();
      result_.refused = calls.refused();
      GetAfter(start);
    }
    result_.resident_peak = sampler.End();
    LookLater();
  }

  // Whether the server still answers, right after a burst that has begun at `start`.
  void GetAfter(Steady::time_point start) {
    const Steady::time_point end = Steady::now();
    result_.seconds = std::chrono::duration<double>(end - start).count();
    if (Get("small", "0").error_code() != grpc::StatusCode::OK) {
      result_.wrong.push_back("a small Get after the burst was refused");
    }
    result_.get_us = std::chrono::duration<double, std::micro>(Steady::now() - end).count();
  }

  void LookLater() {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    result_.resident_after = served_.resident_bytes();
  }

  grpc::Status Get(const std::string& collection, const std::string& id) {
    v1::GetRequest request;
    request.set_collection(collection);
    request.set_id(id);
    request.set_encoding(v1::ENCODING_BSON);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    response_.Clear();
    return documents_->Get(&context, request, &response_);
  }

  void Sort(const std::vector<BurstAnswer>& answers) {
    for (const BurstAnswer& answer : answers) {
      if (answer.code == grpc::StatusCode::OK) {
        ++result_.accepted;
      } else if (answer.code == grpc::StatusCode::RESOURCE_EXHAUSTED) {
        ++(answer.has_reason ? result_.refused : result_.cut_off);
      } else if (result_.others++ == 0) {
        result_.other = std::to_string(answer.code) + " " + answer.message;
      }
    }
    if (result_.accepted == 0) result_.wrong.push_back("no update was accepted");
    if (result_.others > 0) {
      result_.wrong.push_back(std::to_string(result_.others) +
                              " answers besides OK and RESOURCE_EXHAUSTED: " + result_.other);
    }
  }

  // What was accepted is there, and what was refused, with a reason, wrote nothing.
  void Look(const std::vector<BurstAnswer>& answers) {
    for (size_t i = 0; i < answers.size(); i += std::max<size_t>(1, answers.size() / kLooks)) {
      const grpc::Status status = Get("large", std::to_string(i));
      const bool there =
          status.ok() && response_.document().content().bson().size() == kDocumentBytes;
      const bool absent = status.error_code() == grpc::StatusCode::NOT_FOUND;
      const int code = answers[i].code;
      if (code == grpc::StatusCode::OK && !there) {
        result_.wrong.push_back("an accepted document is not there: " + std::to_string(i));
      } else if (code == grpc::StatusCode::RESOURCE_EXHAUSTED && answers[i].has_reason && !absent) {
        result_.wrong.push_back("a refused document is there: " + std::to_string(i));
      }
    }
  }

  BurstResult result_;
  Served served_;
  const std::unique_ptr<v1::DocumentService::Stub> documents_;
  v1::GetResponse response_;
};

}  // namespace

void MeasureBursts(const GrowthSettings& settings, FigureLines& lines) {
  struct Case {
    int connections;
    int64_t in_flight_mib_max;
    int64_t calls = kCalls;
    int64_t at_once = kCalls;
    bool stalled = false;
  };
  // The first shows what the engine keeps of so many documents, however they come, and the one with
  // the least in flight what gRPC has in hand.
  for (const Case& one : {Case{1, 256, kCallsAccepted, 1}, Case{1, 256}, Case{10, 256},
                          Case{10, 64}, Case{10, 8}, Case{10, 64, kCalls, kCalls, true}}) {
    BurstResult planned;
    planned.calls = one.calls;
    planned.at_once = one.at_once;
    planned.stalled = one.stalled;
    planned.connections = one.connections;
    planned.in_flight_mib_max = one.in_flight_mib_max;
    Write(BurstMeasurement(settings, planned).Measure(), lines);
  }
}

}  // namespace strata::bench
