// What a Get of JSON costs by HTTP/1.1 beside the same by gRPC.
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <strata/v1/document_service.grpc.pb.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "bench/http/http_loop.h"
#include "bench/http/http_server.h"
#include "bench/http/measure.h"
#include "bench/support/rounds.h"

namespace strata::bench {
namespace {

constexpr size_t kSizes[] = {300, 2048};
constexpr int kInFlight[] = {1, 16};

// The loops look at what an answer begins with and at its size; here, once, at all of it. Throws
// std::runtime_error if the ways differ.
void CheckSame(const HttpServer& server, const Population& population) {
  v1::GetRequest request;
  request.set_collection(population.collection);
  request.set_id("0");
  request.set_encoding(v1::ENCODING_JSON);
  v1::GetResponse by_grpc;
  grpc::ClientContext context;
  const grpc::Status status =
      v1::DocumentService::NewStub(server.channel())->Get(&context, request, &by_grpc);
  if (!status.ok()) throw std::runtime_error("Get by gRPC: " + status.error_message());
  HttpConnection connection(server.http_port());
  connection.Send(GetRequestText(population.collection, request.id(), server.http_port()));
  while (!connection.Take()) continue;
  const std::string text(connection.body());
  v1::GetResponse by_http;
  if (!google::protobuf::util::JsonStringToMessage(text, &by_http).ok() ||
      !google::protobuf::util::MessageDifferencer::Equals(by_grpc, by_http)) {
    throw std::runtime_error("Get by HTTP is answered otherwise than by gRPC: " + text);
  }
}

double P50Ratio(const std::vector<Measurement>& rounds, const std::vector<Measurement>& to_rounds) {
  Histogram all;
  Histogram to_all;
  for (const Measurement& round : rounds) all.Merge(round.latencies);
  for (const Measurement& round : to_rounds) to_all.Merge(round.latencies);
  const auto p50 = [](const Histogram& of) {
    return static_cast<double>(of.Quantile(0.5).count());
  };
  return p50(to_all) == 0 ? 0 : p50(all) / p50(to_all);
}

void MeasureCase(HttpServer& server, const Population& population, int in_flight,
                 const HttpLoadSettings& settings, FigureLines& lines) {
  std::vector<Measurement> by_http;
  std::vector<Measurement> by_grpc;
  for (int round = 0; round < settings.rounds; ++round) {
    const auto seed = static_cast<uint64_t>(round);
    const auto run_http = [&] {
      JsonGets gets(population, server.http_port(), seed);
      by_http.push_back(server.Run(gets, in_flight, lines));
    };
    // Nobody always comes first.
    if (round % 2 == 0) run_http();
    by_grpc.push_back(server.Run(*GetAtRandom(population, seed), in_flight, lines));
    if (round % 2 == 1) run_http();
  }
  const std::string workload = "JSON Get of " + std::to_string(population.form.bytes) + " B, ";
  WriteCalls(workload + "HTTP", by_http, lines);
  WriteCalls(workload + "gRPC", by_grpc, lines);
  const std::string flight = ", " + std::to_string(in_flight) + " in flight";
  const std::string of = workload + "HTTP" + flight;
  const std::string to = workload + "gRPC" + flight;
  WriteRatios(of, by_http, to, by_grpc, lines);
  lines.Number("latency_p50_ratio", {{"of", of}, {"to", to}}, P50Ratio(by_http, by_grpc),
               Unit::kRatio);
}

}  // namespace

void MeasureGets(const HttpLoadSettings& settings, FigureLines& lines) {
  HttpServer server(settings, "gets", PortForPeople::kOn);
  for (const size_t bytes : kSizes) {
    const Population& population = server.Documents({.json = true, .bytes = bytes});
    CheckSame(server, population);
    for (const int in_flight : kInFlight) {
      MeasureCase(server, population, in_flight, settings, lines);
    }
  }
}

}  // namespace strata::bench
