// enrollment_storm [--messages N] [--students N] [--streams N]… [--kill]: enrollment messages,
// shuffled and some of them twice, through Apply by several streams at once, to the real server;
// then every student must be enrolled as if each message had been applied once, in order. With
// --kill the server is killed in the midst, and all messages are sent again. Exit status 0: all
// students are.
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
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "strata/v1/document_service.grpc.pb.h"
#include "strata/v1/enrollment_service.grpc.pb.h"
#include "tests/fault/server_process.h"
#include "tests/long/storm_messages.h"
#include "tests/support/temporary_directory.h"

namespace strata::fault {
namespace {

struct Options {
  int64_t messages = 1'000'000;
  int64_t students = 10'000;
  std::vector<int> streams;
  bool kill = false;
};

struct Answers {
  std::atomic<int64_t> received = 0;
  std::atomic<int64_t> applied = 0;
  std::atomic<int64_t> refused = 0;
};

// Sends every `streams`-th message from `first` on, and reads an answer for each; ends early,
// without complaint, if the server dies.
void RunStream(const std::shared_ptr<grpc::Channel>& channel,
               const std::vector<StormMessage>& messages, size_t first, size_t streams,
               Answers& answers) {
  const auto stub = v1::EnrollmentService::NewStub(channel);
  grpc::ClientContext context;
  const auto stream = stub->Apply(&context);
  std::thread writer([&] {
    v1::ApplyRequest request;
    for (size_t i = first; i < messages.size(); i += streams) {
      const StormMessage& message = messages[i];
      request.set_student_id(StudentId(message.student));
      request.set_class_name(ClassName(message.class_number));
      request.set_sequence_number(message.sequence_number);
      request.set_operation(message.enroll ? v1::ENROLLMENT_OPERATION_ENROLL
                                           : v1::ENROLLMENT_OPERATION_UNENROLL);
      request.mutable_change()->set_actor("stream " + std::to_string(first));
      request.mutable_change()->set_reason("message " + std::to_string(message.sequence_number));
      if (!stream->Write(request)) break;
    }
    stream->WritesDone();
  });
  v1::ApplyResponse response;
  while (stream->Read(&response)) {
    ++answers.received;
    if (response.result() == v1::ENROLLMENT_RESULT_APPLIED) ++answers.applied;
    if (response.has_error() && answers.refused++ == 0) {
      std::cerr << response.error().ShortDebugString() << "\n";
    }
  }
  writer.join();
  stream->Finish();
}

class Storm {
 public:
  Storm(const Options& options, const std::vector<StormMessage>& messages,
        const StormOracle& oracle)
      : options_(options), messages_(messages), oracle_(oracle) {}

  bool Run(int streams) {
    std::optional<ServerProcess> server(std::in_place, settings_);
    settings_.listen = server->address();
    int64_t before_the_kill = 0;
    if (options_.kill) {
      before_the_kill = SendUntilKilled(*server, streams);
      server.emplace(settings_);
    }
    Answers answers;
    const auto begin = std::chrono::steady_clock::now();
    Send(*server, streams, answers);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const auto count = static_cast<int64_t>(messages_.size());
    Expect(answers.received == count,
           "an answer for each message, not " + std::to_string(answers.received.load()));
    Expect(answers.refused == 0, std::to_string(answers.refused.load()) + " were refused");
    const int64_t versions = CheckStudents(*server);
    Expect(options_.kill || versions == answers.applied,
           "a version for each message that took effect, not " + std::to_string(versions));
    CheckHistory(*server);
    Expect(server->Stop() == 0, "the server stops");
    std::printf("%7d %10lld %12lld %10lld %10.1f %12.0f %s\n", streams,
                static_cast<long long>(count), static_cast<long long>(before_the_kill),
                static_cast<long long>(versions), seconds.count(),
                static_cast<double>(count) / seconds.count(), equal_ ? "equal" : "DIFFERENT");
    std::fflush(stdout);
    return equal_;
  }

 private:
  void Send(const ServerProcess& server, int streams, Answers& answers) {
    std::vector<std::thread> threads;
    for (int i = 0; i < streams; ++i) {
      threads.emplace_back([&, i] {
        RunStream(server.Connect(), messages_, static_cast<size_t>(i), static_cast<size_t>(streams),
                  answers);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // How many answers came before the kill, about a third of all.
  int64_t SendUntilKilled(ServerProcess& server, int streams) {
    Answers answers;
    std::atomic<bool> over = false;
    std::thread killer([&] {
      const auto enough = static_cast<int64_t>(messages_.size() / 3);
      while (!over && answers.received < enough) std::this_thread::yield();
      server.Kill();
    });
    Send(server, streams, answers);
    over = true;
    killer.join();
    return answers.received;
  }

  // Every student against the oracle; answers the number of versions.
  int64_t CheckStudents(const ServerProcess& server) {
    const auto stub = v1::EnrollmentService::NewStub(server.Connect());
    int64_t versions = 0;
    for (int64_t student = 0; student < options_.students && equal_; ++student) {
      v1::GetEnrollmentsRequest request;
      request.set_student_id(StudentId(student));
      request.set_include_tombstones(true);
      v1::GetEnrollmentsResponse response;
      grpc::ClientContext context;
      const grpc::Status status = stub->GetEnrollments(&context, request, &response);
      Expect(status.ok(), status.error_message());
      versions += response.version();
      const auto& expected = oracle_[static_cast<size_t>(student)];
      bool same = response.enrollments_size() == static_cast<int>(expected.size());
      auto each = expected.begin();
      for (int i = 0; same && i < response.enrollments_size(); ++i, ++each) {
        const v1::Enrollment& actual = response.enrollments(i);
        same = actual.class_name() == each->first && actual.enrolled() == each->second.enroll &&
               actual.sequence_number() == each->second.sequence_number;
      }
      Expect(same, "student " + StudentId(student) + ": " + response.ShortDebugString());
    }
    return versions;
  }

  // The history of one student reads as what happened: each version is one message of its own,
  // newer than any before it about its class, which the version then shows.
  void CheckHistory(const ServerProcess& server) {
    const auto stub = v1::DocumentService::NewStub(server.Connect());
    v1::HistoryRequest request;
    request.set_collection("students");
    request.set_id(StudentId(options_.students / 2));
    request.set_oldest_first(true);
    request.set_include_content(true);
    request.set_page_size(1000);
    v1::HistoryResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub->History(&context, request, &response);
    Expect(status.ok() && response.versions_size() > 0, status.error_message());
    std::map<std::string, int64_t> newest;
    for (int i = 0; i < response.versions_size(); ++i) {
      const v1::Version& version = response.versions(i);
      Expect(version.version() == i + 1, "versions are dense");
      int changed = 0;
      for (const char* member : {"classes", "deleted_classes"}) {
        for (const auto& entry :
             version.content().json().fields().at(member).list_value().values()) {
          const auto& fields = entry.struct_value().fields();
          const auto number = static_cast<int64_t>(fields.at("seq").number_value());
          int64_t& seen = newest[fields.at("name").string_value()];
          Expect(number >= seen, "no number goes back");
          if (number == seen) continue;
          ++changed;
          seen = number;
          Expect(version.change().reason() == "message " + std::to_string(number),
                 "the version names its message");
        }
      }
      Expect(changed == 1, "a version is one message");
    }
  }

  void Expect(bool holds, const std::string& what) {
    if (holds) return;
    equal_ = false;
    std::cerr << what << "\n";
  }

  const Options& options_;
  const std::vector<StormMessage>& messages_;
  const StormOracle& oracle_;
  test_support::TemporaryDirectory directory_;
  ServerSettings settings_{directory_.Join("data"), directory_.Join("log"), "127.0.0.1:0", {}};
  bool equal_ = true;
};

std::optional<Options> ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--kill") {
      options.kill = true;
      continue;
    }
    if (i + 1 == arguments.size()) return std::nullopt;
    const int64_t number = std::atoll(arguments[i + 1].c_str());
    if (number < 1) return std::nullopt;
    if (arguments[i] == "--messages") {
      options.messages = number;
    } else if (arguments[i] == "--students") {
      options.students = number;
    } else if (arguments[i] == "--streams") {
      options.streams.push_back(static_cast<int>(number));
    } else {
      return std::nullopt;
    }
    ++i;
  }
  if (options.streams.empty()) options.streams = {1, 2, 4, 8};
  return options;
}

int Main(const std::vector<std::string>& arguments) {
  const std::optional<Options> options = ParseOptions(arguments);
  if (!options) {
    std::cerr
        << "usage: enrollment_storm [--messages N] [--students N] [--streams N]... [--kill]\n";
    return 2;
  }
  const char* const given = std::getenv("STRATA_TEST_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::mt19937_64 random(seed);
  const std::vector<StormMessage> messages =
      MakeStormMessages(options->messages, options->students, random);
  const StormOracle oracle = MakeStormOracle(options->students, messages);
  std::printf("%lld students, seed %llu%s\n", static_cast<long long>(options->students),
              static_cast<unsigned long long>(seed), options->kill ? ", killed in the midst" : "");
  std::printf("%7s %10s %12s %10s %10s %12s\n", "streams", "messages", "before kill", "versions",
              "seconds", "messages/s");
  bool equal = true;
  for (const int streams : options->streams) {
    equal = Storm(*options, messages, oracle).Run(streams) && equal;
  }
  return equal ? 0 : 1;
}

}  // namespace
}  // namespace strata::fault

int main(int argc, char** argv) {
  return strata::fault::Main(std::vector<std::string>(argv + 1, argv + argc));
}
