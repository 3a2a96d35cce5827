// A denial must not tell whether a thing is there, neither by what it says nor by when.
#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "bench/access/measure.h"
#include "clients/cpp/refusal.h"
#include "strata/v1/document_service.grpc.pb.h"
#include "tests/withstand/documents.h"

namespace strata::bench {
namespace {

using Steady = std::chrono::steady_clock;

constexpr int kDenied = 1'000;

// Names of one length, so that answers are.
struct Kind {
  const char* name;
  const char* collection;
  const char* prefix;  // of ids
  std::vector<std::chrono::nanoseconds> latencies{};
  size_t answer_bytes = 0;
};

void FillDenied(const SecuredServer& server) {
  const auto stub = v1::DocumentService::NewStub(server.Connect());
  for (int i = 0; i < kDenied; ++i) {
    v1::CreateRequest request;
    request.set_collection("books");
    request.set_id("here-" + std::to_string(i));
    (*request.mutable_content()->mutable_json()->mutable_fields())["n"].set_number_value(i);
    v1::CreateResponse response;
    grpc::ClientContext context;
    Present(server.AuthorizationOf(kOwner), context);
    const grpc::Status status = stub->Create(&context, request, &response);
    if (!status.ok()) throw std::runtime_error("cannot prepare: " + status.error_message());
  }
}

class Denied {
 public:
  Denied(const SecuredServer& server, FigureLines& lines)
      : stub_(v1::DocumentService::NewStub(server.Connect())),
        authorization_(server.AuthorizationOf(kStranger)),
        lines_(lines) {}

  void Get(int64_t n, Kind& kind) {
    v1::GetRequest request;
    request.set_collection(kind.collection);
    request.set_id(kind.prefix + std::to_string(n % kDenied));
    v1::GetResponse response;
    grpc::ClientContext context;
    Present(authorization_, context);
    const Steady::time_point begin = Steady::now();
    const grpc::Status status = stub_->Get(&context, request, &response);
    kind.latencies.push_back(Steady::now() - begin);
    if (status.error_code() != grpc::StatusCode::PERMISSION_DENIED) {
      return lines_.Wrong(std::string("a Get was not denied of a ") + kind.name);
    }
    const size_t bytes = status.error_message().size() + status.error_details().size();
    if (kind.answer_bytes == 0) kind.answer_bytes = bytes;
    if (bytes != kind.answer_bytes) lines_.Wrong("two denials differ in length");
    Compare(kind.collection, status);
  }

 private:
  // All denials of one collection say the same, whatever is there. (The order in which protobuf
  // writes the members of a map is chance.)
  void Compare(const std::string& collection, const grpc::Status& status) {
    if (collection != "books") return;
    const std::string text = client::RefusalOf(status).ToString();
    if (text_.empty()) text_ = text;
    if (text != text_) lines_.Wrong("two denials of one collection differ");
  }

  const std::unique_ptr<v1::DocumentService::Stub> stub_;
  const std::string authorization_;
  FigureLines& lines_;
  std::string text_;
};

std::chrono::nanoseconds MedianOf(std::vector<std::chrono::nanoseconds> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

void MeasureDenials(const AccessSettings& settings, const Secrets& secrets, FigureLines& lines) {
  const SecuredServer server(secrets, {.name = "denials", .tokens = true, .policy = true},
                             settings.folder + "/denials");
  FillDenied(server);
  std::array<Kind, 3> kinds = {
      Kind{.name = "document", .collection = "books", .prefix = "here-"},
      Kind{.name = "document that is not there", .collection = "books", .prefix = "none-"},
      Kind{.name = "document of a collection that is not there",
           .collection = "nooks",
           .prefix = "here-"}};
  Denied denied(server, lines);
  for (int64_t n = 0; n < 100; ++n) {  // what was never asked before costs once
    for (Kind& kind : kinds) denied.Get(n, kind);
  }
  for (Kind& kind : kinds) kind.latencies.clear();
  // In turns, in another order each time.
  for (size_t n = 0; n < static_cast<size_t>(settings.calls); ++n) {
    for (size_t i = 0; i < kinds.size(); ++i) {
      denied.Get(static_cast<int64_t>(n), kinds[(n + i) % kinds.size()]);
    }
  }
  const double existing = static_cast<double>(MedianOf(kinds[0].latencies).count());
  for (const Kind& kind : kinds) {
    const Parameters parameters = {{"denied", kind.name}, {"calls", settings.calls}};
    const double median = static_cast<double>(MedianOf(kind.latencies).count());
    lines.Number("latency_p50", parameters, median / 1e3, Unit::kMicroseconds);
    lines.Number("of_existing", parameters, median / existing, Unit::kRatio);
    lines.Number("answer_bytes", parameters, static_cast<double>(kind.answer_bytes), Unit::kBytes);
  }
}

}  // namespace strata::bench
