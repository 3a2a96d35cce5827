// hot_document [--writers N] [--seconds S] [--padding BYTES] [STRATEGY…]: many writers on one
// document of a real server, under each strategy; then the history must be dense, with every
// acknowledged update in it once and nothing else. Embedded history may end earlier, at its
// LAYOUT_LIMIT. Exit status 0: so it is. With a padding the document is so large, and what that
// costs others is told by one more writer, on a document of its own.
#include <grpcpp/client_context.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "clients/cpp/refusal.h"
#include "strata/v1/document_service.grpc.pb.h"
#include "tests/fault/server_process.h"
#include "tests/support/temporary_directory.h"

namespace strata::fault {
namespace {

using Steady = std::chrono::steady_clock;

struct Settings {
  int writers = 64;
  double seconds = 10;
  size_t padding = 0;  // bytes of text in the document
  std::vector<std::string> strategies;
};

// What one writer was told.
struct Report {
  std::map<int64_t, std::string> acknowledged;  // version -> request id
  std::vector<double> latencies_ms;
  int64_t attempts = 0;
  int32_t attempts_max = 0;
  bool layout_limit = false;
  std::string failure;  // of any other kind
};

// Updates a document until the time is over. Each update counts one up in the writer's own
// member, so that the final content says how many of each writer's updates there are.
void WriteUntil(Steady::time_point end, const std::string& id, int writer,
                std::shared_ptr<grpc::Channel> channel, std::atomic<bool>& stop, Report& report) {
  const auto documents = v1::DocumentService::NewStub(channel);
  v1::UpdateRequest request;
  request.set_collection("hot");
  request.set_id(id);
  request.set_allow_missing(true);
  request.set_omit_content(true);
  v1::Operation& count = *request.mutable_patch()->add_operations();
  count.set_path("/writers/" + std::to_string(writer));
  count.mutable_increment()->set_number_value(1);
  for (int64_t number = 0; Steady::now() < end && !stop; ++number) {
    request.set_request_id(std::to_string(writer) + "." + std::to_string(number));
    v1::UpdateResponse response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    const Steady::time_point sent = Steady::now();
    const grpc::Status status = documents->Update(&context, request, &response);
    if (!status.ok()) {
      const client::Refusal refusal = client::RefusalOf(status);
      report.layout_limit = refusal.reason == "LAYOUT_LIMIT";
      if (!report.layout_limit) report.failure = refusal.reason + ": " + refusal.message;
      stop = true;
      return;
    }
    report.latencies_ms.push_back(
        std::chrono::duration<double, std::milli>(Steady::now() - sent).count());
    report.acknowledged.emplace(response.document().version(), request.request_id());
    report.attempts += response.attempts();
    report.attempts_max = std::max(report.attempts_max, response.attempts());
  }
}

class Trial {
 public:
  Trial(const Settings& settings, const std::string& strategy)
      : settings_(settings), strategy_(strategy) {}

  bool Run() {
    ServerProcess server({directory_.Join("data"),
                          directory_.Join("log"),
                          "127.0.0.1:0",
                          {"--default-strategy", strategy_}});
    if (settings_.padding > 0) Pad(server);
    const Steady::time_point start = Steady::now();
    std::vector<Report> reports = Write(server);
    const double seconds = std::chrono::duration<double>(Steady::now() - start).count();
    CheckHistory(server, reports);
    Expect(server.Stop() == 0, "the server does not stop cleanly");
    Print(reports, seconds);
    if (settings_.padding > 0) PrintBeside();
    return correct_;
  }

 private:
  void Pad(const ServerProcess& server) {
    const auto documents = v1::DocumentService::NewStub(server.Connect());
    v1::CreateRequest request;
    request.set_collection("hot");
    request.set_id("document");
    request.set_request_id("padding");
    request.set_omit_content(true);
    auto& members = *request.mutable_content()->mutable_json()->mutable_fields();
    members["padding"].set_string_value(std::string(settings_.padding, 'x'));
    members["writers"].mutable_struct_value();
    v1::CreateResponse response;
    grpc::ClientContext context;
    const grpc::Status status = documents->Create(&context, request, &response);
    Expect(status.ok(), status.error_message());
    beginning_.emplace(1, request.request_id());
  }

  std::vector<Report> Write(const ServerProcess& server) {
    std::vector<Report> reports(static_cast<size_t>(settings_.writers));
    std::vector<std::thread> writers;
    std::atomic<bool> stop = false;
    const auto end = Steady::now() + std::chrono::duration_cast<Steady::duration>(
                                         std::chrono::duration<double>(settings_.seconds));
    const std::shared_ptr<grpc::Channel> channel = server.Connect();
    for (int writer = 0; writer < settings_.writers; ++writer) {
      writers.emplace_back([&, writer] {
        WriteUntil(end, "document", writer, channel, stop, reports[static_cast<size_t>(writer)]);
      });
    }
    if (settings_.padding > 0) {
      writers.emplace_back([&] { WriteUntil(end, "beside", 0, channel, stop, beside_); });
    }
    for (std::thread& writer : writers) writer.join();
    return reports;
  }

  void CheckHistory(const ServerProcess& server, const std::vector<Report>& reports) {
    std::map<int64_t, std::string> expected = beginning_;
    for (const Report& report : reports) {
      Expect(report.failure.empty(), report.failure);
      for (const auto& [version, request_id] : report.acknowledged) {
        Expect(expected.emplace(version, request_id).second,
               "version " + std::to_string(version) + " was given out twice");
      }
    }
    const auto documents = v1::DocumentService::NewStub(server.Connect());
    std::map<int64_t, std::string> actual;
    v1::HistoryRequest request;
    request.set_collection("hot");
    request.set_id("document");
    request.set_oldest_first(true);
    request.set_page_size(1000);
    do {
      v1::HistoryResponse response;
      grpc::ClientContext context;
      const grpc::Status status = documents->History(&context, request, &response);
      Expect(status.ok(), status.error_message());
      if (!status.ok()) return;
      for (const v1::Version& version : response.versions()) {
        Expect(version.version() == static_cast<int64_t>(actual.size()) + 1,
               "a gap before version " + std::to_string(version.version()));
        actual.emplace(version.version(), version.request_id());
      }
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    Expect(actual == expected, "the history is not what was acknowledged");
    CheckContent(*documents, reports);
  }

  void CheckContent(v1::DocumentService::Stub& documents, const std::vector<Report>& reports) {
    v1::GetRequest request;
    request.set_collection("hot");
    request.set_id("document");
    v1::GetResponse response;
    grpc::ClientContext context;
    const grpc::Status status = documents.Get(&context, request, &response);
    Expect(status.ok(), status.error_message());
    if (!status.ok()) return;
    const auto& content = response.document().content().json().fields();
    const auto& counts = content.at("writers").struct_value().fields();
    for (size_t writer = 0; writer < reports.size(); ++writer) {
      const auto found = counts.find(std::to_string(writer));
      const double count = found == counts.end() ? 0 : found->second.number_value();
      Expect(count == static_cast<double>(reports[writer].acknowledged.size()),
             "updates of writer " + std::to_string(writer) + " are lost or doubled");
    }
  }

  void PrintBeside() {
    std::vector<double>& waits = beside_.latencies_ms;
    Expect(beside_.failure.empty() && !waits.empty(), "beside: " + beside_.failure);
    if (waits.empty()) return;
    std::sort(waits.begin(), waits.end());
    std::printf("%-18s %9zu updates, p50 %.2f ms, p99 %.2f ms, longest %.2f ms\n", "  beside",
                waits.size(), waits[waits.size() / 2], waits[(waits.size() - 1) * 99 / 100],
                waits.back());
    std::fflush(stdout);
  }

  void Print(std::vector<Report>& reports, double seconds) const {
    std::vector<double> latencies;
    int64_t attempts = 0;
    int32_t attempts_max = 0;
    bool layout_limit = false;
    for (const Report& report : reports) {
      latencies.insert(latencies.end(), report.latencies_ms.begin(), report.latencies_ms.end());
      attempts += report.attempts;
      attempts_max = std::max(attempts_max, report.attempts_max);
      layout_limit = layout_limit || report.layout_limit;
    }
    std::sort(latencies.begin(), latencies.end());
    const size_t count = latencies.size();
    const auto percentile = [&](double part) {
      return count == 0 ? 0 : latencies[static_cast<size_t>(part * static_cast<double>(count - 1))];
    };
    std::printf("%-18s %9zu %10.0f %8.2f %5d %9.2f %9.2f  %s%s\n", strategy_.c_str(), count,
                static_cast<double>(count) / seconds,
                static_cast<double>(attempts) / static_cast<double>(std::max<size_t>(count, 1)),
                attempts_max, percentile(0.5), percentile(0.99),
                correct_ ? "dense, each once" : "WRONG",
                layout_limit ? ", until LAYOUT_LIMIT" : "");
    std::fflush(stdout);
  }

  // Says only the first few.
  void Expect(bool holds, const std::string& what) {
    if (holds) return;
    correct_ = false;
    if (++complaints_ <= 10) std::cerr << strategy_ << ": " << what << "\n";
  }

  const Settings& settings_;
  const std::string strategy_;
  test_support::TemporaryDirectory directory_;
  std::map<int64_t, std::string> beginning_;  // version -> request id
  Report beside_;
  bool correct_ = true;
  int complaints_ = 0;
};

int Main(const std::vector<std::string>& arguments) {
  Settings settings;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--writers" && i + 1 < arguments.size()) {
      settings.writers = std::atoi(arguments[++i].c_str());
    } else if (arguments[i] == "--seconds" && i + 1 < arguments.size()) {
      settings.seconds = std::atof(arguments[++i].c_str());
    } else if (arguments[i] == "--padding" && i + 1 < arguments.size()) {
      settings.padding = static_cast<size_t>(std::atoll(arguments[++i].c_str()));
    } else if (arguments[i].starts_with("-")) {
      std::cerr << "usage: hot_document [--writers N] [--seconds S] [--padding BYTES] "
                   "[STRATEGY...]\n";
      return 2;
    } else {
      settings.strategies.push_back(arguments[i]);
    }
  }
  if (settings.strategies.empty()) {
    settings.strategies = {"full-copies", "current-flag", "embedded-history", "shadow-collection",
                           "deltas"};
  }
  std::printf("%d writers, %.0f s each\n", settings.writers, settings.seconds);
  std::printf("%-18s %9s %10s %8s %5s %9s %9s\n", "strategy", "updates", "updates/s", "attempts",
              "max", "p50 ms", "p99 ms");
  bool correct = true;
  for (const std::string& strategy : settings.strategies) {
    correct = Trial(settings, strategy).Run() && correct;
  }
  return correct ? 0 : 1;
}

}  // namespace
}  // namespace strata::fault

int main(int argc, char** argv) {
  return strata::fault::Main(std::vector<std::string>(argv + 1, argv + argc));
}
